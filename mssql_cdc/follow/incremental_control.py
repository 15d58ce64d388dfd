"""Applies signals that start, stop, pause and resume incremental snapshots, in order, each once (INC-12 to 14).

`signals.py` has recorded them; the state of the snapshots says which of them were applied to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from mssql_cdc.capture.incremental.state import State, Wanted
from mssql_cdc.capture.incremental.store import Command, Stored, taken
from mssql_cdc.capture.requests import IGNORED, TableName, table_names
from mssql_cdc.config.filters import split_name
from mssql_cdc.config.signals import (
    ExecuteSnapshot,
    Filter,
    PauseSnapshot,
    ResumeSnapshot,
    StopSnapshot,
    expand_collections,
)
from mssql_cdc.follow.incremental_step import Step, unseen
from mssql_cdc.lake.steps import SnapshotEnded
from mssql_cdc.schema import TableId

_TYPES: Mapping[type[Command], str] = {
    ExecuteSnapshot: "execute-snapshot",
    StopSnapshot: "stop-snapshot",
    PauseSnapshot: "pause-snapshot",
    ResumeSnapshot: "resume-snapshot",
}


def obey(step: Step, stored: Stored) -> None:
    """Apply signals; the state after them is saved once.

    Args:
        step: The step that does so.
        stored: The state before, and the signals.
    """
    state = step.store.state
    if state.taken != stored.state.taken:
        return  # Another run has obeyed some of them.
    for command in stored.commands:
        state = _obey(step, state, command)
    step.save(taken(state, stored))


def begin_anew(step: Step, stored: Stored) -> None:
    """Begin after the newest signal: what was known of the snapshots is gone, including which signals took effect.

    Args:
        step: The step that does so.
        stored: The state before the first one.
    """
    if not step.store.is_new:
        return  # Another run has begun.
    step.database.log(
        "what was known of incremental snapshots is gone: _incremental_snapshots was removed, or RESTORE took it back; "
        "signals until now do not take effect again; send what is still wanted once more"
    )
    step.save(taken(step.store.state, stored))


def _obey(step: Step, state: State, command: Command) -> State:
    match command:
        case ExecuteSnapshot():
            every = table_names(step.seen.history)
            tables = [_identified(step, one) for one in wanted(command, _names(step), every)]
            after = state.asked(tables)
            if after == state:
                nothing = f"none of its tables is captured ({', '.join(command.collections)})"
                _refused(step, command, "the same incremental snapshot waits already" if tables else nothing)
                return state
            if not state.is_running:
                step.notes.told(after, "STARTED")
        case StopSnapshot(kind="blocking"):
            after = state
        case StopSnapshot(collections=names):
            removed = _removed(state, names, table_names(step.seen.history))
            after = state.stopped(removed)
            if after != state:
                step.notes.aborted(state, removed)
        case PauseSnapshot():
            after = replace(state, paused=state.is_running)
            if after != state:
                step.notes.told(state, "PAUSED")
        case ResumeSnapshot():
            after = replace(state, paused=False)
            if after != state:
                step.notes.told(state, "RESUMED")
    if after == state and not _concerns_blocking(step, command):
        _refused(step, command, "no snapshot is concerned")
    return after


def _identified(step: Step, one: Wanted) -> Wanted:
    """The same with the table's identity, by which it is found if it is renamed before its turn."""
    known = step.seen.tables.get(one.table)
    return one if known is None else replace(one, object_id=known.captured.object_id, epoch=step.offsets.epoch)


def _concerns_blocking(step: Step, command: Command) -> bool:
    """Whether a blocking snapshot that has begun or is requested may obey the signal (`capture/snapshot_controls`)."""
    ended = (row.facts for row in step.offsets.noted if isinstance(row.facts, SnapshotEnded))
    stopped = any(one.stopped == command.signal_id for one in ended)
    return stopped or bool(step.offsets.begun_snapshots or step.seen.requests)


def _refused(step: Step, command: Command, reason: str) -> None:
    kind = _TYPES[type(command)]
    step.database.log(f"signal {command.signal_id} ({kind}) is ignored: {reason}")
    step.database.signalled({"id": command.signal_id, "type": kind, "data": None, "status": IGNORED, "result": reason})


def _names(step: Step) -> list[TableId]:
    """The tables that can be snapshotted, including those that have to wait because they cannot be captured now."""
    filters, absent = step.database.connector.filters.tables, (one.table for one in step.seen.facts.absent)
    away = [table for table in absent if table not in step.seen.tables and unseen(step.seen, table) is not None]
    return [table for table in (*step.seen.tables, *away) if not filters.is_signal_table(*table.parts)]


def _removed(state: State, collections: Collection[str], every: Collection[TableName]) -> list[TableId]:
    """The tables of the snapshot that a stop signal names (none: all), in Debezium's order: the current one is last."""
    by_name = {table.parts: table for table in state.tables}
    found, _ = expand_collections(collections or [".*"], sorted(by_name), every)
    current = state.reading.wanted.table if state.reading is not None else None
    return sorted((by_name[name] for name in found), key=lambda table: table == current)


def wanted(action: ExecuteSnapshot, tables: Collection[TableId], every: Collection[TableName] = ()) -> list[Wanted]:
    """The tables that a signal names, with their conditions, in the order of the signal.

    A name without a table counts as one, too, if any other name has a table: it is reported in its turn (INC-03).

    Args:
        action: The signal.
        tables: The captured tables.
        every: The names of all tables that the lake knows.
    """
    by_name: Mapping[TableName, TableId] = {table.parts: table for table in tables}
    found: dict[TableId, None] = {}
    for one in action.collections:
        names, _ = expand_collections([one], sorted(by_name), every)
        unknown = _unknown(one) if not names else None
        found |= dict.fromkeys(by_name[name] for name in names) | ({} if unknown is None else {unknown: None})
    if found.keys().isdisjoint(tables):
        return []
    filters = action.filters_for([table.parts for table in found], (*by_name, *every))
    return [_wanted(action, table, filters.get(table.parts)) for table in found]


def _wanted(action: ExecuteSnapshot, table: TableId, chosen: Filter | None) -> Wanted:
    return Wanted(
        table=table,
        signal=action.signal_id,
        condition=chosen.text if chosen is not None else None,
        surrogate=action.surrogate_key,
        refused=chosen.refused if chosen is not None else None,
    )


def _unknown(name: str) -> TableId | None:
    """The table meant by a name that matches none; None if it cannot be a name, as in Debezium."""
    match split_name(name):
        case (catalog, schema, table) if catalog and schema and table:
            return TableId(catalog, schema, table)
        case (schema, table) if schema and table:
            return TableId(None, schema, table)
        case _:
            return None
