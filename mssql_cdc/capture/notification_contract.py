"""The contract of notification channels (NOT-01, NOT-02, SPI-08): values and protocols, no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One notification in Debezium's format.

    Attributes:
        id: That of the signal, or a random one.
        aggregate_type: What it is about, such as `Initial Snapshot`.
        type: What happened, such as `STARTED`.
        additional_data: More about it.
        timestamp_ms: When, in milliseconds since 1970.
    """

    id: str
    aggregate_type: str
    type: str
    additional_data: Mapping[str, str]
    timestamp_ms: int


class NotificationChannel(Protocol):
    """Debezium's `NotificationChannel`: an entry point in the group `mssql_cdc.notification_channels`.

    Its name is listed in `notification.enabled.channels`; the constructor gets the keyword argument `properties`. A
    method `close` is called at the end, if there is one.
    """

    def send(self, notification: Notification) -> None:
        """Send a notification that is already in `_notifications`. An error is logged and stops nothing.

        Args:
            notification: The notification.
        """
        ...
