"""One neutral batch -> one batch of change-log rows: keys, key-change split, column filters, masks.

All operations work on entire columns; the only loops iterate over columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.events.key_text import key_texts
from mssql_cdc.events.masking import Mask
from mssql_cdc.events.nested_arrays import list_without, map_without, names_without, struct_array
from mssql_cdc.schema.arrow import EXACT, SOURCE_BLOCK, change_log_schema, stored_struct
from mssql_cdc.schema.tables import Column, TableSchema


def to_change_log(
    batch: pa.RecordBatch,
    *,
    table_schema: TableSchema,
    batch_number: int,
    masks: Mapping[str, Mask] | None = None,
    key_secret: bytes | None = None,
    snapshot: str | None = None,
) -> pa.RecordBatch:
    """Convert a neutral batch (`schema.neutral_schema`) to change-log rows (`schema.change_log_schema`).

    Args:
        batch: neutral changes in position order.
        table_schema: the table's structure; its `excluded` columns stay out of `before` and `after`.
        batch_number: `_batch`, the txn version of the commit that the rows are written for.
        masks: column name -> what happens to its values; applied before `key`, `_key` and `_exact` are written.
        key_secret: key of the HMAC that replaces `_key` when a key column is masked.
        snapshot: `_snapshot` of rows with op `r`.

    Raises:
        ConfigurationError: a key column is masked and there is no `key_secret`.
    """
    masks = masks or {}
    exact = batch.column("exact")
    find_keys = partial(key_texts, table_schema=table_schema, masked=set(masks), key_secret=key_secret)
    before_key = find_keys(batch.column("before"), exact.field("before"))
    after_key = find_keys(batch.column("after"), exact.field("after"))
    columns = _columns(batch, before_key, after_key, table_schema, masks)
    moved = pc.fill_null(pc.not_equal(before_key, after_key), False)
    if pc.any(moved).as_py():
        columns = _split(columns, moved, before_key)
    return _assemble(columns, table_schema, batch_number, snapshot)


def _columns(
    batch: pa.RecordBatch,
    before_key: pa.Array,
    after_key: pa.Array,
    table_schema: TableSchema,
    masks: Mapping[str, Mask],
) -> dict[str, Any]:
    """The batch's columns as in the log, still one row per change; images, keys and exact texts for each side."""
    exact = batch.column("exact")
    gone = {column.name for column in table_schema.columns if column.excluded}
    inexact_gone = gone | set(masks)
    columns = {name: batch.column(name) for name in ("pos", "commit_ts", "op")}
    columns |= {name: batch.column(name) for name in ("commit_lsn", "change_lsn", "command_id", "operation")}
    for image in ("before", "after"):
        source = batch.column(image)
        columns[image] = _image(source, table_schema.value_columns, masks, has_gone=bool(gone))
        columns[f"key_{image}"] = _image(source, table_schema.keys, masks, has_gone=True)
        columns[f"exact_{image}"] = map_without(exact.field(image), inexact_gone)
    columns["changed"] = names_without(batch.column("changed"), gone)
    columns["unavailable"] = names_without(batch.column("unavailable"), gone)
    columns["_key"] = pc.coalesce(after_key, before_key)
    return columns


def _image(
    image: pa.StructArray, columns: tuple[Column, ...], masks: Mapping[str, Mask], *, has_gone: bool
) -> pa.StructArray:
    """The struct of these columns, masked, under their Delta names; the same array if there is nothing to do."""
    if not has_gone and not any(column.name in masks or column.delta_name for column in columns):
        return image
    if not columns:
        return pa.nulls(len(image), pa.null())
    children: list[pa.Array] = []
    for column in columns:
        values = image.field(column.name)
        mask = masks.get(column.name)
        children.append(mask.apply(values, column.type) if mask else values)
    return struct_array(children, stored_struct(columns), image.is_null())


def _split(columns: dict[str, Any], moved: pa.Array, before_key: pa.Array) -> dict[str, Any]:
    """Split updates that change `_key` into a `d` with operation 3 and a `c` with operation 4 (rule B13)."""
    is_moved = moved.to_numpy(zero_copy_only=False).astype(bool)
    rows = np.repeat(np.arange(len(is_moved)), np.where(is_moved, 2, 1))
    second = np.concatenate([[False], rows[1:] == rows[:-1]])
    first = np.concatenate([second[1:], [False]])
    taken = {name: values.take(pa.array(rows)) for name, values in columns.items()}
    deleted, created = pa.array(first), pa.array(second)

    def without(name: str, unwanted: np.ndarray) -> pa.Array:
        return columns[name].take(pa.array(rows, mask=unwanted))

    for image, unwanted in (("before", second), ("after", first)):
        for name in (image, f"key_{image}", f"exact_{image}"):
            taken[name] = without(name, unwanted)
    taken["changed"] = without("changed", first | second)
    taken["unavailable"] = _split_unavailable(taken["unavailable"], first, second)
    taken["_key"] = pc.if_else(deleted, before_key.take(pa.array(rows)), taken["_key"])
    taken["op"] = pc.case_when(pc.make_struct(deleted, created), pa.scalar("d"), pa.scalar("c"), taken["op"])
    three = pc.binary_join_element_wise(pc.utf8_slice_codeunits(taken["pos"], 0, -1), "3", "")
    taken["pos"] = pc.if_else(deleted, three, taken["pos"])
    taken["operation"] = pc.if_else(deleted, pa.scalar(3, pa.int8()), taken["operation"])
    return taken


def _split_unavailable(lists: pa.ListArray, first: np.ndarray, second: np.ndarray) -> pa.ListArray:
    """`before.c` means the before image: it becomes `c` in the `d` row and disappears from the `c` row."""
    names = lists.flatten()
    if not len(names):
        return lists
    owner = lists.value_parent_indices().to_numpy()
    prefixed = pc.starts_with(names, "before.").to_numpy(zero_copy_only=False).astype(bool)
    in_delete = pa.array(first[owner] & prefixed)
    names = pc.if_else(in_delete, pc.utf8_slice_codeunits(names, len("before."), None), names)
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths.to_numpy())]), pa.int32())
    renamed = pa.ListArray.from_arrays(offsets, names, type=lists.type, mask=lists.is_null())
    return list_without(renamed, ~(second[owner] & prefixed))


def _assemble(
    columns: dict[str, Any], table_schema: TableSchema, batch_number: int, snapshot: str | None
) -> pa.RecordBatch:
    count = len(columns["pos"])
    never_null = pa.repeat(pa.scalar(value=False), count)
    is_read = pc.equal(columns["op"], "r")
    log = {
        "_pos": columns["pos"],
        "_commit_ts": columns["commit_ts"],
        "_batch": pa.repeat(pa.scalar(batch_number, pa.int64()), count),
        "_schema": pa.repeat(pa.scalar(table_schema.version, pa.int32()), count),
        "_key": columns["_key"],
        "op": columns["op"],
        "source": struct_array([columns[field.name] for field in SOURCE_BLOCK], SOURCE_BLOCK, never_null),
        "before": columns["before"],
        "after": columns["after"],
        "_snapshot": pc.if_else(is_read, pa.scalar(snapshot, pa.string()), pa.scalar(None, pa.string())),
        "_changed": columns["changed"],
        "_unavailable": columns["unavailable"],
        "_exact": _exact(columns["exact_before"], columns["exact_after"]),
    }
    if table_schema.key_columns:
        has_after = columns["key_after"].is_valid()
        log["key"] = pc.if_else(has_after, columns["key_after"], columns["key_before"])
    schema = change_log_schema(table_schema)
    return pa.RecordBatch.from_arrays([log[name] for name in schema.names], schema=schema)


def _exact(before: pa.MapArray, after: pa.MapArray) -> pa.StructArray:
    return struct_array([before, after], EXACT, pc.and_(before.is_null(), after.is_null()))
