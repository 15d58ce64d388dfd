"""Calendar arithmetic on storage forms: days, 100-ns ticks, 1/300 s, minutes.

Every date and time value can be split into a `Moment` (days since 0001-01-01, 100-ns ticks of the day, offset) and
built from one, with each type's own rounding. What does not belong here: text forms and error numbers.
"""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from mssql_sandbox.engine.types import SqlType

DAY_TICKS = 864_000_000_000
SECOND_TICKS = 10_000_000
MINUTE_TICKS = 600_000_000
DATETIME_DAY = 25_920_000
DAYS_1900 = 693_595
MAX_DAYS = 3_652_058
LAST_TICK = (MAX_DAYS + 1) * DAY_TICKS - 1
MAX_OFFSET = 14 * 60
"""The largest offset of a time zone in minutes."""
MIN_DATETIME_DAYS = 639_905
_MAX_SMALL = 65_536 * 1440 - 1


class Moment(NamedTuple):
    """A point of local time; `offset` in minutes where the type has one. `day` is None for time-only values."""

    day: int
    ticks: int
    offset: int = 0


class OutOfRangeError(ValueError):
    """The moment does not fit the type."""


def moment(value: object, type_: SqlType) -> Moment:
    """Split a value in storage form; local time for datetimeoffset, 1900-01-01 for time."""
    name = type_.name
    if name == "datetime2":
        return Moment(*divmod(value, DAY_TICKS))  # type: ignore[operator]
    if name == "date":
        return Moment(value, 0)  # type: ignore[arg-type]
    if name == "datetime":
        day, part = divmod(value, DATETIME_DAY)  # type: ignore[operator]
        return Moment(DAYS_1900 + day, (part * 100_000 + 1) // 3)
    if name == "smalldatetime":
        day, minutes = divmod(value, 1440)  # type: ignore[operator]
        return Moment(DAYS_1900 + day, minutes * MINUTE_TICKS)
    if name == "time":
        return Moment(DAYS_1900, value)  # type: ignore[arg-type]
    if name == "datetimeoffset":
        utc, offset = value  # type: ignore[misc]
        day, ticks = divmod(utc + offset * MINUTE_TICKS, DAY_TICKS)
        return Moment(day, ticks, offset)
    raise AssertionError(f"{name} is no date or time type")


def from_moment(point: Moment, type_: SqlType) -> object:
    """The storage form of a moment, rounded as the type rounds; OutOfRangeError if it does not fit."""
    name = type_.name
    day, ticks, offset = point
    if name == "date":
        return _checked(day, 0, MAX_DAYS)
    if name == "time":
        # A time wraps at midnight: 23:59:59.9999999 as time(0) is 00:00:00.
        return round_ticks(ticks, type_.scale) % DAY_TICKS
    if name == "datetime":
        if day < MIN_DATETIME_DAYS:
            raise OutOfRangeError
        value = (day - DAYS_1900) * DATETIME_DAY + (ticks * 3 + 50_000) // 100_000
        return _checked(
            value, (MIN_DATETIME_DAYS - DAYS_1900) * DATETIME_DAY, (MAX_DAYS + 1 - DAYS_1900) * DATETIME_DAY - 1
        )
    if name == "smalldatetime":
        # 29.998 s and less round down, as the type works on datetime's 1/300 s.
        seconds300 = (ticks * 3 + 50_000) // 100_000
        minutes = (seconds300 + 9_000) // 18_000
        return _checked((day - DAYS_1900) * 1440 + minutes, 0, _MAX_SMALL)
    if name == "datetime2":
        return _checked(day * DAY_TICKS + _rounded_in_day(day, ticks, type_.scale), 0, LAST_TICK)
    if name == "datetimeoffset":
        _checked(abs(offset), 0, MAX_OFFSET)
        local = day * DAY_TICKS + _rounded_in_day(day, ticks, type_.scale)
        return _checked(local - offset * MINUTE_TICKS, 0, LAST_TICK), offset
    raise AssertionError(f"{name} is no date or time type")


def _rounded_in_day(day: int, ticks: int, scale: int) -> int:
    rounded = round_ticks(ticks, scale)
    if rounded >= DAY_TICKS and day == MAX_DAYS:
        # The last moment of the calendar cannot be rounded up: it is truncated.
        return ticks - ticks % 10 ** (7 - scale)
    return rounded


def _checked(value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise OutOfRangeError
    return value


def round_ticks(ticks: int, scale: int) -> int:
    """100-ns ticks rounded half up to `scale` digits of a second."""
    if scale >= 7:
        return ticks
    unit = 10 ** (7 - scale)
    return (ticks + unit // 2) // unit * unit


def days(year: int, month: int, day: int) -> int:
    """Days since 0001-01-01; ValueError if there is no such day."""
    return date(year, month, day).toordinal() - 1


def civil(day: int) -> date:
    """The date of a day number."""
    return date.fromordinal(day + 1)


def clock_parts(ticks: int) -> tuple[int, int, int, int]:
    """Hour, minute, second and 100-ns fraction of ticks of a day."""
    seconds, fraction = divmod(ticks, SECOND_TICKS)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return hour, minute, second, fraction


def now_as(ticks: int, type_: SqlType) -> object:
    """A datetime2(7) tick count (such as the clock's) in the storage form of another date type."""
    return from_moment(Moment(*divmod(ticks, DAY_TICKS)), type_)
