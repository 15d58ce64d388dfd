"""Converts the lake's values to Debezium's values in JSON, by type and mode (TYP-01 to TYP-05, features §1.9).

There is one converter per column: Arrow array and exact texts in, JSON texts out. Converters know nothing about rows.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.config import MaskRule, RecordSettings
from mssql_cdc.config.json_forms import JsonForm
from mssql_cdc.config.record_settings import TimePrecision
from mssql_cdc.events.masking import mask_of
from mssql_cdc.records import temporal
from mssql_cdc.records.defaults import Literal, literal_default, stored, zero
from mssql_cdc.records.encodings import binary_texts, unscaled_texts
from mssql_cdc.records.json_texts import Texts, json_text, quoted
from mssql_cdc.records.number_texts import decimal_texts, double_texts, float_texts
from mssql_cdc.schema import Column, Kind, SqlServerType

Convert = Callable[[pa.Array, pa.Array | None], Texts]
PLAIN = JsonForm()
_MS, _US, _NS = 1_000_000, 1_000, 1
_SURROGATES = "utf16:"


def converter(
    column: Column, settings: RecordSettings, form: JsonForm = PLAIN, *, mask: MaskRule | None = None
) -> Convert | None:
    """Return the converter of a column, or None if Debezium omits the column (sql_variant).

    The converter takes an array of `column.type.arrow` and the exact texts of its rows, or None if there are none.
    Like Debezium's converters, it replaces a NULL in a NOT NULL column, which CDC did not deliver, with the column's
    default or its type's zero.

    Args:
        column: The column.
        settings: The modes of values.
        form: How Kafka Connect's converter writes them.
        mask: The column's mask. The lake has masked values, but Debezium truncates bytes as the texts they become.

    Raises:
        SchemaError: The column's type is unknown.
    """
    convert = _shortened(column, settings, form, mask)
    return None if convert is None else partial(_filled, convert, null_text(column, settings, form, mask=mask))


def null_text(column: Column, settings: RecordSettings, form: JsonForm = PLAIN, *, mask: MaskRule | None = None) -> str:
    """Return the JSON text for a column's NULL: Debezium has no null in NOT NULL columns.

    The column's mask also hides what Debezium has there instead. The default that Kafka Connect's converter shows for a
    null is the schema's.

    Args:
        column: The column.
        settings: The modes of values.
        form: How Kafka Connect's converter writes them.
        mask: The column's mask. It is used only where CDC may not deliver a value, so that no other salt is read.
    """
    if column.nullable and not form.defaults:
        return "null"
    found, convert = default_text(column, settings, form), _shortened(column, settings, form, mask)
    if column.nullable or convert is None:
        return "null" if found is None else found
    if mask is not None and mask.applies_to(column.type.name) and column.type.is_hidden_untouched:
        values, _ = stored(column, literal_default(column) or zero(column))
        return convert(mask_of(mask).apply(values, column.type), None)[0].as_py()
    return _text_of(column, convert, zero(column)) if found is None else found


def default_text(column: Column, settings: RecordSettings, form: JsonForm = PLAIN) -> str | None:
    """Return the JSON text of a column's literal default; None if it has none.

    Args:
        column: The column.
        settings: The modes of values.
        form: How Kafka Connect's converter writes them.
    """
    convert, literal = _convert(column.type, settings, form), literal_default(column)
    if convert is None or literal is None:
        return None
    if isinstance(literal[0], Decimal) and settings.decimal_handling == "string":
        return json_text(f"{literal[0]:f}")  # The literal's own digits, not those of the column.
    return _text_of(column, convert, literal)


def _text_of(column: Column, convert: Convert, literal: Literal) -> str:
    return convert(*stored(column, literal))[0].as_py()


def _filled(convert: Convert, instead: str, values: pa.Array, exact: pa.Array | None) -> Texts:
    return pc.fill_null(convert(values, exact), instead)


def _shortened(column: Column, settings: RecordSettings, form: JsonForm, mask: MaskRule | None) -> Convert | None:
    """Return a column's converter, which truncates the texts of bytes; the lake has enough bytes for that."""
    convert = _convert(column.type, settings, form)
    if convert is None or mask is None or mask.kind != "truncate" or settings.binary_handling == "bytes":
        return convert
    length = column.type.jdbc_length
    is_short = length is not None and length <= mask.length
    if is_short or column.type.kind is not Kind.BINARY or not mask.applies_to(column.type.name):
        return convert
    return partial(_cut, convert, mask.length)


def _cut(convert: Convert, length: int, values: pa.Array, exact: pa.Array | None) -> Texts:
    """Truncate quoted texts that contain nothing to escape."""
    texts = convert(values, exact)
    cut = pc.binary_join_element_wise(pc.utf8_slice_codeunits(texts, 0, length + 1), '"', "")
    return pc.if_else(pc.greater(pc.utf8_length(texts), length + 2), cut, texts)


def _convert(sql_type: SqlServerType, settings: RecordSettings, form: JsonForm) -> Convert | None:
    match sql_type.kind:
        case Kind.BOOLEAN | Kind.INTEGER:
            return _plain
        case Kind.FLOAT:
            return _float
        case Kind.DECIMAL:
            numeric = form.numeric and settings.decimal_handling == "precise"
            return _decimal_number if numeric else _DECIMALS[settings.decimal_handling]
        case Kind.TEXT | Kind.DOCUMENT | Kind.UUID:
            return _text
        case Kind.BINARY | Kind.CLR:
            return partial(_encoded, settings.binary_handling)
        case Kind.INSTANT:
            return _instants
        case Kind.DATE:
            return _iso_dates if settings.time_precision == "isostring" else _dates
        case Kind.TIME | Kind.TIMESTAMP:
            return _time_of(sql_type, settings.time_precision)
        case Kind.VARIANT:
            return None


def _time_of(sql_type: SqlServerType, mode: TimePrecision) -> Convert:
    is_time = sql_type.kind is Kind.TIME
    if mode == "isostring":
        return _iso_times if is_time else _iso_timestamps
    return partial(_times if is_time else _timestamps, time_unit(sql_type, mode))


def time_unit(sql_type: SqlServerType, mode: TimePrecision) -> int:
    """Return the unit, in nanoseconds, of a time or timestamp under a numeric `time.precision.mode`."""
    fixed = {"connect": _MS, "microseconds": _US, "nanoseconds": _NS}.get(mode)
    if fixed is not None:
        return fixed
    if mode == "adaptive_time_microseconds" and sql_type.kind is Kind.TIME:
        return _US
    digits = sql_type.fraction_digits
    return _MS if digits <= 3 else _US if digits <= 6 else _NS


def _plain(values: pa.Array, exact: pa.Array | None) -> Texts:
    del exact
    return values.cast(pa.string())


def _text(values: pa.Array, exact: pa.Array | None) -> Texts:
    texts = quoted(values)
    if exact is None:
        return texts
    # Only texts with a lone surrogate have an exact form; UTF-8 cannot encode them, JSON can.
    restored = [None if text is None else json_text(_utf16(text)) for text in exact.to_pylist()]
    return pc.coalesce(pa.array(restored, pa.string()), texts)


def _utf16(text: str) -> str:
    return bytes.fromhex(text.removeprefix(_SURROGATES)).decode("utf-16-be", "surrogatepass")


def _float(values: pa.Array, exact: pa.Array | None) -> Texts:
    del exact
    return float_texts(values)


def _precise(values: pa.Array, exact: pa.Array | None) -> Texts:
    del exact
    return _in_quotes(unscaled_texts(values))


def _double(values: pa.Array, exact: pa.Array | None) -> Texts:
    del exact
    return double_texts(values)


def _decimal_text(values: pa.Array, exact: pa.Array | None) -> Texts:
    del exact
    return _in_quotes(decimal_texts(values))


def _decimal_number(values: pa.Array, exact: pa.Array | None) -> Texts:
    del exact
    return decimal_texts(values)


def _encoded(mode: str, values: pa.Array, exact: pa.Array | None) -> Texts:
    del exact
    return _in_quotes(binary_texts(values, mode))


def _instants(values: pa.Array, exact: pa.Array | None) -> Texts:
    return _in_quotes(temporal.zoned_timestamps(values, exact))


def _dates(values: pa.Array, exact: pa.Array | None) -> Texts:
    del exact
    return temporal.dates(values).cast(pa.string())


def _iso_dates(values: pa.Array, exact: pa.Array | None) -> Texts:
    del exact
    return _in_quotes(temporal.iso_dates(values))


def _iso_times(values: pa.Array, exact: pa.Array | None) -> Texts:
    del exact
    return _in_quotes(temporal.iso_times(values))


def _iso_timestamps(values: pa.Array, exact: pa.Array | None) -> Texts:
    return _in_quotes(temporal.iso_timestamps(values, exact))


def _times(unit: int, values: pa.Array, exact: pa.Array | None) -> Texts:
    del exact
    return temporal.times(values, unit).cast(pa.string())


def _timestamps(unit: int, values: pa.Array, exact: pa.Array | None) -> Texts:
    return temporal.timestamps(values, exact, unit).cast(pa.string())


def _in_quotes(texts: pa.Array) -> Texts:
    """Quote texts that contain nothing to escape."""
    return pc.binary_join_element_wise('"', texts, '"', "")


_DECIMALS: dict[str, Convert] = {"precise": _precise, "double": _double, "string": _decimal_text}
