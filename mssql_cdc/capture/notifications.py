"""Notifications (NOT-01 to NOT-07): rows of `_notifications`, then the channels that are enabled."""

from __future__ import annotations

import time
import uuid
from dataclasses import asdict

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.notification_channels import send_all
from mssql_cdc.capture.notification_contract import Notification
from mssql_cdc.lake.small_tables import retry_overtaken, small_table

INITIAL, INCREMENTAL = "Initial Snapshot", "Incremental Snapshot"
CAPTURE_INSTANCE = "Capture Instance"
"""The aggregate types: blocking snapshots have the same as initial ones (NOT-03, NOT-04)."""


class Notifier:
    """Collects notifications and writes them in one commit per `flush`."""

    def __init__(self, database: Database, id_: str | None, *, aggregate: str = INITIAL) -> None:
        """Begin.

        Args:
            database: The database.
            id_: The id of the notifications; None: a random one.
            aggregate: What they are about.
        """
        self._database, self._aggregate = database, aggregate
        self._id = id_ or str(uuid.uuid4())
        self._collected: list[Notification] = []

    def add(self, kind: str, **more: str) -> None:
        """Add a notification.

        Args:
            kind: Its type.
            more: Its additional data.
        """
        data = {"connector_name": self._database.connector.topic_prefix, **more}
        now = int(time.time() * 1000)
        self._collected.append(
            Notification(id=self._id, aggregate_type=self._aggregate, type=kind, additional_data=data, timestamp_ms=now)
        )

    def flush(self) -> None:
        """Write what has been collected."""
        if not self._collected:
            return
        self._append()
        send_all(self._database, self._collected)
        for one in self._collected:
            self._database.notify(asdict(one))
        self._collected = []

    @retry_overtaken
    def _append(self) -> None:
        table = small_table(self._database.layout, "notifications", self._database.storage)
        rows = [{**asdict(one), "additional_data": sorted(one.additional_data.items())} for one in self._collected]
        table.append(table.state(), rows, {"kind": "notifications", "run_id": self._database.run_id})


def notify_of_skipped(database: Database) -> None:
    """Notify that a start takes no initial snapshot (NOT-03)."""
    notifier = Notifier(database, None)
    notifier.add("SKIPPED")
    notifier.flush()
