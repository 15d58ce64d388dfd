"""Records as Arrow batches: what every output gets, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.records.json_texts import Texts, joined, json_text, quoted

RECORDS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32()),
        pa.field("key", pa.string()),
        pa.field("value", pa.string()),
        pa.field("headers", pa.string(), nullable=False),
        pa.field("source_partition", pa.string(), nullable=False),
        pa.field("source_offset", pa.string(), nullable=False),
        pa.field("position", pa.string(), nullable=False),
    ]
)
"""Columns `key` to `source_offset` are JSON texts; a NULL value is a tombstone, a NULL partition is chosen by key.

`position` is the `_pos` of the change: records of one change share it, and records are in the order of their batches.
"""
Record = dict[str, Any]
Part = tuple[np.ndarray[Any, Any], pa.RecordBatch]
"""Records, and numbers that order them among the records of other parts."""


def batch_of(columns: Mapping[str, Texts | str | int | None], rows: int) -> pa.RecordBatch:
    """Build a batch; a value that is not an array is the same in every row."""
    arrays = [_column(columns[field.name], field.type, rows) for field in RECORDS]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)


def batch_of_records(records: Sequence[Record], position: str) -> pa.RecordBatch:
    """Build a batch of single records at one position."""
    texts = {"key": "key", "value": "value", "headers": "headers"}
    texts |= {"source_partition": "sourcePartition", "source_offset": "sourceOffset"}
    rows = [
        {"topic": one["topic"], "partition": one["partition"], "position": position}
        | {column: None if one[name] is None else json_text(one[name]) for column, name in texts.items()}
        for one in records
    ]
    return pa.RecordBatch.from_pylist(rows, schema=RECORDS)


def in_order(parts: Iterable[Part]) -> pa.RecordBatch:
    """Merge batches by the numbers that each has for its records; equal numbers keep the order of the parts."""
    known = [(numbers, batch) for numbers, batch in parts if batch.num_rows]
    if not known:
        return _empty()
    if len(known) == 1:
        return known[0][1]
    numbers = np.concatenate([numbers for numbers, _ in known])
    merged = pa.concat_batches([batch for _, batch in known])
    return merged.take(pa.array(np.argsort(numbers, kind="stable")))


def json_lines(batch: pa.RecordBatch) -> Texts:
    """Return the records as JSON lines, each with its line feed."""
    return joined(
        '{"topic":', quoted(batch.column("topic")),
        ',"partition":', pc.fill_null(batch.column("partition").cast(pa.string()), "null"),
        ',"key":', pc.fill_null(batch.column("key"), "null"),
        ',"value":', pc.fill_null(batch.column("value"), "null"),
        ',"headers":', batch.column("headers"),
        ',"sourcePartition":', batch.column("source_partition"),
        ',"sourceOffset":', batch.column("source_offset"),
        "}\n",
    )  # fmt: skip


def _empty() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in RECORDS], schema=RECORDS)


def _column(value: Texts | str | int | None, of_type: pa.DataType, rows: int) -> pa.Array:
    return value if isinstance(value, pa.Array) else pa.repeat(pa.scalar(value, of_type), rows)
