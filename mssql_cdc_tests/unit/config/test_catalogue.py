"""The table of properties: Debezium's names and defaults, families, meanings."""

import pytest

from mssql_cdc.config.catalogue import ALL, find
from mssql_cdc.config.documentation import default_text
from mssql_cdc.config.patterns import PatternList
from mssql_cdc.config.property import Property
from mssql_cdc.config.record_settings import RecordKeys
from mssql_cdc_tests.unit.config.samples import connector_with

NOTHING = (None, ..., "", (), PatternList(), RecordKeys())
"""Defaults that mean "not set"."""

# Debezium 3.3.1's names and defaults, recorded independently of the property table.
DEBEZIUM = {
    "name": None,
    "connector.class": None,
    "tasks.max": 1,
    "database.hostname": None,
    "database.port": 1433,
    "database.user": None,
    "database.password": None,
    "database.instance": None,
    "database.names": None,
    "topic.prefix": None,
    "schema.include.list": None,
    "schema.exclude.list": None,
    "table.include.list": None,
    "table.exclude.list": None,
    "column.include.list": None,
    "column.exclude.list": None,
    "skip.messages.without.change": False,
    "time.precision.mode": "adaptive",
    "decimal.handling.mode": "precise",
    "include.schema.changes": True,
    "tombstones.on.delete": True,
    "column.propagate.source.type": None,
    "datatype.propagate.source.type": None,
    "message.key.columns": None,
    "binary.handling.mode": "bytes",
    "schema.name.adjustment.mode": "none",
    "field.name.adjustment.mode": "none",
    "converters": None,
    "snapshot.mode": "initial",
    "snapshot.mode.configuration.based.snapshot.data": False,
    "snapshot.mode.configuration.based.snapshot.schema": False,
    "snapshot.mode.configuration.based.start.stream": False,
    "snapshot.mode.configuration.based.snapshot.on.schema.error": False,
    "snapshot.mode.configuration.based.snapshot.on.data.error": False,
    "snapshot.mode.custom.name": None,
    "snapshot.locking.mode": "exclusive",
    "snapshot.locking.mode.custom.name": None,
    "snapshot.query.mode": "select_all",
    "snapshot.query.mode.custom.name": None,
    "snapshot.include.collection.list": None,
    "snapshot.isolation.mode": "repeatable_read",
    "event.processing.failure.handling.mode": "fail",
    "poll.interval.ms": 500,
    "max.queue.size": 8192,
    "max.queue.size.in.bytes": 0,
    "max.batch.size": 2048,
    "heartbeat.interval.ms": 0,
    "heartbeat.action.query": None,
    "snapshot.delay.ms": 0,
    "streaming.delay.ms": 0,
    "snapshot.fetch.size": 2000,
    "query.fetch.size": 10000,
    "snapshot.lock.timeout.ms": 10000,
    "snapshot.select.statement.overrides": None,
    "source.struct.version": "v2",
    "provide.transaction.metadata": False,
    "retriable.restart.connector.wait.ms": 10000,
    "skipped.operations": frozenset({"t"}),
    "signal.data.collection": None,
    "signal.enabled.channels": ("source",),
    "notification.enabled.channels": None,
    "incremental.snapshot.allow.schema.changes": False,
    "incremental.snapshot.chunk.size": 1024,
    "incremental.snapshot.watermarking.strategy": "insert_insert",
    "max.iteration.transactions": 500,
    "incremental.snapshot.option.recompile": False,
    "topic.naming.strategy": "io.debezium.schema.SchemaTopicNamingStrategy",
    "topic.delimiter": ".",
    "topic.cache.size": 10000,
    "topic.heartbeat.prefix": "__debezium-heartbeat",
    "topic.transaction": "transaction",
    "snapshot.max.threads": 1,
    "custom.metric.tags": None,
    "errors.max.retries": -1,
    "data.query.mode": "function",
    "database.query.timeout.ms": 600000,
    "streaming.fetch.size": 0,
    "guardrail.collections.max": 0,
    "guardrail.collections.limit.action": "warn",
    "extended.headers.enabled": True,
    "database.sqlserver.agent.status.query": None,
    "schema.history.internal": "io.debezium.storage.kafka.history.KafkaSchemaHistory",
    "schema.history.internal.kafka.topic": None,
    "schema.history.internal.kafka.bootstrap.servers": None,
    "schema.history.internal.kafka.recovery.poll.interval.ms": 100,
    "schema.history.internal.kafka.query.timeout.ms": 3000,
    "schema.history.internal.kafka.create.timeout.ms": 30000,
    "schema.history.internal.kafka.recovery.attempts": 100,
    "schema.history.internal.skip.unparseable.ddl": False,
    "schema.history.internal.store.only.captured.tables.ddl": False,
    "schema.history.internal.store.only.captured.databases.ddl": False,
    "schema.history.internal.file.filename": None,
    "signal.kafka.topic": None,
    "signal.kafka.groupId": "kafka-signal",
    "signal.kafka.bootstrap.servers": None,
    "signal.kafka.poll.timeout.ms": 100,
    "signal.file": "file-signals.txt",
    "signal.poll.interval.ms": 5000,
    "notification.sink.topic.name": None,
    "openlineage.integration.enabled": False,
    "openlineage.integration.config.file.path": "./openlineage.yml",
    "openlineage.integration.job.namespace": None,
    "openlineage.integration.job.description": "Debezium change data capture job",
    "openlineage.integration.job.tags": None,
    "openlineage.integration.job.owners": None,
    "openlineage.integration.dataset.kafka.bootstrap.servers": None,
    "post.processors": None,
    "event.converting.failure.handling.mode": "warn",
    "table.ignore.builtin": True,
    "include.schema.comments": False,
    "snapshot.tables.order.by.row.count": "disabled",
    "snapshot.scan.all.columns.force": False,
    "unavailable.value.placeholder": "__debezium_unavailable_value",
    "connection.validation.timeout.ms": 60000,
    "executor.shutdown.timeout.ms": 4000,
    "transaction.metadata.factory": "io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory",
    "sourceinfo.struct.maker": "io.debezium.connector.sqlserver.SqlServerSourceInfoStructMaker",
    "custom.retriable.exception": None,
    "log.position.check.enable": True,
    "advanced.metrics.enable": False,
    "streaming.lsn.optimization": True,
    "database.initial.statements": None,
    "database.connection.timeout.ms": 600000,
    "connection.factory.class": None,
}


@pytest.mark.parametrize("name", DEBEZIUM)
def test_debezium_property_is_known_with_its_default(name: str) -> None:
    found = find(name)
    assert found is not None
    prop, _ = found
    assert prop.name == name
    default = prop.default if prop.debezium is None else prop.debezium
    assert (None if default in NOTHING else default) == DEBEZIUM[name]


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("column.mask.with.12.chars", "column.mask.with.<n>.chars"),
        ("column.truncate.to.4.chars", "column.truncate.to.<n>.chars"),
        ("column.mask.hash.SHA-256.with.salt.a.b", "column.mask.hash.<algorithm>.with.salt.<salt>"),
        ("column.mask.hash.v2.SHA-256.with.salt.a", "column.mask.hash.v2.<algorithm>.with.salt.<salt>"),
        ("snapshot.select.statement.overrides.dbo.t", "snapshot.select.statement.overrides.<table>"),
        ("schema.history.internal.producer.acks", "schema.history.internal.*"),
        ("producer.override.acks", "producer.*"),
        ("transforms.unwrap.type", "transforms.*"),
        ("topic.creation.default.partitions", "topic.creation.*"),
        ("driver.encrypt", "driver.*"),
        ("database.encrypt", "database.*"),
        ("odbc.Driver", "odbc.*"),
    ],
)
def test_the_most_specific_family_matches(name: str, family: str) -> None:
    found = find(name)
    assert found is not None
    assert found[0].name == family


def test_every_name_in_the_table_is_unique_and_has_a_meaning() -> None:
    names = [one.name for one in ALL]
    assert sorted(names) == sorted(set(names))
    assert all(one.text for one in ALL)


@pytest.mark.parametrize("prop", [one for one in ALL if one.default not in NOTHING], ids=lambda one: one.name)
def test_default_is_valid_and_setting_it_explicitly_is_no_problem(prop: Property) -> None:
    connector_with({prop.name: default_text(prop)})
