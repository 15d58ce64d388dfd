"""No property is accepted in silence without an effect.

Every property is loaded with a value that is not its default. Either the connector is refused, or a notice or a refusal
of records names the property, or something that the product does differs: `OBSERVED` says where each effective property
is seen. A property that is missing there fails the test.
"""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest

from mssql_cdc.capture import current_tables, snapshot_extensions, survey, write_task
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental import chunks
from mssql_cdc.capture.snapshot import chunk_groups, delays
from mssql_cdc.config import Connector, connector_from_mapping, reveal
from mssql_cdc.config.catalogue import ALL
from mssql_cdc.config.documentation import default_text
from mssql_cdc.config.extension_points import DEFAULT_NAMING, RESELECT, SCHEMA_REGEX_NAMING
from mssql_cdc.config.json_forms import CLOUD_EVENTS
from mssql_cdc.config.property import Effect, Property
from mssql_cdc.config.report import shown_name
from mssql_cdc.defs import capture_step
from mssql_cdc.defs.build import build_definitions
from mssql_cdc.defs.setup import Setup
from mssql_cdc.errors import ConfigurationError, ConversionError, MssqlCdcError
from mssql_cdc.follow import added_columns, current, incremental_budget, polled_signals, signals
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.table_layout import layout_of
from mssql_cdc.lsn import LsnRange, cut_text
from mssql_cdc.records import JsonLinesStream, write_records
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.failures import Failures
from mssql_cdc.run.heartbeat import beat
from mssql_cdc.run.retries import Retries
from mssql_cdc.run.start import guard
from mssql_cdc.schema.arrow import current_schema
from mssql_cdc.serve import renderer
from mssql_cdc.source.protocol import ChunkRead
from mssql_cdc.source.registry import open_source
from mssql_cdc.source.sqlserver import connect, health, reach, snapshot_reader
from mssql_cdc.source.sqlserver.chunks import Piece
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.sqlserver.source import SqlServerSession, SqlServerSource
from mssql_cdc.source.values import CapturedTable, CaptureInstance, Chunk
from mssql_cdc_tests.lake_kit import Change, column, lsn, neutral
from mssql_cdc_tests.unit.config.samples import MINIMAL
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, table

BASE: dict[str, object] = MINIMAL | {"database.names": DATABASE, "database.user": "sa", "delta.warehouse": "/nowhere"}
AT = datetime(2026, 1, 1, tzinfo=UTC)
THINGS = table(
    "things",
    column("id", "int", nullable=False),
    column("first-name", "nvarchar", length=50),
    column("price", "decimal", precision=18, scale=2),
    column("at", "datetime2", scale=3),
    column("raw", "varbinary", length=10),
    column("note", "varchar", length=9, default_text="('x')"),
)
ORDINALS = (1, 2, 3, 4, 5, 6)
INSTANCE = CaptureInstance(
    "dbo_things", 7, ("cdc", "dbo_things_CT"), 3, AT.replace(tzinfo=None), lsn(1), THINGS, ORDINALS
)
PART = (INSTANCE, LsnRange(lsn(1), lsn(9)))

SAMPLES: dict[str, str] = {
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "topic.prefix": "server2",
    "database.names": "otherDB",
    "database.user": "reader",
    "database.server.timezone": "Europe/Paris",
    "custom.retriable.exception": ".*weather.*",
    "signal.data.collection": "dbo.signals",
    "signal.enabled.channels": "source,file",
    "schema.include.list": "sales",
    "schema.exclude.list": "dbo",
    "table.include.list": "dbo.orders",
    "table.exclude.list": "dbo.things",
    "column.include.list": "dbo.things.id",
    "column.exclude.list": "dbo.things.price",
    "column.truncate.to.<n>.chars": "dbo.things.raw",
    "snapshot.mode.custom.name": "mine",
    "snapshot.include.collection.list": "dbo.orders",
    "snapshot.select.statement.overrides": "dbo.things",
    "message.key.columns": "dbo.things:price",
    "notification.enabled.channels": "log",
    "incremental.snapshot.hours": "08:00-09:00",
    "incremental.snapshot.hours.time.zone": "Asia/Tokyo",
    "signal.poll.interval.ms": "1000",
    "skipped.operations": "d",
    "event.processing.failure.handling.mode": "skip",
    "snapshot.query.mode": "custom",
    "snapshot.locking.mode": "none",
    "<extension>.*": "false",
    "topic.naming.strategy": DEFAULT_NAMING,
    "topic.key.field.regex": r"(.*)\.things",
    "transforms": "unwrap",
    "time.precision.mode": "isostring",
    "binary.handling.mode": "hex",
    "key.converter.replace.null.with.default": "false",
    "value.converter.replace.null.with.default": "false",
    "key.converter.decimal.format": "NUMERIC",
    "value.converter.decimal.format": "NUMERIC",
    "value.converter.json.decimal.format": "NUMERIC",
    "header.converter.decimal.format": "NUMERIC",
    "header.converter.replace.null.with.default": "false",
    "value.converter.serializer.type": "avro",
    "value.converter.data.serializer.type": "avro",
    "column.propagate.source.type": "dbo.things.price",
    "datatype.propagate.source.type": "dbo.things.decimal",
    "key.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "guardrail.collections.limit.action": "fail",
    "delta.key.secret": "pepper",
    "heartbeat.action.query": "UPDATE dbo.beat SET n = n + 1",
    "delta.current.<table>.partition.by": "ID",
    "delta.current.<table>.cluster.by": "price,at",
    "dagster.range.max.rows": "10",
    "guardrail.collections.max": "1",
    "errors.max.retries": "2",
}
FAMILIES: dict[str, str] = {
    "column.truncate.to.<n>.chars": "column.truncate.to.1.chars",
    "column.mask.with.<n>.chars": "column.mask.with.3.chars",
    "column.mask.hash.<algorithm>.with.salt.<salt>": "column.mask.hash.SHA-256.with.salt.s",
    "column.mask.hash.v2.<algorithm>.with.salt.<salt>": "column.mask.hash.v2.SHA-256.with.salt.s",
    "snapshot.select.statement.overrides.<table>": "snapshot.select.statement.overrides.dbo.things",
    "driver.*": "driver.applicationName",
    "database.*": "database.applicationName",
    "odbc.*": "odbc.PacketSize",
    "delta.storage.*": "delta.storage.AWS_REGION",
    "delta.current.<table>.partition.by": "delta.current.dbo.things.partition.by",
    "delta.current.<table>.cluster.by": "delta.current.dbo.things.cluster.by",
    "spark.*": "spark.executor.cores",
    "<extension>.*": "own.reselect.null.values",
    "schema.history.internal.*": "schema.history.internal.producer.acks",
}
BY_REGEX: dict[str, object] = {
    "topic.naming.strategy": SCHEMA_REGEX_NAMING,
    "topic.regex": r"(.*)\.(things|other)",
    "topic.replacement": "all.$2",
    "message.key.columns": "dbo.things:id",
}
BESIDE: dict[str, dict[str, object]] = {
    "snapshot.mode.configuration.based.snapshot.data": {"snapshot.mode": "configuration_based"},
    "snapshot.mode.configuration.based.start.stream": {"snapshot.mode": "configuration_based"},
    "snapshot.mode.configuration.based.snapshot.on.data.error": {"snapshot.mode": "configuration_based"},
    "snapshot.mode.configuration.based.snapshot.schema": {"snapshot.mode": "configuration_based"},
    "snapshot.mode.configuration.based.snapshot.on.schema.error": {"snapshot.mode": "configuration_based"},
    "guardrail.collections.limit.action": {"guardrail.collections.max": "1"},
    "<extension>.*": {"post.processors": "own", "own.type": RESELECT},
    "schema.history.internal.store.only.captured.tables.ddl": {"table.exclude.list": r"audit\.log"},
    "schema.history.internal.store.only.captured.databases.ddl": {"schema.include.list": "dbo"},
    "snapshot.select.statement.overrides": {
        "snapshot.select.statement.overrides.dbo.things": "SELECT * FROM dbo.things"
    },
    "snapshot.select.statement.overrides.<table>": {"snapshot.select.statement.overrides": "dbo.things"},
    "heartbeat.action.query": {"heartbeat.interval.ms": "1"},
    "topic.heartbeat.prefix": {"heartbeat.interval.ms": "1"},
    "topic.heartbeat.name": {"heartbeat.interval.ms": "1"},
    "topic.transaction": {"provide.transaction.metadata": "true"},
    "key.converter.replace.null.with.default": {
        "key.converter.schemas.enable": "false",
        "message.key.columns": "dbo.things:note",
    },
    "value.converter.replace.null.with.default": {"value.converter.schemas.enable": "false"},
    "key.converter.decimal.format": {
        "key.converter.schemas.enable": "false",
        "message.key.columns": "dbo.things:price",
    },
    "value.converter.decimal.format": {"value.converter.schemas.enable": "false"},
    "value.converter.json.schemas.enable": {"value.converter": CLOUD_EVENTS},
    "value.converter.json.replace.null.with.default": {"value.converter": CLOUD_EVENTS},
    "value.converter.json.decimal.format": {"value.converter": CLOUD_EVENTS},
    "value.converter.extension.attributes.enable": {"value.converter": CLOUD_EVENTS},
    "header.converter.replace.null.with.default": {
        "header.converter.schemas.enable": "false",
        "message.key.columns": "dbo.things:note",
    },
    "header.converter.decimal.format": {
        "header.converter.schemas.enable": "false",
        "message.key.columns": "dbo.things:price",
    },
    "column.propagate.source.type": {"value.converter.schemas.enable": "true"},
    "datatype.propagate.source.type": {"value.converter.schemas.enable": "true"},
    "schema.name.adjustment.mode": {"value.converter.schemas.enable": "true", "topic.delimiter": "-"},
    "signal.poll.interval.ms": {"signal.enabled.channels": "file"},
    "incremental.snapshot.hours.time.zone": {"incremental.snapshot.hours": "09:00-10:00"},
    "delta.key.secret": {"column.mask.with.3.chars": "dbo.things.first-name"},
    "topic.key.enforce.uniqueness": BY_REGEX,
    "topic.key.field.name": BY_REGEX,
    "topic.key.field.regex": BY_REGEX | {"topic.key.field.replacement": "x$1"},
    "topic.key.field.replacement": BY_REGEX,
}
"""What else has to be set for a property to mean anything."""


def name_and_value(prop: Property) -> tuple[str, str]:
    """The property as it is configured, with a value that is not its default."""
    name = FAMILIES.get(prop.name, prop.name.replace("*", "x"))
    if prop.name in SAMPLES:
        return name, SAMPLES[prop.name]
    match prop.kind:
        case "bool":
            return name, "false" if prop.default else "true"
        case "int":
            return name, str((prop.default or prop.ge or 1) + 7)
        case "choice" | "choices":
            return name, next(one for one in prop.choices if one != prop.default)
        case _:
            return name, "dbo.things.first-name" if name.startswith("column.") else "other"


# -- What the product does -------------------------------------------------------------------------------------


@dataclass
class Recorder:
    """A control connection and a session that note the statements they are given."""

    seen: list[Any] = field(default_factory=list[Any])

    catalog = "shop"

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def note(*given: Any, **_more: Any) -> Any:
            self.seen.append(given)
            return [(0, 100)] if name == "rows" else 2 if name == "value" else None

        return note


def odbc(connector: Connector) -> Any:
    return connect.connection_string(connector.connection, "shop")


def change_reader(connector: Connector) -> Any:
    reader = SqlServerSource(connector).change_reader("shop", INSTANCE, PART[1])
    return reader.page_rows, reader.fetch_rows, reader.connection


def chunk_reader(connector: Connector) -> Any:
    statement = connector.snapshot.statement_for(*THINGS.table_id.parts)
    wanted = ChunkRead(
        schema=THINGS, chunk=Chunk(0), snapshot_number=1, epoch=0, position=lsn(1), captured=lsn(1), commit_lsn=lsn(1),
        read_at=AT, statement=statement,
    )  # fmt: skip
    reader = SqlServerSource(connector).chunk_reader("shop", wanted)
    sql = snapshot_reader.select_statement(reader.wanted, RowPlan.of(THINGS.columns), Piece(""))
    return reader.isolation, reader.fetch_rows, sql


def captured(connector: Connector) -> Any:
    """Which tables and columns are captured, and in what order they are read."""
    filters = connector.filters
    names = [("dbo", "things"), ("dbo", "orders"), ("cdc", "x"), ("dbo", "signals")]
    tables = [(DATABASE, *name) for name in names]
    return (
        [filters.tables.matches(*one) for one in tables],
        [filters.tables.is_signal_table(*one) for one in tables],
        [filters.columns.matches(DATABASE, "dbo", "things", one.name) for one in THINGS.columns],
        [connector.snapshot.collections.matches(*one) for one in tables],
    )


def written(connector: Connector) -> Any:
    """What a change log holds of a row."""
    row = Change(5, "c", after={"id": 1, "first-name": "Ada", "raw": b"1234"})
    keyed = replace(THINGS, key_columns=("first-name",))
    task = write_task.WriteTask(None, keyed, None, 1, connector)  # type: ignore[arg-type]
    try:
        return [batch.to_pylist() for batch in write_task._log_batches(task, iter([neutral(keyed, row)]))]
    except MssqlCdcError as error:
        return str(error)


def rendered(connector: Connector, folder: Path) -> Any:
    """The records of a lake with an insert, an update that changes nothing and a delete; None when none are."""
    lake = Lake(folder / "lake")
    if not lake.folder.exists():
        schema = lake.add(THINGS)
        row = {"id": 1, "first-name": "Ada", "price": 1, "at": datetime(2026, 1, 1), "raw": b"1"}  # noqa: DTZ001
        moved = row | {"price": 2, "note": "n"}
        lake.append(
            schema,
            Change(5, "c", after=row),
            Change(6, "u", before=row, after=row),
            Change(7, "u", before=row, after=moved, changed=["price", "note"]),
            Change(7, "d", before=moved, sequence=2),
        )
        lake.cut(7)
        lake.cut(8, minutes=5)
    given = {name: reveal(value) for name, value in connector.properties}
    output = io.BytesIO()
    shown = connector_from_mapping("c", {**given, "delta.warehouse": str(lake.folder)})
    write_records(shown, output=JsonLinesStream(output))
    return re.sub(r'"(ts_ms|ts_us|ts_ns)": ?\d+', "", output.getvalue().decode())


def unconverted(connector: Connector) -> Any:
    """Whether a change that cannot be converted stops the records."""
    try:
        Failures(connector.records.failure_handling).handle(THINGS.table_id, cut_text(0, lsn(1)), ValueError("no date"))
    except ConversionError:
        return "stopped"
    return "left out"


def beaten(connector: Connector) -> Any:
    recorder = Recorder()

    @dataclass
    class Source:
        @contextmanager
        def session(self, _catalog: str):
            yield recorder

    database = Database.of(connector, "shop", spark=lambda: None, source=Source())  # type: ignore[arg-type,return-value]
    beat(database, None, AT)
    return recorder.seen


def bound(connector: Connector) -> Any:
    with patch("mssql_cdc.source.sqlserver.volume.measure") as measure:
        SqlServerSession(Recorder(), connector).measure([PART], lsn(9))  # type: ignore[arg-type]
    return measure.call_args.args[2]


def agent_asked(connector: Connector) -> Any:
    recorder = Recorder()
    health.agent_runs(recorder, connector.connection)  # type: ignore[arg-type]
    return recorder.seen


def guarded_tables(connector: Connector) -> Any:
    said: list[str] = []
    try:
        guard(connector, 5, warn=said.append)
    except ConfigurationError as error:
        return "refused", str(error)
    return said


def policy(connector: Connector) -> Any:
    database = Database.of(connector, "shop", spark=lambda: None)  # type: ignore[arg-type,return-value]
    return snapshot_extensions.policy(database, Offsets())


def limits(connector: Connector) -> Any:
    return survey._limits(Database.of(connector, "shop", spark=lambda: None), None)  # type: ignore[arg-type,return-value]


def retries(connector: Connector) -> Any:
    try:
        return Retries(connector.streaming, failed=3).wait_seconds(MssqlCdcError("gone"), lambda _: None)
    except MssqlCdcError:
        return "given up"


def by_function(connector: Connector) -> Any:
    session = SqlServerSession(Recorder(), connector)  # type: ignore[arg-type]
    return session._read_as_configured([CapturedTable(THINGS.table_id, 3, (INSTANCE,))])


def lock_refused(connector: Connector) -> Any:
    unreachable = replace(connector, connection=replace(connector.connection, hostname="127.0.0.1", port=1))
    with pytest.raises(MssqlCdcError) as caught, SqlServerSource(unreachable).locked("shop", [THINGS]):
        pass
    return "snapshot.locking.mode" in str(caught.value)


def sensor(connector: Connector) -> Any:
    (found,) = list(build_definitions(connector, tables=[THINGS]).sensors or ())
    return found.minimum_interval_seconds, connector.streaming.poll_seconds  # type: ignore[union-attr]


def keys(connector: Connector) -> Any:
    specs = build_definitions(connector, tables=[THINGS]).resolve_all_asset_specs()
    return [spec.key.to_user_string() for spec in specs], [str(spec.metadata.get("dagster/uri")) for spec in specs]


def read_in(module: ModuleType, expression: str) -> Callable[[Connector], Any]:
    """The value that an expression in a module reads; the module must contain it."""
    path = expression.split("connector.", 1)[1]

    def observe(connector: Connector) -> Any:
        assert re.search(rf"{re.escape(expression)}\b", inspect.getsource(module)), f"{module.__name__}: {expression}"
        value: Any = connector
        for part in path.split("."):
            value = getattr(value, part)
        return value

    return observe


def read_in_budget(name: str) -> Callable[[Connector], Any]:
    """A limit of incremental snapshots, which their budget must read."""
    assert f"settings.{name}" in inspect.getsource(incremental_budget)
    return lambda connector: getattr(connector.snapshot.incremental, name)


def read_from(module: ModuleType, expression: str) -> Callable[[Connector], Any]:
    """The same of an expression on `connection`, a connector's."""
    attribute = expression.removeprefix("connection.")

    def observe(connector: Connector) -> Any:
        assert re.search(rf"{re.escape(expression)}\b", inspect.getsource(module)), f"{module.__name__}: {expression}"
        return getattr(connector.connection, attribute)

    return observe


def laid_out(connector: Connector) -> Any:
    """The layout of a current table, by its own columns."""
    assert "connector.delta.layout_of" in inspect.getsource(current)
    return layout_of(connector.delta.layout_of("shop", "dbo", "things"), THINGS, current_schema(THINGS))


RECORDS = object()
"""The records differ."""

OBSERVED: Mapping[str, Any] = {
    "connector.class": open_source,
    "name": lambda c: c.name,
    "topic.prefix": keys,
    "database.names": lambda c: [one.name for one in build_definitions(c, tables=[]).jobs or ()],
    "database.hostname": odbc,
    "database.port": odbc,
    "database.instance": odbc,
    "database.user": odbc,
    "database.password": odbc,
    "driver.*": odbc,
    "database.*": odbc,
    "odbc.*": odbc,
    "database.connection.timeout.ms": read_from(connect, "connection.login_timeout_s"),
    "database.query.timeout.ms": read_from(connect, "connection.query_timeout_ms"),
    "database.initial.statements": lambda c: c.connection.read_initial_statements(),
    "custom.retriable.exception": lambda c: c.connection.is_retriable("bad weather today"),
    "connection.validation.timeout.ms": lambda c: reach.probe_seconds(c.connection),
    "database.sqlserver.agent.status.query": agent_asked,
    "database.server.timezone": lambda c: change_reader(c)[2].server_timezone,
    "signal.data.collection": captured,
    "signal.enabled.channels": read_in(signals, "connector.signals.channels"),
    "signal.file": read_in(polled_signals, "connector.signals.file"),
    "signal.poll.interval.ms": sensor,
    **dict.fromkeys(("schema.include.list", "schema.exclude.list"), captured),
    **dict.fromkeys(("table.include.list", "table.exclude.list"), captured),
    **dict.fromkeys(("table.ignore.builtin", "column.include.list", "column.exclude.list"), captured),
    **dict.fromkeys((one for one in FAMILIES if one.startswith("column.")), written),
    "delta.key.secret": written,
    "guardrail.collections.max": guarded_tables,
    "guardrail.collections.limit.action": guarded_tables,
    "snapshot.mode": policy,
    "snapshot.mode.configuration.based.snapshot.data": policy,
    "snapshot.mode.configuration.based.start.stream": policy,
    "snapshot.mode.configuration.based.snapshot.on.data.error": policy,
    "snapshot.mode.configuration.based.snapshot.schema": policy,
    "snapshot.mode.configuration.based.snapshot.on.schema.error": policy,
    "snapshot.mode.custom.name": lambda c: c.snapshot.custom_mode,
    "snapshot.query.mode.custom.name": lambda c: c.snapshot.custom_query,
    "snapshot.locking.mode.custom.name": lambda c: c.snapshot.custom_locking,
    "snapshot.isolation.mode": chunk_reader,
    "snapshot.locking.mode": lock_refused,
    "snapshot.delay.ms": read_in(delays, "connector.snapshot.delay_ms"),
    "streaming.delay.ms": read_in(delays, "connector.streaming.delay_ms"),
    "snapshot.lock.timeout.ms": lambda c: c.snapshot.lock_timeout_ms,
    "snapshot.include.collection.list": captured,
    "snapshot.fetch.size": chunk_reader,
    "incremental.snapshot.chunk.size": read_in(chunks, "database.connector.snapshot.incremental.chunk_rows"),
    "incremental.snapshot.option.recompile": read_in(chunks, "database.connector.snapshot.incremental.recompile"),
    "incremental.snapshot.added.columns": read_in(
        added_columns, "database.connector.snapshot.incremental.added_columns"
    ),
    "incremental.snapshot.watermarking.strategy": lambda c: c.notices,
    "incremental.snapshot.max.rows.per.second": read_in_budget("max_rows_per_second"),
    "incremental.snapshot.max.lag.seconds": read_in_budget("max_lag_s"),
    "incremental.snapshot.hours": lambda c: c.snapshot.incremental.is_open(AT),
    "incremental.snapshot.hours.time.zone": lambda c: c.snapshot.incremental.is_open(AT),
    "snapshot.max.threads": read_in(chunk_groups, "connector.snapshot.max_threads"),
    "snapshot.select.statement.overrides": chunk_reader,
    "snapshot.select.statement.overrides.<table>": chunk_reader,
    "schema.history.internal.store.only.captured.tables.ddl": lambda c: c.describes("shop", "audit", "log"),
    "schema.history.internal.store.only.captured.databases.ddl": lambda c: c.describes("shop", "audit", "log"),
    "event.processing.failure.handling.mode": unconverted,
    "notification.enabled.channels": lambda c: c.notifications.channels,
    "notification.sink.topic.name": lambda c: c.notices,
    "poll.interval.ms": sensor,
    "data.query.mode": by_function,
    "max.iteration.transactions": read_in(survey, "connector.streaming.max_transactions"),
    "streaming.fetch.size": change_reader,
    "query.fetch.size": change_reader,
    "heartbeat.action.query": beaten,
    "errors.max.retries": retries,
    "retriable.restart.connector.wait.ms": lambda c: (limits(c), retries(c)),
    "delta.warehouse": keys,
    "delta.storage.*": lambda c: Setup.of(c, "shop", ()).open().storage,
    "delta.current.interval": read_in(current_tables, "connector.delta.current_interval_s"),
    "delta.records.output": keys,
    "delta.deletion.vectors": read_in(current, "connector.delta.deletion_vectors"),
    "delta.current.<table>.partition.by": laid_out,
    "delta.current.<table>.cluster.by": laid_out,
    "dagster.range.max.rows": bound,
    "dagster.max.attempts": limits,
    "dagster.window": lambda c: Setup.of(c, "shop", ()).windows,
    "dagster.window.days": lambda c: Setup.of(c, "shop", ()).windows,
    "dagster.max.run.seconds": read_in(capture_step, "connector.dagster.max_run_seconds"),
    "spark.*": lambda c: c.spark.read(),
    "max.queue.size": read_in(renderer, "connector.records.queue_size"),
    "converters": lambda c: c.records.extensions.own_converters,
    "post.processors": lambda c: c.records.extensions.own_post_processors,
    "<extension>.*": lambda c: Extensions.of(c).reselect,
    "topic.naming.strategy": RECORDS,
    "transaction.metadata.factory": lambda c: c.unrendered,
    "unavailable.value.placeholder": lambda c: c.notices,
    **dict.fromkeys(
        (
            "heartbeat.interval.ms", "tombstones.on.delete", "skipped.operations", "skip.messages.without.change",
            "provide.transaction.metadata", "include.schema.changes", "time.precision.mode", "decimal.handling.mode",
            "binary.handling.mode", "field.name.adjustment.mode", "sanitize.field.names", "extended.headers.enabled",
            "task.id",
            "message.key.columns", "topic.delimiter", "topic.transaction", "topic.heartbeat.prefix",
            "topic.heartbeat.name", "topic.regex", "topic.replacement", "topic.key.enforce.uniqueness",
            "topic.key.field.name", "topic.key.field.regex", "topic.key.field.replacement",
            "key.converter.schemas.enable", "key.converter.replace.null.with.default",
            "key.converter.decimal.format", "value.converter.schemas.enable",
            "value.converter.replace.null.with.default", "value.converter.decimal.format",
            "value.converter.json.schemas.enable", "value.converter.json.replace.null.with.default",
            "value.converter.json.decimal.format", "value.converter.extension.attributes.enable",
            "header.converter.schemas.enable", "header.converter.replace.null.with.default",
            "header.converter.decimal.format",
            "column.propagate.source.type", "datatype.propagate.source.type", "schema.name.adjustment.mode",
        ),
        RECORDS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("prop", ALL, ids=lambda one: one.name)
def test_a_property_that_is_set_has_an_effect_a_notice_or_is_refused(prop: Property, tmp_path: Path) -> None:
    name, value = name_and_value(prop)
    beside = BASE | BESIDE.get(prop.name, {})
    without = connector_from_mapping("c", {n: v for n, v in beside.items() if n != name or n in MINIMAL})
    refusal, connector = loaded(beside | {name: value})
    if connector is None:
        assert f"{name}: " in refusal
        return
    assert value != default_text(prop)
    said = [line for line in connector.notices if line not in without.notices]
    if prop.effect in {Effect.INERT, Effect.NO_RECORDS}:
        assert any(shown_name(name) in line for line in said)
        return
    if any(shown_name(name) in line for line in said):
        return
    observe = OBSERVED[prop.name]
    if observe is RECORDS:
        assert rendered(connector, tmp_path) != rendered(without, tmp_path)
    else:
        assert observe(connector) != observe(without)


def loaded(properties: Mapping[str, object]) -> tuple[str, Connector | None]:
    try:
        return "", connector_from_mapping("c", properties)
    except ConfigurationError as error:
        return str(error), None


def test_every_effective_property_says_where_its_effect_is_seen() -> None:
    refused = {"snapshot.query.mode"}
    refused |= {f"value.converter.{name}" for name in ("serializer.type", "data.serializer.type", "metadata.source")}
    effective = {one.name for one in ALL if one.effect in {Effect.EFFECTIVE, Effect.TRANSLATED}} - refused
    assert effective - set(OBSERVED) == set()
    assert set(OBSERVED) - {one.name for one in ALL} == set()


def test_only_properties_without_meaning_or_of_records_are_dropped() -> None:
    dropped = {one.name for one in ALL if one.path[0] == "inert"}
    assert dropped <= {one.name for one in ALL if one.effect in {Effect.INERT, Effect.NO_RECORDS}}
    assert {one.name for one in ALL if one.effect is Effect.INERT} - dropped == set()
