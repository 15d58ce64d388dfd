"""Cutting a table into chunks by its key, planned once by the server and kept as texts (rule C20, case B).

The chunks cover every key value there is or may come, so rows that are inserted later fall into one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mssql_cdc.schema import Column, TableSchema
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.keys import after, bound_expression, up_to
from mssql_cdc.source.sqlserver.sql import quote
from mssql_cdc.source.values import Bound, Chunk

_ROWS = """
SELECT SUM(rows) FROM sys.partitions WHERE object_id = OBJECT_ID(?) AND index_id IN (0, 1)"""


def predicate(chunk: Chunk, keys: Sequence[Column]) -> tuple[str, list[str]]:
    """The chunk's condition in T-SQL, with its parameters; empty text for the whole table."""
    parts = []
    parameters: list[str] = []
    for bound, compare in ((chunk.lower, after), (chunk.upper, up_to)):
        if bound is not None:
            sql, values = compare(keys, bound)
            parts.append(sql)
            parameters += values
    return " AND ".join(parts), parameters


def table_name(schema: TableSchema) -> str:
    """`[schema].[table]` in the connection's database."""
    return f"{quote(schema.table_id.schema)}.{quote(schema.table_id.name)}"


def estimated_rows(control: Control, schema: TableSchema) -> int:
    """How many rows the table has, as the server's metadata say."""
    found = control.value(_ROWS, table_name(schema), doing=f"counting rows of {schema.table_id}")
    return int(found or 0)


def plan_chunks(
    control: Control, schema: TableSchema, rows_per_chunk: int, *, condition: str | None = None
) -> list[Chunk]:
    """Chunks of about `rows_per_chunk` rows in key order; one chunk for a table without a key.

    `condition` is an additional condition on the rows (INC-*), as the signal gives it.
    """
    keys = schema.keys
    if not keys:
        return [Chunk(0)]
    bounds = [
        tuple(row)
        for row in control.rows(
            bounds_statement(schema, rows_per_chunk, condition), doing=f"planning chunks of {schema.table_id}"
        )
    ]
    edges: list[Bound | None] = [None, *bounds, None]
    return [Chunk(number, edges[number], edges[number + 1]) for number in range(len(edges) - 1)]


def bounds_statement(schema: TableSchema, rows_per_chunk: int, condition: str | None = None) -> str:
    """The statement that returns every n-th key of the table, in the server's own order."""
    keys = schema.keys
    names = ", ".join(quote(column.name) for column in keys)
    texts = ", ".join(bound_expression(column) for column in keys)
    where = f" WHERE {condition}" if condition else ""
    return (
        f"SELECT {texts} FROM (SELECT {names}, ROW_NUMBER() OVER (ORDER BY {names}) AS [__number] "
        f"FROM {table_name(schema)}{where}) AS numbered WHERE [__number] % {int(rows_per_chunk)} = 0 "
        "ORDER BY [__number]"
    )


def next_bound(
    control: Control, schema: TableSchema, rows: int, last: Bound | None, *, until: Bound | None = None
) -> Bound | None:
    """The key that ends the next `rows` rows behind `last`; None when fewer are left.

    For incremental snapshots, whose chunks are cut one by one. Rows that share a surrogate key's value stay in one
    chunk, since the chunk reaches up to and including the bound.
    """
    keys = schema.keys
    names = ", ".join(quote(column.name) for column in keys)
    texts = ", ".join(bound_expression(column) for column in keys)
    sql, parameters = predicate(Chunk(0, last, until), keys)
    where = f" WHERE {sql}" if sql else ""
    found = control.row(
        f"SELECT {texts} FROM {table_name(schema)}{where} ORDER BY {names} "
        f"OFFSET {int(rows) - 1} ROWS FETCH NEXT 1 ROWS ONLY",
        *parameters,
        doing=f"planning a chunk of {schema.table_id}",
    )
    return None if found is None else tuple(found)


def largest_key(control: Control, schema: TableSchema) -> Bound | None:
    """The last key in the server's order; None for an empty table."""
    keys = schema.keys
    texts = ", ".join(bound_expression(column) for column in keys)
    order = ", ".join(f"{quote(column.name)} DESC" for column in keys)
    found = control.row(
        f"SELECT TOP (1) {texts} FROM {table_name(schema)} ORDER BY {order}",
        doing=f"reading the largest key of {schema.table_id}",
    )
    return None if found is None else tuple(found)
