"""Signals, applied exactly once: from their channels into `_signals` (A6).

The commit of `_signals` that contains the signals also records how far the channels were read, so a crash neither loses
nor repeats one. `capture/requests.py` reads the snapshots that signals requested.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.store import load
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
    refused_stop,
    signal_row,
    table_names,
)
from mssql_cdc.config.signal_settings import SOURCE_CHANNEL
from mssql_cdc.config.signals import (
    AcknowledgeGaps,
    ExecuteSnapshot,
    IgnoredSignal,
    LogMessage,
    PauseSnapshot,
    ResumeSnapshot,
    Signal,
    StopSnapshot,
    concerns,
    expand_collections,
    parse_signal,
    unreadable,
)
from mssql_cdc.errors import FencedError, MssqlCdcError
from mssql_cdc.follow.signal_actions import is_action
from mssql_cdc.follow.signal_channels import SourceTable
from mssql_cdc.follow.signal_contract import Arrived, SignalChannel
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.opened import LAKE_ERRORS
from mssql_cdc.lake.small_tables import retry_overtaken, small_table
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class Looked:
    """What channels delivered after the bookmarks of `state`, the state of `_signals` that the commit is based on."""

    state: TableState
    arrived: Mapping[str, Arrived]


def look_into(database: Database, channels: Mapping[str, SignalChannel]) -> Looked | None:
    """Read the channels from their bookmarks; None if nothing has arrived.

    Args:
        database: The database.
        channels: The channels by name.
    """
    if not channels:
        return None
    state = small_table(database.layout, "signals", database.storage).state()
    bookmarks = bookmarks_of(state)
    found = {name: channel.read(bookmarks.get(name)) for name, channel in channels.items()}
    arrived = {name: one for name, one in found.items() if one is not None}
    return Looked(state, arrived) if arrived else None


@retry_overtaken
def take_signals(
    database: Database,
    tables: Mapping[TableId, LakeTable],
    offsets: Offsets,
    *,
    absent: Collection[TableId] = (),
) -> list[str]:
    """Apply the signals of the signal table that complete cuts contain, each exactly once; return a line about each.

    Args:
        database: The database.
        tables: The captured tables.
        offsets: How far each of them has come.
        absent: The tables that cannot be captured now.

    Raises:
        ConfigurationError: The signal table cannot be read as configured.
    """
    signals = database.connector.signals
    if SOURCE_CHANNEL not in signals.channels or signals.table_of(database.catalog) is None:
        return []
    looked = look_into(database, {SOURCE_CHANNEL: SourceTable(database, tables, offsets, absent)})
    return [] if looked is None else _record(database, looked, tables, offsets)


def record_signals(database: Database, looked: Looked, tables: Collection[TableId], offsets: Offsets) -> list[str]:
    """Apply signals and record them with the bookmarks of their channels in one commit; return a line about each.

    No line if another run has recorded something meanwhile: the next poll finds what that run did not record.

    Args:
        database: The database.
        looked: The signals.
        tables: The captured tables.
        offsets: How far each of them has come.
    """
    try:
        return _record(database, looked, tables, offsets)
    except FencedError:
        return []


def _record(database: Database, looked: Looked, tables: Collection[TableId], offsets: Offsets) -> list[str]:
    names = _names(database, tables)
    rows: list[dict[str, Any]] = []
    now = datetime.now(UTC)
    for channel, found in looked.arrived.items():
        for one in found.signals:
            signal = SignalRow(one.id, one.type, one.data)
            at = one.position if channel == SOURCE_CHANNEL else None
            status, result = (
                (IGNORED, one.problem) if one.problem is not None else _applied(database, signal, at, names, offsets)
            )
            rows.append(
                signal_row(signal, channel=channel, position=one.position, status=status, result=result, at=now)
            )
    read = {name: found.bookmark for name, found in looked.arrived.items()}
    facts = {"kind": "signals", "taken": bookmarks_of(looked.state) | read, "run_id": database.run_id}
    small_table(database.layout, "signals", database.storage).append(looked.state, rows, facts)
    for row in rows:
        database.signalled(row)
    return [_line(row["id"], row["type"], row["status"], row["result"]) for row in rows]


def apply_signal(
    database: Database, signal: SignalRow, tables: Collection[TableId], offsets: Offsets, *, channel: str
) -> str:
    """Apply a signal that a program passes in, and record it; return a line about it.

    Args:
        database: The database.
        signal: The signal.
        tables: The captured tables.
        offsets: How far each of them has come.
        channel: The channel that delivered it.
    """
    status, result = _applied(database, signal, None, _names(database, tables), offsets)
    note_signal(database, signal, channel, status, result)
    database.signalled(
        signal_row(signal, channel=channel, position=None, status=status, result=result, at=datetime.now(UTC))
    )
    return _line(signal.id, signal.type, status, result)


def _line(signal_id: str, kind: str, status: str, result: str | None) -> str:
    if status == IGNORED:
        return f"signal {signal_id} ({kind}) is ignored: {result}"
    return f"signal {signal_id} ({kind}): {result}"


def _names(database: Database, tables: Collection[TableId]) -> list[TableName]:
    """Return the tables that a signal can name."""
    filters = database.connector.filters.tables
    return [table.parts for table in tables if not filters.is_signal_table(*table.parts)]


def _current_offset(offsets: Offsets) -> Mapping[str, object] | None:
    """The source offset of the newest complete cut, as Debezium has it when nothing else has arrived."""
    cut = offsets.last_cut()
    if cut is None or cut.to is None:
        return None
    return {"commit_lsn": cut.to, "change_lsn": "NULL", "event_serial_no": 0}


def _offset_at(position: str) -> Mapping[str, object]:
    """The source offset of a row of the signal table."""
    _, commit, _, change, _ = position.split("-")
    return {"commit_lsn": Lsn.parse(commit).text, "change_lsn": Lsn.parse(change).text, "event_serial_no": 1}


def _applied(
    database: Database, signal: SignalRow, at: str | None, tables: list[TableName], offsets: Offsets
) -> tuple[str, str]:
    """The status and the result of a signal. One that fails is ignored: it would end every later run, too.

    Args:
        database: The database.
        signal: The signal.
        at: The position of its row in the signal table; None: it came another way.
        tables: The tables that it can name.
        offsets: How far each of them has come.

    Raises:
        MssqlCdcError: The source or the lake cannot be used now, or another run was faster: the signal waits.
        OSError, DeltaError: The same.
    """
    every = database.connector.databases
    try:
        # Channels other than the signal table serve all databases: the one with the tables sends the notification.
        parsed = parse_signal(signal.id, signal.type, signal.data)
        if at is None and not concerns(parsed, database.catalog, every):
            return IGNORED, "it names tables of other databases only"
        offset = _current_offset(offsets) if at is None else _offset_at(at)
        return _apply(database, signal, parsed, offset, tables, offsets)
    except (MssqlCdcError, *LAKE_ERRORS):
        raise
    except Exception as error:  # noqa: BLE001 - whatever a signal causes is never fatal (SIG-09)
        return IGNORED, database.connector.redact(f"it failed: {type(error).__name__}: {error}")


def _apply(
    database: Database,
    signal: SignalRow,
    parsed: Signal,
    offset: Mapping[str, object] | None,
    tables: list[TableName],
    offsets: Offsets,
) -> tuple[str, str]:
    every = table_names(database.history()) if isinstance(parsed, _Naming) else ()
    refused = unreadable(_texts(parsed), (*tables, *every)) if isinstance(parsed, _Naming) else None
    if refused is not None:
        return IGNORED, refused
    match parsed:
        case LogMessage() as message:
            return DONE, message.text(offset)
        case ExecuteSnapshot() as action:
            return _asked(database, action, tables, every)
        case AcknowledgeGaps(collections=names):
            return _acknowledge(database, signal.id, names, tables, every)
        case IgnoredSignal() if is_action(signal.type):
            return REQUESTED, f"the action {signal.type}"
        case IgnoredSignal(reason=reason):
            return IGNORED, reason
        case StopSnapshot(collections=names):
            found, _ = expand_collections(names, tables, every)
            refused = refused_stop(offsets, [TableId(*name).text for name in found])
            return (IGNORED, refused) if refused else (REQUESTED, f"stop the snapshot of {_all(names)}")
        case PauseSnapshot():
            return REQUESTED, "pause the snapshots"
        case ResumeSnapshot():
            return REQUESTED, "resume the snapshots"


_Naming = ExecuteSnapshot | StopSnapshot | AcknowledgeGaps


def _texts(signal: _Naming) -> tuple[str, ...]:
    """The texts of a signal that name tables."""
    conditions = signal.conditions if isinstance(signal, ExecuteSnapshot) else ()
    return (*signal.collections, *(one.collection for one in conditions))


def _all(names: Collection[str]) -> str:
    return ", ".join(names) or "all tables"


def _asked(
    database: Database, action: ExecuteSnapshot, tables: list[TableName], every: Collection[TableName]
) -> tuple[str, str]:
    """Return the result of a snapshot request; names without a match are reported."""
    found, missing = expand_collections(action.collections, tables, every)
    said: list[str] = []
    if missing:
        what = f"no captured table that can be snapshotted is named {', '.join(missing)}"
        if not found:
            _tell_of_nothing(database, action, missing)
        said.append(what)
    if action.surrogate_key and action.kind == "blocking":
        said.append("surrogate-key applies to incremental snapshots only")
    if not found:
        return IGNORED, "; ".join(said)
    said.extend(dict.fromkeys(one.refused for one in action.conditions if one.refused))
    names = ", ".join(".".join(name) for name in found)
    what = f"{'an' if action.kind == 'incremental' else 'a'} {action.kind} snapshot of {names}"
    return REQUESTED, "; ".join([what, *said])


def _tell_of_nothing(database: Database, action: ExecuteSnapshot, missing: Sequence[str]) -> None:
    """Notify of a request whose names match no table: an incremental snapshot treats each as a table without schema."""
    if action.kind == "blocking":
        notifier = Notifier(database, action.signal_id, aggregate=INITIAL)
        notifier.add("SKIPPED")
        notifier.flush()
        return
    notifier, names = Notifier(database, action.signal_id, aggregate=INCREMENTAL), ",".join(missing)
    is_alone = not load(database).state.is_running
    if is_alone:
        notifier.add("STARTED", data_collections=names)
    for name in missing:
        notifier.add(
            "TABLE_SCAN_COMPLETED",
            data_collections=names,
            scanned_collection=name,
            total_rows_scanned="0",
            status="UNKNOWN_SCHEMA",
        )
    if is_alone:
        notifier.add("COMPLETED")
    notifier.flush()


def _acknowledge(
    database: Database,
    signal_id: str,
    collections: Collection[str],
    tables: list[TableName],
    every: Collection[TableName],
) -> tuple[str, str]:
    """Acknowledge before the signal is recorded, since acknowledging again changes nothing."""
    wanted = None
    if collections:
        found, missing = expand_collections(collections, tables, every)
        if missing:
            return IGNORED, f"no captured table is named {', '.join(missing)}"
        wanted = {TableId(*name).text for name in found}
    done = database.acknowledge_gaps(wanted, by=f"signal {signal_id}")
    return DONE, f"{len(done)} gaps acknowledged"
