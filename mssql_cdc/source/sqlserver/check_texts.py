"""Canonical texts from T-SQL: what `check` selects for a column, and how it converts the result.

The expressions are shared with no reader of capture. `{c}` stands for the column. For checksums there is a second
expression per kind: bytes that the lake's side reproduces bit by bit (`check/checksums.py`). A sql_variant has none,
because its text depends on its base type: tables with such a column are compared row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mssql_cdc.schema import TYPES, Column, Kind, TypeRow
from mssql_cdc.source.canonical import Moment, time_text, variant_text
from mssql_cdc.source.sqlserver.sql import quote


@dataclass(frozen=True, slots=True)
class Canon:
    """How one type becomes canonical: `select` is T-SQL, `text` turns what pyodbc returns into the canonical text.

    `data` is T-SQL for the bytes of checksums; None: the server's bytes cannot be reproduced.
    """

    select: str
    text: Callable[[Any], str]
    data: str | None = None


def canon(column: Column) -> Canon:
    """The canon of a column's type (raises SchemaError for an unknown one)."""
    return _CANONS[column.type.row.name]


def select_list(columns: Sequence[Column]) -> str:
    """The expressions of these columns."""
    return ", ".join(canon(column).select.replace("{c}", quote(column.name)) for column in columns)


def source_text(column: Column, value: Any) -> str | None:
    """The canonical text of what was fetched with the column's `select`; None for NULL."""
    return None if value is None else canon(column).text(value)


def has_checksum(column: Column) -> bool:
    """Whether the lake can reproduce the bytes of the column's checksum."""
    return canon(column).data is not None


def row_bytes(columns: Sequence[Column]) -> str:
    """T-SQL for the bytes of a row's columns: per column 0x00 for NULL, or 0x01, four bytes of length, the value."""
    parts: list[str] = []
    for column in columns:
        data = (canon(column).data or "").replace("{c}", quote(column.name))
        parts.append(
            f"CASE WHEN {quote(column.name)} IS NULL THEN 0x00 "
            f"ELSE 0x01 + CAST(CAST(DATALENGTH({data}) AS int) AS binary(4)) + {data} END"
        )
    return " + ".join(parts)


def parameter(column: Column, text: str) -> str:
    """The text of `chunks.bound_value`'s parameter for a key value given by its canonical text."""
    match column.type.kind:
        case Kind.FLOAT:
            return repr(float.fromhex(text))
        case Kind.DATE:
            return text[:10]
        case _:
            return text


def _plain(value: Any) -> str:
    return str(value)


def _moment(value: str) -> str:
    return Moment.parse(value).text


def _variant_source(value: bytes) -> str:
    """`base|precision|scale|length|collation|text`, the text in the base type's own canonical form.

    The value comes as UTF-16, because pyodbc cannot decode a lone surrogate.
    """
    *properties, text = bytes(value).decode("utf-16-le", "surrogatepass").split("|", 5)
    return "|".join([*properties, variant_text(properties[0], text)])


def _variant() -> Canon:
    def property_of(name: str) -> str:
        return f"ISNULL(CAST(SQL_VARIANT_PROPERTY({{c}}, '{name}') AS nvarchar(128)), N'')"

    cases = " ".join(f"WHEN '{row.name}' THEN {text}" for row in TYPES.values() if (text := _variant_case(row)))
    base = "CAST(SQL_VARIANT_PROPERTY({c}, 'BaseType') AS varchar(128))"
    value = f"CASE {base} {cases} ELSE CAST({{c}} AS nvarchar(max)) END"
    names = ("BaseType", "Precision", "Scale", "MaxLength", "Collation")
    joined = " + N'|' + ".join([*map(property_of, names), value])
    return Canon(f"CASE WHEN {{c}} IS NOT NULL THEN CAST({joined} AS varbinary(max)) END", _variant_source)


def _variant_case(row: TypeRow) -> str | None:
    """The text of a sql_variant with this base type; None where the plain conversion loses nothing."""
    if row.kind is Kind.BINARY and row.arguments == "length":
        return "CONVERT(nvarchar(max), CAST({c} AS varbinary(8000)), 2)"
    style = _VARIANT_STYLES.get(row.kind)
    if style is None or row.arguments == "precision and scale":
        return None
    whole = f"{row.name}(7)" if row.arguments == "scale" else row.name
    return f"CONVERT(nvarchar(60), CAST({{c}} AS {whole}), {style})"


def _ascii(expression: str) -> str:
    """T-SQL for the bytes of an ASCII text."""
    return f"CAST({expression} AS varbinary(max))"


_VARIANT_STYLES = {
    Kind.FLOAT: 3, Kind.DECIMAL: 2, Kind.DATE: 23, Kind.TIME: 121, Kind.TIMESTAMP: 121, Kind.INSTANT: 121,
}  # fmt: skip
_WHOLE = Canon("CONVERT(varchar(20), {c})", _plain, _ascii("CONVERT(varchar(20), {c})"))
_NATIONAL = "CAST(CAST({c} AS nvarchar(max)) AS varbinary(max))"
_UTF16 = Canon(_NATIONAL, lambda value: bytes(value).hex(), _NATIONAL)
_BYTES = Canon("CAST({c} AS varbinary(max))", lambda value: bytes(value).hex(), "CAST({c} AS varbinary(max))")
_BY_KIND: Mapping[Kind, Canon] = {
    Kind.BOOLEAN: _WHOLE,
    Kind.INTEGER: _WHOLE,
    Kind.DECIMAL: Canon("CONVERT(varchar(60), {c})", _plain, _ascii("CONVERT(varchar(60), {c})")),
    Kind.FLOAT: Canon(
        "CONVERT(varchar(60), CAST({c} AS float), 3)",
        lambda value: float(value).hex(),
        "CAST(CAST(CAST({c} AS float) AS binary(8)) AS varbinary(max))",
    ),
    Kind.TEXT: _UTF16,
    Kind.DOCUMENT: _UTF16,
    Kind.UUID: Canon("CONVERT(char(36), {c})", lambda value: value.upper(), _ascii("UPPER(CONVERT(char(36), {c}))")),
    Kind.BINARY: _BYTES,
    Kind.CLR: _BYTES,
    Kind.DATE: Canon("CONVERT(char(10), {c}, 23)", _moment, _ascii("CONVERT(char(10), {c}, 23)")),
    Kind.TIME: Canon(
        "CONVERT(varchar(16), {c}, 121)", time_text, _ascii("CONVERT(varchar(16), CAST({c} AS time(7)), 121)")
    ),
    Kind.TIMESTAMP: Canon(
        "CONVERT(varchar(40), {c}, 121)", _moment, _ascii("CONVERT(varchar(27), CAST({c} AS datetime2(7)), 121)")
    ),
    Kind.INSTANT: Canon(
        "CONVERT(varchar(40), {c}, 121)", _moment, _ascii("CONVERT(varchar(34), CAST({c} AS datetimeoffset(7)), 121)")
    ),
    Kind.VARIANT: _variant(),
}
_DATA = {
    "datetime": _ascii("CONVERT(varchar(27), CAST(CAST({c} AS datetime2(3)) AS datetime2(7)), 121)"),
    "money": _ascii("CONVERT(varchar(40), {c}, 2)"),
    "smallmoney": _ascii("CONVERT(varchar(40), {c}, 2)"),
    "text": "CAST(CAST(CAST({c} AS varchar(max)) AS nvarchar(max)) AS varbinary(max))",
}
"""Types whose bytes differ from what their kind's expression gives."""


def _of(row: TypeRow) -> Canon:
    kind = _BY_KIND[row.kind]
    return replace(kind, select=row.check or kind.select, data=_DATA.get(row.name, kind.data))


_CANONS: Mapping[str, Canon] = {name: _of(row) for name, row in TYPES.items()}
