"""Splits a table into chunks by its key, planned once by the server and stored as texts (rule C20, case B).

The chunks cover every existing and future key value, so rows that are inserted later fall into one of them. A bound
is one ASCII text per key column, which the server produces and gets back as a parameter with
`CAST(? AS <declared type>)`: no client ever compares, sorts or rounds a key value.
"""

from __future__ import annotations

from collections.abc import Sequence

from mssql_cdc.errors import SchemaError
from mssql_cdc.schema import Column, Kind, SqlServerType, TableSchema
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.sql import quote
from mssql_cdc.source.values import Bound, Chunk


def predicate(chunk: Chunk, keys: Sequence[Column]) -> tuple[str, list[str]]:
    """The chunk's T-SQL condition and its parameters, one per `?`; an empty text for the whole table."""
    parts: list[str] = []
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


def plan_chunks(
    control: Control, schema: TableSchema, rows_per_chunk: int, *, condition: str | None = None
) -> list[Chunk]:
    """Chunks of about `rows_per_chunk` rows in key order; one chunk for a table without a key.

    Args:
        control: a connection to the table's database.
        schema: the table, with its key.
        rows_per_chunk: at least 1.
        condition: an additional T-SQL condition on the rows (INC-*), as the signal gives it.

    Raises:
        SchemaError: a key column is of a type that cannot bound a chunk.
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
    """The SELECT that returns every n-th key of the table as bound texts, in the server's own order.

    Args:
        schema: the table, with its key.
        rows_per_chunk: the n.
        condition: only rows for which this T-SQL condition holds are counted.
    """
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
    """Return the key that ends the next `rows` rows after `last`; None if fewer remain.

    It cuts chunks one by one, by steps through the key's index, without numbering the whole table. Rows that share a
    surrogate key's value stay in one chunk, since a chunk reaches up to and including its bound.

    Args:
        control: a connection to the table's database.
        schema: the table, with its key.
        rows: how many rows the chunk has, at least 1.
        last: the bound of the chunk before; None at the beginning of the table.
        until: look no further than this bound.
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


# -- Bounds: key values as texts, and predicates over them --------------------------


def bound_expression(column: Column) -> str:
    """T-SQL that gives a key value as ASCII text.

    Raises:
        SchemaError: keys of this type cannot bound a chunk.
    """
    name, sql_type = quote(column.name), column.type
    row = sql_type.row
    if sql_type.is_large:
        raise SchemaError(f"A key column of type {sql_type.declaration} cannot bound a chunk ({column.name!r})")
    match sql_type.kind:
        case Kind.TEXT:
            units = _units(sql_type)
            national = f"CAST({name} AS nvarchar({units}))" if row.code_page else name
            return f"CONVERT(varchar({4 * units}), CAST({national} AS varbinary({2 * units})), 2)"
        case Kind.BINARY:
            size = _size(sql_type)
            return f"CONVERT(varchar({2 * size}), CAST({name} AS varbinary({size})), 2)"
        case _:
            style = row.bound_style or row.style
            return f"CONVERT(varchar(60), {name}{f', {style}' if style else ''})"


def bound_value(column: Column) -> str:
    """T-SQL with one parameter marker that gives the value of a bound's text, in the column's type and collation."""
    sql_type = column.type
    match sql_type.kind:
        case Kind.TEXT:
            units = _units(sql_type)
            value = f"CAST(CONVERT(varbinary({2 * units}), ?, 2) AS nvarchar({units}))"
            value = f"{value} COLLATE {sql_type.collation}" if sql_type.collation else value
            return f"CAST({value} AS {sql_type.declaration})" if sql_type.row.code_page else value
        case Kind.BINARY:
            declared = sql_type.declaration if sql_type.length else "binary(8)"
            return f"CAST(CONVERT(varbinary({_size(sql_type)}), ?, 2) AS {declared})"
        case _:
            return f"CAST(? AS {sql_type.declaration})"


def after(columns: Sequence[Column], bound: Bound) -> tuple[str, list[str]]:
    """Return the condition for rows after a bound in key order, with its parameters (NULL sorts first)."""
    return _compare(columns, bound, behind=True)


def up_to(columns: Sequence[Column], bound: Bound) -> tuple[str, list[str]]:
    """The rows up to and including a bound."""
    return _compare(columns, bound, behind=False)


def _compare(columns: Sequence[Column], bound: Bound, *, behind: bool) -> tuple[str, list[str]]:
    alternatives: list[str] = []
    parameters: list[str] = []
    for depth, column in enumerate(columns):
        strict = _strictly(column, bound[depth], behind=behind)
        if strict is None:
            continue
        terms = [_equal(columns[i], bound[i]) for i in range(depth)] + [strict[0]]
        alternatives.append("(" + " AND ".join(terms) + ")")
        parameters += [value for value in bound[:depth] if value is not None]
        parameters += [bound[depth] or ""] * strict[1]
    if not behind:
        alternatives.append("(" + " AND ".join(map(_equal, columns, bound)) + ")")
        parameters += [value for value in bound if value is not None]
    return ("(" + " OR ".join(alternatives) + ")" if alternatives else "1 = 0"), parameters


def _strictly(column: Column, value: str | None, *, behind: bool) -> tuple[str, int] | None:
    """Return the condition for `column` after (or before) the value and its parameter count; None: never true."""
    name = quote(column.name)
    if value is None:
        return (f"{name} IS NOT NULL", 0) if behind else None
    if behind:
        return f"{name} > {bound_value(column)}", 1
    less = f"{name} < {bound_value(column)}"
    return (f"({less} OR {name} IS NULL)" if column.nullable else less), 1


def _equal(column: Column, value: str | None) -> str:
    return f"{quote(column.name)} IS NULL" if value is None else f"{quote(column.name)} = {bound_value(column)}"


def _units(sql_type: SqlServerType) -> int:
    """UTF-16 units that a key value may have; keys are at most 1700 bytes long."""
    return min(sql_type.length or 1, 2000)


def _size(sql_type: SqlServerType) -> int:
    """Bytes of a binary key; a rowversion has 8."""
    return sql_type.length or 8
