"""`_offsets`: one sparse row per finished range or snapshot step of a database (rules A1, A3, A4, A8).

The rows contain the cuts and the positions of idle tables. Positions are opaque texts of the source, compared together
with their epoch. `plan/planner.py` decides what to read next; `lake/offset_rows.py` defines the rows' format,
`lake/offset_digest.py` what they amount to, `lake/offset_history.py` reads them again, and `lake/offset_commits.py`
loads and appends them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.cuts import Closures, closures
from mssql_cdc.lake.kept_digest import keep_digest
from mssql_cdc.lake.offset_digest import KNOWN_KEYS, Digest, Step
from mssql_cdc.lake.offset_history import FOLDED_ROWS, InMemory, OffsetHistory, Stored
from mssql_cdc.lake.offset_rows import OFFSETS_SCHEMA, encode, numbered
from mssql_cdc.lake.recorded import COLUMNS, Recorded
from mssql_cdc.lake.small_tables import ReadAt, SmallTable
from mssql_cdc.lake.steps import Entry, OffsetRow, Reached, SnapshotBegun, SnapshotEnded
from mssql_cdc.lsn import LsnRange
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import LogMark, Witness


class Offsets:
    """What all rows of a database up to a given one amount to.

    What a step needs is in the digest, which is carried from row to row. `history` reads the rows themselves again for
    the few queries over all of them.
    """

    def __init__(
        self, digest: Digest | None = None, history: InMemory | Stored | None = None, recorded: Recorded | None = None
    ) -> None:
        self._digest = Digest() if digest is None else digest
        source = InMemory(OFFSETS_SCHEMA.empty_table()) if history is None else history
        self.history = OffsetHistory(source, self._digest.number)
        self._recorded = Recorded() if recorded is None else recorded  # From some of the rows.

    def __eq__(self, other: object) -> bool:
        return self._digest == other._digest if isinstance(other, Offsets) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

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
        """The places of a name's and an identity's newest entries among all entries: a newer row moves them (A3).

        Args:
            table: The name.
            object_id: The identity; None: it is not known.
        """
        named, identified = self._digest.named.get(table), self._digest.identified.get(object_id or 0)
        return named.place if named is not None else -1, identified.place if identified is not None else -1

    def entry_of(self, table: str, object_id: int, *, folder: str | None = None) -> Entry | None:
        """The newest entry of the source table with this identity: another table may have taken its name (B15).

        The entry may be under a name that the table took after it last had this one. Under another name, only an entry
        of this epoch counts: after a restore, the identity may be another table's.

        Args:
            table: Its name now.
            object_id: Its identity.
            folder: Its folder, if it is known: another table may have had the identity in an earlier history.
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
        """The name of a source table, and its former names that no other table has taken since.

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
        """The newest entry of an identity, under any name; None: another table was created in its place (B15).

        Args:
            object_id: The identity, which may be that of a table whose name another one has since taken.
        """
        return self._digest.newest_of(object_id)

    def last_name(self, object_id: int) -> str | None:
        """The name in the newest entry of an identity; None: it has none."""
        found = self._digest.identified.get(object_id)
        return found.name if found is not None else None

    @cached_property
    def present(self) -> Mapping[str, Entry]:
        """`entries` without those left under former names: their tables have newer ones of the same epoch (B15)."""
        newest = self._digest.identified
        left = {
            name
            for name, one in self._digest.named.items()
            if (number := one.entry.object_id) is not None
            and newest[number].place > one.place
            and newest[number].entry.epoch == one.entry.epoch
            and newest[number].entry.folder == one.entry.folder  # After a restore, an identity may be another table's.
        }
        return {name: entry for name, entry in self.entries.items() if name not in left}

    @cached_property
    def identities(self) -> frozenset[int]:
        """The object ids under which tables were read in this epoch."""
        return self._digest.read_in(self.epoch)

    def named_as(self, present: Mapping[TableId, int]) -> frozenset[int]:
        """The identities whose tables still have the names of their newest entries, whatever happened to the source.

        Args:
            present: The object ids of the captured tables.
        """
        entries = {number: self.entry(table.text) for table, number in present.items()}
        return frozenset(number for number, entry in entries.items() if entry and entry.object_id == number)

    def met(self, present: Mapping[TableId, int]) -> frozenset[int]:
        """The identities that reveal renames: those that were read in this epoch, and `named_as`.

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

    def furthest(self, table: str, epoch: int) -> str:
        """The furthest position that a row ever gave the table in an epoch; empty without one."""
        return self._digest.furthest.get((table, epoch), "")

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
            batches: A `_batch` for each table (`TableId.text`, the newest name).
            folders: The tables' folders, as for `batch_at`.
        """
        cuts = self.history.complete_cuts(least)
        numbers: list[int] = self.history.table.column("_batch").to_numpy()[cuts].tolist()

        def has(number: int) -> bool:
            found = {table: self.batch_at(table, number, folder=(folders or {}).get(table)) for table in batches or {}}
            return all((found[table] or 0) >= batch for table, batch in (batches or {}).items())

        found = bisect_left(numbers, x=True, key=has)  # A later cut contains what an earlier one does.
        return self.history.rows[cuts[found]] if found < len(cuts) else None

    def batch_at(self, table: str, number: int, *, folder: str | None = None) -> int | None:
        """The newest `_batch` that a table had at the row with a number; at a cut, later rows belong to later cuts.

        It is that of its folder, if known: the table may have had another name then, and another table its name.

        Args:
            table: The table (`TableId.text`, its newest name).
            number: The row's number.
            folder: Its folder; None: that of the newest entry under its name.
        """
        entry = self.entry(table) if folder is None else None
        own = folder if entry is None else entry.folder
        last = self._digest.last_cut
        if own is not None and last is not None and number == last.number:
            return self._digest.in_cut.get(own)
        return self.history.largest_batch(table, number, folder=own)

    def has_cut(self, partition: str) -> bool:
        """Whether a range with this partition key is a complete cut."""
        digest = self._digest
        if partition in digest.keys or len(digest.keys) < KNOWN_KEYS or _is_behind(partition, digest.last_cut):
            return partition in digest.keys
        found = self.history.read(["_batch", "complete", "partition"])
        return bool(pc.any(found.filter(pc.equal(found.column("partition"), partition)).column("complete")).as_py())

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of snapshots, and those that say what became of tables, in order: few compared with ranges."""
        return self._digest.steps

    @cached_property
    def snapshot_rows(self) -> tuple[OffsetRow, ...]:
        """The rows of snapshot steps, in order."""
        return tuple(row for row, _ in self.steps if row.kind == "snapshot")

    def epoch_at(self, at: datetime) -> int:
        """The epoch of the rows that were written at a given time; 0 before the first one."""
        return max((epoch for epoch, first in self._digest.epochs.items() if first <= at), default=0)

    @cached_property
    def recorded(self) -> Recorded:
        """When batches and cuts were recorded; only rows that are not folded in yet are read."""
        found = self._recorded
        for after in range(found.number, self.number, FOLDED_ROWS):
            found = found.after(self.history.read(COLUMNS, after=after, until=after + FOLDED_ROWS))
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
        """Whether this snapshot has begun to read the table, and has not ended."""
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
        """The marks of this epoch's snapshots after which no captured transaction is known (A7).

        A snapshot also reads what was never captured. Only a witness after its end would be lost in every restore to a
        moment before that end.
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

    def newer(self, small: SmallTable) -> Offsets:
        """The lake's present rows; if rows were only appended since these were read, only the newer ones are read.

        Raises:
            StorageError: Rows that were written are missing (A5).
        """
        source = self.history.source
        since = source.at if isinstance(source, Stored) and source.small == small else None
        reading = small.read(since=since, after=self.number, least=FOLDED_ROWS)
        digest, recorded = (self._digest, self._known) if reading.goes_on else (Digest(), None)
        for found in reading.tables:
            for start in range(0, found.num_rows, FOLDED_ROWS):
                digest = digest.after(found.slice(start, FOLDED_ROWS))
        _require_all(small, digest, written=reading.written)
        return Offsets(digest, Stored(small, reading.at), recorded)

    def with_row(
        self, row: OffsetRow, number: int, *, encoded: pa.RecordBatch | None = None, at: ReadAt | None = None
    ) -> Offsets:
        """Return these rows plus another one.

        Args:
            row: The row.
            number: Its number.
            encoded: The row as `encode` returns it.
            at: The commit that wrote it.
        """
        table = numbered(encode(row) if encoded is None else encoded, number)
        stored = replace(row, number=number, tables=dict(sorted(row.tables.items())))
        digest = self._digest.after(table, decoded=(stored,))
        source = self.history.source
        if isinstance(source, Stored):
            return Offsets(digest, replace(source, at=at), self._known)
        return Offsets(digest, InMemory(pa.concat_tables([source.table, table])), self._known)

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
    """Each commit is one row, and nothing removes any. RESTORE takes back rows, but keeps the txn that counts them."""
    written = max(written, digest.number)
    if digest.rows != written:
        raise StorageError(
            f"{small.uri} has {digest.rows} of the {written} rows that were written: another program has restored or "
            "changed it, and positions would go back. RESTORE it to the version before that (DESCRIBE HISTORY lists "
            f"them). If nothing has all rows, move {small.uri.rpartition('/')[0]} away and start again: every table is "
            "then read anew"
        )


def _is_behind(partition: str, cut: OffsetRow | None) -> bool:
    """Whether a range ends after the last cut: then it is not a cut itself, and no row has to be read to know that."""
    try:
        wanted = LsnRange.parse(partition)
    except ValueError:
        return False
    return cut is not None and (wanted.epoch, wanted.to.text) > (cut.epoch, cut.to or "")
