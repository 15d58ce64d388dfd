"""Signals, applied exactly once: from the committed change log of the signal table into `_signals` (rule A6).

How far signals were taken is in the commit of `_signals` that took them, so a crash neither loses nor repeats one.
Snapshots that signals ask for are read back in `capture/requests.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.capture.notifications import Notifier
from mssql_cdc.capture.requests import DONE, IGNORED, REQUESTED, SignalRow, TableName, signal_row
from mssql_cdc.config.signals import (
    AcknowledgeGaps,
    ExecuteSnapshot,
    IgnoredSignal,
    LogMessage,
    expand_collections,
    parse_signal,
)
from mssql_cdc.errors import FencedError
from mssql_cdc.lake.gaps import acknowledge_gaps
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import BatchSlice, scan
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.schema import TableId


def take_signals(database: Database, tables: Mapping[TableId, LakeTable], offsets: Offsets) -> list[str]:
    """Apply the signals that complete cuts hold, each exactly once; a line about each.

    Raises:
        ConfigurationError: the signal table is configured, but not captured or of another shape.
    """
    captured = database.source.signal_table(database.catalog, [table.captured for table in tables.values()])
    cut = offsets.last_cut()
    if captured is None or cut is None:
        return []
    up_to = offsets.cut_batch(captured.table_id.text, cut)
    if up_to is None:
        return []
    store = small_table(database.layout, "signals", database.storage)
    state = store.state()
    taken = int((state.own or {}).get("taken", 0))
    if up_to <= taken:
        return []
    source = tables[captured.table_id]
    others = [table.parts for table in tables if table != captured.table_id]
    rows = []
    now = datetime.now(UTC)
    for signal, place in _signals(database, source, BatchSlice(taken, up_to)):
        status, result = _apply(database, signal, cut.to or "", others)
        rows.append(signal_row(signal, channel="source", position=place, status=status, result=result, at=now))
    try:
        store.append(state, rows, {"kind": "signals", "taken": up_to, "run_id": database.run_id})
    except FencedError:
        return []  # Another run takes the same signals.
    return [f"signal {row['id']} ({row['type']}): {row['result']}" for row in rows]


def _signals(database: Database, member: LakeTable, batches: BatchSlice) -> list[tuple[SignalRow, str]]:
    """Inserted rows of the signal table in order; its columns count by position (SIG-03)."""
    found = []
    columns = ["_pos", "op", "after"]
    for batch in scan(member.home.changes, batches=batches, columns=columns, storage=database.storage):
        for row in batch.to_pylist():
            if row["op"] == "c" and row["after"]:
                values = [None if v is None else str(v) for v in row["after"].values()][:3]
                found.append((SignalRow(values[0] or "", values[1] or "", values[2]), row["_pos"]))
    return sorted(found, key=lambda item: item[1])


def _apply(database: Database, signal: SignalRow, position: str, tables: list[TableName]) -> tuple[str, str]:
    match parse_signal(signal.id, signal.type, signal.data):
        case LogMessage() as message:
            return DONE, message.text(position)
        case ExecuteSnapshot(kind="blocking") as action:
            return _asked(database, action, tables)
        case AcknowledgeGaps(collections=names):
            return _acknowledge(database, signal.id, names, tables)
        case IgnoredSignal(reason=reason):
            return IGNORED, reason
        case _:
            return IGNORED, "incremental snapshots are known, not implemented yet"


def _asked(database: Database, action: ExecuteSnapshot, tables: list[TableName]) -> tuple[str, str]:
    """What becomes of a wish for a blocking snapshot; what it names in vain is said, also as a notification."""
    found, missing = expand_collections(action.collections, tables)
    said = []
    if missing:
        what = f"no captured table that can be snapshotted is named {', '.join(missing)}"
        notifier = Notifier(database, action.signal_id, missing)
        notifier.skipped(what)
        notifier.flush()
        said.append(what)
    if action.surrogate_key:
        said.append("surrogate-key has a meaning for incremental snapshots only")
    if not found:
        return IGNORED, "; ".join(said)
    names = ", ".join(".".join(name) for name in found)
    return REQUESTED, "; ".join([f"a blocking snapshot of {names}", *said])


def _acknowledge(
    database: Database, signal_id: str, collections: Collection[str], tables: list[TableName]
) -> tuple[str, str]:
    """Done before the signal is written down: acknowledging once more changes nothing."""
    wanted = None
    if collections:
        found, missing = expand_collections(collections, tables)
        if missing:
            return IGNORED, f"no captured table is named {', '.join(missing)}"
        wanted = {TableId(*name).text for name in found}
    done = acknowledge_gaps(
        database.layout, wanted, by=f"signal {signal_id}", run_id=database.run_id, storage=database.storage
    )
    return DONE, f"{len(done)} gaps acknowledged"
