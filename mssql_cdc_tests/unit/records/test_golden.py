"""Every type in every mode, byte for byte as the renderer that built records row by row wrote it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest

from mssql_cdc.config.record_settings import BinaryHandling, DecimalHandling, TimePrecision
from mssql_cdc.records.converters import converter
from mssql_cdc.schema import TYPES, Column, Kind, SqlServerType, TypeRow
from mssql_cdc_tests.unit.config.samples import connector_with

GOLDEN: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parent / "golden_values.json").read_text(encoding="utf-8")
)
"""Type -> mode -> texts of `nasty` values, and of the same values in reverse without exact texts."""
TEXTS = ["", " ", '"', "\\", '\\"\r\n\t\b\f\x00\x1f\x7f', "\u2028é😀\ufffd", "</script>", "{}", "a" * 40]
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 1e-4, 9.999e-5, 1e-7, 123456789.125, 1e10, 1e15, 9007199254740993.0, 1e16, 1e22]
WIDE = Context(prec=40)
DAYS = [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 5), date(1582, 10, 15), date(1970, 1, 1), date(9999, 12, 31)]


def declared(row: TypeRow) -> Iterator[SqlServerType]:
    """The type in the forms that differ when rendered."""
    match row.arguments:
        case "none":
            yield SqlServerType(row.name)
        case "length":
            yield from (SqlServerType(row.name, length=length) for length in (40, -1))
        case "precision and scale":
            yield from (SqlServerType(row.name, precision=p, scale=s) for p, s in ((18, 0), (38, 10), (38, 38)))
        case "scale":
            yield from (SqlServerType(row.name, scale=scale) for scale in (0, 3, 5, 7))


def nasty(kind: SqlServerType) -> list[tuple[Any, str | None]]:
    """Values with their exact texts: the ends of the range, NULL, and what needs care in a text."""
    arrow: Any = kind.arrow
    digits = kind.fraction_digits if kind.row.arguments == "scale" else 3
    match kind.kind:
        case Kind.BOOLEAN:
            return _plain([True, False, None])
        case Kind.INTEGER:
            most = 1 << (arrow.bit_width - 1)
            return _plain([0, 1, -1, most - 1, -most, None])
        case Kind.DECIMAL:
            most = 10**arrow.precision - 1
            whole = [0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, 1 << 62, most, -most]
            return _plain([*(Decimal(n).scaleb(-arrow.scale, WIDE) for n in whole if abs(n) <= most), None])
        case Kind.FLOAT:
            most = 1.7976931348623157e308 if arrow.bit_width == 64 else 3.4028234663852886e38
            return _plain([*FLOATS, most, -most, 5e-324 if arrow.bit_width == 64 else 1e-45, None])
        case Kind.TEXT | Kind.DOCUMENT | Kind.UUID:
            return _plain([*TEXTS, None])
        case Kind.BINARY | Kind.CLR:
            return _plain([b"", b"\x00", b"\xfb\xff", b"\xfb\xff\xfe", bytes(range(256)), b"\xff" * 50, None])
        case Kind.DATE:
            return _plain([*DAYS, None])
        case Kind.TIME:
            texts = ["00:00:00.0000000", "23:59:59.9999999", "12:34:56.1200000", "00:00:00.0000001"]
            return _plain([*(text[: 9 + digits].rstrip(".") for text in texts), None])
        case Kind.TIMESTAMP:
            moments = [datetime(day.year, day.month, day.day, 23, 59, 58, 123456) for day in DAYS]  # noqa: DTZ001
            exact = f"{moments[-1]:%Y-%m-%d %H:%M:%S.%f}7" if digits == 7 else None
            return [*_plain(moments), (moments[-1], exact), (None, None)]
        case Kind.INSTANT:
            days = [*DAYS, date(1969, 12, 31)]
            moments = [datetime(day.year, day.month, day.day, 23, 59, 58, 987654, tzinfo=UTC) for day in days]
            return [*_plain(moments), *((one, _with_zone(one, hours, digits)) for one in moments for hours in (-5, 3))]
        case Kind.VARIANT:
            return []


def rendered(kind: SqlServerType, settings: Any) -> list[str]:
    """The texts of `nasty` values, and of the same values in reverse without exact texts."""
    convert = converter(Column("c", kind), settings)
    assert convert is not None
    values, exact = zip(*nasty(kind), strict=True)
    texts = pa.array(exact, pa.string()) if any(exact) else None
    found = convert(pa.array(values, kind.arrow), texts).to_pylist()
    return found + convert(pa.array(values[::-1], kind.arrow), None).to_pylist()


MODES = {
    f"{name}={mode}": connector_with({name: mode}).records
    for name, modes in (
        ("time.precision.mode", get_args(TimePrecision)),
        ("decimal.handling.mode", get_args(DecimalHandling)),
        ("binary.handling.mode", get_args(BinaryHandling)),
    )
    for mode in modes
}
TYPE_FORMS = [kind for row in TYPES.values() for kind in declared(row) if kind.kind is not Kind.VARIANT]


@pytest.mark.feature("TYP-01", "TYP-02")
@pytest.mark.parametrize("kind", TYPE_FORMS, ids=lambda kind: kind.declaration)
def test_every_type_is_written_as_before_in_every_mode(kind: SqlServerType):
    found = {mode: rendered(kind, settings) for mode, settings in MODES.items()}
    expected = GOLDEN[kind.declaration]
    assert found == {mode: expected[mode] if mode in expected else expected["any mode"] for mode in MODES}


def _plain(values: list[Any]) -> list[tuple[Any, str | None]]:
    return [(value, None) for value in values]


def _with_zone(at: datetime, hours: int, digits: int) -> str | None:
    if not 1 < at.year < 9999:
        return None
    local = at + timedelta(hours=hours)
    fraction = f".{f'{local:%f}7'[:digits]}" if digits else ""
    return f"{local:%Y-%m-%d %H:%M:%S}{fraction} {'-' if hours < 0 else '+'}{abs(hours):02}:00"
