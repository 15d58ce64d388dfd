"""The signal channels other than the signal table: polled at intervals, also while the source is idle (SIG-01).

`signals.py` applies what they deliver. A channel that fails never stops the capture of changes: the log says so once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from mssql_cdc.capture.database import Database
from mssql_cdc.config.extension_names import ExtensionGroup
from mssql_cdc.config.signal_settings import FILE_CHANNEL, KAFKA_CHANNEL
from mssql_cdc.errors import FencedError
from mssql_cdc.follow.file_channel import SignalFile
from mssql_cdc.follow.kafka_channel import signal_topic
from mssql_cdc.follow.signal_contract import Arrived, SignalChannel, SignalRecord
from mssql_cdc.follow.signals import Looked, look_into


def polled_channels(database: Database) -> dict[str, SignalChannel]:
    """Make the channels that a database polls at intervals; those that are connected are closed with its extensions.

    Args:
        database: The database.

    Raises:
        ConfigurationError: A user's channel cannot be loaded.
    """
    return {name: _channel(database, name) for name in database.connector.signals.polled}


def _channel(database: Database, name: str) -> SignalChannel:
    connector = database.connector
    if name == FILE_CHANNEL:
        return SignalFile(Path(connector.signals.file), database.catalog, connector.databases)
    if name == KAFKA_CHANNEL and connector.signals.reads_kafka:
        return database.extensions.kept(ExtensionGroup.SIGNAL_CHANNELS, name, lambda: signal_topic(connector))
    return database.extensions.get(
        connector, ExtensionGroup.SIGNAL_CHANNELS, name, setting="signal.enabled.channels", methods=("read",)
    )


@dataclass
class PolledSignals:
    """The polled channels of one database, as one process polls them.

    Attributes:
        clock: A monotonic clock, in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _channels: Mapping[str, SignalChannel] | None = None
    _next: float | None = None
    _said: set[str] = field(default_factory=set[str])

    def look(self, database: Database) -> Looked | None:
        """Return what has arrived, if `signal.poll.interval.ms` has passed since the last poll.

        Args:
            database: The database.

        Raises:
            ConfigurationError: A user's channel cannot be loaded.
        """
        settings = database.connector.signals
        if not settings.polled or (self._next is not None and self.clock() < self._next):
            return None
        if self._channels is None:
            self._channels = polled_channels(database)
        self._next = self.clock() + settings.poll_interval_ms / 1000
        looks = {name: _Guarded(name, channel, database.log, self._said) for name, channel in self._channels.items()}
        try:
            return look_into(database, looks)
        except FencedError:
            return None


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A channel whose failures are logged, each once."""

    name: str
    channel: SignalChannel
    log: Callable[[str], None]
    said: set[str]

    def read(self, bookmark: Any) -> Arrived | None:
        """Return what the channel returns, or None if it fails."""
        try:
            return _checked(self.channel.read(bookmark))
        except Exception as error:  # noqa: BLE001 - whatever a channel raises, changes are captured
            line = f"signal channel {self.name}: {type(error).__name__}: {error}"
            if line not in self.said:
                self.said.add(line)
                self.log(f"{line}; it is tried again")
            return None


def _checked(found: Any) -> Arrived | None:
    """What a channel delivers, if it meets its contract and can be kept."""
    if found is None:
        return None
    signals: Sequence[object] = found.signals if isinstance(found, Arrived) else [None]
    if not all(isinstance(one, SignalRecord) for one in signals):
        raise TypeError(f"read returned {type(found).__name__}, expected Arrived with SignalRecords, or None")
    json.dumps(found.bookmark)
    return cast("Arrived", found)
