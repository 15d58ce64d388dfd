"""What Debezium's JDBC driver makes of old dates and times, where that is not what the source has.

* Its calendar lacks the days from 1582-10-05 to 1582-10-14, and moves them ten days on.
* A `datetimeoffset` before 1582-10-15 UTC is taken for a Julian date.
* A `datetimeoffset` before 1970 with a fraction of at least a millisecond is one second late.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

import numpy as np

_CUTOVER = date(1582, 10, 15)
_GAP = timedelta(days=10)
_UNITS = (1, 86_400_000, 86_400_000_000, 86_400_000_000_000)
"""How many of them make a day: days, milliseconds, microseconds, nanoseconds."""
_CUTOVER_DAY = (_CUTOVER - date(1970, 1, 1)).days
_ZONED = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")


def spoiled(value: object) -> list[object]:
    """Return what the driver can have made of a value of a record; several, where the value does not tell its type."""
    if isinstance(value, int):
        return [_wrapped(value + _GAP.days * unit) for unit in _UNITS if _is_missing(_true(value) // unit, unit)]
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d", value):
        day = date.fromisoformat(value[:10])
        moved = [f"{day + _GAP}{value[10:]}"] if _CUTOVER - _GAP <= day < _CUTOVER else []
        return [*moved, *([_zoned(*found.groups())] if (found := _ZONED.fullmatch(value)) else [])]
    return []


def _true(value: int) -> int:
    """A number before its nanoseconds wrapped around: what is beyond 64 bits is long ago here."""
    return value - (1 << 64) if value > 0 and _is_missing((value - (1 << 64)) // _UNITS[-1], _UNITS[-1]) else value


def _is_missing(day: int, unit: int) -> bool:
    return unit > 0 and _CUTOVER_DAY - _GAP.days <= day < _CUTOVER_DAY


def _wrapped(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _zoned(local: str, fraction: str | None, zone: str) -> str:
    """A `datetimeoffset` as the driver reads it."""
    sign = -1 if zone.startswith("-") else 1
    offset = 0 if zone == "Z" else sign * (int(zone[1:3]) * 3600 + int(zone[4:]) * 60)
    seconds = int(np.datetime64(local, "s").astype(np.int64)) - offset
    day, second = divmod(seconds, 86_400)
    if day < _CUTOVER_DAY:
        seconds = _julian_day(day) * 86_400 + second
    if seconds < 0 and (fraction or "")[1:4].strip("0"):
        seconds += 1
    return f"{np.datetime64(seconds + offset, 's')}{fraction or ''}{zone}"


def _julian_day(day: int) -> int:
    """The day whose Julian date reads like the Gregorian date of a day, in days since 1970."""
    year, month, of_month = map(int, str(np.datetime64(day, "D")).split("-"))
    shift = (14 - month) // 12
    y, m = year + 4800 - shift, month + 12 * shift - 3
    return of_month + (153 * m + 2) // 5 + 365 * y + y // 4 - 32_083 - 2_440_588
