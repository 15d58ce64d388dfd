"""Values of the lake as Debezium's JSON shows them, per type and mode (TYP-01 to TYP-05, features §1.9).

One converter per column: Arrow array and exact texts in, JSON values out. Nothing here knows rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from mssql_cdc.config import RecordSettings
from mssql_cdc.errors import SchemaError
from mssql_cdc.records import temporal
from mssql_cdc.records.defaults import value_of_null
from mssql_cdc.records.encodings import binary_encoder, unscaled_text
from mssql_cdc.records.structure import fraction_digits
from mssql_cdc.schema import Column

Values = list[Any]
Convert = Callable[[pa.Array, pa.Array | None], Values]
_MS, _US, _NS = 1_000_000, 1_000, 1
_SURROGATES = "utf16:"


def converter(column: Column, settings: RecordSettings) -> Convert | None:
    """How the column's values become JSON values; None: Debezium leaves the column out (sql_variant).

    A NULL of a NOT NULL column, which CDC did not deliver, becomes the column's default or its type's zero, as
    Debezium's converters make it.
    """
    convert = _convert(column, settings)
    if convert is None or column.nullable:
        return convert
    return partial(_filled, convert, value_of_null(column, settings))


def _filled(convert: Convert, instead: Any, values: pa.Array, exact: pa.Array | None) -> Values:
    return [instead if value is None else value for value in convert(values, exact)]


def _convert(column: Column, settings: RecordSettings) -> Convert | None:
    name = column.type.name
    if name in _PLAIN:
        return _plain
    if name in _TEXT:
        return _text
    if name in _BINARY:
        return partial(_encoded, binary_encoder(settings.binary_handling))
    if name in _DECIMAL:
        return _DECIMALS[settings.decimal_handling]
    if name == "real":
        return _real
    if name in _TEMPORAL:
        return _temporal(column, settings)
    if name == "sql_variant":
        return None
    raise SchemaError(f"No record form is known for the type {name!r} of column {column.name!r}; exclude the column")


def _temporal(column: Column, settings: RecordSettings) -> Convert:
    name, mode = column.type.name, settings.time_precision
    if name == "datetimeoffset":
        return temporal.zoned_timestamps
    if mode == "isostring":
        return {"date": _iso_dates, "time": _iso_times}.get(name, temporal.iso_timestamps)
    if name == "date":
        return _dates
    unit = time_unit(name, fraction_digits(column.type), mode)
    return partial(_times, unit) if name == "time" else partial(_timestamps, unit)


def time_unit(type_name: str, digits: int, mode: str) -> int:
    """The unit in nanoseconds of a time or timestamp in a `time.precision.mode` that prints numbers."""
    fixed = {"connect": _MS, "microseconds": _US, "nanoseconds": _NS}.get(mode)
    if fixed is not None:
        return fixed
    if mode == "adaptive_time_microseconds" and type_name == "time":
        return _US
    return _MS if digits <= 3 else _US if digits <= 6 else _NS


def _plain(values: pa.Array, exact: pa.Array | None) -> Values:
    del exact
    return values.to_pylist()


def _text(values: pa.Array, exact: pa.Array | None) -> Values:
    found = values.to_pylist()
    if exact is None:
        return found
    return [_utf16(e) if e is not None else v for v, e in zip(found, exact.to_pylist(), strict=True)]


def _utf16(text: str) -> str:
    return bytes.fromhex(text.removeprefix(_SURROGATES)).decode("utf-16-be", "surrogatepass")


def _real(values: pa.Array, exact: pa.Array | None) -> Values:
    """The shortest digits of the 32-bit number, not those of its 64-bit neighbour."""
    del exact
    return [None if text is None else float(text) for text in values.cast(pa.string()).to_pylist()]


def _precise(values: pa.Array, exact: pa.Array | None) -> Values:
    del exact
    return [None if number is None else unscaled_text(number) for number in _unscaled(values)]


def _unscaled(values: pa.Array) -> list[int | None]:
    raw = values.buffers()[1]
    data = memoryview(raw)[values.offset * 16 : (values.offset + len(values)) * 16] if raw is not None else b""
    valid = values.is_valid().to_pylist()
    return [
        int.from_bytes(data[i * 16 : i * 16 + 16], "little", signed=True) if ok else None for i, ok in enumerate(valid)
    ]


def _double(values: pa.Array, exact: pa.Array | None) -> Values:
    del exact
    return [None if value is None else float(value) for value in values.to_pylist()]


def _decimal_text(values: pa.Array, exact: pa.Array | None) -> Values:
    del exact
    return [None if value is None else format(value, "f") for value in values.to_pylist()]


def _encoded(encode: Callable[[bytes], str], values: pa.Array, exact: pa.Array | None) -> Values:
    del exact
    return [None if value is None else encode(value) for value in values.to_pylist()]


def _dates(values: pa.Array, exact: pa.Array | None) -> Values:
    del exact
    return temporal.dates(values)


def _iso_dates(values: pa.Array, exact: pa.Array | None) -> Values:
    del exact
    return temporal.iso_dates(values)


def _iso_times(values: pa.Array, exact: pa.Array | None) -> Values:
    del exact
    return temporal.iso_times(values)


def _times(unit: int, values: pa.Array, exact: pa.Array | None) -> Values:
    del exact
    return temporal.times(values, unit)


def _timestamps(unit: int, values: pa.Array, exact: pa.Array | None) -> Values:
    return temporal.timestamps(values, exact, unit)


_PLAIN = frozenset({"bit", "tinyint", "smallint", "int", "bigint", "float"})
_TEXT = frozenset({"char", "varchar", "nchar", "nvarchar", "text", "ntext", "xml", "json", "uniqueidentifier"})
_BINARY = frozenset({"binary", "varbinary", "image", "timestamp", "rowversion", "hierarchyid", "geometry", "geography"})
_DECIMAL = frozenset({"decimal", "numeric", "money", "smallmoney"})
_TEMPORAL = frozenset({"date", "time", "datetime", "smalldatetime", "datetime2", "datetimeoffset"})
_DECIMALS: dict[str, Convert] = {"precise": _precise, "double": _double, "string": _decimal_text}
