"""Canonical texts of column values, from the source and from the lake: what `mssql-cdc check` compares.

The T-SQL here shares nothing with the reader's casts (except for `sql_variant`), so that a fault there shows. Texts
are compared, never parsed; NULL is None.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from mssql_cdc.schema import Column, SqlServerType, TableSchema
from mssql_cdc.source.sqlserver.chunks import Chunk, table_name
from mssql_cdc.source.sqlserver.columns import variant_text_expression
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.sql import quote
from mssql_cdc.source.sqlserver.utf16 import EXACT_PREFIX

_FETCHED = 2_000


@dataclass(frozen=True, slots=True)
class _Canon:
    """T-SQL with `{c}`, how its answer becomes the text, and the text of a value out of the lake."""

    expression: str
    read: Callable[[Any], str]
    text: Callable[[Any, SqlServerType], str]


def canonical_expression(column: Column) -> str:
    """T-SQL that gives the column's canonical text, or something that `canonical_texts` turns into it."""
    return _canon(column).expression.replace("{c}", quote(column.name))


def canonical_rows(
    control: Control, schema: TableSchema, chunk: Chunk | None = None
) -> Iterator[tuple[str | None, ...]]:
    """Canonical texts of all columns of a table's (or a chunk's) rows, in key order if there is a key."""
    columns = schema.columns
    where, parameters = (chunk or Chunk(0)).predicate(schema.keys)
    sql = f"SELECT {', '.join(canonical_expression(column) for column in columns)} FROM {table_name(schema)}"
    sql += f" WHERE {where}" if where else ""
    if schema.keys:
        sql += f" ORDER BY {', '.join(quote(column.name) for column in schema.keys)}"
    readers = [_canon(column).read for column in columns]
    for row in control.stream(sql, *parameters, size=_FETCHED, doing=f"checking {schema.table_id}"):
        yield tuple(None if raw is None else read(raw) for read, raw in zip(readers, row, strict=True))


def canonical_of(columns: Sequence[Column], row: dict[str, Any], exact: dict[str, str]) -> tuple[str | None, ...]:
    """Canonical texts of a row out of the lake: its native values and its `_exact` texts."""
    return tuple(canonical_value(column, row[column.name], exact.get(column.name)) for column in columns)


def canonical_value(column: Column, value: Any, exact: str | None = None) -> str | None:
    """The canonical text of one value out of the lake; an exact text stands in for what the value lost."""
    if value is None:
        return None
    if exact is not None and column.type.name != "sql_variant":
        if exact.startswith(EXACT_PREFIX):
            return bytes.fromhex(exact.removeprefix(EXACT_PREFIX)).decode("utf-16-be", "surrogatepass")
        return exact
    return _canon(column).text(value, column.type)


def _canon(column: Column) -> _Canon:
    return _TABLE[column.type.name]


def _plain(expression: str, text: Callable[[Any, SqlServerType], str] = lambda value, _: str(value)) -> _Canon:
    return _Canon(expression, str, text)


def _utf16(expression: str) -> _Canon:
    return _Canon(
        f"CONVERT(varchar(max), CONVERT(varbinary(max), {expression}), 2)",
        lambda raw: bytes.fromhex(raw).decode("utf-16-le", "surrogatepass"),
        lambda value, _: value,
    )


def _decimal_text(value: Decimal, _: SqlServerType) -> str:
    text = f"{value:f}"
    return text.removeprefix("-") if not value else text


def _date_time(digits: int | None) -> Callable[[Any, SqlServerType], str]:
    def text(value: datetime, kind: SqlServerType) -> str:
        scale = digits if digits is not None else 7 if kind.scale is None else kind.scale
        fraction = f".{f'{value.microsecond:06d}0'[:scale]}" if scale else ""
        offset = " +00:00" if kind.name == "datetimeoffset" else ""
        return f"{value.year:04d}-{value:%m-%d %H:%M:%S}{fraction}{offset}"

    return text


def _ieee(size: str, code: str) -> _Canon:
    return _Canon(
        f"CONVERT(varchar(16), CONVERT(binary({size}), {{c}}), 2)",
        str,
        lambda value, _: struct.pack(code, value).hex().upper(),
    )


_BINARY = _plain("CONVERT(varchar(max), CONVERT(varbinary(max), {c}), 2)", lambda value, _: bytes(value).hex().upper())
_WHOLE = _plain("CONVERT(varchar(20), {c})")
_DECIMAL = _plain("CONVERT(varchar(50), {c})", _decimal_text)
_MONEY = _plain("CONVERT(varchar(50), {c}, 2)", _decimal_text)
_NATIONAL = _utf16("{c}")
_CHARACTER = _utf16("CONVERT(nvarchar(max), {c})")
_TABLE: dict[str, _Canon] = {
    "bit": _plain("CONVERT(varchar(1), {c})", lambda value, _: str(int(value))),
    "tinyint": _WHOLE,
    "smallint": _WHOLE,
    "int": _WHOLE,
    "bigint": _WHOLE,
    "decimal": _DECIMAL,
    "numeric": _DECIMAL,
    "money": _MONEY,
    "smallmoney": _MONEY,
    "real": _ieee("4", ">f"),
    "float": _ieee("8", ">d"),
    "char": _CHARACTER,
    "varchar": _CHARACTER,
    "text": _utf16("CONVERT(nvarchar(max), CONVERT(varchar(max), {c}))"),
    "nchar": _NATIONAL,
    "nvarchar": _NATIONAL,
    "ntext": _CHARACTER,
    "xml": _CHARACTER,
    "json": _CHARACTER,
    "uniqueidentifier": _plain("CONVERT(varchar(36), {c})"),
    "binary": _BINARY,
    "varbinary": _BINARY,
    "image": _BINARY,
    "timestamp": _BINARY,
    "rowversion": _BINARY,
    "hierarchyid": _BINARY,
    "geometry": _BINARY,
    "geography": _BINARY,
    "date": _plain("CONVERT(varchar(10), {c}, 23)"),
    "time": _plain("CONVERT(varchar(16), {c}, 121)"),
    "datetime": _plain("CONVERT(varchar(23), {c}, 121)", _date_time(3)),
    "smalldatetime": _plain("CONVERT(varchar(19), {c}, 120)", _date_time(0)),
    "datetime2": _plain("CONVERT(varchar(27), {c}, 121)", _date_time(None)),
    "datetimeoffset": _plain("CONVERT(varchar(34), {c}, 121)", _date_time(None)),
    "sql_variant": _utf16(variant_text_expression()),
}
