"""Rows of `_offsets`: the values, the columns that they are kept in, and a sequence that decodes them late.

What rows mean together is derived in `lake/offsets.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal, get_args, overload

import pyarrow as pa

from mssql_cdc.schema.arrow import INSTANT, TEXTS

Status = Literal["streaming", "snapshot", "lost", "failed", "excluded"]
_BLOCK = 256
Kind = Literal["range", "snapshot", "idle", "status", "epoch"]


@dataclass(frozen=True, slots=True, order=True)
class Reached:
    """How far something has come: a source position in its epoch; later epochs are larger."""

    epoch: int
    to: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What a row says of one table. `folder` is its home below the database's root, fixed at first capture."""

    status: Status
    to: str | None = None
    epoch: int = 0
    delta_table_id: str | None = None
    delta_version: int | None = None
    batch: int | None = None
    rows: int = 0
    incarnation: int = 1
    folder: str | None = None
    reason: str | None = None

    @property
    def reached(self) -> Reached | None:
        """How far the table has come by this entry."""
        return None if self.to is None else Reached(self.epoch, self.to)


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """One row of `_offsets`; `number` is its `_batch`.

    `failed` names the members that a complete cut goes on without. `witness` and `facts` are texts of the source and
    of the run (JSON). A row of kind `epoch` begins one: positions of earlier epochs mean nothing any more (rule A7).
    """

    kind: Kind
    at: datetime
    tables: Mapping[str, Entry]
    to: str | None = None
    epoch: int = 0
    complete: bool = False
    failed: tuple[str, ...] = ()
    scanned: str | None = None
    partition: str | None = None
    run_id: str | None = None
    witness: str | None = None
    facts: str | None = None
    number: int = 0

    @property
    def reached(self) -> Reached | None:
        """The end of the range."""
        return None if self.to is None else Reached(self.epoch, self.to)

    @property
    def noted(self) -> dict[str, Any]:
        """The facts of the run, decoded."""
        return json.loads(self.facts) if self.facts else {}


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
    ]
)
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


def encode(row: OffsetRow) -> dict[str, Any]:
    """The row as it is stored, without its number."""
    bad = [entry.status for entry in row.tables.values() if entry.status not in get_args(Status)]
    if bad:
        raise ValueError(f"Unknown status {bad}; known are {get_args(Status)}")
    values = {name: getattr(row, name) for name in OFFSETS_SCHEMA.names if hasattr(row, name)}
    return {
        **values,
        "failed": list(row.failed),
        "tables": [(name, asdict(entry)) for name, entry in sorted(row.tables.items())],
    }


class Rows(Sequence[OffsetRow]):
    """The rows of a table of `OFFSETS_SCHEMA`; each is decoded when it is asked for."""

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

    def __iter__(self) -> Iterator[OffsetRow]:
        for start in range(0, len(self), _BLOCK):
            yield from self[start : start + _BLOCK]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def decode(found: Mapping[str, Any]) -> OffsetRow:
    """The row of stored values."""
    values = {name: value for name, value in found.items() if name != "_batch"}
    values["failed"] = tuple(values["failed"] or ())
    values["tables"] = {name: Entry(**entry) for name, entry in values["tables"] or ()}
    return OffsetRow(number=found["_batch"], **values)


def numbered(row: OffsetRow, number: int) -> pa.Table:
    """The row under its number, as a table."""
    return pa.Table.from_pylist([{**encode(replace(row, number=number)), "_batch": number}], schema=OFFSETS_SCHEMA)
