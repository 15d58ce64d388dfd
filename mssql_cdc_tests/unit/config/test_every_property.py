"""No property is accepted in silence without an effect.

Every property is loaded with a value that is not its default. Either the connector is refused, or a notice or a refusal
of records names the property, or something that the product does differs: `OBSERVED` says which function of `observed`
runs a part of the product and says what it did. What needs a server or an installed extension is shown by other tests,
which are collected and set the property. A property that is missing there fails the test.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.config import Connector, connector_from_mapping
from mssql_cdc.config.catalogue import ALL
from mssql_cdc.config.documentation import default_text
from mssql_cdc.config.extension_points import DEFAULT_NAMING, RESELECT, SCHEMA_REGEX_NAMING
from mssql_cdc.config.json_forms import CLOUD_EVENTS
from mssql_cdc.config.property import Effect, Property
from mssql_cdc.config.report import shown_name
from mssql_cdc.errors import ConfigurationError
from mssql_cdc_tests.unit.config.observed import capturing, dagster, drivers, lakes, lineage, reading, records
from mssql_cdc_tests.unit.config.observed.shown import TESTS, ShownBy, shown_by
from mssql_cdc_tests.unit.config.samples import MINIMAL
from mssql_cdc_tests.unit.records.kit import DATABASE

BASE: dict[str, object] = MINIMAL | {"database.names": DATABASE, "database.user": "sa", "delta.warehouse": "/nowhere"}
SAMPLES: dict[str, str] = {
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "topic.prefix": "server2",
    "database.names": "otherDB",
    "custom.sanitize.pattern": r"delta\.ware.*",
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
    "snapshot.select.statement.overrides": "dbo.orders",
    "snapshot.select.statement.overrides.<table>": "SELECT id, name FROM dbo.orders WHERE id = 1",
    "snapshot.isolation.mode": "snapshot",
    "snapshot.max.threads": "1",
    "incremental.snapshot.chunk.size": "7",
    "message.key.columns": "dbo.things:price",
    "notification.enabled.channels": "log",
    "incremental.snapshot.hours": "08:00-09:00",
    "incremental.snapshot.hours.time.zone": "Asia/Tokyo",
    "signal.poll.interval.ms": "200",
    "skipped.operations": "d",
    "event.processing.failure.handling.mode": "skip",
    "snapshot.query.mode": "custom",
    "snapshot.locking.mode": "none",
    "<extension>.*": "false",
    "topic.naming.strategy": DEFAULT_NAMING,
    "topic.key.field.regex": r"(.*)\.things",
    "topic.regex": r"(no)\.(match)",
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
    "delta.current.<table>.cluster.by": "name",
    "dagster.max.run.seconds": "0",
    "dagster.range.max.rows": "10",
    "guardrail.collections.max": "1",
    "max.queue.size": "7",
    "poll.interval.ms": "60000",
    "errors.max.retries": "2",
    "openlineage.integration.job.tags": "env=prod",
    "openlineage.integration.job.owners": "Mario=maintainer",
}
FAMILIES: dict[str, str] = {
    "column.truncate.to.<n>.chars": "column.truncate.to.1.chars",
    "column.mask.with.<n>.chars": "column.mask.with.3.chars",
    "column.mask.hash.<algorithm>.with.salt.<salt>": "column.mask.hash.SHA-256.with.salt.s",
    "column.mask.hash.v2.<algorithm>.with.salt.<salt>": "column.mask.hash.v2.SHA-256.with.salt.s",
    "snapshot.select.statement.overrides.<table>": "snapshot.select.statement.overrides.dbo.orders",
    "driver.*": "driver.applicationName",
    "database.*": "database.applicationName",
    "odbc.*": "odbc.PacketSize",
    "delta.storage.*": "delta.storage.AWS_REGION",
    "delta.current.<table>.partition.by": "delta.current.dbo.orders.partition.by",
    "delta.current.<table>.cluster.by": "delta.current.dbo.orders.cluster.by",
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
        "snapshot.select.statement.overrides.dbo.orders": "SELECT * FROM dbo.orders"
    },
    "snapshot.select.statement.overrides.<table>": {"snapshot.select.statement.overrides": "dbo.orders"},
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
    "name": {"transforms": "unwrap"},
    "signal.file": {"signal.enabled.channels": "file"},
    "signal.poll.interval.ms": {"signal.enabled.channels": "file"},
    "incremental.snapshot.watermarking.strategy": {"signal.data.collection": "dbo.signals"},
    "incremental.snapshot.max.rows.per.second": {"incremental.snapshot.chunk.size": "2"},
    **{
        f"openlineage.integration.{name}": {"openlineage.integration.enabled": "true"}
        for name in ("config.file.path", "job.namespace", "job.description", "job.tags", "job.owners")
    },
    "dagster.max.run.seconds": {"database.names": "shop"},
    "dagster.window": {"database.names": "shop"},
    "dagster.window.days": {"database.names": "shop"},
    "incremental.snapshot.hours.time.zone": {"incremental.snapshot.hours": "09:00-10:00"},
    "delta.key.secret": {"column.mask.with.3.chars": "dbo.things.first-name"},
    "topic.key.enforce.uniqueness": BY_REGEX,
    "topic.key.field.name": BY_REGEX,
    "topic.key.field.regex": BY_REGEX | {"topic.key.field.replacement": "x$1"},
    "topic.regex": BY_REGEX,
    "topic.replacement": BY_REGEX,
    "topic.key.field.replacement": BY_REGEX
    | {"topic.key.field.regex": r"(.*)\.things", "topic.key.field.replacement": "x$1"},
}
"""What else has to be set for a property to mean anything, or for its effect to be seen."""
ONLY_SEEN_WITH = {
    "name", "incremental.snapshot.max.rows.per.second", "delta.key.secret", "dagster.max.run.seconds", "dagster.window",
    "dagster.window.days",
}  # fmt: skip
"""The properties that have an effect without the others of `BESIDE`, which what is observed does not show."""


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


Observe = Callable[[Connector], Any]

OBSERVED: Mapping[str, Observe | tuple[Observe, ...] | ShownBy] = {
    "name": records.refusal,
    "topic.prefix": dagster.keys,
    "database.names": dagster.jobs,
    "custom.sanitize.pattern": lakes.warehouse_in_a_line,
    "database.hostname": reading.odbc,
    "database.port": reading.odbc,
    "database.instance": reading.odbc,
    "database.user": reading.odbc,
    "database.password": reading.odbc,
    "driver.*": reading.odbc,
    "database.*": reading.odbc,
    "odbc.*": reading.odbc,
    "database.connection.timeout.ms": (drivers.by_pyodbc, drivers.by_arrow),
    "database.query.timeout.ms": (drivers.by_pyodbc, drivers.by_arrow),
    "database.initial.statements": (drivers.by_pyodbc, drivers.by_arrow),
    "custom.retriable.exception": drivers.translated_error,
    "connection.validation.timeout.ms": reading.patience,
    "database.sqlserver.agent.status.query": reading.agent_asked,
    "database.server.timezone": reading.time_asked,
    "signal.data.collection": reading.captured,
    "signal.enabled.channels": capturing.signals_taken,
    "signal.file": capturing.signals_taken,
    **dict.fromkeys(
        ("signal.kafka.bootstrap.servers", "signal.kafka.topic", "signal.kafka.poll.timeout.ms"),
        shown_by("unit/follow/test_kafka_channel.py::test_a_look_waits_for_the_next_message_as_long_as_it_may"),
    ),
    **dict.fromkeys(
        ("signal.kafka.groupId", "signal.consumer.*"),
        shown_by("unit/follow/test_kafka_channel.py::test_settings_of_the_client_are_passed_on_and_secrets_are_hidden"),
    ),
    "signal.poll.interval.ms": (dagster.pause_of_ticks, dagster.pauses_of_a_run),
    **dict.fromkeys(("schema.include.list", "schema.exclude.list"), reading.captured),
    **dict.fromkeys(("table.include.list", "table.exclude.list"), reading.captured),
    **dict.fromkeys(("table.ignore.builtin", "column.include.list", "column.exclude.list"), reading.captured),
    **dict.fromkeys((one for one in FAMILIES if one.startswith("column.")), reading.written),
    "delta.key.secret": reading.written,
    "guardrail.collections.max": reading.guarded_tables,
    "guardrail.collections.limit.action": reading.guarded_tables,
    "snapshot.mode": reading.policy,
    "snapshot.mode.configuration.based.snapshot.data": reading.policy,
    "snapshot.mode.configuration.based.start.stream": reading.policy,
    "snapshot.mode.configuration.based.snapshot.on.data.error": reading.policy,
    "snapshot.mode.configuration.based.snapshot.schema": reading.policy,
    "snapshot.mode.configuration.based.snapshot.on.schema.error": reading.policy,
    "snapshot.mode.custom.name": shown_by(
        "end_to_end/test_snapshot_extensions.py::test_snapshotter_of_a_user_decides_about_rows_at_the_start_and_is_told_of_their_end"
    ),
    "snapshot.query.mode.custom.name": shown_by(
        "end_to_end/test_snapshot_extensions.py::test_snapshot_query_of_a_user_chooses_rows_and_tables_and_fails_alone"
    ),
    "snapshot.locking.mode.custom.name": shown_by(
        "end_to_end/test_snapshot_extensions.py::test_snapshot_lock_of_a_user_is_taken_before_the_shared_one"
    ),
    "snapshot.isolation.mode": drivers.chunk,
    "snapshot.locking.mode": reading.lock_refused,
    "snapshot.delay.ms": capturing.waits,
    "streaming.delay.ms": capturing.waits,
    "snapshot.lock.timeout.ms": drivers.locked,
    "snapshot.row.level.security": reading.filtered,
    "snapshot.include.collection.list": capturing.first_chunks,
    "snapshot.fetch.size": drivers.chunk,
    "incremental.snapshot.chunk.size": capturing.incremental_chunks,
    "incremental.snapshot.option.recompile": capturing.incremental_chunks,
    "incremental.snapshot.added.columns": capturing.read_for_new_columns,
    "incremental.snapshot.watermarking.strategy": reading.watermarks,
    "incremental.snapshot.max.rows.per.second": capturing.incremental_chunks,
    "incremental.snapshot.max.lag.seconds": capturing.incremental_chunks,
    "incremental.snapshot.hours": capturing.incremental_chunks,
    "incremental.snapshot.hours.time.zone": capturing.incremental_chunks,
    "snapshot.max.threads": capturing.reading_threads,
    "snapshot.select.statement.overrides": capturing.first_chunks,
    "snapshot.select.statement.overrides.<table>": capturing.first_chunks,
    "schema.history.internal.store.only.captured.tables.ddl": reading.described,
    "schema.history.internal.store.only.captured.databases.ddl": reading.described,
    "event.processing.failure.handling.mode": records.unconverted,
    "notification.enabled.channels": capturing.notified,
    "notification.sink.topic.name": shown_by(
        "end_to_end/test_follow_notifications.py::test_follow_tells_of_snapshots_in_events_and_sink_records"
    ),
    "openlineage.integration.enabled": lineage.told,
    **{
        f"openlineage.integration.{name}": lineage.told
        for name in ("config.file.path", "job.namespace", "job.description", "job.tags", "job.owners")
    },
    "poll.interval.ms": (dagster.pause_of_ticks, dagster.pauses_of_a_run),
    "data.query.mode": reading.by_function,
    "max.iteration.transactions": capturing.range_ends,
    "streaming.fetch.size": drivers.pages,
    "query.fetch.size": drivers.fetches,
    "heartbeat.action.query": reading.beaten,
    "errors.max.retries": reading.retries,
    "retriable.restart.connector.wait.ms": (reading.retries, reading.limits),
    "delta.warehouse": dagster.keys,
    "delta.storage.*": lakes.storage_options,
    "delta.current.interval": lakes.merged_after_some_seconds,
    "delta.records.output": dagster.keys,
    "delta.deletion.vectors": lakes.layout,
    "delta.current.<table>.partition.by": lakes.layout,
    "delta.current.<table>.cluster.by": lakes.layout,
    "dagster.range.max.rows": reading.bound,
    "dagster.max.attempts": reading.limits,
    "dagster.max.run.seconds": (dagster.requested, dagster.longest_runs),
    "dagster.window": dagster.windows,
    "dagster.window.days": dagster.windows,
    "spark.*": lakes.spark_options,
    "max.queue.size": lakes.written_at_once,
    "converters": shown_by("unit/records/test_extensions.py::test_converter_makes_values_schema_and_default"),
    "post.processors": shown_by(
        "unit/records/test_extensions.py::test_post_processor_changes_every_record_of_a_change_and_nothing_else"
    ),
    "<extension>.*": records.reselect,
    "topic.naming.strategy": records.rendered,
    "transaction.metadata.factory": shown_by(
        "unit/records/test_extensions.py::test_transaction_factory_shows_blocks_and_transactions_in_its_way"
    ),
    "unavailable.value.placeholder": shown_by(
        "end_to_end/test_record_extensions.py::test_reselect_reads_the_placeholder_again"
    ),
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
        records.rendered,
    ),
}  # fmt: skip


@pytest.mark.parametrize("prop", ALL, ids=lambda one: one.name)
def test_a_property_that_is_set_has_an_effect_a_notice_or_is_refused(
    prop: Property, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, value = name_and_value(prop)
    beside = BASE | BESIDE.get(prop.name, {})
    without = connector_from_mapping("c", beside)
    refusal, connector = loaded(beside | {name: value})
    observe = OBSERVED.get(prop.name)
    if connector is None:
        assert f"{name}: " in refusal
        assert observe is None or isinstance(observe, ShownBy)
        return
    assert value != default_text(prop)
    said = [line for line in connector.notices if line not in without.notices]
    if observe is None or isinstance(observe, ShownBy):
        assert any(shown_name(name) in line for line in said)
    else:
        assert not any(shown_name(name) in line for line in said)
        for one in observe if isinstance(observe, tuple) else (observe,):
            seen = one(without)
            assert one(connector) != seen
            assert one(without) == seen  # What differs by itself, such as a time, is no effect.


@pytest.mark.parametrize(
    "prop", [one for one in ALL if one.name in set(BESIDE) - ONLY_SEEN_WITH], ids=lambda one: one.name
)
def test_a_property_without_those_that_it_needs_is_named_or_refused_or_has_an_effect(
    prop: Property, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, value = name_and_value(prop)
    refusal, connector = loaded(BASE | {name: value})
    if connector is None:
        assert f"{name}: " in refusal
        return
    without = connector_from_mapping("c", BASE)
    if any(shown_name(name) in line for line in connector.notices):
        return
    observe = OBSERVED[prop.name]
    assert not isinstance(observe, ShownBy)
    assert any(one(connector) != one(without) for one in (observe if isinstance(observe, tuple) else (observe,)))


def loaded(properties: Mapping[str, object]) -> tuple[str, Connector | None]:
    try:
        return "", connector_from_mapping("c", properties)
    except ConfigurationError as error:
        return str(error), None


def test_every_effective_property_says_where_its_effect_is_seen() -> None:
    refused = {"connector.class", "snapshot.query.mode"}
    refused |= {f"value.converter.{name}" for name in ("serializer.type", "data.serializer.type", "metadata.source")}
    effective = {one.name for one in ALL if one.effect in {Effect.EFFECTIVE, Effect.TRANSLATED}} - refused
    assert effective - set(OBSERVED) == set()
    assert set(OBSERVED) <= effective


def test_only_properties_without_meaning_or_of_records_are_dropped() -> None:
    dropped = {one.name for one in ALL if one.path[0] == "inert"}
    assert dropped <= {one.name for one in ALL if one.effect in {Effect.INERT, Effect.NO_RECORDS}}
    assert {one.name for one in ALL if one.effect is Effect.INERT} - dropped == set()


SHOWN = {name: one for name, one in OBSERVED.items() if isinstance(one, ShownBy)}


@pytest.mark.parametrize("name", SHOWN)
def test_what_other_tests_show_is_set_by_them(name: str) -> None:
    assert SHOWN[name].problems(name) == []


def test_tests_that_show_effects_are_collected() -> None:
    wanted = sorted({test for one in SHOWN.values() for test in one.tests})
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *wanted],
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    lines = found.stdout.splitlines()
    assert [test for test in wanted if not any(line.endswith(test) for line in lines)] == []


@pytest.mark.parametrize(
    ("test", "name", "problem"),
    [
        ("unit/records/test_gone.py::test_it", "converters", "collects no such file"),
        ("unit/records/kit.py::table", "converters", "collects no such file"),
        ("unit/records/test_extensions.py::test_gone", "converters", "collects no such test"),
        ("unit/records/test_extensions.py::test_converter_makes_values_schema_and_default", "topic.prefix", "sets no"),
    ],
)
def test_a_test_that_shows_nothing_is_found(test: str, name: str, problem: str) -> None:
    (found,) = shown_by(test).problems(name)
    assert problem in found
