"""`_offsets`: one sparse row per finished range or snapshot step of a database (rules A1, A3, A4, A8).

It contains the cuts and the positions of idle tables. Positions are opaque texts of the source, compared together with
their epoch. `plan/planner.py` decides what to read next; `lake/offset_rows.py` defines the rows' format, and
`lake/offset_digest.py` what they amount to.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import FencedError, StorageError
from mssql_cdc.lake.cuts import Closures, closures, cut_of
from mssql_cdc.lake.kept_digest import KEEP_EVERY, keep_digest, load_digest
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_digest import KNOWN_KEYS, Digest, Step
from mssql_cdc.lake.offset_entries import Entries
from mssql_cdc.lake.offset_rows import OFFSETS_SCHEMA, Rows, encode, numbered
from mssql_cdc.lake.read import BatchSlice, exists, ordered
from mssql_cdc.lake.recorded import COLUMNS, Recorded
from mssql_cdc.lake.small_tables import ReadAt, SmallTable, retry_overtaken
from mssql_cdc.lake.steps import Entry, OffsetRow, Reached, SnapshotBegun, SnapshotEnded
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.lsn import LsnRange
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import LogMark, Witness

COMPACT_ROWS = 50
"""After so many rows, `_offsets` is compacted (`follow/upkeep.py`)."""
_FOLDED_ROWS = 512
"""Rows that are folded in at once: with hundreds of tables, some ten MB."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A history in memory."""

    table: pa.Table

    def read(self, number: int, columns: Sequence[str], *, after: int = 0) -> pa.Table:
        """The columns of the rows behind one, and up to another one."""
        numbers = self.table.column("_batch")
        wanted = pc.and_(pc.greater(numbers, after), pc.less_equal(numbers, number))
        return self.table.select(columns).filter(wanted)


@dataclass(frozen=True, slots=True)
class Stored:
    """A history in the lake. What was read at `at` needs not be read again while rows are only appended."""

    small: SmallTable
    at: ReadAt | None

    def read(self, number: int, columns: Sequence[str], *, after: int = 0) -> pa.Table:
        """The columns of the rows behind one, and up to another one.

        Args:
            number: The last row.
            columns: The columns.
            after: The row before the first.
        """
        uri, storage, wanted = self.small.uri, self.small.storage, BatchSlice(after, number)
        found = ordered(uri, batches=wanted, columns=columns, storage=storage) if number else ()
        none = pa.schema([self.small.schema.field(name) for name in columns]).empty_table()
        return pa.concat_tables([none, *found]).combine_chunks()


class Offsets:
    """All rows of a database up to one, oldest first.

    What a step asks is in the digest, which is carried from row to row. The rows themselves stay in the lake: there
    are thousands a day, each with an entry per table. The few questions about all of them (`rows`, `reached`)
    read them again, at a cost that grows with the history.
    """

    def __init__(
        self, digest: Digest | None = None, history: _Kept | Stored | None = None, recorded: Recorded | None = None
    ) -> None:
        self._digest = Digest() if digest is None else digest
        self._history = _Kept(OFFSETS_SCHEMA.empty_table()) if history is None else history
        self._recorded = Recorded() if recorded is None else recorded  # By some of the rows.

    def __eq__(self, other: object) -> bool:
        return self._digest == other._digest if isinstance(other, Offsets) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def _table(self) -> pa.Table:
        return self._history.read(self.number, OFFSETS_SCHEMA.names)

    @cached_property
    def rows(self) -> Rows:
        """The rows, read from the lake; decoding all of them is slow once there are thousands."""
        return Rows(self._table)

    def newest_first(self) -> Iterator[OffsetRow]:
        """The rows from the newest one on, read from the lake as far as they are taken."""
        for end in range(self.number, 0, -_FOLDED_ROWS):
            yield from reversed(Rows(self._history.read(end, OFFSETS_SCHEMA.names, after=max(end - _FOLDED_ROWS, 0))))

    @property
    def newest(self) -> OffsetRow | None:
        """The newest row."""
        return self._digest.newest

    @property
    def advanced_at(self) -> datetime | None:
        """When tables last advanced, with or without rows; otherwise, when the first row was written."""
        return self._digest.advanced_at or self._digest.first_at

    @property
    def number(self) -> int:
        """The newest row's number; 0 without rows."""
        return self._digest.number

    @property
    def epoch(self) -> int:
        """The current epoch."""
        return self._digest.epoch

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """The newest entry of each table, by `TableId.text`."""
        return {name: placed.entry for name, placed in self._digest.named.items()}

    def entry(self, table: str) -> Entry | None:
        """The newest entry of a table (`TableId.text`): its state."""
        return self.entries.get(table)

    def places(self, table: str, object_id: int | None) -> tuple[int, int]:
        """Where the newest entries of a name and of an identity are among all: another row has moved them (A3).

        Args:
            table: The name.
            object_id: The identity; None: it is not known.
        """
        named, identified = self._digest.named.get(table), self._digest.identified.get(object_id or 0)
        return named.place if named is not None else -1, identified.place if identified is not None else -1

    def entry_of(self, table: str, object_id: int, *, folder: str | None = None) -> Entry | None:
        """The newest entry of the source table with this identity: names may be taken by another table (B15).

        It may be under a name that the table has had since it had this one before. Under another name only one of this
        epoch counts: behind a restore, the identity may be another table's.

        Args:
            table: Its name now.
            object_id: Its identity.
            folder: Its folder, where it is known: another table may have had the identity in a history of before.
        """
        named = self._digest.named.get(table)
        own = named.entry if named is not None and named.entry.object_id == object_id else None
        if named is not None and own is not None and self._digest.identified[object_id].place <= named.place:
            return own
        found = self._digest.newest_of(object_id)
        known = folder if own is None else own.folder
        if found is None or object_id not in self.identities or known not in {None, found.folder}:
            return own
        return found

    def names_of(self, table: str, object_id: int) -> frozenset[str]:
        """The name of a source table, and those that it had before and that no other table has taken since.

        Args:
            table: Its name now.
            object_id: Its identity.
        """
        own = self.entry_of(table, object_id)
        former = (
            name
            for name, one in self._digest.named.items()
            if own is not None and one.entry.object_id == object_id and one.entry.folder == own.folder
        )
        return frozenset({table, *former})

    def last_of(self, object_id: int) -> Entry | None:
        """The newest entry of an identity, under whatever name; None: another table was made in its place (B15).

        Args:
            object_id: The identity, which may be that of a table whose name another one has taken since.
        """
        return self._digest.newest_of(object_id)

    def last_name(self, object_id: int) -> str | None:
        """The name in the newest entry of an identity; None: it has none."""
        found = self._digest.identified.get(object_id)
        return found.name if found is not None else None

    @cached_property
    def present(self) -> Mapping[str, Entry]:
        """`entries` without those that tables have left with a name: they have newer ones of the same epoch (B15)."""
        newest = self._digest.identified
        left = {
            name
            for name, one in self._digest.named.items()
            if (number := one.entry.object_id) is not None
            and newest[number].place > one.place
            and newest[number].entry.epoch == one.entry.epoch
            and newest[number].entry.folder == one.entry.folder  # Behind a restore, an identity may be another table's.
        }
        return {name: entry for name, entry in self.entries.items() if name not in left}

    @cached_property
    def identities(self) -> frozenset[int]:
        """The object ids under which tables were read in this epoch."""
        return self._digest.read_in(self.epoch)

    def named_as(self, present: Mapping[TableId, int]) -> frozenset[int]:
        """The identities whose tables have the names of their newest entries, whatever happened to the source since.

        Args:
            present: The object ids of the captured tables.
        """
        entries = {number: self.entry(table.text) for table, number in present.items()}
        return frozenset(number for number, entry in entries.items() if entry and entry.object_id == number)

    def met(self, present: Mapping[TableId, int]) -> frozenset[int]:
        """The identities that tell of renames: those that were read in this epoch, and `named_as`.

        Args:
            present: The object ids of the captured tables.
        """
        return self.identities | self.named_as(present)

    @property
    def folders(self) -> frozenset[str]:
        """Every folder that a table ever had."""
        return self._digest.folders

    @property
    def largest_batches(self) -> Mapping[str, int]:
        """The largest `_batch` that entries under a name ever had, whichever table it was."""
        return self._digest.largest

    def position(self, table: str, own: Reached | None = None) -> Reached | None:
        """Return the start of the table's next range: the larger of its own commit's end and its newest entry's.

        None: the table needs a snapshot or an explicit start, regardless of the database's position (rule A1).
        """
        entry = self.entry(table)
        known = [reached for reached in (own, entry.reached if entry else None) if reached is not None]
        return max(known, default=None)

    def reached(self, table: str, *, folder: str | None = None) -> set[Reached]:
        """Every position that a row ever gave the table; all rows are read for it.

        Args:
            table: Its name.
            folder: Its folder, which finds those under its former names, too; None: it is not known.
        """
        found = self._flat.of(table, folder=folder).select(["epoch", "to"]).to_pylist()
        return {Reached(one["epoch"], one["to"]) for one in found if one["to"] is not None}

    def folders_at(self, table: str, at: Reached) -> set[str]:
        """The folders of the tables that have had this name at a position; of those that were lost there, if any was.

        All rows are read for it.

        Args:
            table: The name.
            at: The position.
        """
        found = self._flat.of(table).select(["epoch", "to", "folder", "status"]).to_pylist()
        here = [one for one in found if (one["epoch"], one["to"]) == (at.epoch, at.to) and one["folder"] is not None]
        return {one["folder"] for one in [one for one in here if one["status"] == "lost"] or here}

    def furthest(self, table: str, epoch: int) -> str:
        """The furthest position in an epoch that a row ever gave the table; empty without one."""
        return self._digest.furthest.get((table, epoch), "")

    def span(self, epoch: int) -> tuple[str, str] | None:
        """The smallest and the largest position at which tables streamed in an epoch; None: none did.

        All rows are read for it.

        Args:
            epoch: The epoch.
        """
        return self._flat.span(epoch)

    @property
    def begins(self) -> str | None:
        """The smallest position that a row ever gave a table."""
        return self._digest.begins

    def last_cut(self) -> OffsetRow | None:
        """The complete cut with the largest position."""
        return self._digest.last_cut

    def first_cut(
        self,
        least: Reached,
        batches: Mapping[str, int] | None = None,
        *,
        folders: Mapping[str, str | None] | None = None,
    ) -> OffsetRow | None:
        """The first complete cut that is not before a position and has these batches; None without any.

        Args:
            least: The position.
            batches: A `_batch` by table (`TableId.text`, the newest name).
            folders: The tables' folders, as for `batch_at`.
        """
        columns = [self._table.column(name) for name in ("complete", "epoch", "to")]
        epoch, to = columns[1], columns[2]
        is_later = pc.or_(
            pc.greater(epoch, least.epoch), pc.and_(pc.equal(epoch, least.epoch), pc.greater_equal(to, least.to))
        )
        wanted = pc.fill_null(pc.and_(pc.and_(columns[0], pc.is_valid(to)), is_later), fill_value=False)
        places = np.flatnonzero(wanted.to_numpy()).tolist()
        numbers: list[int] = self._table.column("_batch").to_numpy()[places].tolist()

        def has(number: int) -> bool:
            found = {table: self.batch_at(table, number, folder=(folders or {}).get(table)) for table in batches or {}}
            return all((found[table] or 0) >= batch for table, batch in (batches or {}).items())

        found = bisect_left(numbers, x=True, key=has)  # A later cut has what an earlier one has.
        return self.rows[places[found]] if found < len(places) else None

    def batch_at(self, table: str, number: int, *, folder: str | None = None) -> int | None:
        """The newest `_batch` that a table had in the row with a number; at a cut, later rows belong to later ones.

        It is that of its folder, where it is known: it may have had another name then, and another table its name.

        Args:
            table: The table (`TableId.text`, its newest name).
            number: The row.
            folder: Its folder; None: that of the newest entry under its name.
        """
        entry = self.entry(table) if folder is None else None
        own = folder if entry is None else entry.folder
        last = self._digest.last_cut
        if own is not None and last is not None and number == last.number:
            return self._digest.in_cut.get(own)
        return self._flat.largest_batch(self._rows_up_to(number), table, own)

    def _rows_up_to(self, number: int) -> int:
        return int(np.searchsorted(self._table.column("_batch").to_numpy(), number, side="right"))

    def has_cut(self, partition: str) -> bool:
        """Whether a range of this partition key is a complete cut."""
        digest = self._digest
        if partition in digest.keys or len(digest.keys) < KNOWN_KEYS or _is_behind(partition, digest.last_cut):
            return partition in digest.keys
        found = self._history.read(self.number, ["_batch", "complete", "partition"])
        return bool(pc.any(found.filter(pc.equal(found.column("partition"), partition)).column("complete")).as_py())

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of snapshots, and those that say what became of tables, in order: few beside those of ranges."""
        return self._digest.steps

    @cached_property
    def snapshot_rows(self) -> tuple[OffsetRow, ...]:
        """The rows of snapshot steps, in order."""
        return tuple(row for row, _ in self.steps if row.kind == "snapshot")

    def epoch_at(self, at: datetime) -> int:
        """The epoch of the rows that were written at a time; 0 before the first one."""
        return max((epoch for epoch, first in self._digest.epochs.items() if first <= at), default=0)

    @cached_property
    def recorded(self) -> Recorded:
        """When batches and cuts were recorded; only what is new since these rows were read first is read."""
        found = self._recorded
        for after in range(found.number, self.number, _FOLDED_ROWS):
            found = found.after(self._history.read(min(after + _FOLDED_ROWS, self.number), COLUMNS, after=after))
        return found

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

    @property
    def noted(self) -> tuple[OffsetRow, ...]:
        """The rows with facts, in order."""
        return self._digest.noted

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
        return closures(self._digest)

    @property
    def witness(self) -> Witness | None:
        """The furthest witness of the current epoch (rule A7)."""
        return self._digest.witness

    @property
    def ends_with_cut(self) -> bool:
        """Whether nothing has happened to any table since the last complete cut."""
        return self._digest.ends_with_cut

    @cached_property
    def _flat(self) -> Entries:
        return Entries(self._table.column("tables"))

    def newer(self, small: SmallTable) -> Offsets:
        """The rows of the lake now; read are only the newer ones, if rows were only appended since these were read.

        Raises:
            StorageError: Rows that were written are not there (A5).
        """
        history = self._history
        since = history.at if isinstance(history, Stored) and history.small == small else None
        reading = small.read(since=since, after=self.number, least=_FOLDED_ROWS)
        digest, recorded = (self._digest, self._known) if reading.goes_on else (Digest(), None)
        for found in reading.tables:
            for start in range(0, found.num_rows, _FOLDED_ROWS):
                digest = digest.after(found.slice(start, _FOLDED_ROWS))
        _require_all(small, digest, written=reading.written)
        return Offsets(digest, Stored(small, reading.at), recorded)

    def with_row(
        self, row: OffsetRow, number: int, *, encoded: pa.RecordBatch | None = None, at: ReadAt | None = None
    ) -> Offsets:
        """Return these rows and another one.

        Args:
            row: The row.
            number: Its number.
            encoded: The row as `encode` returns it.
            at: The commit that wrote it.
        """
        table = numbered(encode(row) if encoded is None else encoded, number)
        stored = replace(row, number=number, tables=dict(sorted(row.tables.items())))
        digest = self._digest.after(table, decoded=(stored,))
        if isinstance(self._history, Stored):
            return Offsets(digest, replace(self._history, at=at), self._known)
        return Offsets(digest, _Kept(pa.concat_tables([self._history.table, table])), self._known)

    def keep(self, small: SmallTable, at: ReadAt) -> None:
        """Keep what the rows amount to, for the next process.

        Args:
            small: Their table.
            at: The commit that wrote the newest one.
        """
        keep_digest(small.uri, self._digest, at, small.storage)

    @property
    def _known(self) -> Recorded:
        """`recorded`, as far as it is known without reading."""
        return self.__dict__.get("recorded", self._recorded)


def _require_all(small: SmallTable, digest: Digest, *, written: int) -> None:
    """Each commit is one row, and nothing removes any. RESTORE takes back rows, and keeps the txn that counts them."""
    written = max(written, digest.number)
    if digest.rows != written:
        raise StorageError(
            f"{small.uri} has {digest.rows} of the {written} rows that were written: another program has restored or "
            "changed it, and positions would go back. RESTORE it to the version before that (DESCRIBE HISTORY lists "
            f"them). If nothing has all rows, move {small.uri.rpartition('/')[0]} away and start again: every table is "
            "then read anew"
        )


def _is_behind(partition: str, cut: OffsetRow | None) -> bool:
    """Whether a range ends behind the last cut: then none is its own, and no row needs to be read for that."""
    try:
        wanted = LsnRange.parse(partition)
    except ValueError:
        return False
    return cut is not None and (wanted.epoch, wanted.to.text) > (cut.epoch, cut.to or "")


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

    A failed append re-reads and tries the next number, unless a row since `seen` has an entry of one of the row's own
    tables, under whatever name: then another run is processing these tables. With `members`, this function decides
    whether the row is a complete cut, from the entries of the state to which the row is appended.

    Args:
        layout: The database's folders.
        row: The row to append.
        seen: The offsets on which the row is based.
        members: The captured tables with their object ids, if the row may be a complete cut: another table may have had
            the name of one since its newest entry.
        new: Those of them that have to begin anew: as long as their entries are what they were, these are of a table,
            or of an epoch, before.
        storage: The options of the object store.
        known: Remembers the new offsets.

    Raises:
        FencedError: another run has written an entry of the row's own tables, or has begun a new epoch, or appends
            never succeeded.
    """
    table = offsets_table(layout, storage)
    state = (known.take_state(table.uri) if known is not None else None) or table.state()
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
    """The rows up to where their digest was kept last; without any, none."""
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
