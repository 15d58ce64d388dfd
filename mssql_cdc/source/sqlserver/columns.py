"""One table: SQL Server type -> select expressions -> raw Arrow types -> decoder (the fidelity rule).

Values that a driver could corrupt are cast in T-SQL, so that both fetch methods (Arrow and row by row) deliver the same
raw batches. `schema/types.py` decides how a type is stored; this module only fetches it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.errors import SourceError, StaleStructureError
from mssql_cdc.schema import Column, Kind, SqlServerType
from mssql_cdc.schema.types import FRACTION_DIGITS
from mssql_cdc.source.sqlserver import variants
from mssql_cdc.source.sqlserver.bulk import BATCH_BYTES, COLUMN
from mssql_cdc.source.sqlserver.numpy_arrays import numbers
from mssql_cdc.source.sqlserver.raw_values import MisfitError, decode_utf16, instant, local_time
from mssql_cdc.source.sqlserver.sql import quote

Decoded = tuple[pa.Array, pa.StringArray | None]
"""A column's values in its Arrow type, and the exact texts of values that it cannot represent (None: none)."""

_PIECE = 2000  # characters; at most 4000 UTF-16 units under any collation, which is what nvarchar(4000) holds
_SHORT = 64
"""Enough bytes for any value without a declared length."""
_WIDEST = BATCH_BYTES // 4
"""Of wider rows, arrow-odbc fetches fewer than four at a time; of rows wider than `BATCH_BYTES`, none (an error)."""
_UUID_LENGTH, _DATE_LENGTH = 36, 10


@dataclass(frozen=True, slots=True)
class Fetch:
    """How a column is fetched: T-SQL expressions with `{c}` for the column, their raw types, the decoder."""

    expressions: tuple[str, ...]
    raw: tuple[pa.DataType, ...]
    decode: Callable[[Sequence[pa.Array]], Decoded]


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The select list of some columns, its raw fields, and how batches of them become the columns' values."""

    columns: tuple[Column, ...]
    fetches: tuple[Fetch, ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> RowPlan:
        """The plan for these columns, in this order."""
        by_rows = needs_rows(columns)
        return cls(tuple(columns), tuple(fetch(column.type, by_rows=by_rows) for column in columns))

    @property
    def by_rows(self) -> bool:
        """Whether a column needs row-by-row fetching."""
        return needs_rows(self.columns)

    def select_list(self, alias: str = "", *, hidden: Collection[str] = ()) -> list[str]:
        """`expression AS [c<column>_<part>]`, in the order of `raw_fields`.

        Args:
            alias: the table's alias.
            hidden: columns that are not read: NULL takes their place.
        """
        prefix = f"{alias}." if alias else ""

        def source(column: Column) -> str:
            is_hidden = column.name in hidden
            return f"CAST(NULL AS {column.type.declaration})" if is_hidden else prefix + quote(column.name)

        return [
            f"{expression.replace('{c}', source(column))} AS [c{number}_{part}]"
            for number, (column, way) in enumerate(zip(self.columns, self.fetches, strict=True))
            for part, expression in enumerate(way.expressions)
        ]

    def raw_fields(self) -> list[pa.Field]:
        """The raw fields that the select list yields."""
        return [
            pa.field(f"c{number}_{part}", raw, metadata={COLUMN: column.name})
            for number, (column, way) in enumerate(zip(self.columns, self.fetches, strict=True))
            for part, raw in enumerate(way.raw)
        ]

    def decode(self, batch: pa.RecordBatch) -> list[Decoded]:
        """Values and exact texts of every column of a raw batch (which may have other fields too).

        Raises:
            SourceError: a value did not arrive whole; the message names the column.
            StaleStructureError: a value does not fit the column's declaration.
        """
        decoded: list[Decoded] = []
        for number, (column, way) in enumerate(zip(self.columns, self.fetches, strict=True)):
            parts = [batch.column(f"c{number}_{part}") for part in range(len(way.raw))]
            try:
                values, exact = way.decode(parts)
                decoded.append((_stored(values, column.type.arrow), exact))
            except MisfitError as error:
                raise StaleStructureError(
                    f"A value of column {column.name!r} does not fit {column.type.declaration}, the type it was read "
                    f"as: {error}. The column was altered; it will be re-read with its new structure"
                ) from None
            except pa.ArrowInvalid:  # Its message shows the value.
                raise SourceError(
                    f"Column {column.name!r} ({column.type.declaration}): a value has another form than the type has"
                ) from None
            except ValueError as error:
                raise SourceError(f"Column {column.name!r} ({column.type.declaration}): {error}") from None
        return decoded


def needs_rows(columns: Sequence[Column]) -> bool:
    """Whether row-by-row fetching is needed (`RowPlan.by_rows`): for one of the columns, or for all together.

    A columnar buffer reserves the declared size for each value, however short the values are.

    Raises:
        SchemaError: the type table has no such type.
    """
    return any(column.type.is_large for column in columns) or sum(_width(c.type) for c in columns) > _WIDEST


def _width(sql_type: SqlServerType) -> int:
    """About how many bytes a columnar buffer needs for one value."""
    length = sql_type.length or _SHORT
    if sql_type.kind is not Kind.TEXT:
        return length
    return 4 * _PIECE * len(_pieces(length)) if length >= 2 * _PIECE else 2 * length + 2


def fetch(sql_type: SqlServerType, *, by_rows: bool = False) -> Fetch:
    """How values of this type are fetched.

    Args:
        sql_type: the type.
        by_rows: rows are fetched one by one, without buffers of the declared sizes.

    Raises:
        SchemaError: the type table has no such type.
    """
    select = sql_type.row.select
    match sql_type.kind:
        case Kind.BOOLEAN | Kind.INTEGER:
            return Fetch((select,), (sql_type.arrow,), _first)
        case Kind.UUID:
            return Fetch((select,), (pa.string(),), lambda parts: _within(parts[0], _UUID_LENGTH))
        case Kind.DATE:
            # As text: a driver drops the time of a datetime2 that is read as a date.
            return Fetch(("CONVERT(varchar(27), {c}, 121)",), (pa.string(),), lambda parts: _date(parts[0]))
        case Kind.DECIMAL:
            return _decimal(sql_type)
        case Kind.FLOAT:
            return Fetch((select,), (pa.float64(),), lambda parts: _float(parts[0], sql_type.arrow))
        case Kind.TIME:
            longest = 8 + (1 + sql_type.fraction_digits if sql_type.fraction_digits else 0)
            return Fetch((select,), (pa.string(),), lambda parts: _within(parts[0], longest))
        case Kind.BINARY | Kind.CLR:
            if sql_type.is_large:
                return _large(select)
            longest = sql_type.length or 8
            return Fetch((select,), (sql_type.arrow,), lambda parts: _within(parts[0], longest))
        case Kind.TEXT | Kind.DOCUMENT:
            return _text(sql_type, by_rows=by_rows)
        case Kind.TIMESTAMP:
            # Style 121 shows a smalldatetime with the digits of a datetime.
            scale = FRACTION_DIGITS if sql_type.scale is None else sql_type.scale
            scale = scale if sql_type.row.digits is None else 3
            return Fetch(("CONVERT(varchar(27), {c}, 121)",), (pa.string(),), lambda parts: local_time(parts[0], scale))
        case Kind.INSTANT:
            digits = sql_type.fraction_digits
            return Fetch(("CONVERT(varchar(34), {c}, 121)",), (pa.string(),), lambda parts: instant(parts[0], digits))
        case Kind.VARIANT:
            return _variant()


def _stored(values: pa.Array, stored: pa.DataType) -> pa.Array:
    try:
        return values.cast(stored)
    except pa.ArrowInvalid:
        raise MisfitError("it is out of its range") from None


def _first(parts: Sequence[pa.Array]) -> Decoded:
    return parts[0], None


def _date(texts: pa.Array) -> Decoded:
    """The dates of texts like `2024-05-06`; a text that has a time, too, does not fit."""
    return _within(texts, _DATE_LENGTH)[0].cast(pa.date32()), None


def _decimal(sql_type: SqlServerType) -> Fetch:
    """Numbers as text with all their digits: a driver rounds what a buffer of the declared scale cannot hold."""
    style = f", {sql_type.row.style}" if sql_type.row.style else ""
    return Fetch((f"CONVERT(varchar(41), {{c}}{style})",), (pa.string(),), lambda p: _parsed(p[0], sql_type.arrow))


def _parsed(texts: pa.Array, stored: pa.DataType) -> Decoded:
    try:
        return texts.cast(stored), None
    except pa.ArrowInvalid:
        raise MisfitError("it has more digits") from None


def _float(values: pa.Array, stored: pa.DataType) -> Decoded:
    """64-bit values in their declared width; a `real` that became a `float` does not fit."""
    narrow = values.cast(stored, safe=False)
    if stored != values.type and not narrow.cast(values.type).equals(values):
        raise MisfitError("it has more digits")
    return narrow, None


def _within(values: pa.Array, longest: int) -> Decoded:
    """The values, none of them with more bytes than its declaration allows."""
    arrived = pc.max(pc.binary_length(values)).as_py() or 0
    if arrived > longest:
        raise MisfitError(f"{arrived} bytes instead of at most {longest}")
    return values, None


def _text(sql_type: SqlServerType, *, by_rows: bool) -> Fetch:
    """Text as UTF-16: the server, which alone knows every code page, converts anything else.

    One character more than declared is requested, so that a longer value is noticed instead of being truncated.
    """
    select, length = sql_type.row.select, sql_type.length or 1
    if sql_type.is_large:
        return _large_text(select.replace("{length}", "max"))
    if length < 2 * _PIECE:
        expression = f"CAST({select.replace('{length}', str(length + 1))} AS varbinary({2 * length + 2}))"
        return Fetch((expression,), (pa.binary(),), lambda parts: decode_utf16(_within(parts[0], 2 * length)[0]))
    if by_rows:  # In pieces, 819 columns would exceed the 4,096 expressions that SQL Server can select.
        whole = _large(select.replace("{length}", "max"))
        return Fetch(whole.expressions, whole.raw, lambda parts: decode_utf16(_within(_whole(parts), 2 * length)[0]))
    pieces = tuple(
        f"CAST(CAST(SUBSTRING({{c}}, {start}, {_PIECE}) AS nvarchar({2 * _PIECE})) AS varbinary({4 * _PIECE}))"
        for start in _pieces(length)
    )
    return Fetch(pieces, (pa.binary(),) * len(pieces), lambda parts: _joined(parts, 2 * length))


def _pieces(length: int) -> range:
    """Where the pieces of a text begin; one character more than declared is requested."""
    return range(1, length + 2, _PIECE)


def _joined(parts: Sequence[pa.Array], longest: int) -> Decoded:
    return decode_utf16(_within(pc.binary_join_element_wise(*parts, pa.scalar(b"")), longest)[0])


def _large(expression: str) -> Fetch:
    """Fetch a value without a size limit together with its length, so that truncation is detected (rule E26)."""
    binary = f"CAST({expression} AS varbinary(max))"
    return Fetch(
        (binary, f"CAST(DATALENGTH({binary}) AS bigint)"),
        (pa.binary(), pa.int64()),
        lambda parts: (_whole(parts), None),
    )


def _large_text(expression: str) -> Fetch:
    large = _large(expression)
    return Fetch(large.expressions, large.raw, lambda parts: decode_utf16(_whole(parts)))


def _whole(parts: Sequence[pa.Array]) -> pa.Array:
    """Return the values after checking that each has the length that the server reported.

    Raises:
        ValueError: a value was truncated.
    """
    values, lengths = parts
    arrived = numbers(pc.binary_length(values), null=-1)
    sent = numbers(lengths, null=-1)
    short = arrived != sent
    if short.any():
        row = int(short.argmax())
        raise ValueError(f"the server sent {sent[row]} bytes, {arrived[row]} arrived; check the driver's text size")
    return values


def _variant() -> Fetch:
    text = _large_text(variants.text_expression())
    return Fetch(
        (*text.expressions, variants.properties_expression()),
        (*text.raw, pa.string()),
        lambda parts: variants.decode(*text.decode(parts[:2]), parts[2]),
    )
