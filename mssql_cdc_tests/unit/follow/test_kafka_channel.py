"""The channel `kafka` against a broker: a message is delivered once, whatever happens until it is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from mssql_cdc.errors import ConfigurationError, SourceUnavailableError
from mssql_cdc.follow.kafka_channel import SignalTopic, signal_topic
from mssql_cdc.follow.signal_contract import Arrived
from mssql_cdc_tests.kafka_kit import Broker, open_broker
from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with, problems_of

TOPIC = "shop-signal"
LOG = {"id": "s1", "type": "log", "data": {"message": "hello"}}
Open = Callable[..., SignalTopic]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with open_broker() as found:
        yield found


@pytest.fixture
def channel(broker: Broker) -> Iterator[Open]:
    """Opens channels, as runs do one after another."""
    with ExitStack() as stack:

        def opened(poll_seconds: float = 5.0, **more: Any) -> SignalTopic:
            settings = {"bootstrap.servers": broker.servers, "group.id": "kafka-signal", **more.pop("settings", {})}
            found = SignalTopic(TOPIC, "shop", settings, poll_seconds=poll_seconds, **more)
            stack.callback(found.close)
            return found

        yield opened


def ids(arrived: Arrived | None) -> list[str]:
    return [] if arrived is None else [one.id for one in arrived.signals]


@pytest.mark.feature("SIG-05")
def test_messages_with_the_key_of_the_connector_are_signals(broker: Broker, channel: Open):
    broker.send(TOPIC, "shop", LOG)
    broker.send(TOPIC, "another", LOG)
    broker.send(TOPIC, None, LOG)
    broker.send(TOPIC, "shop", {"type": "log", "data": '{"message": "as text"}'})
    broker.send(TOPIC, "shop", "no JSON")
    found = channel().read(None)
    assert found is not None
    assert found.bookmark == 5
    first, second, third = found.signals
    assert (first.id, first.type, first.data, first.position) == (
        "s1",
        "log",
        '{"message": "hello"}',
        "shop-signal:0",
    )
    assert (second.data, len(second.id)) == ('{"message": "as text"}', 36)
    assert "the message is not valid JSON" in (third.problem or "")


@pytest.mark.feature("SIG-05")
def test_a_message_is_delivered_again_until_it_is_recorded_and_never_after(broker: Broker, channel: Open):
    broker.send(TOPIC, "shop", LOG)
    run = channel()
    assert ids(run.read(None)) == ids(run.read(None)) == ["s1"], "another run was faster, or the lake did not take it"
    first = run.read(None)
    assert first is not None
    broker.send(TOPIC, "shop", LOG | {"id": "s2"})
    assert ids(channel().read(first.bookmark)) == ["s2"], "the run behind a kill"
    second = run.read(first.bookmark)
    assert second is not None
    assert ids(second) == ["s2"]
    assert run.read(second.bookmark) is None
    assert channel().read(second.bookmark) is None


def test_messages_for_others_move_the_bookmark(broker: Broker, channel: Open):
    broker.send(TOPIC, "another", LOG)
    found = channel().read(None)
    assert found is not None
    assert (found.signals, found.bookmark) == ([], 1)


def test_the_first_look_goes_on_where_the_group_of_a_debezium_stood(broker: Broker, channel: Open):
    broker.send(TOPIC, "shop", LOG)
    broker.send(TOPIC, "shop", LOG | {"id": "s2"})
    theirs = Consumer({"bootstrap.servers": broker.servers, "group.id": "kafka-signal", "log_level": 0})
    theirs.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)
    theirs.close()
    assert ids(channel().read(None)) == ["s2"]
    assert ids(channel(settings={"group.id": "another"}).read(None)) == ["s1", "s2"]


def test_a_first_look_at_the_end_keeps_where_that_was(broker: Broker, channel: Open):
    broker.send(TOPIC, "shop", LOG)
    found = channel(settings={"auto.offset.reset": "latest"}).read(None)
    assert found is not None
    assert (found.signals, found.bookmark) == ([], 1)


def test_a_topic_that_has_begun_anew_is_read_from_its_start(broker: Broker, channel: Open):
    broker.send(TOPIC, "shop", LOG)
    assert ids(channel().read(7)) == ["s1"]


def test_a_look_waits_for_the_next_message_as_long_as_it_may(broker: Broker):
    waits: list[float] = []

    class Recording(Consumer):
        def poll(self, timeout: float = -1) -> Message | None:
            waits.append(timeout)
            return super().poll(timeout)

    broker.send("orders-please", "server1", LOG)
    connector = connector_with(
        {
            "signal.enabled.channels": "kafka",
            "signal.kafka.bootstrap.servers": broker.servers,
            "signal.kafka.topic": "orders-please",
            "signal.kafka.poll.timeout.ms": "250",
        }
    )
    with closing(signal_topic(connector, make=lambda settings: Recording(dict(settings)))) as run:
        found = run.read(None)
        assert found is not None
        assert waits[0] == 5.0, "the client connects"
        assert set(waits[1:]) == {0.25}
        del waits[:]
        assert run.read(found.bookmark) is None
        assert waits[0] == 0.25


def test_a_broker_that_does_not_answer_is_named(channel: Open):
    run = channel(0.01, settings={"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(SourceUnavailableError, match=r"the topic shop-signal cannot be read: .*127.0.0.1:1"):
        run.read(None)


def test_settings_of_the_java_client_are_refused(channel: Open):
    with pytest.raises(ConfigurationError, match=r"signal\.consumer.*partition\.assignors.*librdkafka"):
        channel(settings={"partition.assignors": "x"})


def test_the_channel_requires_its_client_and_brokers(monkeypatch: pytest.MonkeyPatch):
    enabled = MINIMAL | {"signal.enabled.channels": "kafka"}
    assert "is required with the signal channel kafka" in problems_of(enabled)
    monkeypatch.setattr("mssql_cdc.config.signal_settings.find_spec", lambda _: None)
    assert "pip install 'mssql-cdc[kafka]'" in problems_of(enabled | {"signal.kafka.bootstrap.servers": "kafka:9092"})


def test_settings_of_the_client_are_passed_on_and_secrets_are_hidden(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KAFKA_PASSWORD", "whispered")
    option = "signal.consumer.*"
    connector = connector_with(
        {
            "signal.enabled.channels": "source,kafka",
            "signal.kafka.bootstrap.servers": "kafka:9092",
            "signal.kafka.groupId": "mine",
            option.replace("*", "sasl.password"): "${env:KAFKA_PASSWORD}",
            option.replace("*", "client.id"): "me",
        }
    )
    assert connector.signals.kafka_settings() == {
        "bootstrap.servers": "kafka:9092",
        "group.id": "mine",
        "sasl.password": "whispered",
        "client.id": "me",
    }
    assert "whispered" not in connector.redact("the password is whispered")
    (notice,) = connector_with({"signal.kafka.bootstrap.servers": "kafka:9092"}).notices
    assert notice == "signal.kafka.bootstrap.servers: no effect without the signal channel kafka"
