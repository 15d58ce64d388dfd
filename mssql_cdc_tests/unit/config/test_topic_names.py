"""Names of topics, and what they are made of, are refused where no broker would take them."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with, problems_of

PARTS = ("topic.delimiter", "topic.transaction", "topic.heartbeat.prefix")
NAMES = ("topic.heartbeat.name", "notification.sink.topic.name", "signal.kafka.topic")
BESIDE: dict[str, object] = {
    "signal.enabled.channels": "source,kafka",
    "signal.kafka.bootstrap.servers": "kafka:9092",
    "notification.enabled.channels": "sink",
    "notification.sink.topic.name": "told",
}


@pytest.mark.feature("TOP-03", "TOP-04", "TOP-05")
@pytest.mark.parametrize("name", [*PARTS, *NAMES])
@pytest.mark.parametrize("value", ["/", "a b", "größe", "a:b"])
def test_a_topic_with_a_character_that_brokers_refuse_is_a_problem(name: str, value: str) -> None:
    problems = problems_of(MINIMAL | BESIDE | {name: value})
    assert f"{name}: found {value!r}, expected letters, digits, '.', '_' and '-' only" in problems


@pytest.mark.parametrize(("old", "name"), [("transaction.topic", PARTS[1]), ("heartbeat.topics.prefix", PARTS[2])])
def test_an_older_name_of_a_topic_is_checked_as_the_newer_one(old: str, name: str) -> None:
    assert f"{name}: found 'a/b', expected letters" in problems_of(MINIMAL | {old: "a/b"})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [".", "..", "a" * 250])
def test_a_topic_that_brokers_refuse_as_a_whole_is_a_problem(name: str, value: str) -> None:
    problems = problems_of(MINIMAL | BESIDE | {name: value})
    assert f"{name}: found {value!r}, expected 1 to 249 characters, and neither '.' nor '..'" in problems


@pytest.mark.parametrize("value", ["-", "_", "..", "a.B_c-9"])
@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_topic_may_have_every_character_of_topics(name: str, value: str) -> None:
    connector = connector_with({name: value})
    assert value in {
        connector.records.topic_delimiter,
        connector.records.transaction_topic,
        connector.records.heartbeat_topic_prefix,
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_topic_of_the_longest_length_is_accepted(name: str) -> None:
    connector = connector_with(BESIDE | {name: "a" * 249})
    named = {connector.records.heartbeat_topic, connector.notifications.sink_topic, connector.signals.kafka_topic}
    assert "a" * 249 in named
