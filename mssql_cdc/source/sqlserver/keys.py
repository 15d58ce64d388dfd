"""Key values as texts, and predicates over them: what chunk bounds are made of (rule C20).

A bound travels as one ASCII text per key column, made by the server and given back to it as a parameter with
`CAST(? AS <declared type>)`: no client ever compares, sorts or rounds a key value.
"""

from __future__ import annotations

from collections.abc import Sequence

from mssql_cdc.errors import SchemaError
from mssql_cdc.schema import Column, SqlServerType
from mssql_cdc.source.sqlserver.sql import quote
from mssql_cdc.source.values import Bound

_PLAIN = {"bit", "tinyint", "smallint", "int", "bigint", "decimal", "numeric", "uniqueidentifier"}
_STYLES = {
    "money": 2, "smallmoney": 2, "real": 3, "float": 3, "date": 121, "time": 121, "datetime": 126,
    "smalldatetime": 126, "datetime2": 121, "datetimeoffset": 121,
}  # fmt: skip
_BINARY = {"binary", "varbinary", "timestamp", "rowversion"}


def bound_expression(column: Column) -> str:
    """T-SQL that gives a key value as ASCII text."""
    name, kind = quote(column.name), column.type
    if kind.is_character:
        return (
            f"CONVERT(varchar({4 * _units(kind)}), CAST({_national(kind, name)} AS varbinary({2 * _units(kind)})), 2)"
        )
    if kind.name in _BINARY:
        size = kind.length or 8
        return f"CONVERT(varchar({2 * size}), CAST({name} AS varbinary({size})), 2)"
    if kind.name in _PLAIN:
        return f"CONVERT(varchar(60), {name})"
    if kind.name in _STYLES:
        return f"CONVERT(varchar(60), {name}, {_STYLES[kind.name]})"
    raise SchemaError(f"A key column of type {kind.declaration} cannot bound a chunk ({column.name!r})")


def bound_value(column: Column) -> str:
    """T-SQL with one parameter marker that gives the value of a bound's text, in the column's type and collation."""
    kind = column.type
    if kind.is_character:
        national = f"CAST(CONVERT(varbinary({2 * _units(kind)}), ?, 2) AS nvarchar({_units(kind)}))"
        value = f"{national} COLLATE {kind.collation}" if kind.collation else national
        return value if kind.name in {"nchar", "nvarchar"} else f"CAST({value} AS {kind.declaration})"
    if kind.name in _BINARY:
        size = kind.length or 8
        return f"CAST(CONVERT(varbinary({size}), ?, 2) AS {kind.declaration if kind.length else 'binary(8)'})"
    return f"CAST(? AS {kind.declaration})"


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


def _units(kind: SqlServerType) -> int:
    """UTF-16 units that a key value may have; keys are at most 1700 bytes long."""
    return min(kind.length or 1, 2000) if kind.length != -1 else 2000


def _national(kind: SqlServerType, name: str) -> str:
    return name if kind.name in {"nchar", "nvarchar"} else f"CAST({name} AS nvarchar({_units(kind)}))"
