"""Keeps the state of incremental snapshots in the lake (`_incremental_snapshots`), and finds signals that wait for it.

A row is the whole state after a step, sealed if there is a secret, since its bounds are key values; the newest one
counts. A step that begins from an older one is fenced, so only one of two runs reads and emits a chunk.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.state import State, Wanted, state_of_text, state_text
from mssql_cdc.capture.requests import REQUESTED
from mssql_cdc.capture.sealing import Seal
from mssql_cdc.config.signals import (
    ExecuteSnapshot,
    PauseSnapshot,
    ResumeSnapshot,
    StopSnapshot,
    parse_signal,
)
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import BatchSlice, exists, scan
from mssql_cdc.lake.small_tables import SmallTable, small_table
from mssql_cdc.schema import TableId

Command = ExecuteSnapshot | StopSnapshot | PauseSnapshot | ResumeSnapshot
_COMPACT_EVERY = 50
_NUMBERED = re.compile(r"incremental-\d+")
"""The id under which a snapshot got its number (`capture/snapshot/begin.take_number`)."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The newest state, and the signals that have not changed it yet, oldest first.

    `open` says whether this is one of the hours in which chunks may be read; `lost`, that there were states but are
    none now; `failed` are the remaining tables, if each of them was given up: they wait until they stream again.
    """

    state: State = field(default_factory=State)
    commands: Sequence[Command] = ()
    signals: int = 0
    open: bool = True
    lost: bool = False
    failed: Sequence[TableId] = ()

    @property
    def is_due(self) -> bool:
        """Whether there is something to do."""
        reads = (self.state.is_due if self.open else self.state.has_staged) and not self.failed
        return bool(self.lost or self.commands or self.state.notes) or reads


def load(database: Database, *, now: datetime | None = None) -> Stored:
    """Load the state and the signals that wait.

    Args:
        database: The database.
        now: The time; by default the current one.
    """
    known = _known_state(database)
    state = known or State()
    table = small_table(database.layout, "signals", database.storage)
    rows = database.tables.get(table.uri, table.rows, database.storage)
    waiting = [row for row in rows if row["_batch"] > state.taken and row["status"] == REQUESTED]
    newest = max((row["_batch"] for row in waiting), default=state.taken)
    is_open = database.connector.snapshot.incremental.is_open(now or datetime.now(UTC))
    if known is None and waiting and _had_states(database):
        return Stored(replace(state, taken=newest), signals=newest, open=is_open, lost=True)
    parsed = (parse_signal(row["id"], row["type"], row["data"]) for row in waiting)
    commands = [one for one in parsed if isinstance(one, Command) and _is_incremental(one)]
    return Stored(state, commands, newest, is_open, failed=_failed(database, state))


def has_failed(offsets: Offsets, one: Wanted) -> bool:
    """Whether a table was given up, and does not stream yet, although a run may be retrying it.

    Args:
        offsets: All offsets.
        one: The table.
    """
    known = one.object_id if one.epoch == offsets.epoch else None
    entry = offsets.entry(one.table.text) if known is None else offsets.entry_of(one.table.text, known)
    return entry is not None and entry.status == "failed" and entry.epoch == offsets.epoch


class Store:
    """The table of the states, as one step writes it: each state is based on the previous one.

    `is_new` says whether it had no state when it was opened.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = small_table(database.layout, "incremental_snapshots", database.storage)
        self._log: TableState = self._table.state()
        if self._log.batch % _COMPACT_EVERY == _COMPACT_EVERY - 1:
            self._table.compact()
            self._log = self._table.state()
        self._seal = Seal(database.connector.delta.key_secret)
        found = _newest(self._table, self._log.batch, self._seal)
        self.state, self.is_new = found or State(), found is None

    def save(self, state: State) -> None:
        """Append a state.

        Raises:
            OvertakenError: Another run has appended one since the last one of this run.
        """
        row = {"state": self._seal.closed(state_text(state)), "at": datetime.now(UTC)}
        facts = {"kind": "incremental", "run_id": self._database.run_id}
        self._log = self._table.append(self._log, [row], facts)
        self.state = state


def taken(state: State, stored: Stored) -> State:
    """The state, updated to record that the signals took effect."""
    return replace(state, taken=stored.signals)


def _failed(database: Database, state: State) -> Sequence[TableId]:
    """The remaining tables, if each of them was given up."""
    offsets = database.offsets() if state.is_running else None
    return state.tables if offsets is not None and all(has_failed(offsets, one) for one in state.wanted) else ()


def _known_state(database: Database) -> State | None:
    table = small_table(database.layout, "incremental_snapshots", database.storage)
    seal = Seal(database.connector.delta.key_secret)
    return database.tables.get(table.uri, lambda: _existing(table, seal), database.storage)


def _existing(table: SmallTable, seal: Seal) -> State | None:
    return _newest(table, table.state().batch, seal) if exists(table.uri, table.storage) else None


def _newest(table: SmallTable, batch: int, seal: Seal) -> State | None:
    """The state of the newest commit; the others, thousands for a large table, are not read. None: there is none."""
    newest = BatchSlice(batch - 1, batch)
    for rows in scan(table.uri, batches=newest, columns=["state"], storage=table.storage):
        return state_of_text(seal.opened(rows.column("state")[0].as_py()))
    return None


def _had_states(database: Database) -> bool:
    """Whether there have been states: commits of a table that was restored, or snapshots that were given numbers.

    RESTORE removes rows but keeps the number of the newest commit.
    """
    own = small_table(database.layout, "incremental_snapshots", database.storage)
    if exists(own.uri, own.storage) and own.state().batch:
        return True
    plans = small_table(database.layout, "snapshots", database.storage)
    rows = database.tables.get(plans.uri, plans.rows, database.storage)
    return any(_NUMBERED.fullmatch(row["id"]) for row in rows)


def _is_incremental(command: Command) -> bool:
    return not isinstance(command, ExecuteSnapshot) or command.kind == "incremental"
