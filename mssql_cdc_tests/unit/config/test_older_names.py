"""Names from older Debezium versions, properties that are not implemented, and Kafka-only properties."""

import io

import pytest

from mssql_cdc.config import connector_from_mapping
from mssql_cdc.config.catalogue import canonical_name
from mssql_cdc.config.json_forms import JsonForm
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.records import JsonLinesStream
from mssql_cdc.records.write import write_records
from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with, problems_of

JSON = "org.apache.kafka.connect.json.JsonConverter"


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


def test_what_would_change_rows_and_is_not_built_is_refused() -> None:
    problems = problems_of(MINIMAL | {"capture.instance.include.list": "dbo_.*"})
    assert "capture.instance.include.list: " in problems
    assert "not supported" in problems


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"transforms": "unwrap", "transforms.unwrap.type": "T"}, "transforms"),
        ({"converters": "iso", "iso.type": "C"}, "iso.type"),
        ({"post.processors": "own", "own.type": "org.example.Own"}, "own.type"),
        ({"topic.naming.strategy": "my.Strategy"}, "topic.naming.strategy"),
        ({"time.precision.mode": "structured"}, "time.precision.mode=structured"),
        ({"value.converter": "io.confluent.connect.avro.AvroConverter"}, "value.converter"),
    ],
)
def test_what_changes_records_and_is_not_built_refuses_their_rendering(
    properties: dict[str, object], named: str
) -> None:
    connector = connector_with(properties)
    assert connector.unrendered == (named,)
    assert f"{named}: records are not rendered with these settings; capture works" in connector.notices
    with pytest.raises(ConfigurationError, match="records cannot be rendered") as caught:
        write_records(connector, output=JsonLinesStream(io.BytesIO()))
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("properties", "form"),
    [
        ({}, JsonForm()),
        ({"converter": JSON}, JsonForm(schemas=True, defaults=True, connect=True)),
        ({"converter.schemas.enable": "false"}, JsonForm(defaults=True, connect=True)),
        ({"converter.replace.null.with.default": "false"}, JsonForm(schemas=True, connect=True)),
        ({"converter.decimal.format": "NUMERIC"}, JsonForm(schemas=True, defaults=True, numeric=True, connect=True)),
        ({"converter.decimal.format": "BASE64"}, JsonForm(schemas=True, defaults=True, connect=True)),
    ],
)
def test_one_property_of_a_converter_gives_the_others_the_defaults_of_kafka_connect(
    properties: dict[str, object], form: JsonForm
) -> None:
    connector = connector_with({f"{side}.{name}": v for side in ("key", "value") for name, v in properties.items()})
    assert connector.unrendered == connector.notices == ()
    connector.require_rendered()
    assert (connector.records.key_form, connector.records.value_form) == (form, form)


def test_kafka_only_properties_pass_with_one_notice_for_all() -> None:
    kafka: dict[str, object] = {
        "tasks.max": "3",
        "producer.override.acks": "all",
        "schema.history.internal.consumer.security.protocol": "SSL",
        "openlineage.integration.dataset.kafka.bootstrap.servers": "kafka:9092",
    }
    (notice,) = connector_with(kafka).notices
    assert notice == (
        "4 Kafka and Java settings have no meaning here: tasks.max, producer.override.acks, "
        "schema.history.internal.consumer.security.protocol, openlineage.integration.dataset.kafka.bootstrap.servers"
    )


def test_a_property_that_cannot_be_turned_off_says_why() -> None:
    (notice,) = connector_with({"log.position.check.enable": "false"}).notices
    assert notice.startswith("log.position.check.enable: has no effect here.")
    assert notice.endswith("Here the check cannot be turned off.")
