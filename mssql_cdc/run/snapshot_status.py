"""What `mssql-cdc status` shows about snapshots and waiting signals, from the lake alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.state import State
from mssql_cdc.capture.incremental.store import load
from mssql_cdc.capture.requests import id_of, open_requests
from mssql_cdc.capture.snapshot_controls import heard_until, load_controls
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    """The snapshots of a database, and the ids of signals that have not taken effect.

    Attributes:
        state: The tables that are being read or wait, and whether they are paused.
        signals: The ids, oldest first.
        is_open: Whether chunks may be read at this hour.
        paused: The tables (`TableId.text`) whose initial or blocking snapshot is paused.
    """

    state: State = field(default_factory=State)
    signals: tuple[str, ...] = ()
    is_open: bool = True
    paused: frozenset[str] = frozenset()

    def of(self, table: TableId) -> str | None:
        """What an incremental snapshot is doing with a table; None: it does not include the table.

        Args:
            table: The table.
        """
        reading = self.state.reading
        if reading is not None and reading.wanted.table == table:
            staged = sum(group.rows for group in reading.staged)
            return f"incremental snapshot: {reading.rows:,} rows emitted, {staged:,} wait for capture{self._held}"
        return f"incremental snapshot: waits for its turn{self._held}" if table in self.state.tables else None

    @property
    def _held(self) -> str:
        if self.state.paused:
            return " (paused)"
        return "" if self.is_open else " (not at this hour)"


def snapshot_status(database: Database, offsets: Offsets) -> SnapshotStatus:
    """Return the status of a database's incremental snapshots and signals.

    Args:
        database: The database.
        offsets: Its offsets.
    """
    stored = load(database)
    blocking = [id_of(one.signal_id) for one in open_requests(database, offsets)]
    controls, begun = load_controls(database), offsets.begun_snapshots
    paused = frozenset(table for table, key in begun.items() if controls.paused(heard_until(offsets, key)))
    signals = (*blocking, *(one.signal_id for one in stored.commands))
    return SnapshotStatus(stored.state, signals, stored.open, paused)
