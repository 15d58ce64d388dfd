"""The storage format of `_offsets` rows: their columns, and a sequence that decodes them lazily.

`lake/steps.py` defines the values; `lake/offsets.py` derives their combined meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, cast, get_args, overload

import pyarrow as pa

from mssql_cdc.lake.steps import Entry, OffsetRow, Status, facts_of_text, facts_text, witness_of_text, witness_text
from mssql_cdc.schema.arrow import INSTANT, TEXTS

_BLOCK = 256
"""Rows that are decoded at once; backward, the first block is smaller: most callers want the newest few."""
_FEW = 8
_ENTRY = pa.struct(
    [
        pa.field("status", pa.string()),
        pa.field("to", pa.string()),
        pa.field("epoch", pa.int32()),
        pa.field("delta_table_id", pa.string()),
        pa.field("delta_version", pa.int64()),
        pa.field("batch", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("incarnation", pa.int32()),
        pa.field("folder", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("instance", pa.string()),
        pa.field("schema", pa.int32()),
        pa.field("filled", pa.int32()),
        pa.field("object_id", pa.int64()),
        pa.field("shown", pa.string()),
    ]
)
_ENTRY_NAMES = tuple(field.name for field in _ENTRY)
_entry_values = attrgetter(*_ENTRY_NAMES)
OFFSETS_SCHEMA = pa.schema(
    [
        pa.field("_batch", pa.int64()),
        pa.field("at", INSTANT),
        pa.field("kind", pa.string()),
        pa.field("epoch", pa.int32()),
        pa.field("to", pa.string()),
        pa.field("complete", pa.bool_()),
        pa.field("failed", TEXTS),
        pa.field("scanned", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("run_id", pa.string()),
        pa.field("witness", pa.string()),
        pa.field("facts", pa.string()),
        pa.field("tables", pa.map_(pa.string(), _ENTRY)),
    ]
)

_UNNUMBERED = pa.schema([field for field in OFFSETS_SCHEMA if field.name != "_batch"])


def encode(row: OffsetRow) -> pa.RecordBatch:
    """Encode the row for storage, without its number."""
    bad = [entry.status for entry in row.tables.values() if entry.status not in get_args(Status)]
    if bad:
        raise ValueError(f"Unknown status {bad}; known are {get_args(Status)}")
    values = {name: getattr(row, name) for name in OFFSETS_SCHEMA.names if hasattr(row, name)}
    encoded = {
        **values,
        "facts": facts_text(row.facts),
        "witness": witness_text(row.witness),
        "failed": list(row.failed),
        "tables": [
            (name, dict(zip(_ENTRY_NAMES, _entry_values(entry), strict=True)))
            for name, entry in sorted(row.tables.items())
        ],
    }
    return pa.RecordBatch.from_pylist([encoded], schema=_UNNUMBERED)


class Rows(Sequence[OffsetRow]):
    """The rows of a table with `OFFSETS_SCHEMA`; each is decoded on access."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __len__(self) -> int:
        return self._table.num_rows

    @overload
    def __getitem__(self, index: int) -> OffsetRow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[OffsetRow, ...]: ...
    def __getitem__(self, index: int | slice) -> OffsetRow | tuple[OffsetRow, ...]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return tuple(decode(found) for found in self._table.slice(start, max(stop - start, 0)).to_pylist())
            return tuple(self[place] for place in range(start, stop, step))
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        return decode(self._table.slice(place, 1).to_pylist()[0])

    def at(self, places: Sequence[int]) -> tuple[OffsetRow, ...]:
        """The rows at these places; decoding them one by one costs several times as much."""
        return tuple(decode(found) for found in self._table.take(pa.array(places, pa.int64())).to_pylist())

    def __iter__(self) -> Iterator[OffsetRow]:
        for start in range(0, len(self), _BLOCK):
            yield from self[start : start + _BLOCK]

    def __reversed__(self) -> Iterator[OffsetRow]:
        end, size = len(self), _FEW
        while end > 0:
            yield from reversed(self[max(end - size, 0) : end])
            end, size = end - size, min(2 * size, _BLOCK)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return tuple(self) == tuple(cast("Sequence[object]", other))

    __hash__ = None  # type: ignore[assignment]


def decode(found: Mapping[str, Any]) -> OffsetRow:
    """Decode a row from its stored values."""
    values = {name: value for name, value in found.items() if name != "_batch"}
    values["failed"] = tuple(values["failed"] or ())
    values["facts"] = facts_of_text(values["facts"])
    values["witness"] = witness_of_text(values["witness"])
    values["tables"] = {name: Entry(**entry) for name, entry in values["tables"] or ()}
    return OffsetRow(number=found["_batch"], **values)


def numbered(row: pa.RecordBatch, number: int) -> pa.Table:
    """An encoded row with its number, as a table."""
    return pa.Table.from_arrays([pa.array([number], pa.int64()), *row.columns], schema=OFFSETS_SCHEMA)
