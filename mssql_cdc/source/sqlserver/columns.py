"""One table: SQL Server type -> select expressions -> raw Arrow types -> decoder (the fidelity rule).

Whatever a driver could damage is cast in T-SQL, so that both ways of fetching (Arrow and row by row) deliver the
same raw batches. How a type is stored is decided in `schema/types.py`; here only how it travels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import SchemaError, SourceError
from mssql_cdc.schema import Column, SqlServerType, arrow_type, needs_pyodbc
from mssql_cdc.source.sqlserver.arrays import numbers
from mssql_cdc.source.sqlserver.sql import quote
from mssql_cdc.source.sqlserver.temporal import instant, local_time
from mssql_cdc.source.sqlserver.utf16 import decode_utf16

Decoded = tuple[pa.Array, pa.StringArray | None]
"""A column's values in its Arrow type, and the exact texts of those which it cannot carry (None: no such)."""

_PIECE = 2000  # characters; at most 4000 UTF-16 units under any collation, which is what nvarchar(4000) holds


@dataclass(frozen=True, slots=True)
class Travel:
    """How a column is fetched: T-SQL expressions with `{c}` for the column, their raw types, the decoder."""

    expressions: tuple[str, ...]
    raw: tuple[pa.DataType, ...]
    decode: Callable[[Sequence[pa.Array]], Decoded]


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The select list of some columns, its raw fields, and how batches of them become the columns' values."""

    columns: tuple[Column, ...]
    travels: tuple[Travel, ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> RowPlan:
        """The plan for these columns, in this order."""
        return cls(tuple(columns), tuple(travel(column.type) for column in columns))

    @property
    def by_rows(self) -> bool:
        """Whether a column needs row-by-row fetching."""
        return any(needs_pyodbc(column.type) for column in self.columns)

    def select_list(self, alias: str = "") -> list[str]:
        """`expression AS [c<column>_<part>]`, in the order of `raw_fields`."""
        prefix = f"{alias}." if alias else ""
        return [
            f"{expression.replace('{c}', prefix + quote(column.name))} AS [c{number}_{part}]"
            for number, (column, way) in enumerate(zip(self.columns, self.travels, strict=True))
            for part, expression in enumerate(way.expressions)
        ]

    def raw_fields(self) -> list[pa.Field]:
        """The raw fields that the select list yields."""
        return [
            pa.field(f"c{number}_{part}", raw)
            for number, way in enumerate(self.travels)
            for part, raw in enumerate(way.raw)
        ]

    def decode(self, batch: pa.RecordBatch) -> list[Decoded]:
        """Values and exact texts of every column of a raw batch (which may have other fields too).

        Raises:
            SourceError: a value did not arrive whole; the message names the column.
        """
        decoded = []
        for number, (column, way) in enumerate(zip(self.columns, self.travels, strict=True)):
            parts = [batch.column(f"c{number}_{part}") for part in range(len(way.raw))]
            try:
                values, exact = way.decode(parts)
            except ValueError as error:
                raise SourceError(f"Column {column.name!r} ({column.type.declaration}): {error}") from error
            decoded.append((values.cast(arrow_type(column.type)), exact))
        return decoded


def travel(sql_type: SqlServerType) -> Travel:
    """How values of this type travel."""
    try:
        return _TABLE[sql_type.name](sql_type)
    except KeyError:
        raise SchemaError(f"No way is known to read the SQL Server type {sql_type.name!r}") from None


def _as_is(raw: pa.DataType, expression: str = "{c}") -> Callable[[SqlServerType], Travel]:
    return lambda _: Travel((expression,), (raw,), lambda parts: (parts[0], None))


def _decimal(sql_type: SqlServerType) -> Travel:
    return Travel(("{c}",), (arrow_type(sql_type),), lambda parts: (parts[0], None))


def _datetime2(sql_type: SqlServerType) -> Travel:
    if sql_type.scale not in {None, 7}:
        return _as_is(pa.timestamp("us"))(sql_type)
    return Travel(("CONVERT(varchar(27), {c}, 121)",), (pa.string(),), lambda parts: local_time(parts[0]))


def _datetimeoffset(sql_type: SqlServerType) -> Travel:
    scale = 7 if sql_type.scale is None else sql_type.scale
    return Travel(("CONVERT(varchar(34), {c}, 121)",), (pa.string(),), lambda parts: instant(parts[0], scale))


def _binary(sql_type: SqlServerType) -> Travel:
    return _large("{c}") if sql_type.is_max else _as_is(pa.binary())(sql_type)


def _large(expression: str) -> Travel:
    """A value without a size limit, with its length, so that a cut one is noticed (rule E26)."""
    binary = f"CAST({expression} AS varbinary(max))"
    return Travel(
        (binary, f"CAST(DATALENGTH({binary}) AS bigint)"),
        (pa.binary(), pa.int64()),
        lambda parts: (_whole(parts), None),
    )


def _large_text(expression: str) -> Travel:
    large = _large(expression)
    return Travel(large.expressions, large.raw, lambda parts: decode_utf16(_whole(parts)))


def _character(sql_type: SqlServerType) -> Travel:
    """(var)char: converted to Unicode by the server, which alone knows every code page."""
    if sql_type.is_max:
        return _large_text("CAST({c} AS nvarchar(max))")
    length = sql_type.length or 1
    if length <= 2 * _PIECE:
        return _utf16(f"CAST({{c}} AS nvarchar({length}))", 2 * length)
    pieces = [
        f"CAST(CAST(SUBSTRING({{c}}, {start}, {_PIECE}) AS nvarchar({2 * _PIECE})) AS varbinary({4 * _PIECE}))"
        for start in range(1, length + 1, _PIECE)
    ]
    return Travel(tuple(pieces), (pa.binary(),) * len(pieces), _joined)


def _national(sql_type: SqlServerType) -> Travel:
    return _large_text("{c}") if sql_type.is_max else _utf16("{c}", 2 * (sql_type.length or 1))


def _utf16(expression: str, size: int) -> Travel:
    return Travel((f"CAST({expression} AS varbinary({size}))",), (pa.binary(),), lambda parts: decode_utf16(parts[0]))


def _joined(parts: Sequence[pa.Array]) -> Decoded:
    return decode_utf16(pc.binary_join_element_wise(*parts, pa.scalar(b"")))


def _whole(parts: Sequence[pa.Array]) -> pa.Array:
    """The values, every one as long as the server said.

    Raises:
        ValueError: a value was cut.
    """
    values, lengths = parts
    arrived = numbers(pc.binary_length(values), null=-1)
    sent = numbers(lengths, null=-1)
    short = arrived != sent
    if short.any():
        row = int(short.argmax())
        raise ValueError(f"the server sent {sent[row]} bytes, {arrived[row]} arrived; see the driver's text size")
    return values


def _variant(_: SqlServerType) -> Travel:
    text = _large_text(_VARIANT_TEXT)
    return Travel(
        (*text.expressions, _VARIANT_PROPERTIES),
        (*text.raw, pa.string()),
        lambda parts: (text.decode(parts[:2])[0], _variant_json(parts[2])),
    )


def _variant_json(properties: pa.Array) -> pa.StringArray:
    """JSON objects of `base|precision|scale|length|collation`; there are few different ones."""
    encoded = properties.dictionary_encode()
    texts = []
    for text in encoded.dictionary.to_pylist():
        base, precision, scale, length, collation = text.split("|")
        known = {"precision": precision, "scale": scale, "length": length}
        whole = {"base": base, **{name: int(value) for name, value in known.items() if value}}
        texts.append(json.dumps(whole | ({"collation": collation} if collation else {})))
    return pa.array(texts, pa.string()).take(encoded.indices)


def _variant_property(name: str, kind: str) -> str:
    return f"ISNULL(CAST(CAST(SQL_VARIANT_PROPERTY({{c}}, '{name}') AS {kind}) AS varchar(128)), '')"


def variant_text_expression() -> str:
    """Canonical text of a sql_variant: every base type with the style that loses nothing."""
    styles = {
        "float": "CONVERT(nvarchar(50), CAST({c} AS float), 3)",
        "real": "CONVERT(nvarchar(50), CAST({c} AS real), 3)",
        "money": "CONVERT(nvarchar(50), CAST({c} AS money), 2)",
        "smallmoney": "CONVERT(nvarchar(50), CAST({c} AS smallmoney), 2)",
        "datetime": "CONVERT(nvarchar(50), CAST({c} AS datetime), 121)",
        "smalldatetime": "CONVERT(nvarchar(50), CAST({c} AS smalldatetime), 120)",
        "date": "CONVERT(nvarchar(50), CAST({c} AS date), 121)",
        "time": "CONVERT(nvarchar(50), CAST({c} AS time(7)), 121)",
        "datetime2": "CONVERT(nvarchar(50), CAST({c} AS datetime2(7)), 121)",
        "datetimeoffset": "CONVERT(nvarchar(50), CAST({c} AS datetimeoffset(7)), 121)",
        "binary": "CONVERT(nvarchar(max), CAST({c} AS varbinary(8000)), 2)",
        "varbinary": "CONVERT(nvarchar(max), CAST({c} AS varbinary(8000)), 2)",
    }
    whens = " ".join(f"WHEN '{base}' THEN {expression}" for base, expression in styles.items())
    base = "CAST(SQL_VARIANT_PROPERTY({c}, 'BaseType') AS varchar(128))"
    return f"CASE {base} {whens} ELSE CAST({{c}} AS nvarchar(max)) END"


_VARIANT_TEXT = variant_text_expression()
_VARIANT_PROPERTIES = (
    "CASE WHEN {c} IS NOT NULL THEN "
    + " + '|' + ".join(
        _variant_property(name, kind)
        for name, kind in (
            ("BaseType", "varchar(128)"),
            ("Precision", "int"),
            ("Scale", "int"),
            ("MaxLength", "int"),
            ("Collation", "varchar(128)"),
        )
    )
    + " END"
)
_TABLE: dict[str, Callable[[SqlServerType], Travel]] = {
    "bit": _as_is(pa.bool_()),
    "tinyint": _as_is(pa.int16(), "CAST({c} AS smallint)"),
    "smallint": _as_is(pa.int16()),
    "int": _as_is(pa.int32()),
    "bigint": _as_is(pa.int64()),
    "decimal": _decimal,
    "numeric": _decimal,
    "money": _as_is(pa.decimal128(19, 4), "CAST({c} AS decimal(19, 4))"),
    "smallmoney": _as_is(pa.decimal128(10, 4), "CAST({c} AS decimal(10, 4))"),
    "real": _as_is(pa.float32()),
    "float": _as_is(pa.float64()),
    "char": _character,
    "varchar": _character,
    "nchar": _national,
    "nvarchar": _national,
    "text": lambda _: _large_text("CAST(CAST({c} AS varchar(max)) AS nvarchar(max))"),
    "ntext": lambda _: _large_text("CAST({c} AS nvarchar(max))"),
    "xml": lambda _: _large_text("CAST({c} AS nvarchar(max))"),
    "json": lambda _: _large_text("CAST({c} AS nvarchar(max))"),
    "uniqueidentifier": _as_is(pa.string(), "CAST({c} AS char(36))"),
    "binary": _binary,
    "varbinary": _binary,
    "image": lambda _: _large("{c}"),
    "timestamp": _as_is(pa.binary(), "CAST({c} AS binary(8))"),
    "rowversion": _as_is(pa.binary(), "CAST({c} AS binary(8))"),
    "hierarchyid": lambda _: _large("{c}"),
    "geometry": lambda _: _large("{c}"),
    "geography": lambda _: _large("{c}"),
    "date": _as_is(pa.date32()),
    "smalldatetime": _as_is(pa.timestamp("us"), "CAST({c} AS datetime2(0))"),
    "datetime": _as_is(pa.timestamp("us"), "CAST({c} AS datetime2(3))"),
    "datetime2": _datetime2,
    "datetimeoffset": _datetimeoffset,
    "time": _as_is(pa.string(), "CAST({c} AS varchar(16))"),
    "sql_variant": _variant,
}
