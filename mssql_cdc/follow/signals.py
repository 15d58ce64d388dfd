"""Signals, applied exactly once: from their channels into `_signals` (A6).

The commit of `_signals` that contains the signals also records how far they were read, so a crash neither loses nor
repeats one. `capture/requests.py` reads the snapshots that signals requested.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.capture.notifications import INCREMENTAL, INITIAL, Notifier
from mssql_cdc.capture.requests import (
    DONE,
    IGNORED,
    REQUESTED,
    SignalRow,
    TableName,
    bookmarks_of,
    note_signal,
    signal_row,
)
from mssql_cdc.config.signals import (
    AcknowledgeGaps,
    ExecuteSnapshot,
    IgnoredSignal,
    LogMessage,
    PauseSnapshot,
    ResumeSnapshot,
    StopSnapshot,
    expand_collections,
    parse_signal,
)
from mssql_cdc.errors import FencedError
from mssql_cdc.follow.signal_channels import CHANNELS, Arrived
from mssql_cdc.lake.gaps import acknowledge_gaps
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.schema import TableId


def take_signals(database: Database, tables: Mapping[TableId, LakeTable], offsets: Offsets) -> list[str]:
    """Apply the signals that have arrived in the enabled channels, each exactly once; return a line about each.

    Args:
        database: The database.
        tables: The captured tables.
        offsets: How far each of them has come.

    Raises:
        ConfigurationError: A channel cannot be read as configured.
    """
    store = small_table(database.layout, "signals", database.storage)
    state = store.state()
    bookmarks = bookmarks_of(state)
    arrived: dict[str, Arrived] = {}
    for name in database.connector.signals.channels:
        found = CHANNELS[name].read(database, tables, offsets, bookmarks.get(name)) if name in CHANNELS else None
        if found is not None:
            arrived[name] = found
    if not arrived:
        return []
    cut = offsets.last_cut()
    names = _names(database, tables)
    rows: list[dict[str, Any]] = []
    now = datetime.now(UTC)
    for channel, found in arrived.items():
        for signal, place in found.signals:
            status, result = _apply(database, signal, (cut.to if cut else None) or "", names)
            rows.append(signal_row(signal, channel=channel, position=place, status=status, result=result, at=now))
    read = {name: found.bookmark for name, found in arrived.items()}
    try:
        store.append(state, rows, {"kind": "signals", "taken": bookmarks | read, "run_id": database.run_id})
    except FencedError:
        return []  # Another run is applying the same signals.
    return [f"signal {row['id']} ({row['type']}): {row['result']}" for row in rows]


def apply_signal(
    database: Database, signal: SignalRow, tables: Collection[TableId], offsets: Offsets, *, channel: str
) -> str:
    """Apply a signal that a program hands over, and record it; return a line about it.

    Args:
        database: The database.
        signal: The signal.
        tables: The captured tables.
        offsets: How far each of them has come.
        channel: The channel that delivered it.
    """
    cut = offsets.last_cut()
    status, result = _apply(database, signal, (cut.to if cut else None) or "", _names(database, tables))
    note_signal(database, signal, channel, status, result)
    return f"signal {signal.id} ({signal.type}): {result}"


def _names(database: Database, tables: Collection[TableId]) -> list[TableName]:
    """Return the tables that a signal can name."""
    filters = database.connector.filters.tables
    return [table.parts for table in tables if not filters.is_signal_table(*table.parts)]


def _apply(database: Database, signal: SignalRow, position: str, tables: list[TableName]) -> tuple[str, str]:
    match parse_signal(signal.id, signal.type, signal.data):
        case LogMessage() as message:
            return DONE, message.text(position)
        case ExecuteSnapshot() as action:
            return _asked(database, action, tables)
        case AcknowledgeGaps(collections=names):
            return _acknowledge(database, signal.id, names, tables)
        case IgnoredSignal(reason=reason):
            return IGNORED, reason
        case StopSnapshot(collections=names):
            return REQUESTED, f"stop the incremental snapshot of {', '.join(names) or 'all tables'}"
        case PauseSnapshot():
            return REQUESTED, "pause the incremental snapshot"
        case ResumeSnapshot():
            return REQUESTED, "resume the incremental snapshot"


def _asked(database: Database, action: ExecuteSnapshot, tables: list[TableName]) -> tuple[str, str]:
    """Return the result of a snapshot request; names without a match are reported, also as a notification."""
    found, missing = expand_collections(action.collections, tables)
    said: list[str] = []
    if missing:
        what = f"no captured table that can be snapshotted is named {', '.join(missing)}"
        aggregate = INCREMENTAL if action.kind == "incremental" else INITIAL
        notifier = Notifier(database, action.signal_id, missing, aggregate=aggregate)
        notifier.skipped(what)
        notifier.flush()
        said.append(what)
    if action.surrogate_key and action.kind == "blocking":
        said.append("surrogate-key applies to incremental snapshots only")
    if not found:
        return IGNORED, "; ".join(said)
    names = ", ".join(".".join(name) for name in found)
    what = f"{'an' if action.kind == 'incremental' else 'a'} {action.kind} snapshot of {names}"
    return REQUESTED, "; ".join([what, *said])


def _acknowledge(
    database: Database, signal_id: str, collections: Collection[str], tables: list[TableName]
) -> tuple[str, str]:
    """Acknowledge before the signal is recorded, since acknowledging again changes nothing."""
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
