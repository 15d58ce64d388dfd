"""Key values as texts, and predicates over them: what chunk bounds are made of (rule C20).

A bound travels as one ASCII text per key column, made by the server and given back to it as a parameter with
`CAST(? AS <declared type>)`: no client ever compares, sorts or rounds a key value.
"""

from __future__ import annotations

from collections.abc import Sequence

from mssql_cdc.errors import SchemaError
from mssql_cdc.schema import Column, Kind, SqlServerType
from mssql_cdc.source.sqlserver.sql import quote

Bound = tuple[str | None, ...]
"""One text per key column; None is NULL."""


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
    """The rows behind a bound in key order, with the parameters (NULL sorts first)."""
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
    """`column` behind (or before) the value, and how many parameters that takes; None: no value can be."""
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
