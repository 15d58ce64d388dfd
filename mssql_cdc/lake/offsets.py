"""`_offsets`: one sparse row per finished range or snapshot step of a database (rules A1, A3, A4, A8).

It contains the cuts and the positions of idle tables. Positions are opaque texts of the source, compared together with
their epoch. `plan/planner.py` decides what to read next; `lake/offset_rows.py` defines the rows' format.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import FencedError, StorageError
from mssql_cdc.lake.cuts import Closures, closures, cut_of
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.log import newest_batch
from mssql_cdc.lake.offset_entries import Entries
from mssql_cdc.lake.offset_rows import OFFSETS_SCHEMA, Rows, encode, numbered
from mssql_cdc.lake.small_tables import SmallTable, retry_overtaken
from mssql_cdc.lake.steps import Entry, OffsetRow, Reached, SnapshotBegun, SnapshotEnded
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.lsn import Lsn, snapshot_position_text
from mssql_cdc.source.values import LogMark, Witness

_COMPACT_EVERY = 50


class Offsets:
    """All rows of a database as loaded, oldest first.

    They stay in Arrow: a connector adds thousands a day, each with an entry per table, and a tick needs the newest few.
    Their combined meaning is derived once per state, column by column.
    """

    def __init__(self, table: pa.Table | None = None) -> None:
        self._table = OFFSETS_SCHEMA.empty_table() if table is None else table
        self._batches: dict[int, dict[str, int]] = {}

    def __eq__(self, other: object) -> bool:
        return self._table.equals(other._table) if isinstance(other, Offsets) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def rows(self) -> Rows:
        """The rows; decoding all of them is slow once there are thousands."""
        return Rows(self._table)

    @cached_property
    def advanced_at(self) -> datetime | None:
        """When tables last advanced, with or without rows; otherwise, when the first row was written."""
        places = self._places(pc.is_in(self._table.column("kind"), value_set=pa.array(["range", "idle"])))
        if not self._table.num_rows:
            return None
        return self._table.column("at")[places[-1] if places else 0].as_py()

    @property
    def number(self) -> int:
        """The newest row's number; 0 without rows."""
        return self._table.column("_batch")[-1].as_py() if self._table.num_rows else 0

    @cached_property
    def epoch(self) -> int:
        """The current epoch."""
        return pc.max(self._table.column("epoch")).as_py() or 0

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """The newest entry of each table, by `TableId.text`."""
        return {name: Entry(**self._flat.items[place].as_py()) for name, place in self._flat.newest.items()}

    def entry(self, table: str) -> Entry | None:
        """The newest entry of a table (`TableId.text`): its state."""
        return self.entries.get(table)

    def entry_of(self, table: str, object_id: int, *, folder: str | None = None) -> Entry | None:
        """The newest entry of the source table with this identity: names may be taken by another table (B15).

        Under another name only one of this epoch counts: behind a restore, the identity may be another table's.

        Args:
            table: Its name now.
            object_id: Its identity.
            folder: Its folder, where it is known: another table may have had the identity in a history of before.
        """
        named = self.entry(table)
        if named is not None and named.object_id == object_id:
            return named
        found = self._flat.newest_of(object_id)
        if found is None or object_id not in self.identities or folder not in {None, found["folder"]}:
            return None
        return Entry(**found)

    @cached_property
    def identities(self) -> frozenset[int]:
        """The object ids under which tables were read in this epoch."""
        return self._flat.identities(self.epoch)

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder that a table ever had."""
        return frozenset(pc.unique(self._flat.items.field("folder")).drop_null().to_pylist())

    @cached_property
    def largest_batches(self) -> Mapping[str, int]:
        """The largest `_batch` that entries under a name ever had, whichever table it was."""
        return self._flat.largest_batches(len(self.rows))

    def position(self, table: str, own: Reached | None = None) -> Reached | None:
        """Return the start of the table's next range: the larger of its own commit's end and its newest entry's.

        None: the table needs a snapshot or an explicit start, regardless of the database's position (rule A1).
        """
        entry = self.entry(table)
        known = [reached for reached in (own, entry.reached if entry else None) if reached is not None]
        return max(known, default=None)

    def reached(self, table: str) -> set[Reached]:
        """Every position that a row ever gave the table."""
        found = self._flat.of(table).select(["epoch", "to"]).to_pylist()
        return {Reached(one["epoch"], one["to"]) for one in found if one["to"] is not None}

    def cuts(self) -> list[OffsetRow]:
        """The complete cuts, in order."""
        return [self.rows[place] for place in self._places(self._table.column("complete"))]

    def last_cut(self) -> OffsetRow | None:
        """The complete cut with the largest position."""
        return self._last_cut

    @cached_property
    def _last_cut(self) -> OffsetRow | None:
        places = self._places(pc.and_(self._table.column("complete"), pc.is_valid(self._table.column("to"))))
        if not places:
            return None
        columns = self._table.select(["epoch", "to", "_batch"]).take(pa.array(places))
        order = pc.sort_indices(columns, sort_keys=[(name, "ascending") for name in columns.column_names])
        newest: int = order[-1].as_py()
        return self.rows[places[newest]]

    def cut_batch(self, table: str, cut: OffsetRow) -> int | None:
        """The table's newest `_batch` at a cut: rows of larger batches belong to later cuts."""
        if cut.number not in self._batches:
            self._batches[cut.number] = self._flat.largest_batches(self._rows_up_to(cut.number))
        return self._batches[cut.number].get(table)

    def first_cut(self, least: Reached, batches: Mapping[str, int] | None = None) -> OffsetRow | None:
        """The first complete cut that is not before a position and has these batches; None without any.

        Args:
            least: The position.
            batches: A `_batch` by table (`TableId.text`, the newest name).
        """
        columns = [self._table.column(name) for name in ("complete", "epoch", "to")]
        epoch, to = columns[1], columns[2]
        is_later = pc.or_(
            pc.greater(epoch, least.epoch), pc.and_(pc.equal(epoch, least.epoch), pc.greater_equal(to, least.to))
        )
        places = self._places(pc.and_(pc.and_(columns[0], pc.is_valid(to)), is_later))
        numbers: list[int] = self._table.column("_batch").to_numpy()[places].tolist()

        def has(number: int) -> bool:
            return all((self.batch_at(table, number) or 0) >= batch for table, batch in (batches or {}).items())

        found = bisect_left(numbers, x=True, key=has)  # A later cut has what an earlier one has.
        return self.rows[places[found]] if found < len(places) else None

    def batch_at(self, table: str, number: int) -> int | None:
        """The newest `_batch` that a table (`TableId.text`, its newest name) had in the row with a number.

        It is that of its folder, where it is known: it may have had another name then, and another table its name.
        """
        rows, entry = self._rows_up_to(number), self.entry(table)
        return self._flat.largest_batch(rows, table, None if entry is None else entry.folder)

    def _rows_up_to(self, number: int) -> int:
        return int(np.searchsorted(self._table.column("_batch").to_numpy(), number, side="right"))

    def has_cut(self, partition: str) -> bool:
        """Whether a range of this partition key is a complete cut."""
        mine = pc.equal(self._table.column("partition"), partition)
        return bool(pc.any(pc.and_(self._table.column("complete"), mine)).as_py())

    @cached_property
    def partitions(self) -> frozenset[str]:
        """Every partition key that a row names."""
        return frozenset(pc.unique(self._table.column("partition").drop_null()).to_pylist())

    @cached_property
    def snapshot_rows(self) -> tuple[OffsetRow, ...]:
        """The rows of snapshot steps, in order; there are few compared with those of ranges."""
        return self.rows.at(self._places(pc.equal(self._table.column("kind"), "snapshot")))

    @cached_property
    def begun_snapshots(self) -> Mapping[str, str]:
        """Maps each table in a snapshot to the snapshot's partition key."""
        found: dict[str, str] = {}
        wanted = {name for name, entry in self.entries.items() if entry.status == "snapshot"}
        for row in self.snapshot_rows if wanted else ():
            mine = (name for name in wanted & row.tables.keys() if row.tables[name].status == "snapshot")
            found |= dict.fromkeys(mine, row.partition or "")
        return found

    def is_in(self, snapshot: str, table: str) -> bool:
        """Whether this snapshot has begun to read the table, and not ended."""
        return self.begun_snapshots.get(table) == snapshot

    @cached_property
    def begun_marks(self) -> frozenset[LogMark]:
        """The log marks at which the tables that are in a snapshot of this epoch began it (A7)."""
        found: dict[str, LogMark | None] = {}
        for row in self.noted if self.begun_snapshots else ():
            if isinstance(row.facts, SnapshotBegun) and row.epoch == self.epoch:
                found |= dict.fromkeys(row.tables, row.facts.mark)
        return frozenset(mark for name, mark in found.items() if mark is not None and name in self.begun_snapshots)

    @cached_property
    def unwitnessed_marks(self) -> frozenset[LogMark]:
        """The marks of this epoch's snapshots behind which no captured transaction is known (A7).

        A snapshot reads what was never captured, too. Only a witness behind its end would be lost in every restore to
        a moment before it.
        """
        rows = (row for row in self.noted if row.epoch == self.epoch)
        ended = {row.facts.table: row.facts.mark for row in rows if isinstance(row.facts, SnapshotEnded)}
        known = self.witness
        later = (mark for mark in ended.values() if known is None or known.start_lsn < mark.lsn)
        return self.begun_marks.union(later)

    @cached_property
    def noted(self) -> tuple[OffsetRow, ...]:
        """The rows with facts, in order."""
        return self.rows.at(self._places(pc.is_valid(self._table.column("facts"))))

    @cached_property
    def answered_signals(self) -> frozenset[str]:
        """The signals whose snapshots have begun, or needed none."""
        facts = (row.facts for row in self.noted)
        return frozenset(one.signal for one in facts if isinstance(one, SnapshotBegun | SnapshotEnded) and one.signal)

    @property
    def closed_tables(self) -> Mapping[str, LogMark]:
        """Tables whose snapshot has ended and that no complete cut has passed since: the log marks to pass (C18)."""
        return self._closures.by_name

    def closed_until(self, table: str, entry: Entry | None) -> LogMark | None:
        """The log mark that the stream of a table has to pass before its rows may be merged; None: they may.

        Args:
            table: The table (`TableId.text`).
            entry: Its newest entry, perhaps under a former name.
        """
        return self._closures.mark(table, entry)

    @cached_property
    def _closures(self) -> Closures:
        complete = pc.fill_null(self._table.column("complete"), fill_value=False).to_numpy()
        rows = [row for row in self.noted if row.epoch == self.epoch]
        return closures(rows, self._flat, complete, self._table.column("_batch").to_numpy())

    def log_start(self, table: str) -> str:
        """The smallest `_pos` of the change-log rows that add up to a table without a key: those of its last snapshot.

        Such a table is read whole, at one position; earlier changes are part of what was read, and no sweep can name
        the rows that are gone (C21). A snapshot that was stopped has read a part only. Empty: it was never read.
        """
        entry = self.entry(table)
        for row in reversed(self.noted):
            facts = row.facts
            if not isinstance(facts, SnapshotEnded) or facts.stopped is not None:
                continue
            if _is_of(entry, table, row.tables[facts.table], facts.table):
                return snapshot_position_text(row.epoch, Lsn.parse(facts.low), number=facts.number)
        return ""

    @cached_property
    def witness(self) -> Witness | None:
        """The newest witness of the current epoch (rule A7)."""
        mine = pc.equal(self._table.column("epoch"), self.epoch)
        places = self._places(pc.and_(mine, pc.is_valid(self._table.column("witness"))))
        return self.rows[places[-1]].witness if places else None

    @cached_property
    def ends_with_cut(self) -> bool:
        """Whether nothing has happened to any table since the last complete cut."""
        cut = self.last_cut()
        return cut is not None and all(not row.tables for row in self.rows[self._place(cut.number) + 1 :])

    def _place(self, number: int) -> int:
        return int(np.searchsorted(self._table.column("_batch").to_numpy(), number))

    def _places(self, wanted: pa.ChunkedArray) -> list[int]:
        found = pc.fill_null(wanted, fill_value=False).to_numpy()
        return np.flatnonzero(found).tolist()

    @cached_property
    def _flat(self) -> Entries:
        return Entries(self._table.column("tables"))

    def with_row(self, row: OffsetRow, number: int, *, encoded: Mapping[str, Any] | None = None) -> Offsets:
        """Return these rows and another one.

        Args:
            row: The row.
            number: Its number.
            encoded: The row as `encode` returns it.
        """
        after = Offsets(pa.concat_tables([self._table, numbered(encoded or encode(row), number)]))
        # Decoding the rows of hundreds of snapshots takes longer than a step; most rows add nothing to them.
        if row.facts is None and "noted" in self.__dict__:
            after.__dict__["noted"] = self.noted
        if row.kind != "snapshot" and "snapshot_rows" in self.__dict__:
            after.__dict__["snapshot_rows"] = self.snapshot_rows
        if "entries" in self.__dict__:
            after.__dict__["entries"] = {**self.entries, **row.tables}
        return after


def _is_of(entry: Entry | None, table: str, other: Entry, name: str) -> bool:
    """Whether an earlier entry belongs to the same source table, which may have been renamed since (B15)."""
    if entry is None or entry.object_id is None or other.object_id is None:
        return name == table
    return other.object_id == entry.object_id


def offsets_table(layout: Layout, storage: Storage = LOCAL) -> SmallTable:
    """The `_offsets` table of a database."""
    return SmallTable(layout.own("offsets"), layout.own_app_id("offsets"), OFFSETS_SCHEMA, storage)


def load_offsets(layout: Layout, storage: Storage = LOCAL, *, known: KnownTables | None = None) -> Offsets:
    """Load all of `_offsets`; creates nothing.

    Args:
        layout: The database's folders.
        storage: The options of the object store.
        known: The offsets as they were seen last.

    Raises:
        StorageError: Rows that were written are not there (A5).
    """
    table = offsets_table(layout, storage)

    def load() -> Offsets:
        # Before the rows: another run may append meanwhile. RESTORE takes back rows, and keeps the txn.
        written = newest_batch(table.uri, owner=table.owner, storage=storage)
        offsets = Offsets(table.table())
        written = max(written, offsets.number)
        if len(offsets.rows) != written:  # Each commit is one row, and nothing removes any.
            raise StorageError(
                f"{table.uri} has {len(offsets.rows)} of the {written} rows that were written: another program has "
                "restored or changed it, and positions would go back. RESTORE it to the version before that (DESCRIBE "
                f"HISTORY lists them). If nothing has all rows, move {layout.root} away and start again: every table "
                "is then read anew"
            )
        return offsets

    return load() if known is None else known.get(table.uri, load, storage)


@retry_overtaken
def append_offsets(
    layout: Layout,
    row: OffsetRow,
    *,
    seen: Offsets,
    members: Collection[str] = (),
    new: Collection[str] = (),
    storage: Storage = LOCAL,
    known: KnownTables | None = None,
) -> Offsets:
    """Append one row and return the new offsets.

    A failed append re-reads and tries the next number, unless an entry of one of the row's own tables has changed since
    `seen`: then another run is processing these tables. With `members`, this function decides whether the row is a
    complete cut, from the entries of the state to which the row is appended.

    Args:
        layout: The database's folders.
        row: The row to append.
        seen: The offsets on which the row is based.
        members: The captured tables, if the row may be a complete cut.
        new: Those of them that have to begin anew: as long as their entries are what they were, these are of a table,
            or of an epoch, before.
        storage: The options of the object store.
        known: Remembers the new offsets.

    Raises:
        FencedError: another run has written an entry of the row's own tables, or has begun a new epoch, or appends
            never succeeded.
    """
    table = offsets_table(layout, storage)
    state = table.state()
    now = seen if seen.number == state.batch else Offsets(table.table())
    _check_own(row, seen, now, table.uri)
    if members:
        begun = [name for name in members if name not in new or now.entry(name) != seen.entry(name)]
        complete, failed = cut_of({**now.entries, **row.tables}, begun, row.tables.keys())
        row = replace(row, complete=complete, failed=failed)
    version = state.delta_version
    encoded = encode(row)
    committed = table.append(state, [encoded], {"kind": row.kind, "to": row.to, "run_id": row.run_id})
    after = now.with_row(row, state.batch + 1, encoded=encoded)
    if known is not None and committed.delta_version == version + 1:
        known.keep(table.uri, committed.delta_version, after, storage)
    _housekeeping(table, state.batch + 1)
    return after


def _check_own(row: OffsetRow, seen: Offsets, now: Offsets, uri: str) -> None:
    if now is seen:
        return
    if now.epoch > seen.epoch:
        raise FencedError(f"Epoch {now.epoch} has begun in {uri} since this run began in epoch {seen.epoch}")
    changed = [name for name in row.tables if seen.entry(name) != now.entry(name)]
    if changed:
        raise FencedError(f"Another run has written offsets of {sorted(changed)} in {uri} since this run began")


def _housekeeping(table: SmallTable, number: int) -> None:
    if number % _COMPACT_EVERY == 0:
        table.compact()
