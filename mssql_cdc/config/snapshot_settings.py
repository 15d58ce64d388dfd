"""Snapshots: the properties of `snapshot.*` and `incremental.*`.

`signal_settings.py` has those of signals; `capture/snapshot/` and `capture/incremental/` take snapshots.
"""

from __future__ import annotations

from datetime import datetime, time
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, ValidationInfo, model_validator

from mssql_cdc.config.extension_names import ExtensionGroup, require_installed
from mssql_cdc.config.filter_statement import derivable, unordered
from mssql_cdc.config.filters import CollectionFilter, plain_name
from mssql_cdc.config.property import GivenProperty, Group, iana_zone, members, prop, section
from mssql_cdc.config.report import Report

SnapshotMode = Literal[
    "always",
    "initial",
    "initial_only",
    "no_data",
    "recovery",
    "when_needed",
    "when_needed_no_data",
    "configuration_based",
    "custom",
]
Watermarking = Literal["insert_insert", "insert_delete"]
IsolationMode = Literal["read_uncommitted", "read_committed", "repeatable_read", "snapshot", "exclusive"]

_HISTORY = "schema.history.internal.store.only.captured"
_OVERRIDES = "snapshot.select.statement.overrides"


def _statement(one: GivenProperty, _: Report) -> tuple[str, str]:
    return plain_name(one.parts[0]).lower(), derivable(one.text)


def _plain_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(plain_name(name).lower() for name in names)


def _span(text: str) -> tuple[time, time]:
    """The beginning and the end of a span such as `22:00-06:00`.

    Raises:
        ValueError: The text has another form.
    """
    begin, _, end = (part.strip() for part in text.partition("-"))
    try:
        found = time.fromisoformat(begin), time.fromisoformat("00:00" if end == "24:00" else end)
    except ValueError:
        raise ValueError(f"found {text!r}, expected hours such as 22:00-06:00") from None
    if found[0] == found[1] or any(one.tzinfo for one in found):
        raise ValueError(f"found {text!r}, expected hours such as 22:00-06:00")
    return found


def _is_within(now: time, begin: time, end: time) -> bool:
    return begin <= now < end if begin < end else now >= begin or now < end


def _hours(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        _span(text)
    return texts


@section(Group.SNAPSHOT)
class SnapshotDecisions:
    """The switches of the mode `configuration_based`."""

    data: bool = prop("snapshot.mode.configuration.based.snapshot.data", False, "SNP-08")
    """Reads rows, in the mode `configuration_based`."""
    stream: bool = prop("snapshot.mode.configuration.based.start.stream", False, "SNP-08")
    """Streams afterwards, in the mode `configuration_based`."""
    on_data_error: bool = prop("snapshot.mode.configuration.based.snapshot.on.data.error", False, "SNP-08")
    """Lets tables that lost changes begin like new ones, in the mode `configuration_based`."""
    schema: bool = prop("snapshot.mode.configuration.based.snapshot.schema", False, "SNP-08")
    """Keeps the structure of tables that are not captured, in the mode `configuration_based`. That of captured tables
    is always kept."""
    on_schema_error: bool = prop("snapshot.mode.configuration.based.snapshot.on.schema.error", False, "SNP-08")
    """Rebuilds a lost schema history as the mode `recovery` does, in the mode `configuration_based`."""


@section(Group.SNAPSHOT)
class IncrementalSettings:
    """Incremental snapshots, which signals request."""

    chunk_rows: int = prop("incremental.snapshot.chunk.size", 1024, "INC-06", ge=1)
    """Sets the rows per chunk of an incremental snapshot; with a condition, only rows that meet it count."""
    recompile: bool = prop("incremental.snapshot.option.recompile", False, "INC-17")
    """Adds OPTION (RECOMPILE) to the statements that read chunks of incremental snapshots."""
    watermarking: Watermarking | None = prop(
        "incremental.snapshot.watermarking.strategy", None, "INC-08", debezium="insert_insert"
    )
    """Writes a row to the signal table before each chunk of an incremental snapshot is read, and afterwards writes a
    second one (`insert_insert`) or deletes the first (`insert_delete`). By default nothing is written: chunks are read
    between log positions, with or without these rows."""
    added_columns: bool = prop("incremental.snapshot.added.columns", True, "EVO-09")
    """Requests an incremental snapshot of a table with a key when streaming switches to a capture instance with more
    columns, or when an ALTER COLUMN has rewritten values, because only a new read shows these values in existing rows.
    Not done in modes that read no rows."""
    max_rows_per_second: int = prop("incremental.snapshot.max.rows.per.second", 0, "INC-10", ge=0)
    """Limits the rows that incremental snapshots read per second, on average over some chunks; 0 = no limit."""
    max_lag_s: int = prop("incremental.snapshot.max.lag.seconds", 0, "INC-10", ge=0)
    """Makes incremental snapshots wait while the oldest change not yet captured or read is older than this, the capture
    job finds changes this late, or a secondary replica of the availability group is this far behind; 0 = never."""
    hours: Annotated[tuple[str, ...], AfterValidator(_hours)] = prop("incremental.snapshot.hours", (), "INC-10")
    """Lets incremental snapshots read only during these hours of the day, such as `22:00-06:00, 12:00-13:00`; by
    default at any time."""
    time_zone: Annotated[str, AfterValidator(iana_zone)] = prop("incremental.snapshot.hours.time.zone", "UTC", "INC-10")
    """Names the time zone of `incremental.snapshot.hours`, such as `Europe/Berlin`."""

    def is_open(self, now: datetime) -> bool:
        """Whether incremental snapshots may read at this time of the day.

        Args:
            now: An instant.
        """
        there = now.astimezone(ZoneInfo(self.time_zone)).time()
        return not self.hours or any(_is_within(there, *_span(text)) for text in self.hours)


@section(Group.SNAPSHOT)
class SnapshotSettings:
    """Initial and blocking snapshots; `isolation` is `snapshot` on a read-only connection (HA-01)."""

    mode: SnapshotMode = prop(
        "snapshot.mode",
        "initial",
        "SNP-02 SNP-04 SNP-08",
        spellings={"schema_only": "no_data", "initial_schema_only": "no_data", "schema_only_recovery": "recovery"},
    )
    """Selects when a connector reads rows and table structure at startup. `schema_only` is an older name of `no_data`.
    `custom` is a snapshotter of your own."""
    decisions: SnapshotDecisions
    isolation: IsolationMode = prop("snapshot.isolation.mode", "repeatable_read", "SNP-14 SNP-15")
    """Selects the isolation level of a snapshot's reads. A read-only connection always uses `snapshot`;
    `read_uncommitted` becomes `read_committed`, because rows that are rolled back would stay in the lake; `exclusive`
    holds a shared lock on every table until the snapshot has read it."""
    locking: Literal["exclusive", "none", "custom"] = prop("snapshot.locking.mode", "exclusive", "SNP-16")
    """Selects whether a snapshot may lock tables. A table with a key is never locked, unless
    `snapshot.isolation.mode=exclusive` requires it; the rows of a table without a key can be read exactly only under a
    lock, so `none` refuses its snapshot. `custom` is a lock of your own, which is taken first."""
    lock_timeout_ms: int = prop("snapshot.lock.timeout.ms", 10_000, "SNP-17", ge=-1)
    """Limits how many milliseconds snapshots wait for locks that others hold; 0 = no wait, -1 = no limit."""
    row_level_security: Literal["refuse", "trust"] = prop("snapshot.row.level.security", "refuse")
    """Selects what to do with a table whose rows a security policy filters: `refuse` leaves it out, because nothing
    shows whether rows are hidden from the login; `trust` states that the predicate hides none from it."""
    delay_ms: int = prop("snapshot.delay.ms", 0, "SNP-30", ge=0)
    """Waits this many milliseconds before a snapshot reads rows. `mssql-cdc run` captures nothing meanwhile."""
    collections: CollectionFilter
    incremental: IncrementalSettings
    fetch_size: int | None = prop("snapshot.fetch.size", None, "SNP-31", debezium=2000, ge=0)
    """Sets the rows per fetch in snapshots; 0, or leaving it out, lets the connector choose."""
    max_threads: int | None = prop("snapshot.max.threads", None, "SNP-29", debezium=1, ge=1)
    """Limits the chunks that snapshots read in parallel; if unset, Spark's cores do. An incremental snapshot has one
    additional reader."""
    overridden: Annotated[tuple[str, ...], AfterValidator(_plain_names)] = prop(_OVERRIDES, (), "SNP-23")
    """Names the tables with a SELECT statement of their own, `schema.table` or `db.schema.table`."""
    overrides: Annotated[tuple[tuple[str, str], ...], members(_statement)] = prop(f"{_OVERRIDES}.<table>", (), "SNP-23")
    """Replaces the SELECT statement of one table; a `*` that selects columns stands for the captured columns."""
    only_captured_tables: bool = prop(f"{_HISTORY}.tables.ddl", False, "SNP-19 SCH-11", group=Group.HISTORY)
    """Makes records describe only the tables that pass the filters. Otherwise the initial snapshot keeps the structure
    of every table in the database, and records describe them all."""
    only_captured_schemas: bool = prop(f"{_HISTORY}.databases.ddl", False, "SCH-11", group=Group.HISTORY)
    """Makes records describe only the tables whose schema passes `schema.include.list` and `schema.exclude.list`."""
    query_mode: Literal["select_all", "custom"] = prop("snapshot.query.mode", "select_all", "SNP-24")
    """Selects whether blocking snapshots query tables as they are or use a query of your own. Statements in
    `snapshot.select.statement.overrides` take precedence."""
    custom_mode: str | None = prop("snapshot.mode.custom.name", None, "SNP-09 SPI-01 SPI-04")
    """Names the entry point of the snapshotter for `snapshot.mode=custom`."""
    custom_locking: str | None = prop("snapshot.locking.mode.custom.name", None, "SPI-03 SPI-04")
    """Names the entry point of the lock for `snapshot.locking.mode=custom`."""
    custom_query: str | None = prop("snapshot.query.mode.custom.name", None, "SPI-02 SPI-04")
    """Names the entry point of the query for `snapshot.query.mode=custom`."""

    @property
    def trusts_policies(self) -> bool:
        """Whether the operator says that row-level security hides no row from the login."""
        return self.row_level_security == "trust"

    @property
    def reads_uncaptured(self) -> bool:
        """Whether tables that are not captured are read, too: once, and each as of one moment (SNP-03)."""
        return self.mode == "initial_only"

    @property
    def cdc_hint(self) -> str:
        """The addition to an error about a database without CDC: Debezium's `initial_only` fails there as well."""
        if not self.reads_uncaptured:
            return ""
        return (
            ". snapshot.mode=initial_only also reads tables that are not captured, but, as Debezium does, only in a "
            "database with CDC"
        )

    @model_validator(mode="after")
    def _check_overrides(self, info: ValidationInfo) -> SnapshotSettings:
        report, written = Report.of(info), dict(self.overrides)
        for name in sorted(set(self.overridden) - set(written)):
            report.notice(_OVERRIDES, f"{name} is listed but has no statement {_OVERRIDES}.{name}")
        for name in sorted(set(written) - set(self.overridden)):
            report.notice(f"{_OVERRIDES}.{name}", f"has no effect, {name} is not listed in {_OVERRIDES}")
        return self

    @model_validator(mode="after")
    def _check_custom(self, info: ValidationInfo) -> SnapshotSettings:
        report = Report.of(info)
        for setting, chosen, name, group in (
            ("snapshot.mode", self.mode, self.custom_mode, ExtensionGroup.SNAPSHOTTERS),
            ("snapshot.locking.mode", self.locking, self.custom_locking, ExtensionGroup.SNAPSHOT_LOCKS),
            ("snapshot.query.mode", self.query_mode, self.custom_query, ExtensionGroup.SNAPSHOT_QUERIES),
        ):
            named = f"{setting}.custom.name"
            if chosen == "custom" and name is None:
                report.complain(setting, f"custom requires {named}, the name of an entry point in {group}")
            elif chosen == "custom" and name is not None:
                require_installed(group, name, setting=named, report=report)
            elif name is not None:
                report.notice(named, f"has no effect without {setting}=custom")
        return self

    def statement_for(self, catalog: str, schema: str, table: str) -> str | None:
        """The SELECT that replaces the usual one (SNP-23), `unordered` since order means nothing in the lake; or None.

        Args:
            catalog: the database.
            schema: the table's schema.
            table: the table's name.
        """
        names = {f"{schema}.{table}".lower(), f"{catalog}.{schema}.{table}".lower()} & set(self.overridden)
        return next((unordered(sql) for name, sql in self.overrides if name in names), None)
