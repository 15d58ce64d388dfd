"""Signals that start, stop, pause and resume incremental snapshots take effect in order, each once (INC-12 to 14).

`signals.py` has recorded them; the state of the snapshots says which of them have changed it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from mssql_cdc.capture.incremental.state import State, Wanted
from mssql_cdc.capture.incremental.store import Command, Stored, taken
from mssql_cdc.capture.requests import IGNORED
from mssql_cdc.config.signals import ExecuteSnapshot, PauseSnapshot, ResumeSnapshot, StopSnapshot, expand_collections
from mssql_cdc.follow.incremental_step import Step
from mssql_cdc.schema import TableId

_TYPES: Mapping[type[Command], str] = {
    ExecuteSnapshot: "execute-snapshot",
    StopSnapshot: "stop-snapshot",
    PauseSnapshot: "pause-snapshot",
    ResumeSnapshot: "resume-snapshot",
}


def obey(step: Step, stored: Stored) -> None:
    """Let signals take effect; the state behind them is saved once.

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


def _obey(step: Step, state: State, command: Command) -> State:
    match command:
        case ExecuteSnapshot():
            after = state.asked(wanted(command, _names(step)))
            if after == state:
                _refused(step, command, "the same incremental snapshot waits already")
                return state
            step.notes.told(after, command.signal_id, "STARTED")
        case StopSnapshot(collections=names):
            chosen = None if not names else _chosen(step, names)
            after = state.stopped(chosen)
            if after != state:
                step.notes.aborted(state, command.signal_id, chosen)
        case PauseSnapshot():
            after = replace(state, paused=state.is_running)
            if after != state:
                step.notes.told(state, command.signal_id, "PAUSED")
        case ResumeSnapshot():
            after = replace(state, paused=False)
            if after != state:
                step.notes.told(state, command.signal_id, "RESUMED")
    if after == state:
        _refused(step, command, "no incremental snapshot is concerned")
    return after


def _refused(step: Step, command: Command, reason: str) -> None:
    kind = _TYPES[type(command)]
    step.database.log(f"signal {command.signal_id} ({kind}) is ignored: {reason}")
    step.database.signalled({"id": command.signal_id, "type": kind, "data": None, "status": IGNORED, "result": reason})


def _names(step: Step) -> list[TableId]:
    filters = step.database.connector.filters.tables
    return [table for table in step.seen.tables if not filters.is_signal_table(*table.parts)]


def _chosen(step: Step, collections: Collection[str]) -> list[TableId]:
    by_name = {table.parts: table for table in (*step.seen.tables, *step.store.state.tables)}
    found, _ = expand_collections(collections, sorted(by_name))
    return [by_name[name] for name in found]


def wanted(action: ExecuteSnapshot, tables: Collection[TableId]) -> list[Wanted]:
    """The tables that a signal names, with their conditions, in the order of the signal.

    Args:
        action: The signal.
        tables: The captured tables.
    """
    by_name: Mapping[tuple[str, str, str], TableId] = {table.parts: table for table in tables}
    found, _ = expand_collections(action.collections, sorted(by_name))
    return [_wanted(action, by_name[name]) for name in found]


def _wanted(action: ExecuteSnapshot, table: TableId) -> Wanted:
    chosen = action.filter_for(table.parts)
    return Wanted(
        table=table,
        signal=action.signal_id,
        condition=chosen.text if chosen is not None else None,
        surrogate=action.surrogate_key,
        refused=chosen.refused if chosen is not None else None,
    )
