"""What the steps of the loop tell the consumer: snapshots, streaming, retries, and Debezium's metrics (MET)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mssql_cdc.capture.notifications import INCREMENTAL
from mssql_cdc.capture.range import RangeResult
from mssql_cdc.capture.snapshot.progress import Progress
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.plan.decisions import Range, Snapshot, Wait
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import Follower
from mssql_cdc.serve.events import Events

_INCREMENTAL_STATES = {
    "STARTED": "started", "IN_PROGRESS": "progress", "TABLE_SCAN_COMPLETED": "table", "PAUSED": "paused",
    "RESUMED": "resumed", "ABORTED": "aborted", "SKIPPED": "skipped", "COMPLETED": "completed",
}  # fmt: skip


@dataclass
class _Seen:
    """What is counted for one database since the start."""

    streaming: bool = False
    snapshot_began: float | None = None
    operations: Counter[str] = field(default_factory=Counter[str])
    newest: datetime | None = None
    position: str | None = None
    behind_ms: int = -1
    failure: MssqlCdcError | None = None


class Watch:
    """Writes events about the steps of a connector's databases."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._seen: dict[str, _Seen] = {}

    def snapshot(self, progress: Progress) -> None:
        """Tell how far a snapshot has come."""
        database = next((table.catalog or "" for table in progress.tables), "")
        kind = _kind(progress.signal)
        self._begin_snapshot(database, kind)
        values = _snapshot_metrics(progress, self._of(database), running=True)
        self._events.emit("metrics", context="snapshot", database=database, values=values)
        total = progress.total
        self._events.emit(
            "snapshot",
            state="progress",
            kind=kind,
            database=database,
            rows=total.rows,
            chunks=total.chunks,
            chunks_done=total.chunks_done,
        )

    def __call__(self, follower: Follower, done: Done | None) -> None:
        """Tell what an attempt at a step led to."""
        database = follower.database.catalog
        if done is None:
            error, seen = follower.failure, self._of(database)
            if error is not None and error is not seen.failure:
                self._events.emit("retry", database=database, message=str(error), code=type(error).__name__)
            seen.failure = error
            return
        if isinstance(done.decision, Snapshot):
            self._snapshot_done(database, done, _kind(done.decision.signal))
        elif isinstance(done.decision, Range):
            self._range_done(database, done)
        elif isinstance(done.decision, Wait) and done.seen.facts.policy.stream:
            self._begin_streaming(database)

    def notified(self, database: str, notification: Mapping[str, Any]) -> None:
        """Tell of a notification, and of the incremental snapshot that it is about.

        Args:
            database: The database.
            notification: It, with the fields of `Notification`.
        """
        told = {name: value for name, value in notification.items() if name != "timestamp_ms"}
        self._events.emit("notification", database=database, **told, timestamp=notification["timestamp_ms"])
        state = _INCREMENTAL_STATES.get(notification["type"])
        if notification["aggregate_type"] == INCREMENTAL and state is not None:
            data = {name: value for name, value in notification["additional_data"].items() if name != "connector_name"}
            self._tell(database, "incremental", state, id=notification["id"], **_members(data))

    def end(self) -> None:
        """Tell that the connector streams no more."""
        for database, seen in self._seen.items():
            if seen.streaming:
                self._events.emit("streaming", state="stopped", database=database)

    def _of(self, database: str) -> _Seen:
        return self._seen.setdefault(database, _Seen())

    def _begin_streaming(self, database: str) -> None:
        seen = self._of(database)
        if not seen.streaming:
            seen.streaming = True
            self._events.emit("streaming", state="started", database=database)

    def _begin_snapshot(self, database: str, kind: str) -> None:
        seen = self._of(database)
        if seen.snapshot_began is None:
            seen.snapshot_began = time.monotonic()
            self._tell(database, kind, "started")

    def _snapshot_done(self, database: str, done: Done, kind: str) -> None:
        found = done.snapshot
        if found is None:
            return
        for table, note in found.notes.items():
            self._tell(database, kind, "skipped", table=table.text, message=note)
        if not found.rows and not found.failed:
            return
        self._begin_snapshot(database, kind)
        for table, rows in found.rows.items():
            if table not in found.failed:
                self._tell(database, kind, "table", table=table.text, rows=rows)
        for table, error in found.failed.items():
            self._tell(database, kind, "aborted", table=table.text, message=str(error))
        if not found.failed:
            self._tell(database, kind, "completed", rows=sum(found.rows.values()))
            self._of(database).snapshot_began = None

    def _tell(self, database: str, kind: str, state: str, **members: Any) -> None:
        self._events.emit("snapshot", state=state, kind=kind, database=database, **members)

    def _range_done(self, database: str, done: Done) -> None:
        self._begin_streaming(database)
        if done.range is None or not done.range.rows:
            return
        seen = self._of(database)
        _count(seen, done.range)
        self._events.emit("metrics", context="streaming", database=database, values=_streaming_metrics(seen, done))


def _members(data: Mapping[str, str]) -> dict[str, Any]:
    """Return what an event about an incremental snapshot has beside its state."""
    names = {"current_collection_in_progress": "table", "scanned_collection": "table", "total_rows_scanned": "rows"}
    found: dict[str, Any] = {names.get(name, name): value for name, value in data.items()}
    if "data_collections" in found:
        found["data_collections"] = found["data_collections"].split(",")
    return found | ({"rows": int(found["rows"])} if "rows" in found else {})


def _kind(signal: str | None) -> str:
    return "initial" if signal is None else "blocking"


def _count(seen: _Seen, result: RangeResult) -> None:
    for outcome in result.tables.values():
        seen.operations.update(outcome.operations)
    times = [outcome.last for outcome in result.tables.values() if outcome.last]
    if times:
        seen.newest = datetime.fromisoformat(max(times)).astimezone(UTC)
        seen.behind_ms = int((datetime.now(UTC) - seen.newest).total_seconds() * 1000)
    seen.position = result.decision.range.to.text


def _streaming_metrics(seen: _Seen, done: Done) -> dict[str, Any]:
    return {
        "CapturedTables": [table.text for table in done.seen.tables],
        "TotalNumberOfEventsSeen": seen.operations.total(),
        "TotalNumberOfCreateEventsSeen": seen.operations["c"],
        "TotalNumberOfUpdateEventsSeen": seen.operations["u"],
        "TotalNumberOfDeleteEventsSeen": seen.operations["d"],
        "MilliSecondsBehindSource": seen.behind_ms,
        "SourceEventPosition": {"commit_lsn": seen.position},
        "LastTransactionId": seen.position,
        "Connected": True,
    }


def _snapshot_metrics(progress: Progress, seen: _Seen, *, running: bool) -> dict[str, Any]:
    left = [table for table, one in progress.tables.items() if one.chunks_done < one.chunks]
    return {
        "CapturedTables": [table.text for table in progress.tables],
        "TotalTableCount": len(progress.tables),
        "RemainingTableCount": len(left),
        "RowsScanned": {table.text: one.rows for table, one in progress.tables.items()},
        "SnapshotRunning": running,
        "SnapshotCompleted": not running,
        "SnapshotDurationInSeconds": int(time.monotonic() - (seen.snapshot_began or time.monotonic())),
    }
