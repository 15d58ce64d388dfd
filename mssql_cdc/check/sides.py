"""The two sides of a check as streams of canonical rows: the source through pyodbc, the lake through `deltalake`.

The lake's files are read by a different engine (DataFusion, in this process) than the one that capture and MERGE use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.check.canonical import canon, lake_text, source_text
from mssql_cdc.check.multiset import Row, Texts
from mssql_cdc.lake.read import query
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.schema import Column, TableSchema, current_names
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.sql import quote

FETCH_ROWS = 5_000
Unknown = Mapping[Texts, frozenset[str]]
"""Keys whose rows have cells that CDC never delivered, and the columns of those cells."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The compared columns of a table, and the columns of its key."""

    schema: TableSchema
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, schema: TableSchema, hidden: Collection[str]) -> Compared:
        """Select all columns except computed ones, which CDC never delivers, and `hidden` ones (masked)."""
        shown = (c for c in schema.value_columns if not c.computed and c.name not in hidden)
        return cls(schema, tuple(shown))

    @property
    def names(self) -> tuple[str, ...]:
        """The compared columns' names."""
        return tuple(column.name for column in self.columns)

    def row(self, texts: Sequence[str | None], count: int = 1, unknown: Unknown | None = None) -> Row:
        """A row for the comparison from the texts of `columns`, unknown cells left out."""
        named = dict(zip(self.names, texts, strict=True))
        key = tuple(named.get(name) for name in self.schema.key_columns)
        blank = unknown.get(key, ()) if unknown else ()
        values = tuple(None if name in blank else text for name, text in named.items())
        return key, values, count


def source_rows(control: Control, compared: Compared, unknown: Unknown | None = None) -> Iterator[Row]:
    """Every row of the source table."""
    table = compared.schema.table_id
    expressions = ", ".join(canon(c.type).select.replace("{c}", quote(c.name)) for c in compared.columns)
    with closing(control.raw.cursor()) as cursor:
        cursor.execute(f"SELECT {expressions} FROM {quote(table.schema)}.{quote(table.name)}")
        while fetched := cursor.fetchmany(FETCH_ROWS):
            for row in fetched:
                texts = [source_text(c, value) for c, value in zip(compared.columns, row, strict=True)]
                yield compared.row(texts, unknown=unknown)


def current_rows(
    uri: str, compared: Compared, unknown: Unknown | None = None, storage: Storage = LOCAL
) -> Iterator[Row]:
    """Every row of the current table."""
    stored = current_names(compared.schema)
    for batch in query(uri, "SELECT * FROM t", storage):
        columns = [batch.column(stored[name]) for name in compared.names]
        for texts in _texts(compared.columns, columns, batch.column("_exact")):
            yield compared.row(texts, unknown=unknown)


def unknown_cells(uri: str, compared: Compared, storage: Storage = LOCAL) -> Unknown:
    """The cells of the current table whose values CDC never delivered."""
    stored = current_names(compared.schema)
    found: dict[Texts, frozenset[str]] = {}
    for batch in query(uri, "SELECT * FROM t WHERE cardinality(_unavailable) > 0", storage):
        columns = [batch.column(stored[name]) for name in compared.names]
        texts = _texts(compared.columns, columns, batch.column("_exact"))
        for row, names in zip(texts, batch.column("_unavailable").to_pylist(), strict=True):
            key, _, _ = compared.row(row)
            blank = frozenset(names) & set(compared.names)
            if blank:
                found[key] = blank
    return found


def log_rows(uri: str, compared: Compared, storage: Storage = LOCAL) -> Iterator[Row]:
    """Yield the net rows of a change log: after images minus before images (tables without a key)."""
    for image, count in (("after", 1), ("before", -1)):
        sql = f"SELECT {image} AS image, _exact FROM t WHERE {image} IS NOT NULL"
        for batch in query(uri, sql, storage):
            struct = batch.column("image")
            columns = [struct.field(struct.type.get_field_index(name)) for name in compared.names]
            for texts in _texts(compared.columns, columns, _field(batch.column("_exact"), image)):
                yield compared.row(texts, count)


def _field(struct: pa.StructArray, name: str) -> pa.Array:
    """A child of a struct; NULL where the struct is."""
    return pc.struct_field(struct, name)


def _texts(columns: Sequence[Column], arrays: Sequence[pa.Array], exact: pa.Array) -> Iterator[tuple[str | None, ...]]:
    values = [_python(array) for array in arrays]
    exacts = [dict(entries) if entries else None for entries in exact.to_pylist()]
    for cells, known in zip(zip(*values, strict=True), exacts, strict=True):
        yield tuple(
            lake_text(column, cell, known.get(column.name) if known else None)
            for column, cell in zip(columns, cells, strict=True)
        )


def _python(array: pa.Array) -> list[Any]:
    """Values as Python has them; times as numbers, since not all of SQL Server's fit `datetime`."""
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64()).to_pylist()
    return array.to_pylist()
