"""What the rows of `_offsets` amount to: each is folded in once and never read again.

A connector adds thousands of rows a day, each with an entry per table. The digest grows with the number of tables,
and with the few rows that have facts, not with the ranges that were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.lake.offset_entries import Entries, Group
from mssql_cdc.lake.offset_rows import Rows
from mssql_cdc.lake.steps import Entry, OffsetRow, SnapshotEnded, witness_of_text
from mssql_cdc.source.values import Witness

_READ = ("snapshot", "streaming")
KNOWN_KEYS = 64
"""How many keys of the newest complete cuts are remembered."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The newest entry of a name, or of an identity: `place` is its place among all entries ever written."""

    place: int
    name: str
    entry: Entry


class Step(NamedTuple):
    """The row of a step that reads no range, and how many complete cuts precede it."""

    row: OffsetRow
    cuts: int


@dataclass(frozen=True, slots=True)
class Digest:
    """What all rows up to a given one amount to.

    Attributes:
        number: The newest row's number.
        rows: The number of rows.
        entries: The number of entries in all rows.
        epoch: The largest epoch.
        first_at: When the first row was written.
        advanced_at: When tables last advanced; None: never.
        newest: The newest row.
        named: The newest entry by `TableId.text`.
        identified: The newest entry by object id.
        housed: By folder, the place of the newest entry of each object id that was ever in it.
        met: Pairs of an epoch and an object id that was read in it.
        folders: Every folder that a table ever had.
        largest: The largest `_batch` that entries under a name ever had.
        largest_in: The same by folder.
        furthest: The largest position of entries under a name, by name and epoch.
        begins: The smallest position of all.
        last_cut: The complete cut with the largest position.
        in_cut: `largest_in` as it was at that cut.
        ends_with_cut: Whether no row since that cut has tables.
        keys: The partition keys of the newest complete cuts.
        witness: The furthest witness of this epoch, as last written: a table that lags behind writes others, too.
        noted: The rows with facts.
        cuts: The number of complete cuts.
        steps: The steps of snapshots, and those that say what became of tables.
        epochs: When the first row of each epoch was written.
        ended: By object id, or by name without one: the snapshots of this epoch that no complete cut has passed since,
            with the numbers of their rows (C18).
    """

    number: int = 0
    rows: int = 0
    entries: int = 0
    epoch: int = 0
    first_at: datetime | None = None
    advanced_at: datetime | None = None
    newest: OffsetRow | None = None
    named: Mapping[str, Placed] = field(default_factory=dict[str, Placed])
    identified: Mapping[int, Placed] = field(default_factory=dict[int, Placed])
    housed: Mapping[str, Mapping[int, int]] = field(default_factory=dict[str, Mapping[int, int]])
    met: frozenset[tuple[int, int]] = frozenset()
    folders: frozenset[str] = frozenset()
    largest: Mapping[str, int] = field(default_factory=dict[str, int])
    largest_in: Mapping[str, int] = field(default_factory=dict[str, int])
    furthest: Mapping[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    begins: str | None = None
    last_cut: OffsetRow | None = None
    in_cut: Mapping[str, int] = field(default_factory=dict[str, int])
    ends_with_cut: bool = False
    keys: tuple[str, ...] = ()
    witness: Witness | None = None
    noted: tuple[OffsetRow, ...] = ()
    cuts: int = 0
    steps: tuple[Step, ...] = ()
    epochs: Mapping[int, datetime] = field(default_factory=dict[int, datetime])
    ended: Mapping[int | str, tuple[int, SnapshotEnded]] = field(
        default_factory=dict[int | str, tuple[int, SnapshotEnded]]
    )

    def after(self, table: pa.Table, *, decoded: Sequence[OffsetRow] | None = None) -> Digest:
        """Fold in further rows.

        Args:
            table: The next rows, in order, as `_offsets` stores them.
            decoded: The same rows decoded, if they are known; otherwise, only what is needed is decoded.
        """
        if not table.num_rows:
            return self
        cut = self._cut_in(table)
        if cut is not None and cut < table.num_rows - 1:
            # The state at the cut is the state right after its row.
            upper, lower = (decoded[: cut + 1], decoded[cut + 1 :]) if decoded is not None else (None, None)
            return self.after(table.slice(0, cut + 1), decoded=upper).after(table.slice(cut + 1), decoded=lower)
        return self._folded(table, decoded, is_cut=cut is not None)

    def newest_of(self, object_id: int) -> Entry | None:
        """The newest entry of the source table with this identity, under any name.

        None if another table has since taken its folder: the table was dropped then, and once the database is restored,
        the source gives the same identity to whichever table is created next.
        """
        found = self.identified.get(object_id)
        if found is None:
            return None
        others = self.housed.get(found.entry.folder or "", {})
        taken = any(place > found.place for other, place in others.items() if other != object_id)
        return None if taken else found.entry

    def newest_name(self, object_id: int) -> str | None:
        """The name in the newest entry of this identity; None if the name has a newer entry, or is excluded."""
        found = self.identified.get(object_id)
        if found is None or self.named[found.name].place != found.place or found.entry.status == "excluded":
            return None
        return found.name

    def read_in(self, epoch: int) -> frozenset[int]:
        """The object ids of the tables that were read in an epoch; one that was only declared lost was not seen in it.

        Args:
            epoch: The epoch.
        """
        return frozenset(object_id for met, object_id in self.met if met == epoch)

    def _cut_in(self, table: pa.Table) -> int | None:
        """The place of the complete cut that becomes the last one; None if the known one remains the last."""
        places = _places(pc.and_(table.column("complete"), pc.is_valid(table.column("to"))))
        ends = table.select(["epoch", "to"]).take(pa.array(places, pa.int64()))
        known, found = self.last_cut, None
        best: tuple[int, str] | None = (known.epoch, known.to or "") if known is not None else None
        for place, epoch, to in zip(places, ends["epoch"].to_pylist(), ends["to"].to_pylist(), strict=True):
            if best is None or (epoch, to) >= best:
                best, found = (epoch, to), place
        return found

    def _folded(self, table: pa.Table, decoded: Sequence[OffsetRow] | None, *, is_cut: bool) -> Digest:
        rows = _Decoded(table, decoded)
        entries = Entries(table.column("tables"))
        groups = entries.groups()
        epoch = max(self.epoch, pc.max(table.column("epoch")).as_py() or 0)
        noted = rows.at(_places(pc.is_valid(table.column("facts"))))
        newest = rows.at([table.num_rows - 1])[0]
        witnesses = table.select(["witness"]).filter(pc.equal(table.column("epoch"), epoch)).column("witness")
        moved = _places(pc.is_in(table.column("kind"), value_set=pa.array(["range", "idle"])))
        has_key = pc.and_(table.column("complete"), pc.is_valid(table.column("partition")))
        keys = table.select(["partition"]).filter(has_key).column("partition").to_pylist()
        complete = pc.fill_null(table.column("complete"), fill_value=False).to_numpy().astype(np.int64)
        cuts = self.cuts + np.cumsum(complete)
        others = _places(pc.is_in(table.column("kind"), value_set=pa.array(["snapshot", "status"])))
        before = (cuts - complete)[others].tolist()
        folded = replace(
            self._with_entries(entries, groups, rows),
            number=newest.number,
            rows=self.rows + table.num_rows,
            epoch=epoch,
            first_at=self.first_at or table.column("at")[0].as_py(),
            advanced_at=table.column("at")[moved[-1]].as_py() if moved else self.advanced_at,
            newest=newest,
            keys=(*self.keys, *keys)[-KNOWN_KEYS:],
            witness=_furthest(self.witness if epoch == self.epoch else None, witnesses),
            noted=(*self.noted, *noted) if noted else self.noted,
            cuts=int(cuts[-1]),
            steps=(*self.steps, *map(Step, rows.at(others), before)) if others else self.steps,
            epochs=self._epochs(table),
            ended=self._ended(table, entries, noted, epoch),
        )
        if is_cut:
            return replace(folded, last_cut=newest, in_cut=folded.largest_in, ends_with_cut=True)
        return replace(folded, ends_with_cut=self.ends_with_cut and not entries.count)

    def _epochs(self, table: pa.Table) -> Mapping[int, datetime]:
        found = dict(self.epochs)
        for epoch in set(table.column("epoch").to_pylist()):
            at = pc.min(table.filter(pc.equal(table.column("epoch"), epoch)).column("at")).as_py()
            found[epoch] = min(at, found.get(epoch, at))
        return found

    def _with_entries(self, entries: Entries, groups: Iterable[Group], rows: _Decoded) -> Digest:
        named: dict[str, Group] = {}
        identified: dict[int, Group] = {}
        housed: dict[str, dict[int, int]] = {}
        met, folders = set(self.met), set(self.folders)
        largest, largest_in = dict(self.largest), dict(self.largest_in)
        furthest, begins = dict(self.furthest), self.begins
        for one in groups:
            if one.name not in named or named[one.name].place < one.place:
                named[one.name] = one
            if one.object_id is not None:
                if one.object_id not in identified or identified[one.object_id].place < one.place:
                    identified[one.object_id] = one
                if one.folder is not None:
                    known = housed.setdefault(one.folder, dict(self.housed.get(one.folder, {})))
                    known[one.object_id] = max(known.get(one.object_id, -1), self.entries + one.place)
                if one.status in _READ:
                    met.add((one.epoch, one.object_id))
            if one.folder is not None:
                folders.add(one.folder)
            if one.batch is not None:
                largest[one.name] = max(largest.get(one.name, 0), one.batch)
                if one.folder is not None:
                    largest_in[one.folder] = max(largest_in.get(one.folder, 0), one.batch)
            if one.last is not None and one.first is not None:
                furthest[one.name, one.epoch] = max(furthest.get((one.name, one.epoch), ""), one.last)
                begins = one.first if begins is None else min(begins, one.first)
        wanted = {one.place: one for one in (*named.values(), *identified.values())}
        found = rows.entries(entries, list(wanted))
        placed = {place: Placed(self.entries + place, one.name, found[place]) for place, one in wanted.items()}
        return replace(
            self,
            entries=self.entries + entries.count,
            named={**self.named, **{name: placed[one.place] for name, one in named.items()}},
            identified={**self.identified, **{number: placed[one.place] for number, one in identified.items()}},
            housed={**self.housed, **housed},
            met=self.met if len(met) == len(self.met) else frozenset(met),
            folders=self.folders if len(folders) == len(self.folders) else frozenset(folders),
            largest=largest,
            largest_in=largest_in,
            furthest=furthest,
            begins=begins,
        )

    def _ended(
        self, table: pa.Table, entries: Entries, noted: Iterable[OffsetRow], epoch: int
    ) -> Mapping[int | str, tuple[int, SnapshotEnded]]:
        """The snapshots that no cut has passed: marks of an earlier epoch belong to a log that is gone.

        A cut may be complete without a table, so only a cut that names the table as streaming opens it. A table is
        identified by its object id, since it may be renamed in the meantime (B15).
        """
        ended = dict(self.ended) if epoch == self.epoch else {}
        for row in noted:
            if row.epoch == epoch and isinstance(row.facts, SnapshotEnded):
                read = row.tables.get(row.facts.table)
                identity = read.object_id if read is not None else None
                ended[row.facts.table if identity is None else identity] = row.number, row.facts
        if not ended:
            return ended
        numbers = table.column("_batch").to_pylist()
        cuts = _places(table.column("complete"))
        last = entries.last_streaming(np.array(cuts, dtype=np.int64))
        return {one: end for one, end in ended.items() if one not in last or numbers[last[one]] <= end[0]}


@dataclass(frozen=True, slots=True)
class _Decoded:
    """The rows of a table, decoded only as far as requested, unless they are already known."""

    table: pa.Table
    known: Sequence[OffsetRow] | None

    def at(self, places: Sequence[int]) -> tuple[OffsetRow, ...]:
        """The rows at these places."""
        if self.known is not None:
            return tuple(self.known[place] for place in places)
        return Rows(self.table).at(places) if places else ()

    def entries(self, entries: Entries, places: Sequence[int]) -> Mapping[int, Entry]:
        """The entries at these places among the entries of all rows."""
        if self.known is not None:
            # A row's entries are stored in the order of their names.
            flat = [row.tables[name] for row in self.known for name in sorted(row.tables)]
            return {place: flat[place] for place in places}
        return dict(zip(places, entries.at(places), strict=True))


def _furthest(known: Witness | None, texts: pa.ChunkedArray) -> Witness | None:
    for text in dict.fromkeys(text for text in texts.to_pylist() if text is not None):
        found = witness_of_text(text)
        if found is not None and (known is None or found.start_lsn >= known.start_lsn):
            known = found
    return known


def _places(wanted: Any) -> list[int]:
    return np.flatnonzero(pc.fill_null(wanted, fill_value=False).to_numpy()).tolist()
