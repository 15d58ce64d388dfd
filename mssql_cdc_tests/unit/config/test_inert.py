"""Properties of Kafka, Kafka Connect and Java: accepted with a notice and without an effect, or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError
from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with, problems_of

STORES = (
    "io.debezium.storage.file.history.FileSchemaHistory",
    "io.debezium.relational.history.MemorySchemaHistory",
    "io.debezium.storage.jdbc.history.JdbcSchemaHistory",
    "io.debezium.storage.redis.history.RedisSchemaHistory",
    "io.debezium.storage.s3.history.S3SchemaHistory",
    "io.debezium.storage.azure.blob.history.AzureBlobSchemaHistory",
    "io.debezium.storage.rocketmq.history.RocketMqSchemaHistory",
)
ROUTER = {
    "transforms": "route",
    "transforms.route.type": "io.debezium.transforms.ByLogicalTableRouter",
    "transforms.route.topic.regex": "(.*)shard(.*)",
    "transforms.route.topic.replacement": "$1all",
}


def noticed(properties: dict[str, object]) -> str:
    """The only notice about properties that leave the connector as it is without them."""
    connector = connector_with(properties)
    assert _effective(connector) == _effective(connector_with({}))
    (notice,) = connector.notices
    return notice


def _effective(connector: Connector) -> Connector:
    """The connector without what is only shown: its notices, and its properties as they were given."""
    plain = connector_with({})
    return replace(connector, notices=(), properties=plain.properties, redaction=plain.redaction)


@pytest.mark.feature("SCH-04")
@pytest.mark.parametrize("store", STORES)
def test_every_store_of_the_schema_history_is_accepted_and_none_is_used(store: str) -> None:
    name = "schema.history.internal"
    assert noticed({name: store}) == f"{name} has no meaning here"
    option = f"{name}.file.filename"
    assert noticed({name: store, option: "/no/such/folder/history.dat"}) == (
        f"2 Kafka and Java settings have no meaning here: {name}, {option}"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tasks.max.enforce", "false"),
        ("connector.plugin.version", "[3.3,)"),
        ("key.converter.plugin.version", "1"),
        ("database.connection.factory.class", "com.example.Factory"),
        ("connection.factory.class", "com.example.Factory"),
    ],
)
def test_properties_of_kafka_connect_are_accepted(name: str, value: str) -> None:
    assert noticed({name: value}) == f"{name} has no meaning here"


@pytest.mark.feature("SCH-04")
def test_the_history_of_debezium_1_is_known_under_its_older_name() -> None:
    connector = connector_with({"database.history": "io.debezium.relational.history.KafkaDatabaseHistory"})
    assert "database.history: older name of schema.history.internal" in connector.notices


@pytest.mark.feature("TOP-10")
def test_groups_that_create_topics_are_accepted_with_one_notice() -> None:
    given: dict[str, object] = {
        "topic.creation.groups": "large",
        "topic.creation.default.replication.factor": "3",
        "topic.creation.large.include": r"server1\..*",
    }
    assert noticed(given) == f"3 Kafka and Java settings have no meaning here: {', '.join(given)}"


def test_limits_of_the_queue_are_numbers_and_only_its_size_bounds_something() -> None:
    given: dict[str, object] = {"max.queue.size.in.bytes": "9", "max.batch.size": "2"}
    assert noticed(given) == f"2 Kafka and Java settings have no meaning here: {', '.join(given)}"
    for name, value in {"max.batch.size": "many", "max.queue.size": "many"}.items():
        assert f"{name}: found 'many', expected a whole number" in problems_of({name: value} | MINIMAL)
    assert "max.queue.size: found 0, expected 1 or more" in problems_of({"max.queue.size": "0"} | MINIMAL)


@pytest.mark.feature("ERR-07")
def test_the_time_that_threads_have_to_stop_is_accepted_and_bounds_nothing() -> None:
    assert noticed({"executor.shutdown.timeout.ms": "1"}) == "executor.shutdown.timeout.ms has no meaning here"


@pytest.mark.parametrize(
    "name",
    [
        "offset.storage.file.filename",
        "offset.commit.policy",
        "errors.retry.delay.max.ms",
        "record.processing.threads",
        "record.processing.with.serial.consumer",
        "task.management.timeout.ms",
    ],
)
def test_properties_of_the_embedded_engine_are_accepted_with_a_notice(name: str) -> None:
    assert noticed({name: "1"}) == f"{name} has no meaning here"


def test_properties_of_another_connector_of_debezium_are_accepted_with_a_notice() -> None:
    assert noticed({"slot.drop.on.stop": "true"}).startswith("slot.drop.on.stop: has no effect here")


def test_brokers_of_openlineages_output_topics_are_accepted_with_a_notice() -> None:
    name = "openlineage.integration.dataset.kafka.bootstrap.servers"
    assert noticed({name: "kafka:9092"}) == f"{name} has no meaning here"


@pytest.mark.feature("NOT-06")
def test_notifications_over_jmx_have_no_meaning_and_the_other_channels_stay() -> None:
    connector = connector_with({"notification.enabled.channels": "jmx,log"})
    assert connector.notifications.channels == ("log",)
    assert connector.notices == ("notification.enabled.channels: jmx has no meaning here",)
    assert connector_with({"notification.enabled.channels": "jmx"}).notifications.channels == ()


@pytest.mark.feature("FLT-14")
@pytest.mark.parametrize("kind", ["include", "exclude"])
def test_filters_of_capture_instances_are_refused_because_rows_would_differ(kind: str) -> None:
    name = f"capture.instance.{kind}.list"
    assert name in problems_of({name: "dbo_orders_v2"} | MINIMAL)


@pytest.mark.feature("TOP-09")
def test_a_router_of_topics_refuses_the_records_and_not_the_capture() -> None:
    connector = connector_with(ROUTER)
    assert any("transforms" in line and "capture works" in line for line in connector.notices)
    with pytest.raises(ConfigurationError, match="transforms"):
        connector.require_rendered()
