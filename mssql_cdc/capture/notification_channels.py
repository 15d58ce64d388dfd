"""Channels for notifications besides `_notifications`: one class per channel in `notification.enabled.channels`.

To add a channel, write a class with a `send` method and add it to `CHANNELS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mssql_cdc.capture.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One notification in Debezium's format (NOT-04)."""

    id: str
    aggregate_type: str
    type: str
    additional_data: Mapping[str, str]
    timestamp_ms: int


class NotificationChannel(Protocol):
    """Delivers notifications; an error that it raises ends the step that sent them."""

    def send(self, database: Database, notifications: Sequence[Notification]) -> None:
        """Send these notifications, in order."""
        ...


class LogChannel:
    """Log lines, as Debezium's `log` channel writes them (NOT-02)."""

    def send(self, database: Database, notifications: Sequence[Notification]) -> None:
        """Log a line for each."""
        for one in notifications:
            database.log(
                f"[Notification Service] {{aggregateType='{one.aggregate_type}', type='{one.type}', "
                f"additionalData={dict(one.additional_data)}}}"
            )


CHANNELS: Mapping[str, NotificationChannel] = {"log": LogChannel()}
