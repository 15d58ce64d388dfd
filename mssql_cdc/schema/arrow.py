"""The three Arrow schemas of a table's rows: neutral changes, change log, current table.

Only this module derives them from a `TableSchema`. `lake/` converts them to Delta's schema text.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from mssql_cdc.schema.tables import Column, TableSchema

INSTANT = pa.timestamp("us", tz="UTC")
TEXTS = pa.list_(pa.field("element", pa.string()))
TEXT_MAP = pa.map_(pa.string(), pa.string())
PAIRS = pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string())]))
"""A text map as a list of its entries: Arrow has more functions for lists."""
EXACT = pa.struct([pa.field("before", TEXT_MAP), pa.field("after", TEXT_MAP)])
SOURCE_BLOCK = pa.struct(
    [
        pa.field("commit_lsn", pa.string()),
        pa.field("change_lsn", pa.string()),
        pa.field("command_id", pa.int32()),
        pa.field("operation", pa.int8()),
    ]
)
RESERVED_CURRENT = ("_key", "_pos", "_batch", "_exact", "_unavailable")
"""The current table's own columns; a source column with one of these names gets `_` appended."""


def row_struct(columns: Iterable[Column]) -> pa.StructType:
    """Return the struct of these columns, all of them nullable: CDC also omits values of NOT NULL columns."""
    return pa.struct([pa.field(column.name, column.type.arrow) for column in columns])


def stored_struct(columns: Iterable[Column]) -> pa.StructType:
    """Return the same struct as stored in the change log, with each column under the name of its Delta column."""
    return pa.struct([pa.field(column.stored_name, column.type.arrow) for column in columns])


def neutral_schema(table_schema: TableSchema) -> pa.Schema:
    """Return the schema of a source's batches: every captured column, even excluded ones, since keys may need them."""
    row = row_struct(table_schema.columns)
    return pa.schema(
        [
            pa.field("pos", pa.string(), nullable=False),
            pa.field("commit_ts", INSTANT),
            pa.field("op", pa.string(), nullable=False),
            pa.field("commit_lsn", pa.string()),
            pa.field("change_lsn", pa.string()),
            pa.field("command_id", pa.int32()),
            pa.field("operation", pa.int8()),
            pa.field("before", row),
            pa.field("after", row),
            pa.field("changed", TEXTS),
            pa.field("unavailable", TEXTS),
            pa.field("exact", EXACT),
        ]
    )


def change_log_schema(table_schema: TableSchema) -> pa.Schema:
    """The change log's columns (architecture §6), those with file statistics first.

    A table without a key has no `key` column (Delta has no empty structs) and `_key` is NULL.
    """
    row = stored_struct(table_schema.value_columns)
    key = [pa.field("key", stored_struct(table_schema.keys))] if table_schema.key_columns else []
    return pa.schema(
        [
            pa.field("_pos", pa.string()),
            pa.field("_commit_ts", INSTANT),
            pa.field("_batch", pa.int64()),
            pa.field("_schema", pa.int32()),
            pa.field("_key", pa.string()),
            pa.field("op", pa.string()),
            pa.field("source", SOURCE_BLOCK),
            *key,
            pa.field("before", row),
            pa.field("after", row),
            pa.field("_snapshot", pa.string()),
            pa.field("_changed", TEXTS),
            pa.field("_unavailable", TEXTS),
            pa.field("_exact", EXACT),
        ]
    )


def current_names(table_schema: TableSchema) -> dict[str, str]:
    """Source column name -> column name in the current table, in source order."""
    names = _names(table_schema)
    return {column.name: names[column.stored_name] for column in table_schema.value_columns}


def former_names(table_schema: TableSchema) -> dict[str, dict[str, str]]:
    """Source column name -> its former Delta columns: name in the change log -> name in the current table."""
    names = _names(table_schema)
    return {
        column.name: {one.name: names[one.name] for one in column.former}
        for column in table_schema.value_columns
        if column.former
    }


def current_schema(table_schema: TableSchema) -> pa.Schema:
    """The current table's columns: the source's, then their former ones, then `_key, _pos, _batch, …`."""
    names, columns = _names(table_schema), table_schema.value_columns
    return pa.schema(
        [
            *(pa.field(names[c.stored_name], c.type.arrow) for c in columns),
            *(pa.field(names[one.name], one.type.arrow) for c in columns for one in c.former),
            pa.field("_key", pa.string()),
            pa.field("_pos", pa.string()),
            pa.field("_batch", pa.int64()),
            pa.field("_exact", TEXT_MAP),
            pa.field("_unavailable", TEXTS),
        ]
    )


def _names(table_schema: TableSchema) -> dict[str, str]:
    """Name in the change log -> name in the current table, for every Delta column of the source's columns."""
    columns = table_schema.value_columns
    every = [*(c.stored_name for c in columns), *(one.name for c in columns for one in c.former)]
    taken = {name.lower() for name in every} | set(RESERVED_CURRENT)
    names: dict[str, str] = {}
    for stored in every:
        name = stored
        if name.lower() in RESERVED_CURRENT:
            while name.lower() in taken:
                name += "_"
            taken.add(name.lower())
        names[stored] = name
    return names
