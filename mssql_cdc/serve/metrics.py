"""Debezium's metrics (MET) for one database, under the names of Debezium's attributes.

They are counted since the start, from what the loop and the renderer report; `watch.py` decides when values are shown.
An event is a change that was captured and that the records have, as in Debezium. `skipped.operations` filters out the
others, which Debezium does not even read. The position of the stream is that of the last record.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mssql_cdc.capture.range import RangeResult
from mssql_cdc.capture.snapshot.progress import Progress
from mssql_cdc.capture.snapshot.take import SnapshotResult
from mssql_cdc.config import Connector
from mssql_cdc.config.secret import reveal
from mssql_cdc.errors import MissingSecretError
from mssql_cdc.schema import TableId
from mssql_cdc.serve.sent import Sent

TIMES = frozenset(
    {
        "MilliSecondsSinceLastEvent",
        "MilliSecondsBehindSource",
        "SnapshotDurationInSeconds",
        "SnapshotPausedDurationInSeconds",
    }
)
"""Attributes that change as time passes."""


@dataclass
class _Clock:
    """The seconds that something lasts."""

    began: float | None = None
    before: float = 0.0

    def start(self) -> None:
        self.began = time.monotonic() if self.began is None else self.began

    def stop(self) -> None:
        self.before, self.began = self.seconds, None

    @property
    def seconds(self) -> float:
        return self.before + (0 if self.began is None else time.monotonic() - self.began)


@dataclass
class Metrics:
    """The metrics of one database.

    Attributes:
        connector: The configuration.
        sent: Returns what was rendered of the database.
    """

    connector: Connector
    sent: Callable[[], Sent]
    _operations: Counter[str] = field(default_factory=Counter[str])
    _filtered: int = 0
    _event_at: float | None = None
    _newest: datetime | None = None
    _behind_ms: int = -1
    _captured: tuple[str, ...] = ()
    _rows: dict[str, int] = field(default_factory=dict[str, int])
    _left: frozenset[str] = frozenset()
    _state: dict[str, bool] = field(default_factory=dict[str, bool])
    _lasts: _Clock = field(default_factory=_Clock)
    _paused: _Clock = field(default_factory=_Clock)
    _chunk: dict[str, str | None] = field(default_factory=dict[str, str | None])

    # -- What happens ---------------------------------------------------------------------------------------------

    def surveyed(self, tables: Mapping[TableId, object]) -> None:
        """Note the captured tables."""
        signals = self.connector.filters.tables.is_signal_table
        self._captured = tuple(table.text for table in tables if not signals(*table.parts))

    def range_done(self, result: RangeResult) -> None:
        """Count the changes of a range."""
        skipped = self.connector.records.skipped
        for outcome in result.tables.values():
            for operation, count in outcome.operations.items():
                self._operations[operation] += 0 if operation in skipped else count
                self._filtered += count if operation in skipped else 0
        times = [outcome.last for outcome in result.tables.values() if outcome.last]
        if times:
            self._event_at = time.monotonic()
            self._newest = datetime.fromisoformat(max(times)).astimezone(UTC)
            self._behind_ms = int((datetime.now(UTC) - self._newest).total_seconds() * 1000)

    def snapshot_began(self) -> None:
        """Note that an initial or blocking snapshot begins, or continues."""
        self._begin()
        if self._state.get("SnapshotPaused"):
            self._state["SnapshotPaused"] = False
            self._paused.stop()

    def snapshot_progress(self, progress: Progress) -> None:
        """Note how far the snapshot has come."""
        self._rows |= {table.text: one.rows for table, one in progress.tables.items()}
        self._left = frozenset(t.text for t, one in progress.tables.items() if one.chunks_done < one.chunks)

    def snapshot_ended(self, result: SnapshotResult) -> None:
        """Note that an attempt has ended: every table is read, or some have failed, were stopped or are waiting."""
        self._rows |= {table.text: rows for table, rows in result.rows.items()}
        self._left = frozenset(table.text for table in (*result.failed, *result.paused))
        self._event_at = time.monotonic()
        if result.paused:
            self._state["SnapshotPaused"] = True
            self._paused.start()
        else:
            self._finish("SnapshotCompleted" if result.completed else "SnapshotAborted")

    def snapshot_skipped(self) -> None:
        """Note that there is nothing to read."""
        self._state = {"SnapshotSkipped": True}

    def incremental(self, state: str, data: Mapping[str, Any]) -> None:
        """Note an incremental snapshot's state, as in its event, with the data of its notification."""
        match state:
            case "started":
                self._begin()
            case "progress":
                self._chunk = {
                    "ChunkId": str(int(self._chunk.get("ChunkId") or 0) + 1),
                    "ChunkFrom": self._chunk.get("ChunkTo"),
                    "ChunkTo": data.get("last_processed_key"),
                    "TableFrom": self._chunk.get("TableFrom") or data.get("last_processed_key"),
                    "TableTo": data.get("maximum_key"),
                }
            case "table":
                self._chunk = {}
                if data.get("table"):
                    self._rows[str(data["table"])] = int(data.get("rows") or 0)
            case "paused":
                self._state["SnapshotPaused"] = True
                self._paused.start()
            case "resumed":
                self._state["SnapshotPaused"] = False
                self._paused.stop()
            case "completed":
                self._finish("SnapshotCompleted")
            case "aborted":
                self._finish("SnapshotAborted")
            case _:
                pass

    def _begin(self) -> None:
        if not self._state.get("SnapshotRunning"):
            self._state = {"SnapshotRunning": True}
            self._lasts, self._paused = _Clock(), _Clock()
            self._rows, self._chunk = {}, {}
        self._lasts.start()

    def _finish(self, state: str) -> None:
        self._lasts.stop()
        self._paused.stop()
        self._chunk = {}
        self._state = {state: True}

    # -- What is shown ---------------------------------------------------------------------------------------------

    @property
    def has_snapshot(self) -> bool:
        """Whether there has been a snapshot since the start, or it was skipped."""
        return bool(self._state)

    def streaming(self, *, connected: bool) -> dict[str, Any]:
        """Return the attributes of the streaming bean.

        Args:
            connected: Whether the source answers.
        """
        position = self.sent().position
        return self._shared() | {
            "TotalNumberOfEventsSeen": self._operations.total(),
            "TotalNumberOfCreateEventsSeen": self._operations["c"],
            "TotalNumberOfUpdateEventsSeen": self._operations["u"],
            "TotalNumberOfDeleteEventsSeen": self._operations["d"],
            "NumberOfEventsFiltered": self._filtered,
            "Connected": connected,
            "MilliSecondsBehindSource": self._behind_ms,
            "NumberOfCommittedTransactions": self.sent().transactions,
            "SourceEventPosition": position,
            "LastTransactionId": position.get("commit_lsn"),
        }

    def snapshot(self) -> dict[str, Any]:
        """Return the attributes of the snapshot bean."""
        flags = ("SnapshotRunning", "SnapshotPaused", "SnapshotAborted", "SnapshotCompleted", "SnapshotSkipped")
        chunk = ("ChunkId", "ChunkFrom", "ChunkTo", "TableFrom", "TableTo")
        return (
            self._shared()
            | {
                "TotalNumberOfEventsSeen": sum(self._rows.values()),
                "NumberOfEventsFiltered": 0,
                "TotalTableCount": len(self._rows),
                "RemainingTableCount": len(self._left),
                "RowsScanned": dict(self._rows),
                "SnapshotDurationInSeconds": int(self._lasts.seconds),
                "SnapshotPausedDurationInSeconds": int(self._paused.seconds),
            }
            | {name: self._state.get(name, False) for name in flags}
            | {name: self._chunk.get(name) for name in chunk}
        )

    def _shared(self) -> dict[str, Any]:
        sent = self.sent()
        total, most = self.connector.records.queue_size, self._queue_bytes()
        since = -1 if self._event_at is None else int((time.monotonic() - self._event_at) * 1000)
        return {
            "LastEvent": sent.last,
            "MilliSecondsSinceLastEvent": since,
            # Changes of a table whose structure is not known (MET): records stop at the first one.
            "NumberOfErroneousEvents": 0,
            "CapturedTables": list(self._captured),
            "QueueTotalCapacity": total,
            "QueueRemainingCapacity": max(total - sent.waiting, 0),  # An output that remembers gets a batch as a whole.
            "MaxQueueSizeInBytes": most,
            "CurrentQueueSizeInBytes": sent.waiting_bytes if most else 0,
        }

    def _queue_bytes(self) -> int:
        """`max.queue.size.in.bytes`, which is only shown, if it is a number; 0: unlimited."""
        given = dict(self.connector.properties).get("max.queue.size.in.bytes", "0")
        try:
            return int(reveal(given))
        except (ValueError, MissingSecretError):
            return 0
