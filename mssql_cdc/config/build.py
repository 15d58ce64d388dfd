"""From checked settings to a `Connector`: the last checks, and one small function per part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mssql_cdc.config.build_filters import build_filters, build_record_keys, patterns
from mssql_cdc.config.driver import DriverSetting, OdbcSetting, driver_notice, translate
from mssql_cdc.config.filters import (
    CollectionFilter,
    SourceTypeFilter,
    plain_name,
    split_name,
)
from mssql_cdc.config.model import (
    Connection,
    Connector,
    DagsterSettings,
    DeltaSettings,
    GuardrailSettings,
    IncrementalSettings,
    NameAdjustment,
    NotificationSettings,
    RecordSettings,
    SchemaHistorySettings,
    SignalSettings,
    SnapshotDecisions,
    SnapshotSettings,
    SparkSettings,
    StreamingSettings,
)
from mssql_cdc.config.resolve import Member, Settings, resolve_settings
from mssql_cdc.config.secret import reveal
from mssql_cdc.errors import MissingSecretError

_BASED = "snapshot.mode.configuration.based."
_OVERRIDES = "snapshot.select.statement.overrides"


def connector_from_mapping(name: str, mapping: Mapping[str, object]) -> Connector:
    """A connector from flat properties; `name` is used when the mapping has none.

    Raises:
        ConfigurationError: listing every problem, each with its property and what was expected.
    """
    settings = resolve_settings(mapping)
    name = settings.value("name") or name
    connection = _connection(settings)
    snapshot = _snapshot(settings)
    if connection.read_only and snapshot.isolation != "snapshot":
        if settings.is_given("snapshot.isolation.mode"):
            settings.notices.append(
                f"snapshot.isolation.mode: {snapshot.isolation} becomes snapshot, the connection is read-only"
            )
        snapshot = replace(snapshot, isolation="snapshot")
    signals = _signals(settings)
    connector = Connector(
        name=name,
        topic_prefix=settings.value("topic.prefix") or "",
        databases=_databases(settings),
        connection=connection,
        filters=build_filters(settings, signals),
        snapshot=snapshot,
        incremental=IncrementalSettings(
            chunk_size=settings.value("incremental.snapshot.chunk.size"),
            recompile=settings.value("incremental.snapshot.option.recompile"),
        ),
        streaming=_streaming(settings),
        records=_records(settings),
        signals=signals,
        notifications=_notifications(settings),
        schema_history=SchemaHistorySettings(
            only_captured_tables=settings.value("schema.history.internal.store.only.captured.tables.ddl"),
            only_captured_databases=settings.value("schema.history.internal.store.only.captured.databases.ddl"),
        ),
        guardrail=GuardrailSettings(
            max_tables=settings.value("guardrail.collections.max") or None,
            fail=settings.value("guardrail.collections.limit.action") == "fail",
        ),
        delta=_delta(settings),
        dagster=DagsterSettings(
            range_max_rows=settings.value("dagster.range.max.rows"),
            max_attempts=settings.value("dagster.max.attempts"),
            max_run_seconds=settings.value("dagster.max.run.seconds"),
        ),
        spark=SparkSettings(conf=tuple((one.name, one.value) for one in settings.family("spark.*"))),
        properties=settings.shown(),
    )
    settings.raise_problems(name)
    return replace(connector, notices=tuple(settings.notices))


def _databases(settings: Settings) -> tuple[str, ...]:
    names: tuple[str, ...] = settings.value("database.names") or ()
    lowered = [name.lower() for name in names]
    doubled = sorted({name for name in names if lowered.count(name.lower()) > 1})
    if doubled:
        settings.complain("database.names", f"names {', '.join(doubled)} more than once (case does not count)")
    return names


def _connection(settings: Settings) -> Connection:
    members = [*settings.family("driver.*"), *settings.family("database.*")]
    driver_settings = tuple(DriverSetting(one.parts[0], one.value) for one in members)
    odbc = {one.parts[0].lower(): OdbcSetting(one.parts[0], one.value) for one in settings.family("odbc.*")}
    settings.notices.extend(note for note in (driver_notice(one.name, one.parts[0]) for one in members) if note)
    try:
        translate(driver_settings, "")
    except ValueError as error:
        settings.complain("driver.*", str(error))
    by_name = {member.parts[0].lower(): member for member in members}
    early = {member.parts[0].lower(): member for member in settings.family("odbc.*")}
    intent = early.get("applicationintent", by_name.get("applicationintent"))
    instance = settings.value("database.instance")
    by_browser = instance is not None and not settings.is_given("database.port")
    return Connection(
        hostname=settings.value("database.hostname") or "",
        port=None if by_browser else settings.value("database.port"),
        instance=instance,
        user=settings.value("database.user"),
        password=settings.value("database.password"),
        odbc_driver=_read_now(settings, early.get("driver")),
        driver_settings=driver_settings,
        odbc_extra=tuple(one for keyword, one in odbc.items() if keyword != "driver"),
        login_timeout_s=_login_timeout(settings, by_name.get("logintimeout")),
        query_timeout_ms=settings.value("database.query.timeout.ms"),
        validation_timeout_ms=settings.value("connection.validation.timeout.ms"),
        read_only=(_read_now(settings, intent) or "").strip().lower() == "readonly",
        server_timezone=_timezone(settings),
        agent_status_query=settings.value("database.sqlserver.agent.status.query"),
    )


def _read_now(settings: Settings, member: Member | None) -> str | None:
    """The text of a setting that decides something while the configuration is loaded, or None."""
    if member is None:
        return None
    try:
        return reveal(member.value)
    except MissingSecretError as error:
        settings.complain(member.name, str(error))
        return None


def _login_timeout(settings: Settings, member: Member | None) -> int:
    """Seconds: `driver.loginTimeout`, else the connection time-out if set explicitly, else 30 as JDBC."""
    text = _read_now(settings, member)
    if member is not None and text is not None:
        if text.strip().isdecimal():
            return int(text)
        settings.complain(member.name, "expected a whole number of seconds")
    if settings.is_given("database.connection.timeout.ms"):
        return -(-settings.value("database.connection.timeout.ms") // 1000)
    return 30


def _timezone(settings: Settings) -> str | None:
    zone = settings.value("database.server.timezone")
    if zone is None:
        return None
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        settings.complain("database.server.timezone", f"found {zone!r}, expected an IANA name such as Europe/Paris")
    return zone


def _snapshot(settings: Settings) -> SnapshotSettings:
    listed: tuple[str, ...] = settings.value(_OVERRIDES) or ()
    statements = {plain_name(one.parts[0]).lower(): one.value for one in settings.family(f"{_OVERRIDES}.<table>")}
    wanted = {plain_name(name).lower() for name in listed}
    for name in sorted(wanted - set(statements)):
        settings.notices.append(f"{_OVERRIDES}: {name} is listed but has no statement {_OVERRIDES}.{name}")
    for name in sorted(set(statements) - wanted):
        settings.notices.append(f"{_OVERRIDES}.{name}: has no effect, {name} is not listed in {_OVERRIDES}")
    return SnapshotSettings(
        mode=settings.value("snapshot.mode"),
        decisions=SnapshotDecisions(
            data=settings.value(_BASED + "snapshot.data"),
            schema=settings.value(_BASED + "snapshot.schema"),
            stream=settings.value(_BASED + "start.stream"),
            on_schema_error=settings.value(_BASED + "snapshot.on.schema.error"),
            on_data_error=settings.value(_BASED + "snapshot.on.data.error"),
        ),
        isolation=settings.value("snapshot.isolation.mode"),
        locking=settings.value("snapshot.locking.mode"),
        lock_timeout_ms=settings.value("snapshot.lock.timeout.ms"),
        collections=CollectionFilter(include=patterns(settings, "snapshot.include.collection.list", 3)),
        fetch_size=settings.value("snapshot.fetch.size"),
        max_threads=settings.value("snapshot.max.threads"),
        overrides=tuple((name, sql) for name, sql in statements.items() if name in wanted),
    )


def _streaming(settings: Settings) -> StreamingSettings:
    explicit = settings.is_given("max.iteration.transactions")
    retries = settings.value("errors.max.retries")
    return StreamingSettings(
        poll_interval_ms=settings.value("poll.interval.ms"),
        query_mode=settings.value("data.query.mode"),
        max_transactions=(settings.value("max.iteration.transactions") or None) if explicit else None,
        page_rows=settings.value("streaming.fetch.size") or None,
        fetch_size=settings.value("query.fetch.size"),
        max_retries=None if retries < 0 else retries,
        retry_wait_ms=settings.value("retriable.restart.connector.wait.ms"),
        heartbeat_interval_ms=settings.value("heartbeat.interval.ms"),
        heartbeat_query=settings.value("heartbeat.action.query"),
    )


def _records(settings: Settings) -> RecordSettings:
    return RecordSettings(
        tombstones=settings.value("tombstones.on.delete"),
        skipped=_skipped(settings),
        skip_unchanged=settings.value("skip.messages.without.change"),
        transaction_metadata=settings.value("provide.transaction.metadata"),
        schema_changes=settings.value("include.schema.changes"),
        time_precision=settings.value("time.precision.mode"),
        decimal_handling=settings.value("decimal.handling.mode"),
        binary_handling=settings.value("binary.handling.mode"),
        unavailable_placeholder=settings.value("unavailable.value.placeholder"),
        schema_name_adjustment=settings.value("schema.name.adjustment.mode"),
        field_name_adjustment=_field_name_adjustment(settings),
        extended_headers=settings.value("extended.headers.enabled"),
        keys=build_record_keys(settings),
        source_types=SourceTypeFilter(
            columns=patterns(settings, "column.propagate.source.type", 3),
            types=patterns(settings, "datatype.propagate.source.type", 3),
        ),
        topic_delimiter=settings.value("topic.delimiter"),
        transaction_topic=settings.value("topic.transaction"),
        heartbeat_topic_prefix=settings.value("topic.heartbeat.prefix"),
        heartbeat_interval_ms=settings.value("heartbeat.interval.ms"),
    )


def _skipped(settings: Settings) -> frozenset[str]:
    operations = frozenset(settings.value("skipped.operations"))
    if "none" not in operations:
        return operations
    if len(operations) > 1:
        settings.complain("skipped.operations", "none cannot stand beside other operations")
    return frozenset()


def _field_name_adjustment(settings: Settings) -> NameAdjustment:
    if settings.value("sanitize.field.names") and not settings.is_given("field.name.adjustment.mode"):
        return "avro"
    return settings.value("field.name.adjustment.mode")


def _signals(settings: Settings) -> SignalSettings:
    name = "signal.data.collection"
    databases: tuple[str, ...] = settings.value("database.names") or ()
    tables: list[str] = []
    for one in settings.value(name) or ():
        parts = split_name(one)
        if len(parts) == 2 and len(databases) == 1:
            parts = (databases[0], *parts)
        if len(parts) != 3 or parts[0].lower() not in {each.lower() for each in databases}:
            settings.complain(name, f"found {one!r}, expected <db>.<schema>.<table> with one of database.names")
            continue
        tables.append(".".join(parts))
    channels = tuple(one for one in settings.value("signal.enabled.channels") if one == "source")
    return SignalSettings(tables=tuple(tables), channels=channels)


def _notifications(settings: Settings) -> NotificationSettings:
    channels: tuple[str, ...] = settings.value("notification.enabled.channels")
    topic = settings.value("notification.sink.topic.name")
    if "sink" in channels and not topic:
        settings.complain("notification.sink.topic.name", "is required with the notification channel sink")
    return NotificationSettings(channels=tuple(one for one in channels if one == "log"), sink_topic=topic)


def _delta(settings: Settings) -> DeltaSettings:
    warehouse: str = settings.value("delta.warehouse")
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", warehouse):
        warehouse = str(Path(warehouse).expanduser().absolute())
    return DeltaSettings(
        warehouse=warehouse,
        storage=tuple((one.parts[0], one.value) for one in settings.family("delta.storage.*")),
        key_secret=settings.value("delta.key.secret"),
        current_interval_s=settings.value("delta.current.interval"),
        deletion_vectors=settings.value("delta.deletion.vectors"),
    )
