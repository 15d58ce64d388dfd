"""Checks that the change log of a table with a key tells one consistent story, which ends in the current table.

From the last whole snapshot on, for each key in order of position: no position occurs twice; the `before` of an update
or a delete is the preceding `after`; no row that does not exist changes, and none is created twice; the last row of
each key is the current table's. Together these mean that after minus before adds up to the table. Values are compared
as Arrow holds them, without `_exact`, whose texts the comparison with the source covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.check.partitions import PART_ROWS, load, partitioned
from mssql_cdc.check.story import Story
from mssql_cdc.lake.pinned import PinnedTable
from mssql_cdc.lake.read import BatchSlice, scan
from mssql_cdc.lake.storage import Storage
from mssql_cdc.schema import current_names, former_names

SHOWN = 5
"""How many keys a finding names."""
_COLUMNS = ("_pos", "_key", "_schema", "op", "before", "after", "_snapshot", "_unavailable")


@dataclass
class Findings:
    """The findings, each with its number of rows and the keys of the first of them."""

    keys: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, what: str, keys: Iterable[str | None]) -> None:
        """Add keys to a finding."""
        for key in keys:
            self.counts[what] = self.counts.get(what, 0) + 1
            shown = self.keys.setdefault(what, [])
            if len(shown) < SHOWN:
                shown.append(str(key))

    @property
    def lines(self) -> tuple[str, ...]:
        """One line per finding."""
        return tuple(
            f"change log: {what} ({self.counts[what]} rows, _key {', '.join(keys)})" for what, keys in self.keys.items()
        )


def check_log(uri: str, pinned: PinnedTable, story: Story, storage: Storage) -> tuple[str, ...]:
    """What is wrong with a change log up to the commit that the current table is at, one line per finding.

    Args:
        uri: the change log.
        pinned: the current table that the change log must end in.
        story: what the change log must contain.
        storage: the options of the object store.
    """
    found = Findings()
    total = 0
    for batch in _rows(uri, pinned, story, storage, ["_pos"]):
        total += batch.num_rows
    parts = 1 + max(total, pinned.rows) // PART_ROWS
    logs = _rows(uri, pinned, story, storage, _COLUMNS)
    first = next(logs, None)
    if first is None:
        return ()
    columns = [column for column in _delta_columns(story) if column.stored in pinned.columns]
    current = pa.schema([pinned.schema.field(name) for name in ("_key", *(column.stored for column in columns))])
    sides = [(first.schema, _chain(first, logs)), (current, pinned.read())]
    with partitioned(sides, parts) as files:
        for log_file, current_file in files:
            log = load(log_file)
            order = pc.sort_indices(log, sort_keys=[("_key", "ascending"), ("_pos", "ascending")])
            part = _Part(log.take(order).combine_chunks(), story)
            part.judge(found)
            part.compare_with(load(current_file), columns, found)
    return found.lines


def _rows(
    uri: str, pinned: PinnedTable, story: Story, storage: Storage, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    for batch in scan(uri, batches=BatchSlice(0, pinned.batch), columns=list(columns), storage=storage):
        kept = batch.filter(pc.greater_equal(batch.column("_pos"), story.low)) if story.low else batch
        if kept.num_rows:
            yield kept


def _chain(first: pa.RecordBatch, rest: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


@dataclass(frozen=True, slots=True)
class _DeltaColumn:
    """A Delta column: the name of its source column, and its own in the change log and in the current table."""

    name: str
    logged: str
    stored: str


def _delta_columns(story: Story) -> list[_DeltaColumn]:
    """The Delta columns of the compared columns; rows of some versions have their values in former ones."""
    newest = story.versions[-1]
    stored, former = current_names(newest), former_names(newest)
    found = [_DeltaColumn(name, newest.column(name).stored_name, stored[name]) for name in story.columns]
    earlier = [(name, one, target) for name in story.columns for one, target in former.get(name, {}).items()]
    return [*found, *(_DeltaColumn(*one) for one in earlier)]


class _Part:
    """The rows of some keys, sorted by key and position."""

    def __init__(self, log: pa.Table, story: Story) -> None:
        self._log, self._story, self._rows = log, story, log.num_rows
        self._keys = log.column("_key").to_numpy()
        self._ops = log.column("op").to_numpy()
        self._positions = log.column("_pos").to_numpy()
        self._versions = log.column("_schema").to_numpy()
        self._same = np.zeros(self._rows, bool)
        self._same[1:] = self._keys[1:] == self._keys[:-1]
        self._unavailable = _named(log.column("_unavailable"))

    def judge(self, found: Findings) -> None:
        """Check each row against the one before it."""
        if not self._rows:
            return
        previous = np.concatenate([[""], self._ops[:-1]])
        late = self._positions > self._story.judged
        alive = self._same & (previous != "d")
        # A sweep's deletes are made from the current table's rows, which may have been wrong.
        made = np.array(
            [bool(mark) and mark.startswith("sweep:") for mark in self._log.column("_snapshot").to_pylist()]
        )
        changes = ((self._ops == "u") | (self._ops == "d")) & ~made
        double = np.zeros(self._rows, bool)
        double[1:] = self._same[1:] & (self._positions[1:] == self._positions[:-1])
        found.add("duplicate position", self._keys[double])
        fits = ~double & (late | (previous != "r"))
        found.add("inserted although the row existed", self._keys[(self._ops == "c") & alive & fits])
        found.add("changed after it was deleted", self._keys[changes & self._same & (previous == "d") & late])
        if self._story.whole:
            found.add("changed although the row never existed", self._keys[changes & ~self._same & late])
        for rows in self._wrongly_unavailable():
            found.add("calls a value unavailable that CDC delivers", self._keys[rows[~made[rows]]])
        linked = np.flatnonzero(changes & alive & fits)
        broken = self._broken(linked)
        found.add("the before image differs from the preceding after image", self._keys[linked[broken]])

    def _wrongly_unavailable(self) -> Iterator[np.ndarray]:
        """The rows that lack a compared column although CDC delivers it in their version or they were read directly."""
        for name, rows in self._unavailable.items():
            column = name.removeprefix("before.")
            if column in self._story.columns:
                may_lack = np.isin(self._versions[rows], self._story.undelivered(column))
                yield rows[~may_lack | (self._ops[rows] == "r")]

    def _broken(self, rows: np.ndarray) -> np.ndarray:
        """Which of these rows have a `before` that differs from the `after` of the row above."""
        broken = np.zeros(len(rows), bool)
        if not len(rows):
            return broken
        before, after = self._image("before"), self._image("after")
        for column in _delta_columns(self._story):
            name, logged = column.name, column.logged
            if before.type.get_field_index(logged) < 0:
                continue
            # If an ALTER COLUMN rewrote values between two versions, both images may be right.
            life, life_before = (self._life(logged, some, of_values=True) for some in (rows, rows - 1))
            known = (life > 0) & (life == life_before) & ~self._lacks(name, rows, image="before")
            known &= ~self._lacks(name, rows - 1, image="after")
            if known.any():
                ours = pc.struct_field(before, [logged]).take(pa.array(rows))
                theirs = pc.struct_field(after, [logged]).take(pa.array(rows - 1))
                is_supplied = np.isin(self._versions[rows], self._story.gone(name)) & _nulls(ours)
                broken |= known & ~is_supplied & _differ(ours, theirs)
        return broken

    def compare_with(self, current: pa.Table, columns: Sequence[_DeltaColumn], found: Findings) -> None:
        """Compare the last row of each key with the current table."""
        last = np.ones(self._rows, bool)
        last[:-1] = ~self._same[1:]
        ends = np.flatnonzero(last & (self._ops != "d"))
        keys = current.column("_key").to_numpy()
        place = {key: number for number, key in enumerate(keys)}
        there = np.array([place.get(key, -1) for key in self._keys[ends]], np.int64)
        found.add("ends with a row that the current table lacks", self._keys[ends[there < 0]])
        expected = set(self._keys[ends])
        if self._story.whole:
            found.add("ends without a row that the current table has", [k for k in keys if k not in expected])
        ends, there = ends[there >= 0], there[there >= 0]
        if not len(ends):
            return
        after = self._image("after")
        wrong = np.zeros(len(ends), bool)
        for column in columns:
            if after.type.get_field_index(column.logged) < 0:
                continue
            newest = max(self._story.lives(column.logged).values(), default=-1)
            known = (self._life(column.logged, ends) == newest) & ~self._lacks(column.name, ends, image="after")
            if known.any():
                ours = pc.struct_field(after, [column.logged]).take(pa.array(ends))
                theirs = current.column(column.stored).combine_chunks().take(pa.array(there))
                wrong |= known & _differ(ours, theirs)
        found.add("ends with values that differ from the current table", self._keys[ends[wrong]])

    def _image(self, name: str) -> pa.StructArray:
        chunks = self._log.column(name).chunks
        return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)

    def _life(self, logged: str, rows: np.ndarray, *, of_values: bool = False) -> np.ndarray:
        """The life of the Delta column in which each row was written; 0: the row's structure has no values of it."""
        found = np.zeros(len(rows), np.int64)
        for version, life in self._story.lives(logged, of_values=of_values).items():
            found[self._versions[rows] == version] = life
        return found

    def _lacks(self, name: str, rows: np.ndarray, *, image: str) -> np.ndarray:
        """Whether CDC did not deliver the column in this image of the row.

        In an update, `before.c` refers to the before image and `c` to the other; in a delete, `c` to the only one.
        """
        named = self._unavailable.get(name, _NONE)
        if image == "after":
            return np.isin(rows, named)
        of_before = np.isin(rows, self._unavailable.get(f"before.{name}", _NONE))
        return of_before | (np.isin(rows, named) & (self._ops[rows] == "d"))


_NONE = np.array([], np.int64)


def _named(lists: pa.ChunkedArray) -> Mapping[str, np.ndarray]:
    """For each column, the rows whose list names it."""
    chunks = lists.chunks
    whole = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else None
    if whole is None or not len(whole.flatten()):
        return {}
    names = whole.flatten().to_numpy(zero_copy_only=False)
    owners = whole.value_parent_indices().to_numpy()
    return {name: owners[names == name] for name in np.unique(names)}


def _nulls(values: pa.Array) -> np.ndarray:
    return values.is_null().to_numpy(zero_copy_only=False)


def _differ(ours: pa.Array, theirs: pa.Array) -> np.ndarray:
    if theirs.type != ours.type:
        theirs = theirs.cast(ours.type)
    if pa.types.is_floating(ours.type):
        bits = pa.int64() if ours.type == pa.float64() else pa.int32()
        ours, theirs = ours.view(bits), theirs.view(bits)
    unequal = pc.fill_null(pc.not_equal(ours, theirs), fill_value=False)
    one_null = pc.not_equal(ours.is_null(), theirs.is_null())
    return pc.or_(unequal, one_null).to_numpy(zero_copy_only=False)
