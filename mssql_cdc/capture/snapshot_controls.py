"""Signals that control blocking and initial snapshots: pause, resume, stop (beyond Debezium).

They are rows of `_signals`, and which of them concern a snapshot follows from where `_signals` ended when the snapshot
began. So nothing else is stored: a run that dies changes nothing, and a signal is applied by whatever run comes next.
`capture/incremental` does the same for incremental snapshots.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import REQUESTED, TableName, table_names
from mssql_cdc.config.signals import PauseSnapshot, ResumeSnapshot, StopSnapshot, expand_collections, parse_signal
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import SnapshotBegun
from mssql_cdc.schema import TableId

_TYPES = frozenset({"pause-snapshot", "resume-snapshot", "stop-snapshot"})
Command = PauseSnapshot | ResumeSnapshot | StopSnapshot


@dataclass(frozen=True, slots=True)
class Controls:
    """The control signals by their rows in `_signals`, oldest first.

    `newest` is the newest row of all signals, `names` are those of all tables that the lake knows.
    """

    found: tuple[tuple[int, Command], ...] = ()
    newest: int = 0
    names: tuple[TableName, ...] = ()

    def paused(self, since: int | None) -> bool:
        """Whether a snapshot is paused.

        Args:
            since: Where `_signals` ended when it was requested, or began; None: no signal concerns it.
        """
        turns = [one for one in self._since(since) if not isinstance(one, StopSnapshot)]
        return bool(turns) and isinstance(turns[-1], PauseSnapshot)

    def stopped(self, tables: Collection[TableId], since: int | None) -> Mapping[TableId, str]:
        """Return which of these tables of a snapshot are to be given up, each with the id of the signal.

        Args:
            tables: The tables.
            since: Where `_signals` ended when it was requested, or began; None: no signal concerns it.
        """
        by_name = {table.parts: table for table in tables}
        found: dict[TableId, str] = {}
        for one in self._since(since):
            if isinstance(one, StopSnapshot):
                names, _ = expand_collections(one.collections or [".*"], sorted(by_name), self.names)
                for name in names:
                    found.setdefault(by_name[name], one.signal_id)
        return found

    def _since(self, since: int | None) -> list[Command]:
        return [] if since is None else [command for batch, command in self.found if batch > since]


def load_controls(database: Database) -> Controls:
    """Load the control signals of a database.

    Args:
        database: The database.
    """
    table = small_table(database.layout, "signals", database.storage)
    rows = database.tables.get(table.uri, table.rows, database.storage)
    wanted = [row for row in rows if row["type"] in _TYPES and row["status"] == REQUESTED]
    parsed = ((row["_batch"], parse_signal(row["id"], row["type"], row["data"])) for row in wanted)
    found = sorted(((batch, one) for batch, one in parsed if isinstance(one, Command)), key=lambda one: one[0])
    names = table_names(database.history()) if found else ()
    return Controls(tuple(found), max((row["_batch"] for row in rows), default=0), names)


def heard_until(offsets: Offsets, snapshot: str) -> int | None:
    """Where `_signals` ended when a snapshot was requested, or began: later signals concern it; None: none does.

    Args:
        offsets: The offsets.
        snapshot: Its partition key.
    """
    for row in offsets.noted:
        if isinstance(row.facts, SnapshotBegun) and row.facts.snapshot == snapshot and row.facts.data:
            return row.facts.signals
    return None


def stoppable(offsets: Offsets, table: TableId) -> bool:
    """Whether a table that is in a snapshot could continue streaming without it: its stream has a position.

    Args:
        offsets: The offsets.
        table: The table.
    """
    entry = offsets.entry(table.text)
    return entry is not None and entry.to is not None


def paused_snapshots(offsets: Offsets, controls: Controls, tables: Collection[TableId]) -> frozenset[str]:
    """The snapshots that must not continue: they are paused, and have no table that is to be given up first.

    Args:
        offsets: The offsets.
        controls: The control signals.
        tables: The captured tables.
    """
    found: set[str] = set()
    for key in {*offsets.begun_snapshots.values()}:
        since = heard_until(offsets, key)
        own = [table for table in tables if offsets.is_in(key, table.text)]
        if controls.paused(since) and not any(stoppable(offsets, one) for one in controls.stopped(own, since)):
            found.add(key)
    return frozenset(found)
