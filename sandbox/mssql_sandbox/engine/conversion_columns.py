"""Conversion of whole columns: the same values as `converter` gives, for a list at a time; NULL stays NULL.

The conversions most frequent in large reads have loops of their own, in one table; all others call `converter` in a
loop.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from mssql_sandbox.engine.conversion import converter
from mssql_sandbox.engine.ticks import DAY_TICKS, DAYS_1900, MINUTE_TICKS, SECOND_TICKS, civil
from mssql_sandbox.engine.types import MAX, SqlType

ColumnFunction = Callable[[Sequence[Any]], Sequence[Any]]
_Maker = Callable[[SqlType, SqlType], ColumnFunction | None]
_EPOCH_1900 = DAYS_1900 * DAY_TICKS
_ISO = (None, 121)


@lru_cache(maxsize=8192)
def column_converter(source: SqlType, target: SqlType, style: int | None = None) -> ColumnFunction:
    """The function that converts columns of `source` to `target`; error 529 if there is no conversion.

    Equal conversions are one object, so that repeated expressions can be recognized.
    """
    function = converter(source, target, style)
    maker = _TABLE.get((source.name, target.name)) if style in _ISO else None
    made = maker(source, target) if maker is not None else None
    return lifted(function) if made is None else made


def lifted(function: Callable[[Any], Any]) -> ColumnFunction:
    """A function of non-NULL values as a function of columns."""
    return lambda cells: [None if v is None else function(v) for v in cells]


def _utf16(source: SqlType, target: SqlType) -> ColumnFunction | None:
    if target.length != MAX and not 0 < 2 * source.length <= target.length:
        return None
    encode = codecs.utf_16_le_encode
    return lambda cells: [None if v is None else encode(v, "surrogatepass")[0] for v in cells]


def _as_it_is(source: SqlType, target: SqlType) -> ColumnFunction | None:
    return (lambda cells: cells) if target.length == source.length else None


def _rowversion(_: SqlType, target: SqlType) -> ColumnFunction | None:
    return (lambda cells: cells) if target.length == 8 else None


def _money(_: SqlType, target: SqlType) -> ColumnFunction | None:
    if target.scale != 4 or target.precision < 19:
        return None
    return lambda cells: [None if v is None else v or abs(v) for v in cells]  # no negative zero


def _datetime(_: SqlType, target: SqlType) -> ColumnFunction | None:
    if target.scale < 3:
        return None  # rounding could leave the calendar
    unit = 10 ** (7 - target.scale)
    half = unit // 2
    return lambda cells: [
        None if v is None else _EPOCH_1900 + ((v * 100_000 + 1) // 3 + half) // unit * unit for v in cells
    ]


def _smalldatetime(_: SqlType, __: SqlType) -> ColumnFunction | None:
    return lambda cells: [None if v is None else _EPOCH_1900 + v * MINUTE_TICKS for v in cells]


# ---- ISO texts -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _day_text(day: int) -> str:
    return civil(day).isoformat()


def _time_text(ticks: int, scale: int) -> str:
    seconds, fraction = divmod(ticks, SECOND_TICKS)
    whole = _clock_text(seconds)
    return f"{whole}.{fraction:07}"[: 9 + scale] if scale else whole


@lru_cache(maxsize=86_400)
def _clock_text(seconds: int) -> str:
    """The time of a second of a day; formatting it took a quarter of the server's time in large reads."""
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02}:{minute:02}:{second:02}"


def _iso_time(source: SqlType, target: SqlType) -> ColumnFunction | None:
    scale = source.scale
    if not _holds(target, 8 + scale + (scale > 0)):
        return None
    return lambda cells: [None if v is None else _time_text(v, scale) for v in cells]


def _stamp(ticks: int, scale: int) -> str:
    day, part = divmod(ticks, DAY_TICKS)
    return f"{_day_text(day)} {_time_text(part, scale)}"


def _iso_datetime2(source: SqlType, target: SqlType) -> ColumnFunction | None:
    scale = source.scale
    if not _holds(target, 19 + scale + (scale > 0)):
        return None
    return lambda cells: [None if v is None else _stamp(v, scale) for v in cells]


@lru_cache(maxsize=4096)
def _offset_text(minutes: int) -> str:
    return f" {'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _iso_datetimeoffset(source: SqlType, target: SqlType) -> ColumnFunction | None:
    scale = source.scale
    if not _holds(target, 26 + scale + (scale > 0)):
        return None
    return lambda cells: [
        None if v is None else _stamp(v[0] + v[1] * MINUTE_TICKS, scale) + _offset_text(v[1]) for v in cells
    ]


def _holds(target: SqlType, length: int) -> bool:
    return target.length == MAX or target.length >= length


_TABLE: dict[tuple[str, str], _Maker] = {
    **{(name, "varbinary"): _utf16 for name in ("nvarchar", "nchar")},
    ("rowversion", "binary"): _rowversion,
    ("binary", "binary"): _as_it_is,
    ("money", "decimal"): _money,
    ("datetime", "datetime2"): _datetime,
    ("smalldatetime", "datetime2"): _smalldatetime,
    ("time", "varchar"): _iso_time,
    ("datetime2", "varchar"): _iso_datetime2,
    ("datetimeoffset", "varchar"): _iso_datetimeoffset,
}
"""(source, target) -> the loop for a conversion without style (or with 121), None if it would not be exact."""
