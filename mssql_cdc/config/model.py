"""`Connector`, the whole configuration as one frozen value, and its sections on streaming, lake, Dagster and Spark.

Everything is hashable and pickles, because it travels to Spark workers; secrets travel unresolved. Times are in the
units that the names say. `read.py` makes a connector from configured texts.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, ValidationInfo, field_validator

from mssql_cdc.config.connection import Connection
from mssql_cdc.config.filters import Filters, GuardrailSettings, split_name
from mssql_cdc.config.inert import InertSettings
from mssql_cdc.config.property import Effect, GivenProperty, Group, Report, members, plain, prop, section
from mssql_cdc.config.record_settings import RecordSettings
from mssql_cdc.config.secret import Secret, reveal
from mssql_cdc.config.snapshot_settings import (
    IncrementalSettings,
    NotificationSettings,
    SignalSettings,
    SnapshotSettings,
)


def _absolute(warehouse: str) -> str:
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", warehouse):
        return warehouse
    return str(Path(warehouse).expanduser().absolute())


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    lowered = [name.lower() for name in names]
    doubled = sorted({name for name in names if lowered.count(name.lower()) > 1})
    if doubled:
        raise ValueError(f"names {', '.join(doubled)} more than once (case does not count); keep one")
    if not names:
        raise ValueError("found no name, expected at least one database")
    return names


def _option(one: GivenProperty, _: Report) -> tuple[str, str | Secret]:
    return one.parts[0], one.value


def _named(one: GivenProperty, _: Report) -> tuple[str, str | Secret]:
    return one.name, one.value


@section(Group.STREAM)
class StreamingSettings:
    """Reading ranges. `max_transactions` is None unless it is set."""

    poll_interval_ms: int = prop("poll.interval.ms", 500, "STR-01", ge=1)
    """Sets how long loop mode waits, in milliseconds, before it polls an idle source again."""
    query_mode: Literal["function", "direct"] = prop("data.query.mode", "function", "STR-05 STR-06")
    """Selects how Debezium reads change tables. Here they are read directly wherever SELECT is granted."""
    max_transactions: int | None = prop("max.iteration.transactions", None, "STR-02", debezium=500, ge=0)
    """Limits the transactions of one range; 0, or leaving it out, means no limit."""
    page_rows: int = prop("streaming.fetch.size", 0, "STR-08", ge=0)
    """Limits the rows of one page of a change table; 0 = the connector chooses."""
    fetch_size: int = prop("query.fetch.size", 10_000, "STR-09", ge=0)
    """Sets the rows of one fetch in streaming."""
    delay_ms: int = prop("streaming.delay.ms", 0, "SNP-30", effect=Effect.PLANNED, ge=0)
    """Waits this many milliseconds between a snapshot and streaming."""
    check_position: bool = prop("log.position.check.enable", True, "SNP-12", effect=Effect.PLANNED)
    """Checks that the log still has the position. Here the check cannot be turned off."""
    heartbeat_interval_ms: int = prop("heartbeat.interval.ms", 0, "HB-01", ge=0)
    """Sets the shortest time between two heartbeats in milliseconds; 0 = no heartbeats. Idle positions advance without
    them."""
    heartbeat_query: str | None = prop("heartbeat.action.query", None, "HB-03")
    """Runs this statement on the source with each heartbeat. If it fails, the poll fails."""
    max_retries: int = prop("errors.max.retries", -1, "ERR-02", ge=-1)
    """Limits the attempts after a retriable error; -1 = no limit but `dagster.max.attempts`."""
    retry_wait_ms: int = prop("retriable.restart.connector.wait.ms", 10_000, "ERR-02", ge=0)
    """Waits this many milliseconds before the next attempt."""
    retriable_messages: str | None = prop("custom.retriable.exception", None, "ERR-02", effect=Effect.PLANNED)
    """Matches the messages of further retriable errors."""
    failure_handling: Literal["fail"] = prop(
        "event.processing.failure.handling.mode", "fail", "ERR-01", refused=("warn", "skip", "ignore")
    )
    """Stops a table at an event that cannot be processed. Nothing is skipped silently."""

    @field_validator("max_transactions")
    @classmethod
    def _no_limit(cls, value: int | None) -> int | None:
        return value or None


@section(Group.HISTORY)
class SchemaHistorySettings:
    """Which table structures are kept."""

    only_captured_tables: bool = prop("schema.history.internal.store.only.captured.tables.ddl", False, "SNP-19 SCH-11")
    """Keeps the structure of captured tables only."""
    only_captured_databases: bool = prop("schema.history.internal.store.only.captured.databases.ddl", False, "SCH-11")
    """Keeps the structure of captured databases and schemas only."""


@section(Group.LAKE)
class DeltaSettings:
    """The lake. `warehouse` is an absolute path or a URI."""

    warehouse: Annotated[str, AfterValidator(_absolute)] = prop("delta.warehouse", "warehouse")
    """Sets the path or URI of the lake. A relative path becomes absolute at once. `--warehouse` wins."""
    storage: Annotated[tuple[tuple[str, str | Secret], ...], members(_option)] = prop("delta.storage.*", (), late=True)
    """Sets an option of the object store (`delta.storage.AWS_REGION`) for every reader and writer of the lake."""
    key_secret: Secret | None = prop("delta.key.secret", None)
    """Sets the key of the HMAC that replaces masked key columns in `_key`. Masked key columns require it."""
    current_interval_s: int = prop("delta.current.interval", 15, ge=0)
    """Sets the shortest time in seconds between two merges into the current tables. A merge covers all ranges since the
    last one."""
    deletion_vectors: bool = prop("delta.deletion.vectors", True)
    """Uses deletion vectors in the current tables."""


@section(Group.RUN)
class DagsterSettings:
    """Ranges and attempts."""

    range_max_rows: int = prop("dagster.range.max.rows", 5_000_000, ge=1)
    """Limits the change rows of one range. They are counted before the range is fixed; no transaction is divided."""
    max_attempts: int = prop("dagster.max.attempts", 5, ge=1)
    """Limits the attempts at a range. After that, a failing table becomes `failed` and the others continue."""
    max_run_seconds: int = prop("dagster.max.run.seconds", 0, ge=0)
    """Turns on loop mode: one run captures further ranges for this many seconds; 0 = one range per run."""


@section(Group.RUN)
class SparkConf:
    """`spark.*` as given; `conf` keeps the whole names."""

    conf: Annotated[tuple[tuple[str, str | Secret], ...], members(_named)] = prop("spark.*", (), late=True)
    """Sets an option of the Spark session as it is, such as `spark.master` or `spark.remote`."""

    def read(self) -> dict[str, str]:
        """All settings, references resolved now (raises MissingSecretError)."""
        return {name: reveal(value) for name, value in self.conf}


@section(Group.LINEAGE)
class LineageSettings:
    """OpenLineage events. Dagster's own lineage needs no property."""

    enabled: bool = prop("openlineage.integration.enabled", False, "OL-02", effect=Effect.PLANNED)
    """Sends OpenLineage events."""
    config_file: str = prop(
        "openlineage.integration.config.file.path", "./openlineage.yml", "OL-02", effect=Effect.PLANNED
    )
    """Names the configuration file of the client."""
    namespace: str | None = prop("openlineage.integration.job.namespace", None, "OL-02", effect=Effect.PLANNED)
    """Sets the namespace of the job; `topic.prefix` by default."""
    description: str = prop(
        "openlineage.integration.job.description", "Debezium change data capture job", "OL-02", effect=Effect.PLANNED
    )
    """Describes the job."""
    tags: str | None = prop("openlineage.integration.job.tags", None, "OL-02", effect=Effect.PLANNED)
    """Tags the job."""
    owners: str | None = prop("openlineage.integration.job.owners", None, "OL-02", effect=Effect.PLANNED)
    """Names the owners of the job."""
    dataset_namespace: str | None = prop(
        "openlineage.integration.dataset.kafka.bootstrap.servers", None, "OL-02", effect=Effect.PLANNED
    )
    """Sets the namespace of output data sets."""


@section(Group.CONNECT)
class Connector:
    """One Debezium configuration: one logical server, one or more databases.

    `topic_prefix` names it in asset keys, paths and pools; `name` appears only in Debezium's offset key. `notices`
    are lines for the user about properties that have no effect here. `properties` is the configuration as given
    (today's names, secrets wrapped), for showing.
    """

    name: str = prop("name", "", "DEP-01")
    """Names the connector in Debezium's offset key; the file's name by default."""
    topic_prefix: Annotated[str, AfterValidator(plain)] = prop(
        "topic.prefix", ..., "TOP-07", older=("database.server.name",)
    )
    """Names the logical server in asset keys, paths and topics. Never change it once something is captured."""
    databases: Annotated[tuple[str, ...], AfterValidator(_once)] = prop(
        "database.names", ..., "HA-02", older=("database.dbname",)
    )
    """Names the databases to capture. Each gets its own assets and positions."""
    connection: Connection
    signals: SignalSettings
    filters: Filters
    guardrail: GuardrailSettings
    snapshot: SnapshotSettings
    incremental: IncrementalSettings
    notifications: NotificationSettings
    streaming: StreamingSettings
    records: RecordSettings
    schema_history: SchemaHistorySettings
    delta: DeltaSettings
    dagster: DagsterSettings
    spark: SparkConf
    lineage: LineageSettings
    properties: tuple[tuple[str, str | Secret], ...] = ()
    notices: tuple[str, ...] = ()

    @field_validator("signals")
    @classmethod
    def _full_names(cls, signals: SignalSettings, info: ValidationInfo) -> SignalSettings:
        databases: tuple[str, ...] = info.data.get("databases", ())
        tables: list[str] = []
        for one in signals.tables if databases else ():
            parts = split_name(one)
            if len(parts) == 2 and len(databases) == 1:
                parts = (databases[0], *parts)
            if len(parts) != 3 or parts[0].lower() not in {each.lower() for each in databases}:
                problem = f"found {one!r}, expected <db>.<schema>.<table> with one of database.names"
                Report.of(info).complain("signal.data.collection", problem)
            tables.append(".".join(parts))
        return replace(signals, tables=tuple(tables))

    @field_validator("filters")
    @classmethod
    def _with_signal_tables(cls, filters: Filters, info: ValidationInfo) -> Filters:
        signals: SignalSettings | None = info.data.get("signals")
        tables = signals.tables if signals else ()
        return replace(filters, tables=replace(filters.tables, signal_tables=tables))

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
