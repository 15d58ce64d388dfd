"""The topic of `signal.kafka.topic` as a signal channel: messages of partition 0 with the right key (SIG-05).

The bookmark is the offset of the next message, so the lake says what was read, and no offset is ever committed to the
consumer group. Without a bookmark, the group's offset counts, if a Debezium has left one; else `auto.offset.reset`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError, SourceUnavailableError
from mssql_cdc.follow.signal_contract import Arrived, SignalRecord
from mssql_cdc.follow.signal_json import signal_of_json

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

FIRST_SECONDS = 5.0
"""How long the first poll waits for the broker; later ones find what the client has fetched in between."""
_QUIET = {"log_level": "0"}
"""What the client would write to standard error is raised instead."""


Make = Callable[[Mapping[str, Any]], "Consumer"]


def signal_topic(connector: Connector, *, make: Make | None = None) -> SignalTopic:
    """Make the channel of a connector.

    Args:
        connector: The configuration.
        make: Makes the client; by default, that of `confluent_kafka`.

    Raises:
        ConfigurationError: The client does not know a setting.
    """
    signals, prefix = connector.signals, connector.topic_prefix
    return SignalTopic(
        signals.kafka_topic or f"{prefix}-signal",
        prefix,
        signals.kafka_settings(),
        poll_seconds=signals.kafka_poll_timeout_ms / 1000,
        make=make,
    )


class SignalTopic:
    """The channel `kafka` as one database reads it; all databases of a connector get every signal."""

    def __init__(
        self,
        topic: str,
        key: str,
        consumer: Mapping[str, str],
        *,
        poll_seconds: float,
        make: Make | None = None,
    ) -> None:
        """Make the channel; the client connects in the background.

        Args:
            topic: The topic.
            key: The key of the messages that are signals.
            consumer: The settings of the client.
            poll_seconds: How long a poll waits for the next message.
            make: Makes the client; by default, that of `confluent_kafka`.

        Raises:
            ConfigurationError: The client does not know a setting.
        """
        from confluent_kafka import Consumer, KafkaException

        self._topic, self._key, self._poll_seconds = topic, key.encode(), poll_seconds
        self._error: str | None = None
        self._assigned = False
        self._next: int | None = None
        defaults = {**_QUIET, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        forced = {"enable.partition.eof": True, "error_cb": self._failed}
        try:
            self._consumer = (make or Consumer)({**defaults, **consumer, **forced})
        except KafkaException as error:
            raise ConfigurationError(
                f"signal.consumer.*: {error.args[0].str()}; expected settings of librdkafka, which reads Kafka here"
            ) from None

    def read(self, bookmark: Any) -> Arrived | None:
        """Return the messages after the bookmark that the client has, or gets while it waits.

        Args:
            bookmark: The offset of the next message.

        Raises:
            SourceUnavailableError: The broker does not answer, or has no such topic.
        """
        wait = self._poll_seconds if self._assigned else max(self._poll_seconds, FIRST_SECONDS)
        self._go_to(bookmark)
        self._error = None
        found: list[SignalRecord] = []
        after = bookmark
        while (message := self._consumer.poll(wait)) is not None:
            wait = self._poll_seconds
            if message.error() is None:
                after = cast("int", message.offset()) + 1
                found += self._signals(message)
            elif message.error().name() == "_PARTITION_EOF":  # pyright: ignore[reportOptionalMemberAccess]
                after = message.offset()
                break
            else:
                self._error = message.error().str()  # pyright: ignore[reportOptionalMemberAccess]
                break
        if after == bookmark and self._error is not None:
            raise SourceUnavailableError(f"the topic {self._topic} cannot be read: {self._error}")
        self._next = after
        return Arrived(found, after) if after != bookmark else None

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()

    def _go_to(self, bookmark: int | None) -> None:
        """Continue at the bookmark, unless the last poll ended there: what it returned may not have been recorded."""
        from confluent_kafka import OFFSET_STORED, TopicPartition

        if not self._assigned or bookmark != self._next:
            self._consumer.assign([TopicPartition(self._topic, 0, OFFSET_STORED if bookmark is None else bookmark)])
            self._assigned, self._next = True, bookmark

    def _signals(self, message: Message) -> list[SignalRecord]:
        """The signal of a message; none if it has another key."""
        if message.key() != self._key:
            return []
        return [signal_of_json(message.value() or b"", f"{self._topic}:{message.offset()}", what="message")]

    def _failed(self, error: Any) -> None:
        self._error = error.str()
