"""Signals, applied exactly once: from the committed change log of the signal table into `_signals` (rule A6).

How far signals were taken is in the commit of `_signals` that took them, so a crash neither loses nor repeats one. A
snapshot that a signal asked for is asked for until an `_offsets` row names the signal.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from mssql_cdc.capture.context import Database
from mssql_cdc.capture.tables import Member
from mssql_cdc.config.signals import ExecuteSnapshot, IgnoredSignal, LogMessage, expand_collections, parse_signal
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import BatchSlice, scan
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lsn import parse_snapshot_key, snapshot_key
from mssql_cdc.schema import TableId

REQUESTED, DONE, IGNORED = "requested", "done", "ignored"


@dataclass(frozen=True, slots=True)
class SignalRow:
    """One row of the signal table; `data` is its JSON text or None."""

    id: str
    type: str
    data: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """A blocking snapshot that was asked for."""

    key: str
    signal_id: str
    action: ExecuteSnapshot

    def of(self, tables: Collection[TableId]) -> tuple[TableId, ...]:
        """The captured tables meant, in the order in which the signal names them."""
        by_name = {(table.catalog or "", table.schema, table.name): table for table in tables}
        found, _ = expand_collections(self.action.collections, sorted(by_name))
        return tuple(by_name[name] for name in found)


def asked_snapshots(database: Database, offsets: Offsets) -> list[Request]:
    """The blocking snapshots that were asked for and have not begun."""
    begun = {_signal(row.facts) for row in offsets.rows if row.kind == "snapshot"}
    found = []
    for row in small_table(database.layout, "signals", database.storage).rows():
        request = _request(row) if row["status"] == REQUESTED else None
        if request is not None and _identity(row) not in begun:
            found.append(request)
    return found


def apply_signals(database: Database, member: Member, up_to: int, *, position: str) -> list[str]:
    """Take the signals that the signal table's change log holds up to `_batch` `up_to`; lines about them."""
    table = small_table(database.layout, "signals", database.storage)
    state = table.state()
    taken = int((state.own or {}).get("taken", 0))
    if up_to <= taken:
        return []
    rows = []
    lines = []
    now = datetime.now(UTC)
    for signal, place in _signals(database, member, BatchSlice(taken, up_to)):
        status, result = _apply(signal, position)
        rows.append(
            {
                "id": signal.id,
                "type": signal.type,
                "data": signal.data,
                "channel": "source",
                "position": place,
                "status": status,
                "result": result,
                "at": now,
            }
        )
        lines.append(f"signal {signal.id} ({signal.type}): {result}")
    table.append(state, rows, {"kind": "signals", "taken": up_to, "run_id": database.run_id})
    return lines


def ask_for_snapshot(database: Database, signal_id: str, tables: Collection[str], *, channel: str) -> None:
    """Ask for a blocking snapshot of these tables, as a signal of another channel than the table."""
    table = small_table(database.layout, "signals", database.storage)
    state = table.state()
    data = json.dumps({"type": "blocking", "data-collections": list(tables)})
    row = {
        "id": signal_id,
        "type": "execute-snapshot",
        "data": data,
        "channel": channel,
        "position": None,
        "status": REQUESTED,
        "result": "a blocking snapshot",
        "at": datetime.now(UTC),
    }
    taken = int((state.own or {}).get("taken", 0))
    table.append(state, [row], {"kind": "signals", "taken": taken, "run_id": database.run_id})


def _signals(database: Database, member: Member, batches: BatchSlice) -> list[tuple[SignalRow, str]]:
    """Inserted rows of the signal table in order; its columns count by position (SIG-03)."""
    found = []
    columns = ["_pos", "op", "after"]
    for batch in scan(member.home.changes, batches=batches, columns=columns, storage=database.storage):
        for row in batch.to_pylist():
            if row["op"] == "c" and row["after"]:
                values = [None if v is None else str(v) for v in row["after"].values()][:3]
                found.append((SignalRow(values[0] or "", values[1] or "", values[2]), row["_pos"]))
    return sorted(found, key=lambda item: item[1])


def _apply(signal: SignalRow, position: str) -> tuple[str, str]:
    match parse_signal(signal.id, signal.type, signal.data):
        case LogMessage() as message:
            return DONE, message.text(position)
        case ExecuteSnapshot(kind="blocking", collections=names):
            return REQUESTED, f"a blocking snapshot of {', '.join(names)}"
        case IgnoredSignal(reason=reason):
            return IGNORED, reason
        case _:
            return IGNORED, "incremental snapshots are known, not implemented yet"


def _request(row: Mapping[str, Any]) -> Request | None:
    action = parse_signal(row["id"], row["type"], row["data"])
    if not isinstance(action, ExecuteSnapshot):
        return None
    return Request(_key(row), _identity(row), action)


def _identity(row: Mapping[str, Any]) -> str:
    """A signal's id need not be unique: its row's number in `_signals` makes it so."""
    return f"{row['id']}@{row['_batch']}:{row['position'] or ''}"


def _key(row: Mapping[str, Any]) -> str:
    return snapshot_key(row["at"])


def free_key(wanted: str, offsets: Offsets) -> str:
    """The key, moved on by whole seconds until no snapshot has it."""
    used = {row.partition for row in offsets.rows}
    while wanted in used:
        at = parse_snapshot_key(wanted)
        assert at is not None  # snapshot keys only
        wanted = snapshot_key(at + timedelta(seconds=1))
    return wanted


def _signal(text: str | None) -> str | None:
    return json.loads(text).get("signal") if text else None
