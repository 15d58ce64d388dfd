"""What the steps of the loop report to the consumer: snapshots, streaming, retries and metrics, as events."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.notifications import INCREMENTAL, notify_of_skipped
from mssql_cdc.capture.requests import IGNORED, id_of
from mssql_cdc.capture.snapshot.progress import Progress
from mssql_cdc.capture.snapshot.take import SnapshotResult
from mssql_cdc.config import Connector
from mssql_cdc.config.signals import ExecuteSnapshot, parse_signal
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.steps import is_of_start
from mssql_cdc.plan.decisions import Range, Snapshot, Wait
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import Follower
from mssql_cdc.schema import TableId
from mssql_cdc.serve.events import Events
from mssql_cdc.serve.metrics import TIMES, Metrics
from mssql_cdc.serve.sent import Sent

METRICS_SECONDS = 10.0
"""How often metrics are shown when only their times have changed."""
_INCREMENTAL_STATES = {
    "STARTED": "started", "IN_PROGRESS": "progress", "TABLE_SCAN_COMPLETED": "table", "PAUSED": "paused",
    "RESUMED": "resumed", "ABORTED": "aborted", "SKIPPED": "skipped", "COMPLETED": "completed",
}  # fmt: skip
_SNAPSHOT_SIGNALS = frozenset({"execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot"})


@dataclass
class _Seen:
    """What is known of one database since the start."""

    metrics: Metrics
    streaming: bool = False
    snapshot: bool = False
    ended: set[TableId] = field(default_factory=set[TableId])
    failure: MssqlCdcError | None = None
    shown: dict[str, tuple[dict[str, Any], float]] = field(default_factory=dict[str, tuple[dict[str, Any], float]])


class Watch:
    """Writes events about the steps of a connector's databases."""

    def __init__(self, events: Events, connector: Connector, sent: Callable[[str], Sent]) -> None:
        """Begin.

        Args:
            events: Receives them.
            connector: The configuration.
            sent: Returns what was rendered of a database.
        """
        self._events, self._connector, self._sent = events, connector, sent
        self._seen: dict[str, _Seen] = {}
        self._held: list[tuple[str, str, str, Mapping[str, Any]]] = []

    def snapshot(self, progress: Progress) -> None:
        """Report how far a snapshot has come."""
        database = next((table.catalog or "" for table in progress.tables), "")
        kind = _kind(progress.signal)
        self._begin_snapshot(database, kind, progress.signal)
        self._of(database).metrics.snapshot_progress(progress)
        self._show(database, "snapshot")
        ended = {table: one.rows for table, one in progress.tables.items() if one.ended}
        total = progress.total
        if total.chunks_done and not self._tables_ended(database, kind, progress.signal, ended):
            members = {"rows": total.rows, "chunks": total.chunks, "chunks_done": total.chunks_done}
            self._tell(database, kind, "progress", **_id(progress.signal), **members)

    def __call__(self, follower: Follower, done: Done | None) -> None:
        """Report what an attempt at a step led to."""
        self._release()
        database = follower.database.catalog
        seen = self._of(database)
        if done is None:
            self._failed(database, seen, follower.broken or follower.failure)
            return
        seen.failure = None
        seen.metrics.surveyed(done.seen.tables)
        if isinstance(done.decision, Snapshot):
            self._snapshot_done(database, done, done.decision.signal)
        elif isinstance(done.decision, Range):
            self._begin_streaming(follower.database)
            if done.range is not None:
                seen.metrics.range_done(done.range)
        elif isinstance(done.decision, Wait):
            if not done.seen.tables and not done.offsets.entries and not seen.metrics.has_snapshot:
                self._snapshot_without_tables(database)
            if done.seen.facts.policy.stream:
                self._begin_streaming(follower.database)
        self._show_all(database)

    def notified(self, database: str, notification: Mapping[str, Any]) -> None:
        """Report a notification, and the incremental snapshot that it is about.

        Args:
            database: The database.
            notification: The notification, with the fields of `Notification`.
        """
        told = {name: value for name, value in notification.items() if name != "timestamp_ms"}
        self._events.emit("notification", database=database, **told, timestamp=notification["timestamp_ms"])
        state = _INCREMENTAL_STATES.get(notification["type"])
        if notification["aggregate_type"] == INCREMENTAL and state is not None:
            data = {name: value for name, value in notification["additional_data"].items() if name != "connector_name"}
            self._hold_or_tell(database, state, notification["id"], _members(data))

    def _hold_or_tell(self, database: str, state: str, signal: str, members: Mapping[str, Any]) -> None:
        """Report an incremental snapshot, unless it has no table: that is a rejected signal.

        Debezium still notifies of its beginning, of each name and of its end, one right after the other.
        """
        is_unknown = members.get("status") == "UNKNOWN_SCHEMA"
        if state == "completed" and len(self._held) > 1:
            self._held.clear()
            return
        if state == "started" or not (is_unknown and self._held):
            self._release()
        if state == "started" or (is_unknown and self._held):
            self._held.append((database, state, signal, members))
        else:
            self._incremental(database, state, signal, members)

    def _release(self) -> None:
        held, self._held = self._held, []
        for one in held:
            self._incremental(*one)

    def _incremental(self, database: str, state: str, signal: str, members: Mapping[str, Any]) -> None:
        self._of(database).metrics.incremental(state, members)
        self._tell(database, "incremental", state, id=signal, **members)
        self._show(database, "snapshot")

    def signalled(self, database: str, row: Mapping[str, Any]) -> None:
        """Report a signal about snapshots that has no effect.

        Args:
            database: The database.
            row: The signal with its outcome, as in `_signals`.
        """
        if row["status"] != IGNORED or row["type"] not in _SNAPSHOT_SIGNALS:
            return
        parsed = parse_signal(row["id"], row["type"], row["data"])
        kind = parsed.kind if isinstance(parsed, ExecuteSnapshot) else _named_kind(row["data"])
        self._tell(database, kind, "rejected", id=row["id"], signal=row["type"], message=row["result"])

    def end(self) -> None:
        """Report that the connector no longer streams, and its last metrics."""
        self._release()
        for database, seen in self._seen.items():
            self._show_all(database)
            if seen.streaming:
                self._events.emit("streaming", state="stopped", database=database)

    def _of(self, database: str) -> _Seen:
        if database not in self._seen:
            self._seen[database] = _Seen(Metrics(self._connector, lambda: self._sent(database)))
        return self._seen[database]

    def _failed(self, database: str, seen: _Seen, error: MssqlCdcError | None) -> None:
        """Report, once, an error after which the database is tried again."""
        if error is not None and error is not seen.failure:
            self._events.emit("retry", database=database, message=str(error), code=type(error).__name__)
        seen.failure = error
        if seen.streaming:
            self._show(database, "streaming")

    def _begin_streaming(self, database: Database) -> None:
        name = database.catalog
        seen = self._of(name)
        if seen.streaming:
            return
        seen.streaming = True
        if not seen.metrics.has_snapshot:
            seen.metrics.snapshot_skipped()
            self._tell(name, "initial", "skipped", message="the lake has it, or snapshot.mode takes none")
            notify_of_skipped(database)
        self._events.emit("streaming", state="started", database=name)

    def _begin_snapshot(self, database: str, kind: str, signal: str | None) -> None:
        seen = self._of(database)
        if not seen.snapshot:
            seen.snapshot = True
            seen.ended.clear()
            seen.metrics.snapshot_began()
            self._tell(database, kind, "started", **_id(signal))

    def _snapshot_without_tables(self, database: str) -> None:
        """Report the initial snapshot of a database without captured tables, which is complete at once."""
        self._begin_snapshot(database, "initial", None)
        seen = self._of(database)
        seen.metrics.snapshot_ended(SnapshotResult("initial"))
        seen.snapshot = False
        self._tell(database, "initial", "completed", rows=0)

    def _tables_ended(self, database: str, kind: str, signal: str | None, ended: Mapping[TableId, int]) -> bool:
        """Report, once, the tables that have been read, with their rows; return whether any was reported."""
        known = self._of(database).ended
        new = {table: rows for table, rows in ended.items() if table not in known}
        for table, rows in new.items():
            self._tell(database, kind, "table", **_id(signal), table=table.text, rows=rows)
        known.update(new)
        return bool(new)

    def _snapshot_done(self, database: str, done: Done, signal: str | None) -> None:
        found, kind, id_ = done.snapshot, _kind(signal), _id(signal)
        if found is None:
            return
        for table, note in found.notes.items() if signal is not None else ():
            self._tell(database, kind, "skipped", **id_, table=table.text, message=note)
        seen = self._of(database)
        if seen.streaming and signal is None and not found.rows and not found.failed:
            return  # A table that appeared later, of which no rows are read.
        # At the start, a mode that reads no rows takes a snapshot of the structure, as in Debezium.
        self._begin_snapshot(database, kind, signal)
        ended = {table: rows for table, rows in found.rows.items() if table not in found.failed}
        self._tables_ended(database, kind, signal, ended)
        for table, error in found.failed.items():
            self._tell(database, kind, "aborted", **id_, table=table.text, message=str(error))
        for table, by in found.stopped.items():
            self._tell(database, kind, "aborted", **id_, table=table.text, message=f"stopped by signal {by}")
        if found.paused:
            self._tell(database, kind, "paused", **id_, data_collections=[table.text for table in found.paused])
        seen.metrics.snapshot_ended(found)
        seen.snapshot = False
        if found.completed:
            self._tell(database, kind, "completed", **id_, rows=sum(found.rows.values()))

    def _tell(self, database: str, kind: str, state: str, **members: Any) -> None:
        self._events.emit("snapshot", state=state, kind=kind, database=database, **members)

    def _show_all(self, database: str) -> None:
        seen = self._of(database)
        if seen.metrics.has_snapshot:
            self._show(database, "snapshot")
        if seen.streaming:
            self._show(database, "streaming")

    def _show(self, database: str, context: str) -> None:
        """Show metrics if they have changed, and from time to time."""
        seen = self._of(database)
        connected = seen.failure is None
        values = seen.metrics.snapshot() if context == "snapshot" else seen.metrics.streaming(connected=connected)
        lasting = {name: value for name, value in values.items() if name not in TIMES}
        before, at = seen.shown.get(context, ({}, 0.0))
        if lasting != before or (seen.streaming and time.monotonic() - at > METRICS_SECONDS):
            seen.shown[context] = lasting, time.monotonic()
            self._events.emit("metrics", context=context, database=database, values=values)


def _members(data: Mapping[str, str]) -> dict[str, Any]:
    """Return what an event about an incremental snapshot has besides its state."""
    names = {"current_collection_in_progress": "table", "scanned_collection": "table", "total_rows_scanned": "rows"}
    found: dict[str, Any] = {names.get(name, name): value for name, value in data.items()}
    if "data_collections" in found:
        found["data_collections"] = found["data_collections"].split(",")
    return found | ({"rows": int(found["rows"])} if "rows" in found else {})


def _kind(signal: str | None) -> str:
    return "initial" if signal is None or is_of_start(signal) else "blocking"


def _named_kind(data: str | None) -> str:
    """The kind of snapshot named by a signal that cannot be understood."""
    return "blocking" if "blocking" in (data or "").lower() else "incremental"


def _id(signal: str | None) -> dict[str, str]:
    return {} if signal is None or is_of_start(signal) else {"id": id_of(signal)}
