"""A Kafka broker in this process: librdkafka's own, which speaks the real protocol to other clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Producer


@dataclass(frozen=True)
class Broker:
    """A broker, and a client that writes to it."""

    servers: str
    producer: Producer

    def send(self, topic: str, key: str | None, value: object) -> None:
        """Write a message; what is no text is written as JSON.

        Args:
            topic: The topic.
            key: The key.
            value: The value.
        """
        text = value if isinstance(value, str) else json.dumps(value)
        self.producer.produce(topic, text.encode(), None if key is None else key.encode(), partition=0)
        assert self.producer.flush(30) == 0


@contextmanager
def open_broker() -> Iterator[Broker]:
    """A broker without topics, which ends with the block."""
    cluster = Producer({"bootstrap.servers": "ignored", "test.mock.num.brokers": 1, "log_level": 0})
    (address,) = (f"{one.host}:{one.port}" for one in cluster.list_topics(timeout=30).brokers.values())
    yield Broker(address, Producer({"bootstrap.servers": address, "log_level": 0}))
    del cluster
