"""Parsing text: dates and times in the forms that SQL Server accepts, numbers, uniqueidentifiers.

Functions raise ValueError for text that is no value, and `OutOfRangeError` for values outside the range; conversion.py
turns both into error numbers. What does not belong here: rounding to a type (ticks.py).
"""

from __future__ import annotations

import re
import uuid
from decimal import Decimal
from typing import Literal

from mssql_sandbox.engine.ticks import (
    DAYS_1900,
    SECOND_TICKS,
    Moment,
    OutOfRangeError,
    days,
)

DateOrder = Literal["mdy", "dmy", "ymd", "ydm", "myd", "dym"]

_MONTHS = {
    name: number
    for number, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
         "sep sept september", "oct october", "nov november", "dec december"), 1
    )
    for name in names.split()
}  # fmt: skip
_TIME = re.compile(
    r"(?:^|(?<=[\sT]))(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:([.:])(\d{1,9}))?)?)?\s*(AM|PM)?"
    r"\s*(Z|[+-]\d{1,2}:?\d{2})?\s*$",
    re.IGNORECASE,
)
_ISO = re.compile(r"^(\d{4})-(\d{1,2})-(\d{1,2})$")
_NUMBERS = re.compile(r"^(\d{1,4})\s*[-/.]\s*(\d{1,4})\s*[-/.]\s*(\d{1,4})$")
_ALPHA = re.compile(r"^(?:(\d{1,4})[\s,.-]*)?([A-Za-z]{3,9})[\s,.-]*(?:(\d{1,4})(?:[\s,.-]+(\d{1,4}))?)?$")
_STYLE_ORDERS: dict[int, DateOrder] = {
    1: "mdy", 101: "mdy", 10: "mdy", 110: "mdy", 3: "dmy", 103: "dmy", 4: "dmy", 104: "dmy", 5: "dmy", 105: "dmy",
    2: "ymd", 102: "ymd", 11: "ymd", 111: "ymd", 12: "ymd", 112: "ymd", 20: "ymd", 120: "ymd", 21: "ymd", 121: "ymd",
    23: "ymd", 25: "ymd", 126: "ymd", 127: "ymd",
}  # fmt: skip
_CUTOFF = 50


def parse_moment(
    text: str, *, style: int | None = None, order: DateOrder = "mdy", digits: int = 7
) -> tuple[Moment, bool]:
    """A date, a time or both as a `Moment`, and whether an offset was given.

    A missing date is 1900-01-01, a missing time midnight. `digits`: fraction digits that are allowed (3 for datetime).
    """
    order = _STYLE_ORDERS.get(style or 0, order)
    body = text.strip(" ")
    if not body:
        return Moment(DAYS_1900, 0), False
    date_part, time_part = _split(body)
    day = parse_day(date_part, order) if date_part else DAYS_1900
    ticks, offset, zoned = _parse_time(time_part, digits) if time_part else (0, 0, False)
    return Moment(day, ticks, offset), zoned


def _split(body: str) -> tuple[str, str]:
    """Date part and time part; either may be missing, and a time may come first."""
    if "T" in body.upper() and (match := re.match(r"^(\d{4}-?\d{2}-?\d{2})T(.+)$", body, re.IGNORECASE)):
        return match[1], match[2]
    if ":" not in body and not re.search(r"\d\s*[AP]M\s*$", body, re.IGNORECASE):
        return body, ""
    match = re.match(r"^(.*?[^\s:])??\s*(?<![\d:])(\d{1,2}(?::\d|\s*[AP]M).*)$", body, re.IGNORECASE)
    if match is None:
        raise ValueError(text_shown(body))
    return (match[1] or "").strip(), match[2]


def text_shown(text: str) -> str:
    """Text for an exception that no client sees."""
    return f"no date or time: {text!r}"


def parse_day(text: str, order: DateOrder = "mdy") -> int:
    """Day number of a date's text."""
    if match := _ISO.match(text):
        return _day(int(match[1]), int(match[2]), int(match[3]))
    if text.isdigit():
        return _compact(text)
    if match := _NUMBERS.match(text):
        return _by_order([match[1], match[2], match[3]], order)
    if match := _ALPHA.match(text):
        return _with_month(match, order)
    raise ValueError(text_shown(text))


def _day(year: int, month: int, day: int) -> int:
    try:
        return days(year, month, day)
    except ValueError as failure:
        raise OutOfRangeError(str(failure)) from None


def _year(text: str) -> int:
    value = int(text)
    if len(text) > 2:
        if len(text) == 3:
            raise ValueError(text_shown(text))
        return value
    return value + (2000 if value < _CUTOFF else 1900)


def _compact(text: str) -> int:
    if len(text) == 8:
        return _day(int(text[:4]), int(text[4:6]), int(text[6:]))
    if len(text) == 6:
        return _day(_year(text[:2]), int(text[2:4]), int(text[4:]))
    if len(text) == 4:
        return _day(int(text), 1, 1)
    raise ValueError(text_shown(text))


def _by_order(parts: list[str], order: DateOrder) -> int:
    if len(parts[0]) == 4:
        # A leading four-digit year means year, month, day unless the session's order starts with the day.
        order = "ydm" if order in {"dmy", "ydm"} else "ymd"
    found = dict(zip(order, parts, strict=True))
    if len(found["m"]) > 2 or len(found["d"]) > 2:
        raise ValueError(text_shown("/".join(parts)))
    return _day(_year(found["y"]), int(found["m"]), int(found["d"]))


def _with_month(match: re.Match[str], order: DateOrder) -> int:
    month = _MONTHS.get(match[2].lower())
    if month is None:
        raise ValueError(text_shown(match[0]))
    numbers = [part for part in (match[1], match[3], match[4]) if part]
    if len(numbers) == 1:
        only = numbers[0]
        if len(only) == 4:
            return _day(int(only), month, 1)
        raise ValueError(text_shown(match[0]))
    if len(numbers) != 2:
        raise ValueError(text_shown(match[0]))
    first, second = numbers
    year_first = len(first) == 4 or (len(second) != 4 and order.startswith("y"))
    year, day = (first, second) if year_first else (second, first)
    return _day(_year(year), month, int(day))


def _parse_time(text: str, digits: int) -> tuple[int, int, bool]:
    match = _TIME.match(text)
    if match is None:
        raise ValueError(text_shown(text))
    hours, minutes, seconds, mark, fraction, half, zone = match.groups()
    if minutes is None and half is None:
        raise ValueError(text_shown(text))
    hour, minute, second = int(hours), int(minutes or 0), int(seconds or 0)
    if half:
        if not 1 <= hour <= 12 and hour != 0:
            if hour > 23 or half.upper() == "AM":
                raise ValueError(text_shown(text))
        elif half.upper() == "PM":
            hour = hour % 12 + 12
        else:
            hour %= 12
    if hour > 23 or minute > 59 or second > 59:
        raise OutOfRangeError(text)
    ticks = ((hour * 60 + minute) * 60 + second) * SECOND_TICKS
    if fraction:
        if len(fraction) > digits:
            raise ValueError(text_shown(text))
        # '12:00:00:5' counts milliseconds, '12:00:00.5' is half a second.
        ticks += int(fraction) * 10_000 if mark == ":" else int(fraction.ljust(7, "0")[:7])
    return ticks, _offset(zone), zone is not None


def _offset(zone: str | None) -> int:
    if not zone or zone.upper() == "Z":
        return 0
    return parse_offset(zone)


def parse_offset(text: str) -> int:
    """Minutes of '+hh:mm'; ValueError unless within ±14:00."""
    match = re.match(r"^([+-])(\d{1,2}):?(\d{2})$", text.strip())
    if match is None:
        raise ValueError(text_shown(text))
    minutes = int(match[2]) * 60 + int(match[3])
    if minutes > 14 * 60 or int(match[3]) > 59:
        raise OutOfRangeError(text)
    return -minutes if match[1] == "-" else minutes


_INTEGER = re.compile(r"^[+-]?\s*\d+$")
_DECIMAL = re.compile(r"^[+-]?\s*(?:\d+\.?\d*|\.\d+)$")
_FLOAT = re.compile(r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][+-]?\d+)?$")
_MONEY = re.compile(r"^([+-]?)\s*[$£€¥]?\s*([+-]?)(\d[\d,]*\.?\d*|\.\d+)$")
_GUID = re.compile(r"^\{?([0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12})\}?", re.IGNORECASE)
_BLANKS = " \t\r\n"


def parse_integer(text: str) -> int:
    """An integer; empty text is 0."""
    body = text.strip(_BLANKS)
    if not body:
        return 0
    if _INTEGER.match(body) is None:
        raise ValueError(body)
    return int(body.replace(" ", ""))


def parse_decimal(text: str) -> Decimal:
    """A decimal number without exponent."""
    body = text.strip(_BLANKS)
    if _DECIMAL.match(body) is None:
        raise ValueError(body)
    return Decimal(body.replace(" ", ""))


def parse_float(text: str) -> float:
    """A floating-point number; empty text is 0."""
    body = text.strip(_BLANKS)
    if not body:
        return 0.0
    if _FLOAT.match(body) is None:
        raise ValueError(body)
    return float(body.lower().replace("d", "e"))


def parse_money(text: str) -> Decimal:
    """An amount with optional currency sign and thousands commas; empty text is 0."""
    body = text.strip(_BLANKS)
    if not body:
        return Decimal(0)
    match = _MONEY.match(body)
    if match is None:
        raise ValueError(body)
    number = Decimal(match[3].replace(",", ""))
    return -number if "-" in (match[1], match[2]) else number


def parse_guid(text: str) -> uuid.UUID:
    """A uniqueidentifier; text after the 36 characters is ignored, as in SQL Server."""
    match = _GUID.match(text.lstrip(" "))
    if match is None:
        raise ValueError(text)
    return uuid.UUID(match[1])
