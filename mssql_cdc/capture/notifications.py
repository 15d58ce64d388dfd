"""Notifications about a snapshot (NOT-01 to NOT-07): rows of `_notifications`, then the channels that are enabled."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.notification_channels import send_all
from mssql_cdc.capture.notification_contract import Notification
from mssql_cdc.lake.small_tables import retry_overtaken, small_table

INITIAL, INCREMENTAL = "Initial Snapshot", "Incremental Snapshot"
CAPTURE_INSTANCE = "Capture Instance"
"""The aggregate types: blocking snapshots have the same as initial ones (NOT-03, NOT-04)."""


class Notifier:
    """Collects a snapshot's notifications and writes them in one commit per `flush`."""

    def __init__(
        self, database: Database, signal: str | None, tables: Sequence[str], *, aggregate: str = INITIAL
    ) -> None:
        self._database, self._aggregate = database, aggregate
        self._id = signal or str(uuid.uuid4())
        self._tables = ",".join(tables)
        self._collected: list[Notification] = []
        self._begun: set[str] = set()

    def started(self) -> None:
        """The snapshot begins."""
        self._add("STARTED")

    def in_progress(self, table: str) -> None:
        """The table is about to be read; told once."""
        if table in self._begun:
            return
        self._begun.add(table)
        self._add("IN_PROGRESS", data_collections=self._tables, current_collection_in_progress=table)

    def scanned(self, table: str, rows: int | None) -> None:
        """The table was read, or failed (`rows` None)."""
        if rows is None:
            self._add("TABLE_SCAN_COMPLETED", scanned_collection=table, status="SQL_EXCEPTION")
            return
        self._add(
            "TABLE_SCAN_COMPLETED",
            data_collections=self._tables,
            scanned_collection=table,
            total_rows_scanned=str(rows),
            status="SUCCEEDED",
        )

    def skipped(self, reason: str) -> None:
        """No snapshot is taken of the requested collections."""
        self._add("SKIPPED", data_collections=self._tables, reason=reason)

    def completed(self) -> None:
        """Every table was read."""
        self._add("COMPLETED")

    def add(self, kind: str, **more: str) -> None:
        """Another event of the snapshot.

        Args:
            kind: The type of the notification.
            more: Its additional data.
        """
        self._add(kind, **more)

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

    def _add(self, kind: str, **more: str) -> None:
        data = {"connector_name": self._database.connector.topic_prefix, **more}
        now = int(time.time() * 1000)
        self._collected.append(
            Notification(id=self._id, aggregate_type=self._aggregate, type=kind, additional_data=data, timestamp_ms=now)
        )


def notify_of_skipped(database: Database) -> None:
    """Notify that a start takes no initial snapshot (NOT-03)."""
    notifier = Notifier(database, None, ())
    notifier.add("SKIPPED")
    notifier.flush()
