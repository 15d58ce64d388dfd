"""Channels for notifications besides `_notifications`, as `notification.enabled.channels` names them.

To add a channel, write a class as `notification_contract.py` describes it and create it in `channel_of`; a user-defined
channel is an entry point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.notification_contract import Notification, NotificationChannel
from mssql_cdc.config.extension_names import ExtensionGroup
from mssql_cdc.config.java_texts import map_text
from mssql_cdc.config.signal_settings import LOG_CHANNEL, SINK_CHANNEL

_KEYS = frozenset({"last_processed_key", "maximum_key"})
"""Additional data that contains row values."""


def send_all(database: Database, notifications: Sequence[Notification]) -> None:
    """Send notifications to every enabled channel, in order; a channel that fails is skipped until the next time.

    Args:
        database: The database.
        notifications: The notifications.
    """
    for name in database.connector.notifications.channels:
        if name == SINK_CHANNEL:
            continue  # Consumers of records get them.
        try:
            channel = channel_of(database, name)
            for one in notifications:
                channel.send(one)
        except Exception as error:  # noqa: BLE001 - whatever a channel raises, snapshots continue
            database.log(f"notification channel {name}: {type(error).__name__}: {error}")


def channel_of(database: Database, name: str) -> NotificationChannel:
    """The channel with this name.

    Args:
        database: The database.
        name: The name in `notification.enabled.channels`.

    Raises:
        ConfigurationError: A user-defined channel cannot be loaded.
    """
    if name == LOG_CHANNEL:
        return LogChannel(database.log)
    return database.extensions.get(
        database.connector,
        ExtensionGroup.NOTIFICATION_CHANNELS,
        name,
        setting="notification.enabled.channels",
        methods=("send",),
    )


@dataclass(frozen=True, slots=True)
class LogChannel:
    """Log lines, as Debezium's `log` channel writes them (NOT-02), without keys: row values are never logged."""

    log: Callable[[str], None]

    def send(self, notification: Notification) -> None:
        """Log a line.

        Args:
            notification: The notification.
        """
        shown = {name: value for name, value in notification.additional_data.items() if name not in _KEYS}
        more = {name: value for name, value in shown.items() if name != "connector_name"}
        data = map_text(more | shown, copied=len(more))
        self.log(
            f"[Notification Service] {{id='{notification.id}', aggregateType='{notification.aggregate_type}', "
            f"type='{notification.type}', additionalData={data}, timestamp={notification.timestamp_ms}}}"
        )
