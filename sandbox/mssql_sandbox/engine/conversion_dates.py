"""Conversion to date and time types, with each type's range and rounding."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from mssql_sandbox.engine.parsing import parse_moment
from mssql_sandbox.engine.ticks import (
    DATETIME_DAY,
    DAYS_1900,
    MINUTE_TICKS,
    Moment,
    OutOfRangeError,
    from_moment,
    moment,
)  # fmt: skip
from mssql_sandbox.engine.types import APPROXIMATE, DATES, NUMBERS, STRINGS, SqlType, reported_name
from mssql_sandbox.errors import SqlError, error

Converter = Callable[[Any], Any]
_LEGACY = frozenset({"datetime", "smalldatetime"})


def to_date(source: SqlType, target: SqlType, style: int | None) -> Converter | None:
    """The function to a date or time type."""
    if source.name in STRINGS:
        return _from_text(source, target, style)
    if source.name in DATES:
        return _between(source, target, style)
    if source.name in NUMBERS and target.name in _LEGACY:
        return _from_number(source, target)
    return None


def _between(source: SqlType, target: SqlType, style: int | None) -> Converter:
    if source == target:
        return lambda value: value

    def convert(value: Any) -> Any:
        point = moment(value, source)
        if source.name == "datetimeoffset" and target.name != "datetimeoffset" and style == 1:
            point = Moment(*divmod(value[0], 864_000_000_000))
        if target.name == "time" and source.name == "datetime":
            # With a scale of three or less, 1/300 s counts as its three printed digits.
            point = point._replace(ticks=point.ticks)
        try:
            return from_moment(point, target)
        except OutOfRangeError:
            raise _out_of_range(source, target) from None

    return convert


def _out_of_range(source: SqlType, target: SqlType) -> SqlError:
    return error(242, source=reported_name(source), target=target.name)


def _from_text(source: SqlType, target: SqlType, style: int | None) -> Converter:
    digits = 3 if target.name in _LEGACY else 7
    name = "varchar" if source.name in {"char", "varchar", "text"} else "nvarchar"
    legacy = target.name in _LEGACY

    def convert(value: str) -> Any:
        try:
            point, zoned = parse_moment(value, style=style, digits=digits)
            if zoned and legacy and point.offset:
                raise error(241)
            if target.name != "datetimeoffset" and style == 127:
                point = Moment(*divmod(point.day * 864_000_000_000 + point.ticks - point.offset * MINUTE_TICKS,
                                       864_000_000_000))  # fmt: skip
            return from_moment(point, target)
        except OutOfRangeError:
            if legacy:
                raise error(242, source=name, target=target.name) from None
            raise error(241) from None
        except ValueError:
            if target.name == "smalldatetime":
                raise error(295) from None
            raise error(241) from None

    return convert


def _from_number(source: SqlType, target: SqlType) -> Converter:
    per_day = DATETIME_DAY if target.name == "datetime" else 1440
    shown = "expression" if source.name not in APPROXIMATE else source.name

    def convert(value: Any) -> Any:
        try:
            units = int((Decimal(value) * per_day).quantize(Decimal(1), ROUND_HALF_UP))
            if target.name == "smalldatetime":
                return from_moment(Moment(DAYS_1900 + units // 1440, units % 1440 * MINUTE_TICKS), target)
            from_moment(Moment(DAYS_1900 + units // per_day, 0), target)
        except (ArithmeticError, OutOfRangeError):
            raise error(8115, source=shown, target=target.name) from None
        return units

    return convert
