"""Cutting a table into chunks by its key, planned once by the server and kept as texts (rule C20, case B).

The chunks cover every key value there is or may come, so rows that are inserted later fall into one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mssql_cdc.schema import Column, TableSchema
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.keys import Bound, after, bound_expression, up_to
from mssql_cdc.source.sqlserver.sql import quote


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rows with `lower < key <= upper`; None: no bound. A table without a key has one chunk, unbounded."""

    number: int
    lower: Bound | None = None
    upper: Bound | None = None

    def predicate(self, keys: Sequence[Column]) -> tuple[str, list[str]]:
        """T-SQL and its parameters; empty text for the whole table."""
        parts = []
        parameters: list[str] = []
        for bound, compare in ((self.lower, after), (self.upper, up_to)):
            if bound is not None:
                sql, values = compare(keys, bound)
                parts.append(sql)
                parameters += values
        return " AND ".join(parts), parameters


def table_name(schema: TableSchema) -> str:
    """`[schema].[table]` in the connection's database."""
    return f"{quote(schema.table_id.schema)}.{quote(schema.table_id.name)}"


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

    Chunks can so be cut one by one, without numbering the whole table. Rows that share a surrogate key's value stay in
    one chunk, since a chunk reaches up to and including its bound.
    """
    keys = schema.keys
    names = ", ".join(quote(column.name) for column in keys)
    texts = ", ".join(bound_expression(column) for column in keys)
    sql, parameters = Chunk(0, last, until).predicate(keys)
    where = f" WHERE {sql}" if sql else ""
    found = control.row(
        f"SELECT {texts} FROM {table_name(schema)}{where} ORDER BY {names} "
        f"OFFSET {int(rows) - 1} ROWS FETCH NEXT 1 ROWS ONLY",
        *parameters,
        doing=f"planning a chunk of {schema.table_id}",
    )
    return None if found is None else tuple(found)
