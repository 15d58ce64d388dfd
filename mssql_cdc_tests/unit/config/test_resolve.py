"""Every property is known; every problem is told, all at once, and never with a secret in it."""

import pytest

from mssql_cdc.config import Secret, connector_from_mapping
from mssql_cdc.config.catalogue import ALL, canonical_name, find
from mssql_cdc.config.property import Status
from mssql_cdc.errors import ConfigurationError
from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with

# Debezium 3.3.1's names and defaults, written down apart from the property table.
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
    "skipped.operations": ("t",),
    "signal.data.collection": None,
    "signal.enabled.channels": ("source",),
    "notification.enabled.channels": (),
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
    "signal.kafka.poll.timeout.ms": "100",
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


def problems_of(properties: dict[str, object]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        connector_from_mapping("c", properties)
    return str(caught.value)


@pytest.mark.parametrize("name", DEBEZIUM)
def test_debezium_property_is_known_with_its_default(name: str) -> None:
    found = find(name)
    assert found is not None
    assert found.prop.name == name
    assert (found.prop.parse(found.prop.default) if found.prop.default is not None else None) == DEBEZIUM[name]


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
def test_family_is_found_by_its_best_fit(name: str, family: str) -> None:
    found = find(name)
    assert found is not None
    assert found.prop.name == family


def test_every_name_in_the_table_stands_there_once_with_a_meaning() -> None:
    names = [one.name for one in ALL]
    assert sorted(names) == sorted(set(names))
    assert all(one.text for one in ALL)


@pytest.mark.parametrize("prop", [one for one in ALL if one.default is not None], ids=lambda one: one.name)
def test_default_is_valid_and_setting_it_explicitly_is_no_problem(prop) -> None:
    connector_with({prop.name: prop.default})


def test_unknown_property_is_an_error_with_the_nearest_name() -> None:
    text = problems_of(MINIMAL | {"table.includ.list": "dbo.a"})
    assert "table.includ.list: unknown property; did you mean table.include.list?" in text


def test_mistyped_database_property_is_not_taken_for_a_driver_setting() -> None:
    text = problems_of(MINIMAL | {"database.passwort": "hunter2"})
    assert "did you mean database.password?" in text
    assert "hunter2" not in text


def test_unknown_property_without_a_near_one_suggests_nothing() -> None:
    text = problems_of(MINIMAL | {"zzz": "1"})
    assert "zzz: unknown property\n" in text + "\n"


def test_all_problems_come_in_one_error() -> None:
    text = problems_of(
        {
            "database.port": "abc",
            "topic.prefix": "a b",
            "tombstones.on.delete": "yes",
            "snapshot.mode": "sometimes",
            "table.include.list": "dbo.(",
            "nonsense.property": "1",
            "column.mask.with.x.chars": "dbo.a.b",
        }
    )
    assert "9 problems" in text
    for part in (
        "database.port: found 'abc', expected a whole number",
        "topic.prefix: found 'a b'",
        "tombstones.on.delete: found 'yes', expected true or false",
        "snapshot.mode: found 'sometimes', expected always, initial",
        "table.include.list: 'dbo.(' is not a regular expression",
        "nonsense.property: unknown property",
        "column.mask.with.x.chars: expected a whole number",
        "database.hostname: is required",
        "database.names: is required",
    ):
        assert part in text


@pytest.mark.feature("FLT-02")
@pytest.mark.parametrize("what", ["schema", "table", "column"])
def test_include_and_exclude_list_exclude_each_other(what: str) -> None:
    both = {f"{what}.include.list": "a", f"{what}.exclude.list": "b"}
    assert f"{what}.include.list: cannot be set together with {what}.exclude.list" in problems_of(MINIMAL | both)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("database.port", "70000", "65535 or less"),
        ("incremental.snapshot.chunk.size", "0", "1 or more"),
        ("snapshot.lock.timeout.ms", "-2", "-1 or more"),
        ("database.hostname", "a host", "matches"),
        ("skipped.operations", "c,x", "expected c, u, d, t, r or none"),
        ("skipped.operations", "none,c", "none cannot stand beside"),
        ("message.key.columns", "dbo.a", "not of the form"),
        ("column.mask.hash.CRC32.with.salt.x", "dbo.a.b", "'CRC32' is not known"),
        ("column.truncate.to.0.chars", "dbo.a.b", "from 1 on"),
        ("signal.data.collection", "otherDB.dbo.s", "one of database.names"),
        ("notification.enabled.channels", "sink", "is required with the notification channel"),
        ("database.names", "a,A", "more than once"),
        ("database.server.timezone", "Mars/Base", "IANA"),
        ("driver.encrypt", "perhaps", "encrypt: found 'perhaps'"),
        ("driver.loginTimeout", "soon", "whole number of seconds"),
        ("poll.interval.ms", [1], "expected a text"),
    ],
)
def test_bad_value_is_named(name: str, value: object, message: str) -> None:
    assert message in problems_of(MINIMAL | {name: value})


@pytest.mark.parametrize("value", [False, "false", "FALSE", " false "])
def test_boolean_may_be_a_text(value: object) -> None:
    assert connector_with({"tombstones.on.delete": value}).records.tombstones is False


@pytest.mark.parametrize("value", [250, "250", " 250 "])
def test_number_may_be_a_text(value: object) -> None:
    assert connector_with({"poll.interval.ms": value}).streaming.poll_interval_ms == 250


def test_null_and_blank_count_as_not_set() -> None:
    connector = connector_with({"poll.interval.ms": None, "table.include.list": "", "snapshot.mode": " "})
    assert connector.streaming.poll_interval_ms == 500
    assert connector.snapshot.mode == "initial"
    assert connector.filters.tables.matches("testDB", "dbo", "any")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("database.dbname", "database.names"),
        ("database.server.name", "topic.prefix"),
        ("database.history.kafka.topic", "schema.history.internal.kafka.topic"),
        ("heartbeat.topics.prefix", "topic.heartbeat.prefix"),
        ("table.whitelist", "table.include.list"),
        ("column.blacklist", "column.exclude.list"),
        ("transaction.topic", "topic.transaction"),
        ("internal.log.position.check.enable", "log.position.check.enable"),
    ],
)
def test_older_name_is_translated(old: str, new: str) -> None:
    assert canonical_name(old) == new


def test_older_names_load_with_a_notice_each() -> None:
    connector = connector_from_mapping(
        "c", {"database.hostname": "h", "database.dbname": "testDB", "database.server.name": "s"}
    )
    assert connector.databases == ("testDB",)
    assert connector.topic_prefix == "s"
    assert "database.dbname: older name of database.names" in connector.notices


def test_older_and_newer_name_with_different_values_are_a_problem() -> None:
    assert "is set twice" in problems_of(MINIMAL | {"database.server.name": "other"})


@pytest.mark.feature("SNP-04", "SNP-05")
@pytest.mark.parametrize("old", ["schema_only", "initial_schema_only", "SCHEMA_ONLY"])
def test_schema_only_means_no_data(old: str) -> None:
    connector = connector_with({"snapshot.mode": old})
    assert connector.snapshot.mode == "no_data"
    assert any("older name of no_data" in one for one in connector.notices)


@pytest.mark.feature("TOP-08")
def test_sanitize_field_names_means_avro() -> None:
    assert connector_with({"sanitize.field.names": "true"}).records.field_name_adjustment == "avro"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("snapshot.mode", "custom"),
        ("snapshot.locking.mode", "custom"),
        ("event.processing.failure.handling.mode", "skip"),
        ("topic.naming.strategy", "my.Strategy"),
    ],
)
def test_what_would_change_rows_and_is_not_implemented_is_refused(name: str, value: str) -> None:
    assert f"{name}: " in problems_of(MINIMAL | {name: value})
    assert "known, not implemented yet" in problems_of(MINIMAL | {name: value})


def test_what_changes_no_row_and_is_not_implemented_is_noticed() -> None:
    connector = connector_with({"openlineage.integration.enabled": "true", "signal.enabled.channels": "source,jmx"})
    assert len([one for one in connector.notices if "known, not implemented yet" in one]) == 2
    assert connector.signals.channels == ("source",)


def test_not_implemented_property_at_its_default_is_silent() -> None:
    planned = {one.name: one.default for one in ALL if one.status is Status.PLANNED and one.default is not None}
    assert planned
    assert connector_with(dict(planned)).notices == ()


def test_kafka_only_properties_pass_with_one_notice_each() -> None:
    kafka: dict[str, object] = {
        "connector.class": "x",
        "tasks.max": "3",
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "converters": "iso",
        "iso.type": "my.Converter",
        "iso.format": "x",
        "key.converter": "x",
        "producer.override.acks": "all",
        "schema.history.internal.consumer.security.protocol": "SSL",
    }
    notices = connector_with(kafka).notices
    assert len(notices) == len(kafka)
    assert all(any(one.startswith(f"{name}: accepted") for one in notices) for name in kafka)


def test_salt_and_password_never_show_in_errors() -> None:
    text = problems_of(
        MINIMAL
        | {
            "column.mask.hash.CRC32.with.salt.pepper": "a.b.c",
            "column.mask.hash.SHA-256.with.slat.pepper": "a.b.c",
            "database.password": ["pepper"],
            "database.port": "x",
        }
    )
    assert "pepper" not in text


def test_value_behind_a_reference_never_shows_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRONG_PLACE", "pepper")
    text = problems_of(MINIMAL | {"database.port": "${env:WRONG_PLACE}"})
    assert "pepper" not in text
    assert "${env:WRONG_PLACE}" in text


def test_shown_properties_hide_secrets_and_salts() -> None:
    connector = connector_with(
        {
            "database.password": "pepper",
            "spark.hadoop.fs.s3a.secret.key": "pepper",
            "column.mask.hash.SHA-256.with.salt.pepper": "a.b.c",
            "producer.override.sasl.jaas.config": "password=pepper",
        }
    )
    assert "pepper" not in repr(connector)
    assert dict(connector.properties)["database.password"] == Secret("pepper")


def test_reference_in_an_ordinary_property_is_read_while_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_TEST_HOST", "h.example.com")
    assert connector_with({"database.hostname": "${env:CDC_TEST_HOST}"}).connection.hostname == "h.example.com"
    assert "CDC_TEST_MISSING is not set" in problems_of(MINIMAL | {"database.names": "${env:CDC_TEST_MISSING}"})


def test_max_iteration_transactions_counts_only_when_explicit() -> None:
    assert connector_with({}).streaming.max_transactions is None
    assert connector_with({"max.iteration.transactions": "500"}).streaming.max_transactions == 500
    assert connector_with({"max.iteration.transactions": "0"}).streaming.max_transactions is None


@pytest.mark.feature("FLT-13")
def test_skipped_operations_none_means_none() -> None:
    assert connector_with({"skipped.operations": "none"}).records.skipped == frozenset()
    assert connector_with({"skipped.operations": "c,d"}).records.skipped == {"c", "d"}


@pytest.mark.feature("SIG-02")
def test_signal_table_may_leave_out_the_only_database() -> None:
    signals = connector_with({"signal.data.collection": "dbo.signals"}).signals
    assert signals.tables == ("testDB.dbo.signals",)
    assert signals.table_of("TESTDB") == ("dbo", "signals")
    assert signals.table_of("other") is None


@pytest.mark.feature("SNP-23")
def test_snapshot_overrides_are_found_by_both_names() -> None:
    connector = connector_with(
        {
            "snapshot.select.statement.overrides": "dbo.a,testDB.dbo.b,dbo.c",
            "snapshot.select.statement.overrides.dbo.a": "SELECT * FROM dbo.a WHERE x = 1",
            "snapshot.select.statement.overrides.testDB.dbo.b": "SELECT 2",
            "snapshot.select.statement.overrides.dbo.d": "SELECT 4",
        }
    )
    snapshot = connector.snapshot
    assert snapshot.statement_for("testDB", "dbo", "A") == "SELECT * FROM dbo.a WHERE x = 1"
    assert snapshot.statement_for("testDB", "dbo", "b") == "SELECT 2"
    assert snapshot.statement_for("otherDB", "dbo", "b") is None
    assert snapshot.statement_for("testDB", "dbo", "d") is None
    assert len(connector.notices) == 2, "dbo.c has no statement, dbo.d is not listed"


def test_own_properties_have_the_defaults_of_the_architecture() -> None:
    connector = connector_with({})
    assert (connector.delta.current_interval_s, connector.delta.deletion_vectors) == (15, True)
    assert (connector.dagster.range_max_rows, connector.dagster.max_run_seconds) == (5_000_000, 0)
    assert connector.delta.key_secret is None
    assert (connector.spark.master, connector.spark.remote, connector.spark.read()) == (None, None, {})


def test_spark_and_storage_settings_pass_through_and_are_read_late(monkeypatch: pytest.MonkeyPatch) -> None:
    connector = connector_with(
        {
            "spark.master": "local[2]",
            "spark.ui.enabled": False,
            "spark.hadoop.fs.s3a.secret.key": "${env:CDC_TEST_S3}",
            "delta.storage.AWS_SECRET_ACCESS_KEY": "${env:CDC_TEST_S3}",
            "delta.storage.AWS_REGION": "eu-west-1",
        }
    )
    monkeypatch.setenv("CDC_TEST_S3", "pepper")
    assert connector.spark.master == "local[2]"
    assert connector.spark.read()["spark.hadoop.fs.s3a.secret.key"] == "pepper"
    assert connector.spark.read()["spark.ui.enabled"] == "false"
    assert connector.delta.storage_options() == {"AWS_SECRET_ACCESS_KEY": "pepper", "AWS_REGION": "eu-west-1"}
    assert "pepper" not in repr(connector)


def test_driver_behind_a_missing_reference_is_a_problem_in_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CDC_TEST_MISSING", raising=False)
    text = problems_of(MINIMAL | {"odbc.Driver": "${env:CDC_TEST_MISSING}", "zzz": "1"})
    assert "2 problems" in text
    assert "odbc.Driver: ${env:CDC_TEST_MISSING}" in text
