"""Before and after images of rows: structs of decoded columns, exact texts, unavailable and changed columns.

This module contains the rules about values that CDC does not deliver (TYP-05 and the first half of rule D24).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.schema import Column
from mssql_cdc.schema.arrow import EXACT, TEXTS
from mssql_cdc.source.sqlserver.columns import Decoded
from mssql_cdc.source.sqlserver.numpy_arrays import Bytes, Flags, Numbers, flags, text_lists, text_maps

DELETE, INSERT, BEFORE, AFTER = 1, 2, 3, 4
_NO_ROW = -1


@dataclass(frozen=True, slots=True)
class Images:
    """The four columns of a neutral batch that depend on row values."""

    before: pa.Array
    after: pa.Array
    unavailable: pa.Array
    exact: pa.Array


def build_images(
    columns: Sequence[Column], decoded: Sequence[Decoded], rows: Numbers, operation: Numbers, changed: Flags
) -> Images:
    """Images of change rows, one neutral row each.

    Args:
        columns: the captured columns.
        decoded: their values over all raw rows.
        rows: the raw row of each neutral row; the one before an operation 4 is its 3.
        operation: 1, 2 or 4 per neutral row.
        changed: `[i, j]` says whether the update mask of neutral row i includes column j.
    """
    before_row = np.where(operation == DELETE, rows, np.where(operation == AFTER, rows - 1, _NO_ROW))
    after_row = np.where(operation == DELETE, _NO_ROW, rows)
    before: list[pa.Array] = []
    after: list[pa.Array] = []
    exact_before: list[tuple[str, pa.Array]] = []
    exact_after: list[tuple[str, pa.Array]] = []
    for number, (column, (values, exact)) in enumerate(zip(columns, decoded, strict=True)):
        source = before_row
        if column.type.before_image != "always":
            # If unchanged, it is NULL in the 3 and has its value in the 4, so the before image is still known.
            untouched = (operation == AFTER) & ~changed[:, number]
            source = np.where(untouched, rows, before_row)
        before.append(_take(values, source))
        after.append(_take(values, after_row))
        if exact is not None:
            exact_before.append((column.name, _take(exact, source)))
            exact_after.append((column.name, _take(exact, after_row)))
    return Images(
        before=_struct(columns, before, before_row >= 0),
        after=_struct(columns, after, after_row >= 0),
        unavailable=_unavailable(columns, after, operation, changed),
        exact=_exact(exact_before, exact_after, len(rows)),
    )


def inserted_images(columns: Sequence[Column], decoded: Sequence[Decoded], rows: int) -> Images:
    """Images of rows read from the table itself: only `after`, everything known.

    Args:
        columns: the table's columns.
        decoded: their values, `rows` of each.
        rows: how many rows there are.
    """
    exact = [(column.name, texts) for column, (_, texts) in zip(columns, decoded, strict=True) if texts is not None]
    after = [values for values, _ in decoded]
    return Images(
        before=_struct(columns, [pa.nulls(rows, values.type) for values in after], np.zeros(rows, dtype=bool)),
        after=_struct(columns, after, np.ones(rows, dtype=bool)),
        unavailable=pa.nulls(rows, TEXTS),
        exact=_exact([], exact, rows),
    )


def mask_bits(masks: pa.Array, ordinals: Sequence[int]) -> Flags:
    """Which captured columns (1-based ordinals) each update mask includes.

    The last byte holds the ordinals 1 to 8, as `sys.fn_cdc_is_bit_set` reads it; a NULL mask includes none.
    """
    if not ordinals or masks.null_count == len(masks):
        return np.zeros((len(masks), len(ordinals)), dtype=bool)
    width = max(pc.max(pc.binary_length(masks)).as_py(), (max(ordinals) + 7) // 8)
    data = _right_aligned(masks, width)
    places = np.asarray(ordinals, dtype=np.int64) - 1
    return (data[:, width - 1 - places // 8] >> (places % 8).astype(np.uint8) & 1).astype(bool)


def changed_lists(columns: Sequence[Column], operation: Numbers, changed: Flags) -> pa.Array:
    """The `changed` column: names in column order for updates, NULL for everything else.

    Args:
        columns: the captured columns.
        operation: 1, 2 or 4 per row.
        changed: `[i, j]` says whether the update mask of row i includes column j.
    """
    return text_lists(changed & (operation == AFTER)[:, None], [c.name for c in columns], operation == AFTER)


def _right_aligned(masks: pa.Array, width: int) -> Bytes:
    """Mask bytes as a matrix, shorter masks padded with leading zero bytes."""
    offsets = np.frombuffer(masks.buffers()[1], dtype=np.int32)[masks.offset : masks.offset + len(masks) + 1]
    data = np.frombuffer(masks.buffers()[2], dtype=np.uint8)
    lengths = np.diff(offsets)
    if (lengths == width).all():
        return data[offsets[0] : offsets[-1]].reshape(len(masks), width)
    matrix = np.zeros((len(masks), width), dtype=np.uint8)
    from_right = np.arange(width - 1, -1, -1)
    inside = from_right[None, :] < lengths[:, None]
    matrix[inside] = data[(offsets[1:, None] - 1 - from_right[None, :])[inside]]
    return matrix


def _take(values: Any, rows: Numbers) -> pa.Array:
    """The values at `rows`, NULL where there is no row; not copied if that is every row in order."""
    absent = rows == _NO_ROW
    if absent.all():
        return pa.nulls(len(rows), values.type)
    if len(rows) == len(values) and not absent.any() and bool((np.diff(rows) == 1).all()):
        return values
    return values.take(pa.array(rows, mask=absent if absent.any() else None))


def _struct(columns: Sequence[Column], children: Sequence[pa.Array], present: Flags) -> pa.Array:
    fields = [pa.field(column.name, child.type) for column, child in zip(columns, children, strict=True)]
    mask = None if bool(present.all()) else pa.array(~present)
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _unavailable(columns: Sequence[Column], after: Sequence[pa.Array], operation: Numbers, changed: Flags) -> pa.Array:
    """`c`: unknown in every image; `before.c`: unknown in the before image only; NULL when all is known."""
    names: list[str] = []
    chosen: list[Flags] = []
    update = operation == AFTER
    for number, (column, values) in enumerate(zip(columns, after, strict=True)):
        if column.computed:
            names.append(column.name)
            chosen.append(np.ones(len(operation), dtype=bool))
        elif column.type.before_image == "never":
            touched = changed[:, number]
            names += [column.name, f"before.{column.name}"]
            chosen += [(operation == DELETE) | (update & ~touched & ~flags(values)), update & touched]
    if not names:
        return pa.nulls(len(operation), TEXTS)
    matrix = np.stack(chosen, axis=1)
    return text_lists(matrix, names, np.asarray(matrix.any(axis=1)))


def _exact(before: Sequence[tuple[str, pa.Array]], after: Sequence[tuple[str, pa.Array]], rows: int) -> pa.Array:
    maps = [text_maps(before, rows), text_maps(after, rows)]
    return pa.StructArray.from_arrays(maps, fields=list(EXACT))
