"""Operations on Arrow structs, lists and maps that pyarrow does not have, without a Python loop per row.

This module does not interpret the arrays, except that a list of column names may contain `before.<name>`.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def struct_array(children: list[pa.Array], struct_type: pa.StructType, nulls: pa.Array) -> pa.StructArray:
    """A struct array.

    Args:
        children: one array per field.
        struct_type: names and types of the fields.
        nulls: booleans; the struct is NULL where they are true.
    """
    return pa.StructArray.from_arrays(children, fields=list(struct_type), mask=nulls)


def list_without(lists: pa.ListArray, keep: np.ndarray) -> pa.ListArray:
    """The same lists with only those flattened elements for which `keep` is true; NULL lists stay NULL."""
    offsets = _kept_offsets(lists, keep)
    values = lists.flatten().filter(pa.array(keep))
    return pa.ListArray.from_arrays(offsets, values, type=lists.type, mask=lists.is_null())


def names_without(lists: pa.ListArray, names: Collection[str]) -> pa.ListArray:
    """The same lists of column names without `names` and without their `before.<name>`."""
    if not names or lists.null_count == len(lists):
        return lists
    unwanted = pa.array([*names, *(f"before.{name}" for name in names)], pa.string())
    return list_without(lists, ~_as_bools(pc.is_in(lists.flatten(), value_set=unwanted)))


def map_without(maps: pa.MapArray, names: Collection[str]) -> pa.MapArray:
    """The same maps without the entries for these keys; a map that becomes empty becomes NULL."""
    if not names or maps.null_count == len(maps):
        return maps
    lists = pa.ListArray.from_arrays(  # A map is a list of entries; its keys are filtered like any list.
        _compact_offsets(maps), _entries(maps), mask=maps.is_null()
    )
    keep = ~_as_bools(pc.is_in(lists.flatten().field("key"), value_set=pa.array(list(names), pa.string())))
    kept = list_without(lists, keep)
    empty = pc.equal(pc.fill_null(pc.list_value_length(kept), 0), 0)
    entries = kept.flatten()
    return pa.MapArray.from_arrays(
        _compact_offsets(kept), entries.field("key"), entries.field("value"), maps.type, mask=empty
    )


def map_value(maps: pa.MapArray, key: str) -> pa.Array | None:
    """The value of `key` in each map, NULL for a map without it; None instead of an array if no map has it."""
    if maps.null_count == len(maps):
        return None
    found = pc.map_lookup(maps, query_key=pa.scalar(key), occurrence="first")
    return found if found.null_count < len(found) else None


def _entries(maps: pa.MapArray) -> pa.StructArray:
    valid = maps.filter(maps.is_valid()) if maps.null_count else maps
    offsets = np.asarray(valid.offsets)
    keys, items = valid.keys, valid.items
    if len(valid) and (offsets[0] or offsets[-1] != len(keys)):
        first = int(offsets[0])
        keys, items = (part.slice(first, int(offsets[-1]) - first) for part in (keys, items))
    return pa.StructArray.from_arrays([keys, items], names=["key", "value"])


def _compact_offsets(lists: pa.ListArray | pa.MapArray) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(_lengths(lists))]), pa.int32())


def _kept_offsets(lists: pa.ListArray, keep: np.ndarray) -> pa.Array:
    running = np.concatenate([[0], np.cumsum(keep)])
    ends = np.concatenate([[0], np.cumsum(_lengths(lists))])
    return pa.array(running[ends], pa.int32())


def _lengths(lists: pa.ListArray | pa.MapArray) -> np.ndarray:
    offsets = np.asarray(lists.offsets)
    return np.where(np.asarray(lists.is_valid()), offsets[1:] - offsets[:-1], 0)


def _as_bools(values: pa.Array) -> np.ndarray:
    return values.to_numpy(zero_copy_only=False).astype(bool)
