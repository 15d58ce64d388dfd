"""Notifications (NOT-01 to NOT-07): rows of `_notifications`, then the enabled channels."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.notification_channels import send_all
from mssql_cdc.capture.notification_contract import Notification
from mssql_cdc.lake.read import BatchSlice, scan
from mssql_cdc.lake.small_tables import retry_overtaken, small_table

INITIAL, INCREMENTAL = "Initial Snapshot", "Incremental Snapshot"
CAPTURE_INSTANCE = "Capture Instance"
"""The aggregate types: blocking snapshots have the same one as initial ones (NOT-03, NOT-04)."""


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

    def collected(self) -> tuple[Notification, ...]:
        """Return what has been collected since the last call, for a caller that writes it (`tell_once`)."""
        collected, self._collected = tuple(self._collected), []
        return collected

    def flush(self) -> None:
        """Write what has been collected."""
        collected = self.collected()
        if collected:
            _append(self._database, collected)
            _send(self._database, collected)


def tell_once(database: Database, notifications: Sequence[Notification], *, after: int) -> None:
    """Write and send notifications that were kept elsewhere, unless this or another run did: one commit has them all.

    Args:
        database: The database.
        notifications: The notifications.
        after: The newest `_batch` of `_notifications` before they were kept.
    """
    if notifications and _append(database, notifications, unless_after=after):
        _send(database, notifications)


def newest_batch(database: Database) -> int:
    """Return the newest `_batch` of `_notifications`."""
    return small_table(database.layout, "notifications", database.storage).state().batch


@retry_overtaken
def _append(database: Database, notifications: Sequence[Notification], *, unless_after: int | None = None) -> bool:
    """Write them in one commit; False if a commit after this `_batch` has them."""
    table = small_table(database.layout, "notifications", database.storage)
    state = table.state()
    rows = [{**asdict(one), "additional_data": sorted(one.additional_data.items())} for one in notifications]
    if unless_after is not None and state.batch > unless_after:
        new = BatchSlice(unless_after, state.batch)
        parts = scan(table.uri, batches=new, columns=list(rows[0]), storage=database.storage)
        if any({**row, "additional_data": sorted(row["additional_data"])} in rows for row in _rows(parts)):
            return False
    table.append(state, rows, {"kind": "notifications", "run_id": database.run_id})
    return True


def _rows(parts: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for part in parts:
        yield from part.to_pylist()


def _send(database: Database, notifications: Sequence[Notification]) -> None:
    send_all(database, notifications)
    for one in notifications:
        database.notify(asdict(one))


def notify_of_skipped(database: Database) -> None:
    """Notify that a start takes no initial snapshot (NOT-03)."""
    notifier = Notifier(database, None)
    notifier.add("SKIPPED")
    notifier.flush()
