"""The lake's side of a check as streams of canonical rows: a current table, or what a change log adds up to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.check.compared import Compared, Unknown
from mssql_cdc.lake.canonical import lake_text
from mssql_cdc.schema import Column, TableSchema, current_names
from mssql_cdc.source.values import Texts

_WIDE = Context(prec=100)
"""Holds every SQL Server number at every scale."""


class CurrentRows:
    """The rows of a current table, whatever engine reads its batches."""

    def __init__(self, compared: Compared, recorded: TableSchema) -> None:
        self._compared = compared
        stored = current_names(recorded)
        self._names = [stored[name] for name in compared.names]

    def arrays(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The compared columns of a batch, in their order."""
        return [batch.column(name) for name in self._names]

    def texts(self, batch: pa.RecordBatch) -> Iterator[tuple[Texts, frozenset[str]]]:
        """The rows of a batch, each with the compared columns that CDC never delivered."""
        known = frozenset(self._compared.names)
        unknown = batch.column("_unavailable").to_pylist()
        rows = texts_of(self._compared.columns, self.arrays(batch), batch.column("_exact"))
        for row, names in zip(rows, unknown, strict=True):
            yield row, frozenset(names or ()) & known

    def unknown(self, batches: Iterable[pa.RecordBatch]) -> Unknown:
        """The cells that CDC never delivered, by the key of their row."""
        return {self._compared.key(row): names for row, names in self.partial(batches)}

    def partial(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Texts, frozenset[str]]]:
        """The rows with cells that CDC never delivered, and the columns of these cells."""
        for batch in batches:
            some = batch.filter(pc.greater(pc.fill_null(pc.list_value_length(batch.column("_unavailable")), 0), 0))
            if some.num_rows:
                yield from ((row, names) for row, names in self.texts(some) if names)


def image_texts(batch: pa.RecordBatch, image: str, columns: Sequence[Column]) -> Iterator[Texts | None]:
    """The rows of `before` or `after` of change-log rows; None where there is no image.

    Args:
        batch: Rows of the change log.
        image: `before` or `after`.
        columns: The columns to read.
    """
    struct = batch.column(image)
    arrays = [pc.struct_field(struct, [column.stored_name]) for column in columns]
    rows = texts_of(columns, arrays, pc.struct_field(batch.column("_exact"), [image]))
    for row, there in zip(rows, struct.is_valid().to_pylist(), strict=True):
        yield row if there else None


def names_elsewhere(batch: pa.RecordBatch, image: str, columns: Sequence[Column]) -> Iterator[frozenset[str]]:
    """The columns of each row whose value is in a former Delta column: the row is older than the present type.

    Args:
        batch: Rows of the change log.
        image: `before` or `after`.
        columns: The columns to look for.
    """
    struct = batch.column(image)
    found: list[set[str]] = [set() for _ in range(batch.num_rows)]
    for column in columns:
        for former in column.former:
            place = struct.type.get_field_index(former.name)
            if place < 0:
                continue
            for row in np.flatnonzero(np.asarray(pc.struct_field(struct, [former.name]).is_valid(), dtype=bool)):
                found[int(row)].add(column.name)
    return map(frozenset, found)


def texts_of(columns: Sequence[Column], arrays: Sequence[pa.Array], exact: pa.Array) -> Iterator[Texts]:
    """The canonical texts of rows, from their columns and the map of their exact texts.

    Args:
        columns: The columns.
        arrays: The values of each column.
        exact: The `_exact` map of each row.
    """
    values = [in_scale(column, array) for column, array in zip(columns, arrays, strict=True)]
    exacts = exact_maps(exact)
    for cells, known in zip(zip(*values, strict=True), exacts, strict=True):
        yield tuple(
            lake_text(column, cell, known.get(column.name) if known else None)
            for column, cell in zip(columns, cells, strict=True)
        )


def exact_maps(exact: pa.Array) -> list[dict[str, str] | None]:
    """The exact texts of each row by column; None for rows without any."""
    if exact.null_count == len(exact):
        return [None] * len(exact)
    return [dict(entries) if entries else None for entries in exact.to_pylist()]


def in_scale(column: Column, array: pa.Array) -> list[Any]:
    """Like `python_values`, but numbers have as many decimal places as the column has at the source now.

    The scale of a column may have changed since the lake stored its values, which are the same numbers. A number that
    the scale cannot hold keeps its own digits: it is another number at the source.

    Args:
        column: The column as the source has it.
        array: Its values.
    """
    values, stored, wanted = python_values(array), array.type, column.type.arrow
    if not isinstance(stored, pa.Decimal128Type) or not isinstance(wanted, pa.Decimal128Type):
        return values
    if stored.scale == wanted.scale:
        return values
    unit = Decimal(1).scaleb(-wanted.scale)
    scaled = [None if value is None else value.quantize(unit, context=_WIDE) for value in values]
    return [old if new != old else new for old, new in zip(values, scaled, strict=True)]


def python_values(array: pa.Array) -> list[Any]:
    """Values as Python objects; times as numbers, since not all of SQL Server's fit `datetime`."""
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64()).to_pylist()
    return array.to_pylist()
