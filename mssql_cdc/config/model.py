"""The configuration as values: `Connector` and its parts.

Everything is frozen, hashable and pickles, so that it travels to Spark workers; secrets travel unresolved. Times are
in the units their names say. How they are made from text is the business of `resolve.py` and `build.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mssql_cdc.config.driver import DriverSetting, OdbcSetting, translate
from mssql_cdc.config.filters import CollectionFilter, ColumnFilter, SourceTypeFilter, TableFilter, plain_name
from mssql_cdc.config.masks import MaskRule, MaskRules
from mssql_cdc.config.record_keys import RecordKeys
from mssql_cdc.config.secret import Secret, reveal

SnapshotMode = Literal[
    "always",
    "initial",
    "initial_only",
    "no_data",
    "recovery",
    "when_needed",
    "when_needed_no_data",
    "configuration_based",
]
IsolationMode = Literal["read_uncommitted", "read_committed", "repeatable_read", "snapshot", "exclusive"]
TimePrecision = Literal["adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"]
DecimalHandling = Literal["precise", "double", "string"]
BinaryHandling = Literal["bytes", "base64", "base64-url-safe", "hex"]
NameAdjustment = Literal["none", "avro", "avro_unicode"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How the server is reached.

    `port` is None when a named instance is to be looked up by the browser service. `odbc_driver` is None when the
    configuration names none: the caller chooses an installed one.
    """

    hostname: str
    port: int | None = 1433
    instance: str | None = None
    user: Secret | None = None
    password: Secret | None = None
    odbc_driver: str | None = None
    driver_settings: tuple[DriverSetting, ...] = ()
    odbc_extra: tuple[OdbcSetting, ...] = ()
    login_timeout_s: int = 30
    query_timeout_ms: int = 600_000
    validation_timeout_ms: int = 60_000
    read_only: bool = False
    server_timezone: str | None = None
    agent_status_query: str | None = None

    def odbc_settings(self, driver: str) -> tuple[OdbcSetting, ...]:
        """Keywords beside driver, server, port, database, UID and PWD: translated ones, then `odbc.*` (which win)."""
        own = {setting.keyword.lower() for setting in self.odbc_extra}
        translated = (one for one in translate(self.driver_settings, driver) if one.keyword.lower() not in own)
        return (*translated, *self.odbc_extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What is captured, and what is hidden of it."""

    tables: TableFilter = field(default_factory=TableFilter)
    columns: ColumnFilter = field(default_factory=ColumnFilter)
    masks: MaskRules = field(default_factory=MaskRules)

    def mask_for(self, catalog: str, schema: str, table: str, column: str) -> MaskRule | None:
        """The mask of a column, or None."""
        return self.masks.mask_for(catalog, schema, table, column)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotDecisions:
    """The five switches of the mode `configuration_based` (SNP-08)."""

    data: bool = False
    schema: bool = False
    stream: bool = False
    on_schema_error: bool = False
    on_data_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSettings:
    """Initial and blocking snapshots; `isolation` is already `snapshot` on a read-only connection (HA-01)."""

    mode: SnapshotMode = "initial"
    decisions: SnapshotDecisions = SnapshotDecisions()
    isolation: IsolationMode = "repeatable_read"
    locking: Literal["exclusive", "none"] = "exclusive"
    lock_timeout_ms: int = 10_000
    collections: CollectionFilter = field(default_factory=CollectionFilter)
    fetch_size: int = 2000
    max_threads: int = 1
    overrides: tuple[tuple[str, str], ...] = ()

    def statement_for(self, catalog: str, schema: str, table: str) -> str | None:
        """The SELECT that replaces the usual one (SNP-23), or None."""
        names = {f"{schema}.{table}".lower(), f"{catalog}.{schema}.{table}".lower()}
        return next((sql for name, sql in self.overrides if plain_name(name).lower() in names), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalSettings:
    """Incremental snapshots."""

    chunk_size: int = 1024
    recompile: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingSettings:
    """Reading ranges. `max_transactions` is None unless set explicitly (and not 0)."""

    poll_interval_ms: int = 500
    query_mode: Literal["function", "direct"] = "function"
    max_transactions: int | None = None
    page_rows: int | None = None
    fetch_size: int = 10_000
    max_retries: int | None = None
    retry_wait_ms: int = 10_000
    heartbeat_interval_ms: int = 0
    heartbeat_query: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSettings:
    """How records look; none of it changes a Delta table. `skipped` holds op letters; empty = none."""

    tombstones: bool = True
    skipped: frozenset[str] = frozenset({"t"})
    skip_unchanged: bool = False
    transaction_metadata: bool = False
    schema_changes: bool = True
    time_precision: TimePrecision = "adaptive"
    decimal_handling: DecimalHandling = "precise"
    binary_handling: BinaryHandling = "bytes"
    unavailable_placeholder: str = "__debezium_unavailable_value"
    schema_name_adjustment: NameAdjustment = "none"
    field_name_adjustment: NameAdjustment = "none"
    extended_headers: bool = True
    keys: RecordKeys = field(default_factory=RecordKeys)
    source_types: SourceTypeFilter = field(default_factory=SourceTypeFilter)
    topic_delimiter: str = "."
    transaction_topic: str = "transaction"
    heartbeat_topic_prefix: str = "__debezium-heartbeat"
    heartbeat_interval_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalSettings:
    """`tables`: full names `db.schema.table`; `channels`: enabled ones that work here."""

    tables: tuple[str, ...] = ()
    channels: tuple[str, ...] = ("source",)

    def table_of(self, catalog: str) -> tuple[str, str] | None:
        """(schema, table) of the signal table in a database, or None."""
        for name in self.tables:
            found_catalog, schema, table = name.split(".", 2)
            if found_catalog.lower() == catalog.lower():
                return schema, table
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationSettings:
    """Channels of notifications beside the asset."""

    channels: tuple[str, ...] = ()
    sink_topic: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaHistorySettings:
    """Which structures are kept (SCH-11)."""

    only_captured_tables: bool = False
    only_captured_databases: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailSettings:
    """Limit on the number of captured tables; None = none (GRD-01, GRD-02)."""

    max_tables: int | None = None
    fail: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaSettings:
    """The lake. `warehouse` is an absolute path or a URI."""

    warehouse: str
    storage: tuple[tuple[str, str | Secret], ...] = ()
    key_secret: Secret | None = None
    current_interval_s: int = 15
    deletion_vectors: bool = True

    def storage_options(self) -> dict[str, str]:
        """Options for `deltalake`, references resolved now (raises MissingSecretError)."""
        return {name: reveal(value) for name, value in self.storage}


@dataclass(frozen=True, slots=True, kw_only=True)
class DagsterSettings:
    """Ranges and attempts."""

    range_max_rows: int = 5_000_000
    max_attempts: int = 5
    max_run_seconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """`spark.*` as given; `conf` keeps the whole names."""

    conf: tuple[tuple[str, str | Secret], ...] = ()

    @property
    def master(self) -> str | None:
        """`spark.master`, or None."""
        return self._get("spark.master")

    @property
    def remote(self) -> str | None:
        """`spark.remote`, or None."""
        return self._get("spark.remote")

    def read(self) -> dict[str, str]:
        """All settings, references resolved now (raises MissingSecretError)."""
        return {name: reveal(value) for name, value in self.conf}

    def _get(self, name: str) -> str | None:
        value = dict(self.conf).get(name)
        return None if value is None else reveal(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """One Debezium configuration: one logical server, one or more databases.

    `topic_prefix` names it in asset keys, paths and pools; `name` appears only in Debezium's offset key. `notices`
    are lines for the user about properties that have no effect here. `properties` is the configuration as given
    (canonical names, secrets wrapped), for showing.
    """

    name: str
    topic_prefix: str
    databases: tuple[str, ...]
    connection: Connection
    filters: Filters
    snapshot: SnapshotSettings
    incremental: IncrementalSettings
    streaming: StreamingSettings
    records: RecordSettings
    signals: SignalSettings
    notifications: NotificationSettings
    schema_history: SchemaHistorySettings
    guardrail: GuardrailSettings
    delta: DeltaSettings
    dagster: DagsterSettings
    spark: SparkSettings
    notices: tuple[str, ...] = ()
    properties: tuple[tuple[str, str | Secret], ...] = ()
