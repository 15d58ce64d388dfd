"""`Connector`, the whole configuration as one frozen value, and its sections on streaming, Dagster and Spark.

Everything is hashable and picklable because it travels to Spark workers; secrets travel unresolved. Times are in the
units that their names state. `read_properties.py` makes a connector from configured texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, ValidationInfo, field_validator

from mssql_cdc.config.connection import Connection
from mssql_cdc.config.delta_settings import DATABASE, DeltaSettings
from mssql_cdc.config.filters import Filters, GuardrailSettings, split_name, spoken_name
from mssql_cdc.config.inert import InertSettings
from mssql_cdc.config.java_regex import java_pattern
from mssql_cdc.config.lineage_settings import LineageSettings
from mssql_cdc.config.property import GivenProperty, Group, members, plain, prop, section
from mssql_cdc.config.record_settings import RecordSettings
from mssql_cdc.config.redaction import SPARK_REDACTION, Redactor, spark_redaction
from mssql_cdc.config.report import Report
from mssql_cdc.config.secret import Secret, is_sensitive, reveal
from mssql_cdc.config.signal_settings import NotificationSettings, SignalSettings
from mssql_cdc.config.snapshot_settings import SnapshotSettings
from mssql_cdc.errors import ConfigurationError

SANITIZE_PATTERN = "custom.sanitize.pattern"
SQL_SERVER = "io.debezium.connector.sqlserver.SqlServerConnector"
_POLL_INTERVAL_MS = 500
_TICK_SECONDS = 5


def _sql_server(name: str) -> str:
    """The class; Kafka Connect also accepts its simple name, with or without `Connector`."""
    if name.strip() not in {"", SQL_SERVER, "SqlServerConnector", "SqlServer"}:
        raise ValueError(f"found {name!r}, expected {SQL_SERVER}: no other source is supported")
    return SQL_SERVER


def _names(expression: str) -> str:
    java_pattern(expression, ignore_case=True)
    return expression


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    lowered = [name.lower() for name in names]
    doubled = sorted({name for name in names if lowered.count(name.lower()) > 1})
    if doubled:
        raise ValueError(f"names {', '.join(doubled)} more than once (names are case-insensitive); keep one")
    if not names:
        raise ValueError("found no name, expected at least one database")
    return names


def _named(one: GivenProperty, _: Report) -> tuple[str, str | Secret]:
    return one.name, one.value


@section(Group.STREAM)
class StreamingSettings:
    """Reading ranges. `max_transactions` is None unless it is set."""

    poll_interval_ms: int | None = prop("poll.interval.ms", None, "STR-01", debezium=500, ge=1)
    """Sets the pause in milliseconds before an idle source is polled again: by `mssql-cdc run`, by a run in Dagster
    (500 by default) and by the sensor (5,000 by default, rounded up to whole seconds)."""
    query_mode: Literal["function", "direct"] | None = prop(
        "data.query.mode", None, "STR-05 STR-06", debezium="function"
    )
    """Selects how changes are read: `direct` from the change tables, `function` through `fn_cdc_get_all_changes_…`. By
    default `direct` wherever SELECT is granted: it is faster and gives the order of every row."""
    max_transactions: int | None = prop("max.iteration.transactions", None, "STR-02", debezium=500, ge=0)
    """Limits the transactions in one range; 0, or leaving it out, means no limit."""
    page_rows: int = prop("streaming.fetch.size", 0, "STR-08", ge=0)
    """Limits the rows per page of a change table; 0 = the connector chooses."""
    fetch_size: int | None = prop("query.fetch.size", None, "STR-09", debezium=10_000, ge=0)
    """Sets the rows per fetch in streaming; 0, or leaving it out, lets the connector choose."""
    heartbeat_interval_ms: int = prop("heartbeat.interval.ms", 0, "HB-01", ge=0)
    """Sets the minimum time between two heartbeats in milliseconds; 0 = no heartbeats. Idle positions advance without
    them."""
    heartbeat_query: str | None = prop("heartbeat.action.query", None, "HB-03")
    """Runs this statement on the source with each heartbeat. If it fails, the poll fails."""
    max_retries: int = prop("errors.max.retries", -1, "ERR-02", ge=-1)
    """Limits the consecutive retries of `mssql-cdc run` after retriable errors; -1 = no limit, 0 = never. In Dagster
    the sensor retries, and `dagster.max.attempts` limits the attempts at a range."""
    retry_wait_ms: int = prop("retriable.restart.connector.wait.ms", 10_000, "ERR-02", ge=0)
    """Waits this many milliseconds before the next attempt."""

    delay_ms: int = prop("streaming.delay.ms", 0, "SNP-30", ge=0)
    """Waits this many milliseconds after the last rows of a table's snapshot before the table streams."""

    @property
    def poll_seconds(self) -> float:
        """The pause of a loop before it polls an idle source again."""
        return (self.poll_interval_ms or _POLL_INTERVAL_MS) / 1000

    @property
    def tick_seconds(self) -> int:
        """The pause between two ticks of a sensor, in whole seconds."""
        return _TICK_SECONDS if self.poll_interval_ms is None else -(-self.poll_interval_ms // 1000)

    @field_validator("max_transactions")
    @classmethod
    def _no_limit(cls, value: int | None) -> int | None:
        return value or None


Window = Literal["15 minutes", "hour", "day"]


@section(Group.RUN)
class DagsterSettings:
    """Ranges and attempts."""

    range_max_rows: int = prop("dagster.range.max.rows", 5_000_000, ge=1)
    """Limits the change rows in one range. They are counted before the range is fixed; no transaction is split."""
    max_attempts: int = prop("dagster.max.attempts", 5, ge=1)
    """Limits the attempts at a range. After that, a failing table becomes `failed` and the others continue; the next
    run retries it (with `dagster.max.run.seconds=0`, the first run of the next window)."""
    max_run_seconds: int = prop("dagster.max.run.seconds", 3600, ge=0)
    """Limits how many seconds a run reads ranges as they arrive before its successor takes over; 0 = one range per
    run."""
    window: Window = prop("dagster.window", "hour")
    """Sets the length of the commit-time windows (UTC) by which Dagster partitions the change logs."""
    window_days: int = prop("dagster.window.days", 90, ge=1)
    """Limits how many days of windows Dagster shows. Older windows are hidden; their rows stay in the lake."""


@section(Group.RUN)
class SparkConf:
    """`spark.*` as given; `conf` keeps the full names."""

    conf: Annotated[tuple[tuple[str, str | Secret], ...], members(_named)] = prop("spark.*", (), late=True)
    """Sets an option of the Spark session as is, such as `spark.master` or `spark.remote`. Spark's UI and event logs
    hide what counts as secret here, unless `spark.redaction.regex` says otherwise."""

    def read(self) -> dict[str, str]:
        """All settings, with references resolved now (raises MissingSecretError).

        Secrets whose names do not reveal them are added to Spark's redaction.
        """
        own = [name for name, value in self.conf if isinstance(value, Secret) and not is_sensitive(name)]
        hidden = {SPARK_REDACTION: spark_redaction(own)} if own else {}
        return hidden | {name: reveal(value) for name, value in self.conf}


@section(Group.CONNECT)
class Connector:
    """One Debezium configuration: one logical server, one or more databases.

    `topic_prefix` identifies it in asset keys, paths and pools; `name` appears only in messages. `notices` are lines
    for the user about properties that have no effect here, `unrendered` are the properties with which no records are
    rendered because they would differ from those that consumers expect. `properties` is the configuration as given
    (current names, secrets wrapped), for display; `redaction` says which of its values are secrets.
    """

    connector_class: Annotated[str, AfterValidator(_sql_server)] = prop("connector.class", "", "DEP-01")
    """Names the connector's Java class, which must be that of Debezium's SQL Server connector."""

    name: str = prop("name", "", "DEP-01")
    """Names the connector in messages; the name of its file by default."""
    topic_prefix: Annotated[str, AfterValidator(plain)] = prop(
        "topic.prefix", ..., "TOP-07", older=("database.server.name",)
    )
    """Names the logical server in asset keys, paths and topics. Never change it once something is captured."""
    databases: Annotated[tuple[str, ...], AfterValidator(_once)] = prop(
        "database.names", ..., "HA-02", older=("database.dbname",)
    )
    """Names the databases to capture. Each gets its own assets and positions."""
    sanitize_pattern: Annotated[str, AfterValidator(_names)] | None = prop(SANITIZE_PATTERN, None, group=Group.RUN)
    """Makes further properties secret: no log, page or event shows their values. Matches their whole names as a regular
    expression, in any case (newer than 3.3.1). In Debezium it replaces the built-in names; here those are always
    secrets, too."""
    connection: Connection
    signals: SignalSettings
    filters: Filters
    guardrail: GuardrailSettings
    snapshot: SnapshotSettings
    notifications: NotificationSettings
    streaming: StreamingSettings
    records: RecordSettings
    delta: DeltaSettings
    dagster: DagsterSettings
    spark: SparkConf
    lineage: LineageSettings
    properties: tuple[tuple[str, str | Secret], ...] = ()
    redaction: Redactor = Redactor()
    notices: tuple[str, ...] = ()
    unrendered: tuple[str, ...] = ()

    @property
    def redact(self) -> Redactor:
        """Removes every secret of the configuration, including those of extensions, from a text."""
        filters = self.filters
        salts = [rule.salt for rule in (*filters.hashed_v1, *filters.hashed) if rule.salt is not None]
        given = self.redaction
        return replace(given, secrets=(*given.secrets, *salts), statements=self.connection.initial_statements)

    def with_real_names(self, names: Iterable[str]) -> Connector:
        """Return the connector with the databases' names as the server spells them, whatever their case (PRE-11).

        Args:
            names: The known names; other databases keep their configured names.
        """
        real = {name.casefold(): name for name in names}
        return replace(self, databases=tuple(real.get(name.casefold(), name) for name in self.databases))

    def describes(self, catalog: str, schema: str, table: str) -> bool:
        """Whether schema change records describe a table that is not captured (SCH-11).

        Args:
            catalog: the database.
            schema: the table's schema.
            table: the table's name.
        """
        tables = self.filters.tables
        if tables.skips_builtin(schema, table):
            return False
        if self.snapshot.only_captured_tables:
            return tables.matches(catalog, schema, table)
        return tables.matches_schema(schema) or not self.snapshot.only_captured_schemas

    def require_rendered(self) -> None:
        """Raise ConfigurationError when records would differ from those that consumers expect."""
        if self.unrendered:
            raise ConfigurationError(
                f"connector {self.name!r}: records cannot be rendered because these settings change them in an "
                f"unsupported way: {', '.join(self.unrendered)}. Remove them to render records; capture is not "
                "affected"
            )

    @field_validator("signals")
    @classmethod
    def _full_names(cls, signals: SignalSettings, info: ValidationInfo) -> SignalSettings:
        databases: tuple[str, ...] = info.data.get("databases", ())
        tables: dict[str, tuple[str, ...]] = {}
        for one in signals.tables if databases else ():
            parts = split_name(one)
            if len(parts) == 2 and len(databases) == 1:
                parts = (databases[0], *parts)
            if len(parts) != 3 or parts[0].lower() not in {each.lower() for each in databases}:
                problem = f"found {one!r}, expected <db>.<schema>.<table> with one of database.names"
                Report.of(info).complain("signal.data.collection", problem)
                continue
            first = tables.setdefault(parts[0].lower(), parts)
            if [part.lower() for part in first] != [part.lower() for part in parts]:
                problem = f"names two tables of {parts[0]}, {spoken_name(first)} and {spoken_name(parts)}; keep one"
                Report.of(info).complain("signal.data.collection", problem)
        # A later `replace` validates again: what is stored here must then be read in the same way.
        return replace(signals, tables=tuple(spoken_name(parts) for parts in tables.values()))

    @field_validator("delta")
    @classmethod
    def _output_of_each(cls, delta: DeltaSettings, info: ValidationInfo) -> DeltaSettings:
        databases: tuple[str, ...] = info.data.get("databases", ())
        if delta.records_output == "-":
            Report.of(info).complain("delta.records.output", "found '-', expected a file or delta:<path or URI>")
        elif delta.records_output and len(databases) > 1 and DATABASE not in delta.records_output:
            problem = f"found {delta.records_output!r} for {len(databases)} databases; put {DATABASE} into it"
            Report.of(info).complain("delta.records.output", problem)
        return delta

    @field_validator("filters")
    @classmethod
    def _with_signal_tables(cls, filters: Filters, info: ValidationInfo) -> Filters:
        signals: SignalSettings | None = info.data.get("signals")
        tables = signals.tables if signals else ()
        return replace(filters, tables=replace(filters.tables, signal_tables=tables))

    @field_validator("snapshot")
    @classmethod
    def _with_signal_table(cls, snapshot: SnapshotSettings, info: ValidationInfo) -> SnapshotSettings:
        signals: SignalSettings | None = info.data.get("signals")
        databases: tuple[str, ...] = info.data.get("databases", ())
        without = [name for name in databases if signals is None or signals.table_of(name) is None]
        if snapshot.incremental.watermarking is not None and without:
            Report.of(info).notice(
                "incremental.snapshot.watermarking.strategy",
                f"no effect in {', '.join(without)}: signal.data.collection names no table there to write to",
            )
        return snapshot

    @field_validator("snapshot")
    @classmethod
    def _as_read_only(cls, snapshot: SnapshotSettings, info: ValidationInfo) -> SnapshotSettings:
        connection: Connection | None = info.data.get("connection")
        return replace(snapshot, isolation="snapshot") if connection and connection.read_only else snapshot


@section(Group.KAFKA)
class Configuration:
    """A configuration as a whole: the connector, and what is checked and then dropped."""

    connector: Connector
    inert: InertSettings
