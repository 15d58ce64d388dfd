"""The progress of current tables: which lack rows of the newest complete cut, and which are due for a merge.

This needs neither a JVM nor a source. `follow/current.py` merges them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.errors import StorageError
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.log import TableState, kinds_between
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.progress import applied_batch
from mssql_cdc.lake.read import BatchSlice
from mssql_cdc.lake.steps import Entry
from mssql_cdc.lake.table_log import TableLog
from mssql_cdc.schema import TableId, TableSchema

_BESIDE_RANGES = frozenset({"sweep", "repair"})
"""Commits whose rows belong to no range, so no cut includes them."""


def _looks_behind(database: Database, table: LakeTable, newest: TableSchema, up_to: int) -> bool:
    """`lacks_rows`, unless the table was found to have all of them a moment ago."""
    if database.caught_up.holds(table.home.current, newest, up_to):
        return False
    try:
        log = database.current_logs.newest(table.home.current, database.storage)
        lacks = lacks_rows(database, table, log, newest, up_to)
    except StorageError:
        return True  # Its update reports what is wrong with it: the problem concerns one table.
    if lacks:
        return True
    database.caught_up.keep(table.home.current, newest, up_to)
    return False


def behind_cut(
    database: Database, tables: Iterable[LakeTable], offsets: Offsets, history: SchemaHistory
) -> dict[TableId, int]:
    """Return the tables whose current table has not reached the newest complete cut, and the `_batch` it must reach.

    Tables without a key, with an open snapshot, or not yet in a complete cut are left out. So are those whose key
    definition has changed since their last snapshot was read: they stay as they are until the next snapshot (B15). What
    a repair or a sweep has committed after the cut counts if nothing else waits for the next cut: its run may have died
    before merging it.

    Args:
        database: the database; it knows the current tables' logs.
        tables: the captured tables.
        offsets: all offsets of the database.
        history: the schema history.
    """
    found: dict[TableId, int] = {}
    for table, newest, cut_batch in _mergeable(tables, offsets, history):
        up_to = _with_repairs(database, table, newest, cut_batch)
        if _looks_behind(database, table, newest, up_to):
            found[table.table] = up_to
    return found


def _mergeable(
    tables: Iterable[LakeTable], offsets: Offsets, history: SchemaHistory
) -> Iterator[tuple[LakeTable, TableSchema, int]]:
    """The tables whose current table may be merged, with their newest structure and `mergeable_batch`."""
    for table in tables:
        entry = table.entry_in(offsets) or table.entry
        cut_batch = mergeable_batch(table.table, offsets, entry)
        newest = history.newest(table.table)
        if cut_batch is None or entry is None or newest is None or not history.is_filled(newest, entry.filled):
            continue
        if newest.key_columns:
            yield table, newest, cut_batch


def _with_repairs(database: Database, table: LakeTable, newest: TableSchema, cut_batch: int) -> int:
    """The `_batch` at the cut, or the newest one if only repairs and sweeps have committed rows after it."""
    state = table.state
    if state is None or state.batch <= cut_batch or state.own_batch > cut_batch:
        return cut_batch
    # Reading the log's history costs much more than this check, and is needed only once.
    if database.caught_up.holds(table.home.current, newest, state.batch):
        return cut_batch
    return cut_batch if waits_for_cut(state, cut_batch, state.batch) else state.batch


def waiting_repairs(
    database: Database, tables: Iterable[LakeTable], offsets: Offsets, history: SchemaHistory
) -> list[TableId]:
    """The tables whose current table lacks what a repair has committed.

    Args:
        database: The database; it knows the current tables' logs.
        tables: The captured tables, with the states of their change logs.
        offsets: All offsets of the database.
        history: The schema history.
    """
    found: list[TableId] = []
    for table, newest, _ in _mergeable(tables, offsets, history):
        try:
            log = database.current_logs.newest(table.home.current, database.storage)
        except StorageError:
            continue  # Whoever compares its rows reports what is wrong with it.
        if log is None or table.state is None:
            continue
        if "repair" in kinds_between(table.state, applied_batch(log, newest), table.state.batch):
            found.append(table.table)
    return found


def without_key(tables: Iterable[LakeTable], history: SchemaHistory) -> list[TableId]:
    """The tables that had a key and have none now: their current tables stay as they were."""
    found: list[TableId] = []
    for table in tables:
        versions = history.versions.get(table.table.text, ())
        if versions and not versions[-1].key_columns and any(schema.key_columns for schema in versions):
            found.append(table.table)
    return found


def mergeable_batch(table: TableId, offsets: Offsets, entry: Entry | None) -> int | None:
    """The largest `_batch` of the table that may be merged now, given its newest entry; None: nothing may (C18).

    Args:
        table: The table.
        offsets: The database's offsets.
        entry: Its newest entry, if there is one.
    """
    cut = offsets.last_cut()
    if cut is None or entry is None or entry.status not in {"streaming", "failed"} or entry.epoch < cut.epoch:
        return None  # Rows of an earlier epoch that no cut of it has opened stay out: the table is read again (A7).
    if offsets.closed_until(table.text, entry):
        return None
    return offsets.batch_at(table.text, cut.number, folder=entry.folder)


def waits_for_cut(state: TableState, cut_batch: int | None, up_to: int) -> bool:
    """Whether `up_to` has to wait for another complete cut: rows that were read before it are in no cut yet (A1).

    Those rows would be merged with it. The next complete cut has them, since the table takes part in that cut; rows of
    sweeps and repairs are in no cut at all.

    Args:
        state: The state of the change log.
        cut_batch: The table's `_batch` at the newest complete cut (`mergeable_batch`).
        up_to: The `_batch` of a sweep or a repair.
    """
    return not kinds_between(state, cut_batch or 0, up_to) <= _BESIDE_RANGES


def is_due(database: Database, table: LakeTable) -> bool:
    """Whether `delta.current.interval` has passed since the newest commit of a table that `behind_cut` has found."""
    try:
        log = database.current_logs.seen(table.home.current, database.storage)
    except StorageError:
        return True  # Its update reports what is wrong with it.
    if log is None or log.committed is None:
        return True
    age = (datetime.now(UTC) - log.committed).total_seconds()
    # The clock of the host that wrote it may be ahead of ours: the table would not advance until ours catches up.
    return not 0 <= age < database.connector.delta.current_interval_s


def lacks_rows(database: Database, table: LakeTable, log: TableLog | None, newest: TableSchema, up_to: int) -> bool:
    """Whether a current table is missing, or lacks rows; commits without rows do not count.

    Args:
        database: The database.
        table: The table.
        log: The log of its current table; None: there is no current table.
        newest: The newest structure of its rows.
        up_to: The last `_batch` that the current table must have.
    """
    if log is None:
        return True
    applied = applied_batch(log, newest)
    if applied >= up_to:
        return False
    section = database.current_logs.section(table.home.changes, BatchSlice(applied, up_to), database.storage)
    return section.has_rows()
