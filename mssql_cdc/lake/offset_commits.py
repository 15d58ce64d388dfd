"""Loads `_offsets` of a database, and appends rows to it under the fence (rules A3, A5).

`lake/offsets.py` defines what the rows mean.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from mssql_cdc.errors import FencedError
from mssql_cdc.lake.cuts import cut_of
from mssql_cdc.lake.kept_digest import KEEP_EVERY, load_digest
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_history import Stored
from mssql_cdc.lake.offset_rows import OFFSETS_SCHEMA, encode
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import exists
from mssql_cdc.lake.small_tables import ReadAt, SmallTable, retry_overtaken
from mssql_cdc.lake.steps import Entry, OffsetRow
from mssql_cdc.lake.storage import LOCAL, Storage

COMPACT_ROWS = 50
"""`_offsets` is compacted after this many rows (`follow/upkeep.py`)."""


def offsets_table(layout: Layout, storage: Storage = LOCAL) -> SmallTable:
    """The `_offsets` table of a database."""
    return SmallTable(layout.own("offsets"), layout.own_app_id("offsets"), OFFSETS_SCHEMA, storage)


def load_offsets(layout: Layout, storage: Storage = LOCAL, *, known: KnownTables | None = None) -> Offsets:
    """Load all of `_offsets`, without creating anything.

    Args:
        layout: The database's folders.
        storage: The options of the object store.
        known: The offsets as last seen.

    Raises:
        StorageError: Rows that were written are missing (A5).
    """
    table = offsets_table(layout, storage)
    if known is None:
        return _from_digest(table).newer(table)
    return known.get(table.uri, lambda: (known.last(table.uri, Offsets) or _from_digest(table)).newer(table), storage)


@retry_overtaken
def append_offsets(
    layout: Layout,
    row: OffsetRow,
    *,
    seen: Offsets,
    members: Mapping[str, int | None] | None = None,
    new: Collection[str] = (),
    storage: Storage = LOCAL,
    known: KnownTables | None = None,
) -> Offsets:
    """Append one row and return the new offsets.

    A failed append re-reads and tries the next number, unless a row since `seen` has an entry for one of the row's own
    tables, under any name: then another run is processing these tables. With `members`, this function decides whether
    the row is a complete cut, from the entries in the state to which the row is appended.

    Args:
        layout: The database's folders.
        row: The row to append.
        seen: The offsets on which the row is based.
        members: The captured tables with their object ids, if the row may be a complete cut: since a table's newest
            entry, another table may have had its name.
        new: The members that have to start from scratch: as long as their entries are unchanged, these belong to an
            earlier table or epoch.
        storage: The options of the object store.
        known: Remembers the new offsets.

    Raises:
        FencedError: another run has written an entry for one of the row's own tables, or has begun a new epoch, or
            appends never succeeded.
    """
    table = offsets_table(layout, storage)
    state = (known.state(table.uri) if known is not None else None) or table.state()
    now = seen if seen.number == state.batch else seen.newer(table)
    _check_own(row, seen, now, table.uri)
    if members:
        begun = [name for name in members if name not in new or now.entry(name) != seen.entry(name)]
        found = {name: row.tables.get(name) or _entry_of(now, name, members[name]) for name in begun}
        complete, failed = cut_of({n: entry for n, entry in found.items() if entry}, begun, row.tables.keys())
        row = replace(row, complete=complete, failed=failed)
    version, number = state.delta_version, state.batch + 1
    encoded = encode(row)
    committed = table.append_columns(state, encoded, {"kind": row.kind, "to": row.to, "run_id": row.run_id})
    is_next = committed.delta_version == version + 1 and committed.own is not None
    at = ReadAt(committed.table_id, version + 1, committed.own["mark"]) if is_next and committed.own else None
    after = now.with_row(row, number, encoded=encoded, at=at)
    if at is not None and number % KEEP_EVERY == 0:
        after.keep(table, at)
    if known is not None and is_next:
        known.keep(table.uri, committed.delta_version, after, storage, state=committed)
    return after


def _from_digest(table: SmallTable) -> Offsets:
    """The rows up to the one at which their digest was last kept; none if no digest was kept."""
    found = load_digest(table.uri, table.storage) if exists(table.uri, table.storage) else None
    return Offsets() if found is None else Offsets(found[0], Stored(table, found[1]))


def _entry_of(offsets: Offsets, name: str, object_id: int | None) -> Entry | None:
    return offsets.entry(name) if object_id is None else offsets.entry_of(name, object_id)


def _check_own(row: OffsetRow, seen: Offsets, now: Offsets, uri: str) -> None:
    if now is seen:
        return
    if now.epoch > seen.epoch:
        raise FencedError(f"Epoch {now.epoch} has begun in {uri} since this run began in epoch {seen.epoch}")
    own = ((name, entry.object_id) for name, entry in row.tables.items())
    changed = [name for name, number in own if seen.places(name, number) != now.places(name, number)]
    if changed:
        raise FencedError(f"Another run has written offsets of {sorted(changed)} in {uri} since this run began")
