"""Date and time functions: current time, parts, arithmetic.

What does not belong here: text forms (engine/text.py), construction (dates_made.py), zones (dates_zones.py).
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.functions.definition import Call, Registry
from mssql_sandbox.engine.ticks import (
    DAY_TICKS,
    MINUTE_TICKS,
    SECOND_TICKS,
    Moment,
    OutOfRangeError,
    civil,
    clock_parts,
    days,
    from_moment,
    moment,
    now_as,
)  # fmt: skip
from mssql_sandbox.engine.types import (
    BIGINT,
    DATE,
    DATES,
    DATETIME,
    INT,
    STRINGS,
    SqlType,
    datetime2,
    datetimeoffset,
    nvarchar,
    reported_name,
)  # fmt: skip
from mssql_sandbox.errors import error

registry = Registry()
add = registry.add

PARTS = {
    alias: name
    for name, aliases in {
        "year": "year yy yyyy", "quarter": "quarter qq q", "month": "month mm m", "dayofyear": "dayofyear dy y",
        "day": "day dd d", "week": "week wk ww", "weekday": "weekday dw w", "hour": "hour hh", "minute": "minute mi n",
        "second": "second ss s", "millisecond": "millisecond ms", "microsecond": "microsecond mcs",
        "nanosecond": "nanosecond ns", "tzoffset": "tzoffset tz", "iso_week": "iso_week isowk isoww",
    }.items()
    for alias in aliases.split()
}  # fmt: skip
_MONTH_NAMES = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
                "November", "December")  # fmt: skip
_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
UNITS = {"day": DAY_TICKS, "hour": 60 * MINUTE_TICKS, "minute": MINUTE_TICKS, "second": SECOND_TICKS,
          "millisecond": 10_000, "microsecond": 10}  # fmt: skip


def date_part(word: object, function: str) -> str:
    """The canonical name of a datepart word; error 155 for an unknown one."""
    found = PARTS.get(str(word).lower())
    if found is None:
        raise error(155, value=word, function=function)
    return found


def dated(call: Call, place: int) -> SqlType:
    """The date type of an argument; text counts as datetimeoffset or datetime2, numbers as datetime."""
    type_ = call.types[place]
    if type_.name in DATES:
        return type_
    return datetimeoffset() if type_.name in STRINGS else DATETIME


# -- current time -------------------------------------------------------------------------------------------------


def _now(name: str, type_: SqlType, *, utc: bool) -> None:
    def bind(call: Call) -> Callable[..., Any]:  # noqa: ARG001 - every binder takes the call
        def now(env: Any) -> object:
            ticks = env.local_ticks - (env.offset_minutes * MINUTE_TICKS if utc else 0)
            return now_as(ticks, type_)

        return now

    add(name, 0, result=type_, environment=True, deterministic=False)(bind)


_now("GETDATE", DATETIME, utc=False)
_now("CURRENT_TIMESTAMP", DATETIME, utc=False)
_now("GETUTCDATE", DATETIME, utc=True)
_now("SYSDATETIME", datetime2(), utc=False)
_now("SYSUTCDATETIME", datetime2(), utc=True)
_now("CURRENT_DATE", DATE, utc=False)


@add("SYSDATETIMEOFFSET", 0, result=datetimeoffset(), environment=True, deterministic=False)
def _sysdatetimeoffset(call: Call) -> Callable[..., Any]:  # noqa: ARG001 - every binder takes the call
    return lambda env: (env.local_ticks - env.offset_minutes * MINUTE_TICKS, env.offset_minutes)


# -- parts ----------------------------------------------------------------------------------------------------------


def part_value(part: str, point: Moment, date_first: int) -> int:
    """The number that DATEPART gives for a part."""
    when = civil(point.day)
    hour, minute, second, fraction = clock_parts(point.ticks)
    simple = {
        "year": when.year, "quarter": (when.month + 2) // 3, "month": when.month, "day": when.day,
        "dayofyear": when.timetuple().tm_yday, "hour": hour, "minute": minute, "second": second,
        "millisecond": fraction // 10_000, "microsecond": fraction // 10, "nanosecond": fraction * 100,
        "tzoffset": point.offset, "iso_week": when.isocalendar()[1],
        "weekday": (when.isoweekday() - date_first) % 7 + 1,
    }  # fmt: skip
    if part == "week":
        first = when.replace(month=1, day=1)
        return (when.timetuple().tm_yday - 1 + (first.isoweekday() - date_first) % 7) // 7 + 1
    return simple[part]


def _check_part(part: str, type_: SqlType, function: str) -> None:
    time_parts = {"hour", "minute", "second", "millisecond", "microsecond", "nanosecond"}
    missing = (type_.name == "date" and part in time_parts) or (
        type_.name == "time" and part not in time_parts
    )  # only date and time refuse tzoffset
    if missing or (part == "tzoffset" and type_.name in {"date", "time", "smalldatetime", "datetime"}):
        raise error(9810, part=part, function=function, type=reported_name(type_))


def _part_binder(function: str) -> Callable[[Call], Callable[..., Any]]:
    def bind(call: Call) -> Callable[..., Any]:
        part = date_part(call.constant(0), function)
        type_ = dated(call, 1)
        if call.types[1].name in DATES:
            _check_part(part, type_, function)
        value = call.to(1, type_)

        def datepart(env: Any, _word: Any, given: Any) -> Any:
            point = moment(value(given), type_)
            if type_.name == "datetime":
                # Milliseconds of datetime are the printed, rounded ones.
                point = point._replace(ticks=(point.ticks + 5_000) // 10_000 * 10_000)
            number = part_value(part, point, env.date_first)
            return _part_name(part, point, number) if function == "datename" else number

        return datepart

    return bind


def _part_name(part: str, point: Moment, number: int) -> str:
    if part == "month":
        return _MONTH_NAMES[number - 1]
    if part == "weekday":
        return _DAY_NAMES[civil(point.day).weekday()]
    if part == "tzoffset":
        return f"{'-' if number < 0 else '+'}{abs(number) // 60:02}:{abs(number) % 60:02}"
    return str(number)


add("DATEPART", 2, result=INT, environment=True, keywords=(0,))(_part_binder("datepart"))
add("DATENAME", 2, result=nvarchar(30), environment=True, keywords=(0,))(_part_binder("datename"))


def _single_part(name: str, part: str) -> None:
    def bind(call: Call) -> Callable[..., Any]:
        type_ = dated(call, 0)
        value = call.to(0, type_)
        return lambda given: part_value(part, moment(value(given), type_), 7)

    add(name, 1, result=INT)(bind)


_single_part("YEAR", "year")
_single_part("MONTH", "month")
_single_part("DAY", "day")


# -- arithmetic -------------------------------------------------------------------------------------------------------


def _add_type(call: Call) -> SqlType:
    return call.types[2] if call.types[2].name in DATES else DATETIME


@add("DATEADD", 3, result=_add_type, keywords=(0,))
def _dateadd(call: Call) -> Callable[..., Any]:
    part = date_part(call.constant(0), "dateadd")
    type_ = _add_type(call)
    if part in {"tzoffset", "iso_week"}:
        raise error(9810, part=part, function="dateadd", type=reported_name(type_))
    _check_part("day" if part in {"weekday", "week", "dayofyear"} else part, type_, "dateadd")
    if part in {"microsecond", "nanosecond"} and type_.name in {"datetime", "smalldatetime"}:
        raise error(9810, part=part, function="dateadd", type=type_.name)
    count, value = call.to(1, BIGINT), call.to(2, type_)

    def dateadd(_word: Any, number: Any, given: Any) -> Any:
        point = moment(value(given), type_)
        try:
            return from_moment(shift(part, count(number), point), type_)
        except OutOfRangeError:
            raise error(517, type=reported_name(type_)) from None

    return dateadd


def shift(part: str, number: int, point: Moment) -> Moment:
    """The moment `number` parts later; months keep the day if the month has it, else take its last day."""
    if part in {"year", "quarter", "month"}:
        months = number * {"year": 12, "quarter": 3, "month": 1}[part]
        when = civil(point.day)
        index = when.year * 12 + when.month - 1 + months
        year, month = divmod(index, 12)
        if not 1 <= year <= 9999:
            raise OutOfRangeError
        return point._replace(day=days(year, month + 1, min(when.day, monthrange(year, month + 1)[1])))
    if part == "nanosecond":
        ticks = (number + 50) // 100
    elif part == "week":
        ticks = number * 7 * DAY_TICKS
    else:
        ticks = number * UNITS.get(part, DAY_TICKS)
    day, rest = divmod(point.day * DAY_TICKS + point.ticks + ticks, DAY_TICKS)
    if not 0 <= day <= 3_652_058:
        raise OutOfRangeError
    return point._replace(day=day, ticks=rest)


def difference(part: str, start: Moment, end: Moment) -> int:
    """The number of part boundaries between two moments; weeks begin on Sunday regardless of DATEFIRST."""
    if part in {"year", "quarter", "month"}:
        a, b = civil(start.day), civil(end.day)
        months = (b.year * 12 + b.month) - (a.year * 12 + a.month)
        if part == "year":
            return b.year - a.year
        return months if part == "month" else (b.year * 4 + (b.month - 1) // 3) - (a.year * 4 + (a.month - 1) // 3)
    if part in {"week", "iso_week"}:
        return (end.day + 1) // 7 - (start.day + 1) // 7
    if part in {"day", "dayofyear", "weekday"}:
        return end.day - start.day
    a = start.day * DAY_TICKS + start.ticks - start.offset * MINUTE_TICKS
    b = end.day * DAY_TICKS + end.ticks - end.offset * MINUTE_TICKS
    if part == "nanosecond":
        return (b - a) * 100
    return b // UNITS[part] - a // UNITS[part]


def _difference_binder(function: str, *, big: bool) -> Callable[[Call], Callable[..., Any]]:
    def bind(call: Call) -> Callable[..., Any]:
        part = date_part(call.constant(0), function)
        if part == "tzoffset":
            raise error(9810, part=part, function=function, type="datetimeoffset")
        first, second = dated(call, 1), dated(call, 2)
        one, two = call.to(1, first), call.to(2, second)
        limit = 2**63 if big else 2**31

        def datediff(_word: Any, start: Any, end: Any) -> int:
            result = difference(part, moment(one(start), first), moment(two(end), second))
            if not -limit <= result < limit:
                raise error(535, function=function)
            return result

        return datediff

    return bind


add("DATEDIFF", 3, result=INT, keywords=(0,))(_difference_binder("datediff", big=False))
add("DATEDIFF_BIG", 3, result=BIGINT, keywords=(0,))(_difference_binder("datediff_big", big=True))
