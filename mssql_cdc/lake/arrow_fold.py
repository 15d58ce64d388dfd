"""Folds a section of the change log into one row per `_key`, with Arrow and numpy (correctness D).

`lake/fold.py` plans the fold and expresses the same for Spark's MERGE, which is this module's oracle.
`lake/apply_task.py` reads, finds the old rows and writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mssql_cdc.lake.delta_schema import cast_values
from mssql_cdc.lake.fold import FoldPlan
from mssql_cdc.schema.arrow import PAIRS, TEXT_MAP, TEXTS

WINDOW_COLUMNS = ("_key", "_pos", "_batch", "_schema", "op", "after", "_unavailable", "_exact")
"""The columns of the change log that a fold needs."""

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Folded:
    """One entry per key of the section; row numbers refer to the section.

    `last` is the key's newest row; `deleted` says whether that is a delete. `began` is the row with which the key's
    incarnation began, or `NOWHERE` if that was before the section. `known` has, for each uncertain column of the plan,
    the row with the column's last known value within the incarnation, or `NOWHERE`.
    """

    plan: FoldPlan
    window: pa.RecordBatch
    keys: pa.Array
    positions: pa.Array
    last: Numbers
    deleted: Flags
    began: Numbers
    known: tuple[Numbers, ...]

    @property
    def reborn(self) -> Flags:
        """The keys that have an incarnation which began within the section."""
        return self.began != NOWHERE

    @property
    def needed(self) -> Numbers:
        """The rows that matter: folding only these, also with rows of other sections, equals folding all rows."""
        found = np.unique(np.concatenate([self.last, self.began, *self.known]))
        return found[found != NOWHERE]

    @property
    def incomplete(self) -> Flags:
        """The keys whose new row takes values from the old one."""
        unknown = np.zeros(len(self.last), dtype=bool)
        for name, row in zip(self.plan.uncertain, self.known, strict=True):
            if name not in self.plan.computed:
                unknown |= row == NOWHERE
        return unknown & ~self.reborn & ~self.deleted


@dataclass(frozen=True, slots=True)
class OldRows:
    """Rows of the current table; `place` is the number of each key's old row, or `NOWHERE`."""

    rows: pa.Table
    place: Numbers


def fold_rows(window: pa.RecordBatch, plan: FoldPlan) -> Folded:
    """Fold a section of the change log.

    Args:
        window: `WINDOW_COLUMNS` of the section's rows, all of which have versions with the present key.
        plan: what may be unknown.
    """
    codes = _codes(window.column("_key"))
    by_position = _by_position(window.column("_pos"))
    order = by_position[np.argsort(codes[by_position], kind="stable")]
    sorted_codes = codes[order]
    starts = np.flatnonzero(np.concatenate([[True], sorted_codes[1:] != sorted_codes[:-1]]))
    ends = np.concatenate([starts[1:], [len(order)]]) - 1
    last = order[ends]
    operations = window.column("op")
    begins = _flags(pc.is_in(operations, value_set=pa.array(["c", "r", "d"])))
    deletes = _flags(pc.equal(operations, "d"))
    incarnation = _newest(begins[order], starts)
    known: list[Numbers] = []
    for name in plan.uncertain:
        newest = _newest(_is_known(window, name, plan.lacking.get(name, ()), deletes)[order], starts)
        within = (newest != NOWHERE) & (newest >= (ends if name in plan.computed else incarnation))
        known.append(np.where(within, order[newest], NOWHERE))
    numbers = pa.array(last)
    return Folded(
        plan,
        window,
        window.column("_key").take(numbers),
        window.column("_pos").take(numbers),
        last,
        deletes[last],
        np.where(incarnation != NOWHERE, order[incarnation], NOWHERE),
        tuple(known),
    )


def new_rows(folded: Folded, which: Numbers, old: OldRows | None, schema: pa.Schema) -> pa.RecordBatch:
    """The current table's new rows for these keys, none of which is deleted.

    Args:
        folded: the section.
        which: the numbers of the keys.
        old: their old rows, if there are any: `_exact`, `_unavailable`, the uncertain columns and their former ones.
        schema: the current table's columns, by logical names.
    """
    plan, rows = folded.plan, pa.array(folded.last[which])
    place = old.place[which] if old is not None else np.full(len(which), NOWHERE)
    inherits = (place != NOWHERE) & ~folded.reborn[which]
    columns: dict[str, pa.Array] = {
        "_key": folded.keys.take(pa.array(which)),
        "_pos": folded.positions.take(pa.array(which)),
        "_batch": folded.window.column("_batch").take(rows),
    }
    image = folded.window.column("after")
    for name in plan.whole:
        columns[plan.names[name]] = pc.struct_field(image, [plan.images[name]]).take(rows)
    unknown = np.zeros((len(which), len(plan.uncertain)), dtype=bool)
    was_unknown = _listed(old, place, plan.uncertain)
    for number, name in enumerate(plan.uncertain):
        found = folded.known[number][which]
        missing = found == NOWHERE
        kept_on = inherits & (name not in plan.computed)
        for source, target in {plan.images[name]: plan.names[name], **plan.former.get(name, {})}.items():
            if source in plan.absent:
                values = pa.nulls(len(which), schema.field(target).type)
            else:
                values = pc.struct_field(image, [source]).take(_or_null(found))
            if old is not None and bool((missing & kept_on).any()):
                kept = cast_values(_column(old, target).take(_or_null(place)), schema.field(target).type, target)
                values = cast_values(values, schema.field(target).type, target)
                values = pc.if_else(pa.array(missing & kept_on), kept, values)
            columns[target] = values
        unknown[:, number] = missing & (~kept_on | was_unknown[:, number])
        unknown[:, number] |= _of_before(folded, name, found)
    columns["_exact"] = _exact(folded, which, old, np.where(inherits, place, NOWHERE))
    columns["_unavailable"] = _lists(unknown, plan.uncertain)
    arrays = [
        cast_values(columns[field.name], field.type, field.name)
        if field.name in columns
        else pa.nulls(len(which), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _codes(keys: pa.Array) -> Numbers:
    return np.asarray(pc.dictionary_encode(keys).indices, dtype=np.int64)


def _by_position(positions: pa.Array) -> Numbers:
    """The rows in order of position, which is usually the order in which they were written."""
    count = len(positions)
    if count < 2 or pc.all(pc.less_equal(positions.slice(0, count - 1), positions.slice(1))).as_py():
        return np.arange(count, dtype=np.int64)
    return np.asarray(pc.sort_indices(positions), dtype=np.int64)


def _newest(flags: Flags, starts: Numbers) -> Numbers:
    """For each group, the last flagged row of the sorted section, or `NOWHERE`."""
    return np.maximum.reduceat(np.where(flags, np.arange(len(flags)), NOWHERE), starts)


def _is_known(window: pa.RecordBatch, name: str, lacking: Sequence[int], deletes: Flags) -> Flags:
    known = ~deletes & ~_mentions(window.column("_unavailable"), name)
    if lacking:
        known &= ~_flags(pc.is_in(window.column("_schema"), value_set=pa.array(lacking, pa.int32())))
    return known


def _mentions(lists: pa.Array, name: str) -> Flags:
    """Which of the lists contain `name`."""
    found = np.zeros(len(lists), dtype=bool)
    hits = _flags(pc.equal(pc.list_flatten(lists), name))
    found[np.asarray(pc.list_parent_indices(lists))[hits]] = True
    return found


def _listed(old: OldRows | None, place: Numbers, names: Sequence[str]) -> Flags:
    """Which of the columns were unknown in the old rows."""
    found = np.zeros((len(place), len(names)), dtype=bool)
    if old is not None and names:
        lists = _column(old, "_unavailable").take(_or_null(place))
        for number, name in enumerate(names):
            found[:, number] = _mentions(lists, name)
    return found


def _lists(flags: Flags, names: Sequence[str]) -> pa.Array:
    """For each row, the list of its flagged names; NULL instead of an empty list."""
    counts = flags.sum(axis=1)
    if not counts.any():
        return pa.nulls(len(flags), TEXTS)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    values = pa.array(list(names), pa.string()).take(pa.array(np.nonzero(flags)[1]))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=TEXTS, mask=pa.array(counts == 0))


def _of_before(folded: Folded, name: str, rows: Numbers) -> Flags:
    """Which of these rows have a version with another Delta column for `name`: a value in the new one is unknown."""
    versions = folded.plan.earlier.get(name)
    if not versions:
        return np.zeros(len(rows), dtype=bool)
    taken = folded.window.column("_schema").take(_or_null(rows))
    return _flags(pc.is_in(taken, value_set=pa.array(versions, pa.int32())))


def _exact(folded: Folded, which: Numbers, old: OldRows | None, inherited: Numbers) -> pa.Array:
    """The exact texts: from the newest row, and for uncertain columns from the row that supplies their value."""
    names, computed = folded.plan.uncertain, folded.plan.computed
    after = pc.struct_field(folded.window.column("_exact"), "after")
    sources = [folded.last[which], *(known[which] for known in folded.known)]
    filled = _flags(pc.fill_null(pc.greater(pc.list_value_length(pc.cast(after, PAIRS)), 0), False))
    some = np.zeros(len(which), dtype=bool)
    for rows in sources:
        some |= (rows != NOWHERE) & filled[rows]
    texts = None
    if old is not None and names:
        texts = _column(old, "_exact").take(_or_null(inherited))
        some |= _flags(pc.is_valid(texts))
    if not some.any():
        return pa.nulls(len(which), TEXT_MAP)
    found: list[list[tuple[str, str]] | None] = [None] * len(which)
    for number in np.flatnonzero(some).tolist():
        pairs = {n: t for n, t in _pairs(after, sources[0][number]).items() if n not in names}
        for name, rows in zip(names, sources[1:], strict=True):
            if rows[number] != NOWHERE:
                own = _pairs(after, rows[number])
            else:
                own = _pairs(None if name in computed else texts, number)
            if name in own:
                pairs[name] = own[name]
        found[number] = list(pairs.items()) or None
    return pa.array(found, TEXT_MAP)


def _pairs(maps: pa.Array | None, row: Any) -> Mapping[str, str]:
    return dict(maps[int(row)].as_py() or ()) if maps is not None else {}


def _column(old: OldRows, name: str) -> pa.Array:
    return old.rows.column(name).combine_chunks()


def _or_null(rows: Numbers) -> pa.Array:
    """Row numbers as `take` expects them; `NOWHERE` becomes NULL."""
    return pa.array(rows, mask=rows == NOWHERE)


def _flags(values: pa.Array) -> Flags:
    return np.asarray(pc.fill_null(values, False), dtype=bool)
