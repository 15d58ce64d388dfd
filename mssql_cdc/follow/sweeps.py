"""The sweep after a repeated snapshot (rule C19): deletes and records the rows that the snapshot no longer found.

Once the current table has passed the snapshot's cut, its rows with `_pos` below `(epoch, L0, MAX, number)` were neither
read nor changed since: they no longer exist at the source. Each gets a synthetic `d` in the change log, flagged
`sweep:<number>`, which the next MERGE applies like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar

from mssql_cdc.capture.current_tables import behind_cut, lacks_rows, mergeable_batch, waits_for_cut
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import SNAPSHOT, LakeTable
from mssql_cdc.errors import FencedError, MssqlCdcError
from mssql_cdc.follow.current import merge_table
from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.lake.files import DataFile
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.log import TableState, backwards, commit, facts_of, load_state
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import IncrementalEnded, SnapshotEnded, Swept, rows_swept
from mssql_cdc.lake.sweep import Sweep, may_hold_stale, stale_files, stamped
from mssql_cdc.lake.table_log import load_log
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId, TableSchema

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Due:
    """A pending sweep: deletes the rows below the bound of snapshot `number`; `batch` has that snapshot's last rows."""

    table: TableId
    number: int
    low: Lsn
    epoch: int
    at: datetime
    batch: int = field(default=0, compare=False)

    @property
    def mark(self) -> str:
        """The flag of the sweep's rows and its commit."""
        return f"sweep:{self.number}"

    @property
    def bound(self) -> tuple[int, Lsn, int]:
        """The bound below which rows are deleted."""
        return self.epoch, self.low, self.number


@dataclass(frozen=True, slots=True)
class Sweeps:
    """The offsets after the sweeps, and the tables whose sweep failed and will be repeated."""

    offsets: Offsets
    errors: Mapping[TableId, MssqlCdcError]


@dataclass(frozen=True, slots=True)
class Found:
    """The deletes of a sweep: in files, for rows of structure `version`, and not yet part of the change log.

    `files` is None if the current table did not have the rows that the snapshot read, so that nothing can be concluded.
    """

    due: Due
    version: int
    files: Sequence[DataFile] | None


@dataclass(frozen=True, slots=True)
class Applied:
    """A sweep whose deletes are in the current table."""

    due: Due


def sweep_due(
    database: Database,
    tables: Mapping[TableId, LakeTable],
    offsets: Offsets,
    history: SchemaHistory,
    *,
    slow: SlowWork | None = None,
) -> Sweeps:
    """Run the due sweeps, and merge the deletes that they wrote.

    A sweep takes three steps, each of which a later run repeats or continues: find the rows, commit their deletes, and
    apply these to the current table. The commit belongs to the thread that reads the ranges, since elsewhere it would
    make a range of the same table fail; `slow` does the other two.

    Args:
        database: The database.
        tables: The captured tables.
        offsets: How far each of them has come.
        history: The structures of their rows.
        slow: Does the slow steps; by default, this call waits for them.
    """
    errors: dict[TableId, MssqlCdcError] = {}
    work = _Work(database, history, slow)
    if slow is not None:
        work.found, failed = slow.take(Found)
        work.applied, more = slow.take(Applied)
        errors |= failed | more
        for table in errors:
            slow.rest(table)
    identities = {table: lake.captured.object_id for table, lake in tables.items()}
    for due in due_sweeps(identities, offsets):
        table = due.table
        if slow is not None and (table in slow.tables or slow.waits(table, Found) or slow.rests(table)):
            continue
        try:
            offsets = work.advance(tables[due.table], due, offsets)
        except FencedError:
            continue  # Another run has written to the table: the next step begins from there.
        except MssqlCdcError as error:
            errors[due.table] = error
            if slow is not None:
                slow.rest(due.table)
    return Sweeps(offsets, errors)


@dataclass
class _Work:
    """Takes sweeps as far as possible now. `found` and `applied` are the results of the slow steps."""

    database: Database
    history: SchemaHistory
    slow: SlowWork | None
    found: Mapping[TableId, Found] = field(default_factory=dict[TableId, Found])
    applied: Mapping[TableId, Applied] = field(default_factory=dict[TableId, Applied])

    def advance(self, table: LakeTable, due: Due, offsets: Offsets) -> Offsets:
        """Take one sweep further, and return the offsets afterwards."""
        database, schema = self.database, self.history.newest(due.table)
        state = load_state(table.home.changes, owner=table.home.app_id, writer=SNAPSHOT, storage=database.storage)
        if state is None or schema is None or not schema.key_columns:
            return offsets
        entry = offsets.entry(due.table.text)
        if entry is None or not self.history.is_filled(schema, entry.filled):
            return offsets  # The key's definition has changed since: the next snapshot replaces the table.
        batch = _committed(state, due)
        if batch is None:
            if behind_cut(database, [table], offsets, self.history):
                return offsets  # Rows that the snapshot read are not merged yet, so they would look deleted.
            found = self.found.get(due.table)
            if found is None or (found.due, found.version) != (due, schema.version):
                up_to = mergeable_batch(due.table, offsets, entry)
                found = self._long(due, Found, partial(_find, database, table, schema, state, due, up_to))
            if found is None:
                return offsets
            if found.files is None:
                # The table was restored or removed after it was found to have all rows: let the next check see that.
                database.caught_up.forget(table.home.current)
                return offsets
            state = self._commit(state, due, found.files)
            batch = state.own_batch
        # Perhaps committed by a run that ended before it could continue.
        if waits_for_cut(state, mergeable_batch(due.table, offsets, entry), batch):
            return offsets
        applied = self.applied.get(due.table)
        if applied is None or applied.due != due:
            # The deletes belong to no range, so no cut would include them.
            applied = self._long(due, Applied, partial(_apply, database, table, self.history, batch, due))
        return offsets if applied is None else _note(database, offsets, due, table.captured.object_id)

    def _long(self, due: Due, kind: type[T], action: Callable[[], T]) -> T | None:
        """The result of slow work; None if it has only begun."""
        if self.slow is None:
            return action()
        self.slow.begin(due.table, kind, action, writes=kind is Applied)
        return None

    def _commit(self, state: TableState, due: Due, files: Sequence[DataFile]) -> TableState:
        database = self.database
        facts = {"kind": "sweep", "sweep": due.mark, "epoch": due.epoch, "run_id": database.run_id}
        after = commit(state, stamped(files, state), facts, spark=database.spark)
        count = sum(file.rows for file in files)
        if count:
            database.log(f"{due.table}: {count} rows from before the snapshot no longer exist at the source")
        return after


def _committed(state: TableState, due: Due) -> int | None:
    """The `_batch` of the commit that has the deletes; None: they are not committed.

    The newest commit besides the stream's may be a later one: that of a repair, or of a snapshot that was given up.
    """
    if (state.own or {}).get("sweep") == due.mark:
        return state.own_batch
    if state.own_batch <= due.batch:
        return None
    for entry in backwards(state):
        facts = facts_of(entry) or {}
        if facts.get("sweep") == due.mark and "batch" in facts:
            return facts["batch"]
        if facts.get("batch", due.batch + 1) <= due.batch:
            break
    return None


def _find(
    database: Database, table: LakeTable, schema: TableSchema, state: TableState, due: Due, up_to: int | None
) -> Found:
    """Look for the rows to sweep in a version of the current table that has all rows up to this `_batch`.

    The table is checked again, since a user may have restored or removed it a moment ago: rows that the snapshot read
    would then look deleted.
    """
    sweep = Sweep(due.number, due.epoch, due.low, due.at)
    log = load_log(table.home.current, database.storage)
    # With separate logs, since the capturing thread modifies the others.
    if log is None or up_to is None or lacks_rows(database.apart(), table, log, schema, up_to):
        return Found(due, schema.version, None)
    if not may_hold_stale(log, sweep):
        return Found(due, schema.version, ())  # Without a Spark session, which takes seconds to start.
    files = stale_files(database.spark(), table.home, schema, state, sweep, version=log.version)
    return Found(due, schema.version, files)


def _apply(database: Database, table: LakeTable, history: SchemaHistory, up_to: int, due: Due) -> Applied:
    # With separate logs, since the capturing thread modifies the others.
    merge_table(database.apart(), table, history, up_to)
    return Applied(due)


def due_sweeps(identities: Mapping[TableId, int], offsets: Offsets) -> Iterator[Due]:
    """Yield the pending sweep of each open table: of several, the one with the highest bound, which covers the others.

    A table is identified by its object id: it may have been renamed, or have swapped names with another one, since its
    snapshot ended (B15). It is swept under its new name once a row of `_offsets` uses that name.

    Args:
        identities: The captured tables with their object ids.
        offsets: How far each of them has come.
    """
    names = {object_id: table for table, object_id in identities.items()}
    newest: dict[TableId, Due] = {}
    unmerged: dict[TableId, int] = {}
    for row in offsets.noted:
        facts = row.facts
        if not isinstance(facts, SnapshotEnded | IncrementalEnded | Swept):
            continue
        identity = row.tables[facts.table].object_id if isinstance(facts, SnapshotEnded) else facts.object_id
        table = names.get(identity) if identity is not None else None
        if table is None:
            continue
        if isinstance(facts, Swept):
            if table in newest and newest[table].number == facts.number:
                del newest[table]
        elif facts.sweep is not None:
            own = facts.batch if isinstance(facts, IncrementalEnded) else row.tables[facts.table].batch or 0
            due = Due(table, facts.sweep.number, Lsn.parse(facts.sweep.low), row.epoch, row.at, own)
            # An incremental snapshot that began before the one of the pending sweep has the lower bound.
            newest[table] = max(due, newest.get(table, due), key=lambda one: one.bound)
            batch = facts.batch if isinstance(facts, IncrementalEnded) else 0
            unmerged[table] = max(batch, unmerged.get(table, 0))
    cut = offsets.last_cut()
    for table, due in newest.items():
        entry = offsets.entry(table.text)
        if due.epoch != offsets.epoch or entry is None or entry.object_id != identities[table]:
            continue  # From an earlier epoch: the table is read again, and that snapshot has its own sweep (A7).
        in_cut = (
            cut is not None and (offsets.batch_at(table.text, cut.number, folder=entry.folder) or 0) >= unmerged[table]
        )
        if in_cut and offsets.closed_until(table.text, entry) is None and entry.status == "streaming":
            yield due


def _note(database: Database, offsets: Offsets, due: Due, object_id: int) -> Offsets:
    """Record that the sweep is done, so that the table's log is not searched for it again."""
    stamp = database.stamp(offsets.epoch)
    row = rows_swept(stamp, table=due.table.text, object_id=object_id, number=due.number)
    return append_offsets(database.layout, row, seen=offsets, storage=database.storage)
