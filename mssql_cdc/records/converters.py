"""Converts the lake's values to Debezium's JSON values, by type and mode (TYP-01 to TYP-05, features §1.9).

There is one converter per column: Arrow array and exact texts in, JSON values out. Converters do not know rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from mssql_cdc.config import RecordSettings
from mssql_cdc.config.record_settings import TimePrecision
from mssql_cdc.records import temporal
from mssql_cdc.records.defaults import value_of_null
from mssql_cdc.records.encodings import binary_encoder, unscaled_text
from mssql_cdc.schema import Column, Kind, SqlServerType

Values = list[Any]
Convert = Callable[[pa.Array, pa.Array | None], Values]
_MS, _US, _NS = 1_000_000, 1_000, 1
_SURROGATES = "utf16:"


def converter(column: Column, settings: RecordSettings) -> Convert | None:
    """Return the converter of a column, or None if Debezium omits the column (sql_variant).

    The converter takes an array of `column.type.arrow` and the exact texts of its rows, or None without exact texts.
    Like Debezium's converters, it replaces a NULL of a NOT NULL column, which CDC did not deliver, with the column's
    default or its type's zero.

    Raises:
        SchemaError: The column's type is unknown.
    """
    convert = _convert(column.type, settings)
    if convert is None or column.nullable:
        return convert
    return partial(_filled, convert, value_of_null(column, settings))


def _filled(convert: Convert, instead: Any, values: pa.Array, exact: pa.Array | None) -> Values:
    return [instead if value is None else value for value in convert(values, exact)]


def _convert(sql_type: SqlServerType, settings: RecordSettings) -> Convert | None:
    match sql_type.kind:
        case Kind.BOOLEAN | Kind.INTEGER:
            return _plain
        case Kind.FLOAT:
            return _float
        case Kind.DECIMAL:
            return _DECIMALS[settings.decimal_handling]
        case Kind.TEXT | Kind.DOCUMENT | Kind.UUID:
            return _text
        case Kind.BINARY | Kind.CLR:
            return partial(_encoded, binary_encoder(settings.binary_handling))
        case Kind.INSTANT:
            return temporal.zoned_timestamps
        case Kind.DATE:
            return _iso_dates if settings.time_precision == "isostring" else _dates
        case Kind.TIME | Kind.TIMESTAMP:
            return _time_of(sql_type, settings.time_precision)
        case Kind.VARIANT:
            return None


def _time_of(sql_type: SqlServerType, mode: TimePrecision) -> Convert:
    is_time = sql_type.kind is Kind.TIME
    if mode == "isostring":
        return _iso_times if is_time else temporal.iso_timestamps
    return partial(_times if is_time else _timestamps, time_unit(sql_type, mode))


def time_unit(sql_type: SqlServerType, mode: TimePrecision) -> int:
    """Return the unit in nanoseconds of a time or timestamp in a numeric `time.precision.mode`."""
    fixed = {"connect": _MS, "microseconds": _US, "nanoseconds": _NS}.get(mode)
    if fixed is not None:
        return fixed
    if mode == "adaptive_time_microseconds" and sql_type.kind is Kind.TIME:
        return _US
    digits = sql_type.fraction_digits
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


def _float(values: pa.Array, exact: pa.Array | None) -> Values:
    """Convert numbers with the digits that JSON shows: those of a 32-bit float are its own shortest ones."""
    del exact
    if not pa.types.is_float32(values.type):
        return values.to_pylist()
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


_DECIMALS: dict[str, Convert] = {"precise": _precise, "double": _double, "string": _decimal_text}
