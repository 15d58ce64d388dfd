"""Rows of a change log as columns of JSON texts: images and keys rendered, split key changes rejoined.

`stream.py` decides the order of the rows, `envelope.py` adds serial numbers and envelopes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import SchemaError
from mssql_cdc.events.nested_arrays import map_value
from mssql_cdc.records.converters import Convert
from mssql_cdc.records.custom_converters import RowConvert
from mssql_cdc.records.failures import CONVERSION_ERRORS, Failures
from mssql_cdc.records.json_texts import Texts, json_text, objects, repeated
from mssql_cdc.records.reselect import Values
from mssql_cdc.records.shapes import Shapes, TableShape
from mssql_cdc.schema import Column, TableId

Numbers = np.ndarray[Any, Any]
Side = Literal["before", "after"]
READ_COLUMNS = (
    "_pos", "_commit_ts", "_batch", "_schema", "op", "source", "key", "before", "after", "_snapshot", "_changed",
    "_exact",
)  # fmt: skip
"""The columns of a change log that records are rendered from."""
STRICT = Failures()
_BEFORE_SPLIT, _AFTER_SPLIT = 3, 4


@dataclass(frozen=True, slots=True)
class Changes:
    """Consecutive changes of one schema version of a table: their facts, and the JSON texts of images and keys.

    `before` and `after` are `null` where a change has no such image; a key is meaningless there, and None if the table
    has none. `same_key` shows which keys are equal; a text can hide that one is NULL and the other the default.
    `header_before` and `header_after` are the keys as headers show them; None: they look like the keys. `unchanged`
    shows which changes have two equal images, whatever the texts hide; None: it is not needed. If `failed`, the changes
    could not be rendered: they have no images and no records.
    """

    shape: TableShape
    pos: pa.Array
    op: pa.Array
    batch: Numbers
    commit_us: pa.Array
    commit_lsn: pa.Array
    change_lsn: pa.Array
    before: Texts
    after: Texts
    key_before: Texts | None
    key_after: Texts | None
    same_key: pa.Array | None
    header_before: Texts | None = None
    header_after: Texts | None = None
    unchanged: pa.Array | None = None
    failed: bool = False

    def __len__(self) -> int:
        return len(self.pos)

    def is_op(self, op: str) -> Numbers:
        """Return which changes have this op."""
        return bools(pc.equal(self.op, op))

    @property
    def moved(self) -> Numbers:
        """Which changes are updates that change the record's key."""
        if self.same_key is None:
            return np.zeros(len(self), bool)
        differ = ~bools(self.same_key)
        return differ & self.is_op("u") & bools(pc.not_equal(self.before, "null"))


def changes_of(
    batch: pa.RecordBatch,
    table_id: TableId,
    shapes: Shapes,
    *,
    skipped: Collection[str] = (),
    failures: Failures = STRICT,
) -> Iterator[Changes]:
    """Yield the batch's changes in order, by schema version; a split key change becomes the original update again.

    Args:
        batch: Rows of a change log, in position order, with both halves of each split key change.
        table_id: The table.
        shapes: How its schema versions are rendered.
        skipped: Leave out these ops.
        failures: Handles changes that cannot be rendered.

    Raises:
        SchemaError: The history lacks a version, or half of a key change is missing.
        ConversionError: A change cannot be rendered.
    """
    rows = _rejoined(batch, table_id)
    if skipped:
        rows = rows.filter(pc.invert(pc.is_in(rows.op, value_set=pa.array(sorted(skipped), pa.string()))))
    versions = rows.after.column("_schema").to_numpy()
    bounds = [0, *(np.flatnonzero(versions[1:] != versions[:-1]) + 1).tolist(), len(versions)]
    for start, end in pairwise(bounds):
        if end > start:
            yield from _rendered(rows.slice(start, end - start), shapes.of(table_id, int(versions[start])), failures)


def bools(values: pa.Array) -> Numbers:
    """Return booleans; NULL is false."""
    return pc.fill_null(values, fill_value=False).to_numpy(zero_copy_only=False)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows whose before images come from `before`, everything else from `after`; the two differ in `rejoined` rows."""

    before: pa.RecordBatch
    after: pa.RecordBatch
    op: pa.Array
    rejoined: pa.Array | None = None

    def slice(self, start: int, rows: int) -> _Rows:
        again = None if self.rejoined is None else self.rejoined.slice(start, rows)
        return _Rows(self.before.slice(start, rows), self.after.slice(start, rows), self.op.slice(start, rows), again)

    def without_images(self) -> _Rows:
        """Return the rows with nothing but their facts."""
        return _Rows(_without_images(self.before), _without_images(self.after), self.op)

    def filter(self, wanted: pa.Array) -> _Rows:
        if pc.all(wanted).as_py():
            return self
        again = None if self.rejoined is None else self.rejoined.filter(wanted)
        return _Rows(self.before.filter(wanted), self.after.filter(wanted), self.op.filter(wanted), again)


def _without_images(batch: pa.RecordBatch) -> pa.RecordBatch:
    for name in ("before", "after"):
        place = batch.schema.get_field_index(name)
        field_ = batch.schema.field(place)
        batch = batch.set_column(place, field_, pa.nulls(batch.num_rows, field_.type))
    return batch


def _rendered(rows: _Rows, shape: TableShape, failures: Failures) -> Iterator[Changes]:
    """Yield the changes; if they cannot be rendered together, halves of them, down to the one that is the cause."""
    count = len(rows.op)
    try:
        found = _same_version(rows, shape)
    except CONVERSION_ERRORS as error:
        if count > 1:
            yield from _rendered(rows.slice(0, count // 2), shape, failures)
            yield from _rendered(rows.slice(count // 2, count - count // 2), shape, failures)
            return
        failures.handle(shape.table_id, rows.after.column("_pos")[0].as_py(), error)
        found = replace(_same_version(rows.without_images(), shape), failed=True)
    yield found


def _rejoined(batch: pa.RecordBatch, table_id: TableId) -> _Rows:
    """Rejoin updates that rule B13 stored as a delete and a create."""
    op, operation = batch.column("op"), batch.column("source").field("operation")
    deletes = np.flatnonzero(bools(pc.and_(pc.equal(op, "d"), pc.equal(operation, _BEFORE_SPLIT))))
    if not len(deletes):
        return _Rows(batch, batch, op)
    second = bools(pc.and_(pc.equal(op, "c"), pc.equal(operation, _AFTER_SPLIT)))
    stems = pc.utf8_slice_codeunits(batch.column("_pos"), 0, -1)
    creates = np.minimum(deletes + 1, batch.num_rows - 1)
    broken = ~(second[creates] & bools(pc.equal(stems.take(pa.array(deletes)), stems.take(pa.array(creates)))))
    if broken.any():
        where = batch.column("_pos")[int(deletes[broken][0])]
        raise SchemaError(f"{table_id}: the delete of the key change at {where} is not followed by its create")
    kept = np.ones(batch.num_rows, bool)
    kept[deletes] = False
    after_rows = np.flatnonzero(kept)
    again = np.zeros(batch.num_rows, bool)
    again[creates] = True
    rejoined = again[after_rows]
    before, after = batch.take(pa.array(after_rows - rejoined)), batch.take(pa.array(after_rows))
    mask = pa.array(rejoined)
    return _Rows(before, after, pc.if_else(mask, "u", after.column("op")), mask)


def _same_version(rows: _Rows, shape: TableShape) -> Changes:
    after, source = rows.after, rows.after.column("source")
    again: dict[str, Values] = {}
    if shape.reselect is not None:
        key = [column.name for _, column, _ in shape.key_fields]
        again = shape.reselect.read(shape.schema, key, after, rows.op)
    after_side, before_side = _side(after, shape, "after", {}), _side(rows.before, shape, "before", {})
    if before_side is not None and shape.large:
        _hide_untouched(before_side, after_side, rows, shape)
    count = after.num_rows
    # Re-selected values are only shown: Debezium builds keys and compares images before its post-processors run.
    shown_side = _side(after, shape, "after", again) if again else after_side
    return Changes(
        shape,
        after.column("_pos"),
        rows.op,
        after.column("_batch").to_numpy(),
        after.column("_commit_ts").view(pa.int64()),
        source.field("commit_lsn"),
        source.field("change_lsn"),
        repeated("null", count) if before_side is None else before_side.image(),
        repeated("null", count) if shown_side is None else shown_side.image(),
        _key(before_side, shape, count),
        _key(after_side, shape, count),
        _same_key(before_side, after_side, shape),
        _header_key(before_side, shape, count),
        _header_key(after_side, shape, count),
        _unchanged(before_side, after_side) if shape.compares else None,
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """The rendered columns of one image, by field name, and those of the key.

    `missing` shows where key columns are NULL, `nulls` where columns are NULL whose NULL looks like their default.
    """

    present: pa.Array
    fields: dict[str, Texts]
    keys: dict[str, Texts]
    missing: Mapping[str, pa.Array]
    nulls: dict[str, pa.Array]
    header_keys: dict[str, Texts]

    def image(self) -> Texts:
        texts = objects(list(self.fields.items()), len(self.present))
        return texts if pc.all(self.present).as_py() else pc.if_else(self.present, texts, "null")


def _side(batch: pa.RecordBatch, shape: TableShape, side: Side, again: Mapping[str, Values]) -> _Side | None:
    """Render one image, with the re-selected values; None if no row has it."""
    image = batch.column(side)
    present = image.is_valid()
    if not pc.any(present).as_py():
        return None
    exact = batch.column("_exact").field(side)

    def values(column: Column) -> Values:
        found, known = stored(column)
        # Delta may have widened the column since: the record has the type of its own version.
        return (found if found.type.equals(column.type.arrow) else found.cast(column.type.arrow)), known

    def stored(column: Column) -> Values:
        if column.name in again:
            return again[column.name]
        where = image.type.get_field_index(column.stored_name)
        if column.excluded or where < 0:  # A key column hidden by a column filter: only the key contains it (EVT-03).
            return batch.column("key").field(column.stored_name), None
        return image.field(where), map_value(exact, column.name) if column.type.loss != "never" else None

    def texts(column: Column, convert: Convert) -> Texts:
        found, known = values(column)
        if not isinstance(convert, RowConvert) or pc.all(present).as_py():
            return convert(found, known)
        own = convert(found.filter(present), None if known is None else known.filter(present))
        rows = bools(present)
        return pc.fill_null(own.take(pa.array(np.cumsum(rows) - 1, mask=~rows)), "null")

    fields = {name: texts(column, convert) for name, column, convert in shape.fields}
    keys = {
        name: fields[name] if shape.shares_texts and name in fields else texts(column, convert)
        for name, column, convert in shape.key_fields
    }
    missing: dict[str, pa.Array] = {
        name: values(column)[0].is_null() for name, column, _ in shape.key_fields if column.nullable
    }
    nulls: dict[str, pa.Array] = {
        name: values(column)[0].is_null() for name, column, _ in shape.fields if name in shape.defaulted
    }
    header_keys = {name: texts(column, convert) for name, column, convert in shape.header_fields or ()}
    return _Side(present, fields, keys, missing, nulls, header_keys)


def _key(side: _Side | None, shape: TableShape, count: int) -> Texts | None:
    if not shape.has_key:
        return None
    return repeated("null", count) if side is None else _object(side.keys, shape, count)


def _object(keys: Mapping[str, Texts], shape: TableShape, count: int) -> Texts:
    """Return keys as JSON objects, with the fields that are the same in each."""
    return objects([*keys.items(), *((name, repeated(json_text(text), count)) for name, text in shape.added)], count)


def _header_key(side: _Side | None, shape: TableShape, count: int) -> Texts | None:
    """Return the key as a header shows it; None if it looks the same there."""
    if side is None or not shape.header_fields:
        return None
    return _object(side.header_keys, shape, count)


def _same_key(before: _Side | None, after: _Side | None, shape: TableShape) -> pa.Array | None:
    if before is None or after is None or not shape.key_fields:
        return None
    same = [pc.equal(before.keys[name], after.keys[name]) for name in before.keys]
    same += [pc.equal(before.missing[name], after.missing[name]) for name in before.missing]
    return reduce(pc.and_, same)


def _unchanged(before: _Side | None, after: _Side | None) -> pa.Array | None:
    if before is None or after is None:
        return None
    same = [pc.equal(before.image(), after.image())]
    same += [pc.equal(before.nulls[name], after.nulls[name]) for name in before.nulls]
    return reduce(pc.and_, same)


def _hide_untouched(before: _Side, after: _Side | None, rows: _Rows, shape: TableShape) -> None:
    """Set unchanged large values to NULL in the before image of an update, as Debezium 3.3.1 shows them.

    The lake contains them nevertheless: `source/sqlserver/images` copies them from the after image. Both rows of a
    split key change have them, too.
    """
    is_update = pc.equal(rows.op, "u")
    changed = rows.after.column("_changed")
    owners, names = changed.value_parent_indices(), changed.flatten()
    for large in shape.large:
        touched = np.zeros(len(rows.op), bool)
        touched[owners.filter(pc.equal(names, large.column)).to_numpy()] = True
        hidden = pc.and_(is_update, pa.array(~touched))
        texts = before.fields[large.field]
        if rows.rejoined is not None and after is not None:
            hidden = pc.if_else(rows.rejoined, pc.equal(texts, after.fields[large.field]), hidden)
        before.fields[large.field] = pc.if_else(hidden, large.instead, texts)
        if large.field in before.nulls:
            before.nulls[large.field] = pc.or_(before.nulls[large.field], hidden)
