"""Names from older Debezium versions, properties that are not implemented, and Kafka-only properties."""

import pytest

from mssql_cdc.config import connector_from_mapping
from mssql_cdc.config.catalogue import ALL, canonical_name
from mssql_cdc.config.documentation import default_text
from mssql_cdc.config.property import Effect
from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with, problems_of


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
def test_an_unimplemented_property_that_would_change_rows_is_rejected(name: str, value: str) -> None:
    assert f"{name}: " in problems_of(MINIMAL | {name: value})
    assert "not implemented yet" in problems_of(MINIMAL | {name: value})


def test_an_unimplemented_property_that_changes_no_row_is_reported() -> None:
    connector = connector_with({"openlineage.integration.enabled": "true", "signal.enabled.channels": "source,jmx"})
    assert len([one for one in connector.notices if "not implemented yet" in one]) == 2
    assert connector.signals.channels == ("source", "jmx")


def test_not_implemented_property_at_its_default_is_silent() -> None:
    planned = {one.name: default_text(one) for one in ALL if one.effect is Effect.PLANNED}
    assert planned
    assert connector_with(planned).notices == ()


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
