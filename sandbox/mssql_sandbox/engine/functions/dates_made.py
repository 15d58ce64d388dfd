"""Dates made of other dates or of numbers: DATETRUNC, DATE_BUCKET, EOMONTH, DATEFROMPARTS and its like, ISDATE."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine import parsing
from mssql_sandbox.engine.functions.dates import UNITS, date_part, dated, difference, shift
from mssql_sandbox.engine.functions.definition import Call, Registry, refuse
from mssql_sandbox.engine.ticks import (
    SECOND_TICKS,
    Moment,
    OutOfRangeError,
    civil,
    days,
    from_moment,
    moment,
)  # fmt: skip
from mssql_sandbox.engine.types import (
    BIGINT,
    DATE,
    DATES,
    DATETIME,
    INT,
    SMALLDATETIME,
    STRINGS,
    SqlType,
    datetime2,
    datetimeoffset,
    make_type,
    reported_name,
    time,
)  # fmt: skip
from mssql_sandbox.errors import SqlError, error

registry = Registry()
add = registry.add
_DAY_1900 = 693_595
_BUCKETS = frozenset({"year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"})
_TOO_EARLY = (
    "An invalid date value was encountered: The date value is less than the minimum date value allowed for the data "
    "type."
)


@add("DATETRUNC", 2, result=lambda call: dated(call, 1), environment=True, keywords=(0,))
def _datetrunc(call: Call) -> Callable[..., Any]:
    part = date_part(call.constant(0), "datetrunc")
    type_ = dated(call, 1)
    value = call.to(1, type_)

    def datetrunc(env: Any, _word: Any, given: Any) -> Any:
        point = moment(value(given), type_)
        when = civil(point.day)
        if part in UNITS and part != "day":
            return from_moment(point._replace(ticks=point.ticks // UNITS[part] * UNITS[part]), type_)
        day = {
            "year": days(when.year, 1, 1), "quarter": days(when.year, (when.month - 1) // 3 * 3 + 1, 1),
            "month": days(when.year, when.month, 1), "week": point.day - (when.isoweekday() - env.date_first) % 7,
            "iso_week": point.day - when.weekday(),
        }.get(part, point.day)  # fmt: skip
        try:
            return from_moment(Moment(day, 0, point.offset), type_)
        except OutOfRangeError:
            raise SqlError(9837, _TOO_EARLY) from None

    return datetrunc


@add("DATE_BUCKET", 3, 4, result=lambda call: dated(call, 2), keywords=(0,))
def _date_bucket(call: Call) -> Callable[..., Any]:
    """The start of the bucket of `width` parts that a moment falls into; buckets count from 1900-01-01 or an origin."""
    part = date_part(call.constant(0), "date_bucket")
    type_ = dated(call, 2)
    if part not in _BUCKETS:
        raise error(9810, part=part, function="date_bucket", type=reported_name(type_))
    width_of, value = call.to(1, BIGINT), call.to(2, type_)
    origin_of = call.to(3, type_) if len(call.types) > 3 else None

    def bucket(_word: Any, count: Any, given: Any, origin: Any = None) -> Any:
        width = width_of(count)
        if width <= 0:
            raise SqlError(9834, "Invalid bucket width value passed to date_bucket function. Only positive values are "
                           "allowed.")  # fmt: skip
        point = moment(value(given), type_)
        start = Moment(_DAY_1900, 0, point.offset) if origin_of is None else moment(origin_of(origin), type_)
        whole = difference(part, start, point)
        if not _reached(part, whole, start, point):
            whole -= 1
        try:
            return from_moment(shift(part, whole // width * width, start), type_)
        except OutOfRangeError:
            raise error(517, type=reported_name(type_)) from None

    return bucket


def _reached(part: str, number: int, start: Moment, point: Moment) -> bool:
    """Whether `number` parts after the start are not later than a moment; what no type can hold is later."""
    try:
        return shift(part, number, start) <= point
    except OutOfRangeError:
        return number < 0


@add("EOMONTH", 1, 2, result=DATE)
def _eomonth(call: Call) -> Callable[..., Any]:
    value = call.to(0, DATE if call.types[0].name in DATES | STRINGS else refuse(call, 0, "eomonth") or DATE)
    count = call.to(1, INT) if len(call.types) > 1 else None

    def eomonth(given: Any, months: Any = 0) -> int:
        try:
            when = civil(shift("month", count(months) if count else 0, Moment(value(given), 0)).day)
        except OutOfRangeError:
            raise error(517, type="date") from None
        return days(when.year, when.month, monthrange(when.year, when.month)[1])

    return eomonth


# -- construction ------------------------------------------------------------------------------------------------


def _built(type_: SqlType, make: Callable[..., Moment]) -> Callable[[Call], Callable[..., Any]]:
    def bind(call: Call) -> Callable[..., Any]:
        numbers = [call.to(place, INT) for place in range(len(call.types))]
        scaled = type_
        if type_.name in {"time", "datetime2", "datetimeoffset"}:
            scaled = _scaled(type_.name, call)

        def build(*values: Any) -> Any:
            parts = [number(value) for number, value in zip(numbers, values, strict=True)]
            try:
                return from_moment(make(*parts), scaled)
            except ValueError:
                raise error(289, type=scaled.name) from None

        return build

    return bind


def _scaled(name: str, call: Call) -> SqlType:
    scale = call.constant(len(call.types) - 1)
    return make_type(name, scale if isinstance(scale, int) else 7)


def _clock(hour: int, minute: int, second: int, fraction: int = 0, scale: int = 7) -> int:
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= fraction < 10**scale):
        raise OutOfRangeError
    return ((hour * 60 + minute) * 60 + second) * SECOND_TICKS + fraction * 10 ** (7 - scale)


add("DATEFROMPARTS", 3, result=DATE)(_built(DATE, lambda y, m, d: Moment(days(y, m, d), 0)))
add("TIMEFROMPARTS", 5, result=lambda call: _scaled("time", call))(
    _built(time(), lambda h, m, s, f, n: Moment(693_595, _clock(h, m, s, f, n)))
)
add("DATETIMEFROMPARTS", 7, result=DATETIME)(
    _built(DATETIME, lambda y, m, d, h, i, s, ms: Moment(days(y, m, d), _clock(h, i, s, ms, 3)))
)
add("SMALLDATETIMEFROMPARTS", 5, result=SMALLDATETIME)(
    _built(SMALLDATETIME, lambda y, m, d, h, i: Moment(days(y, m, d), _clock(h, i, 0)))
)
add("DATETIME2FROMPARTS", 8, result=lambda call: _scaled("datetime2", call))(
    _built(datetime2(), lambda y, m, d, h, i, s, f, n: Moment(days(y, m, d), _clock(h, i, s, f, n)))
)
add("DATETIMEOFFSETFROMPARTS", 10, result=lambda call: _scaled("datetimeoffset", call))(
    _built(
        datetimeoffset(),
        lambda y, m, d, h, i, s, f, oh, om, n: Moment(days(y, m, d), _clock(h, i, s, f, n), oh * 60 + om),
    )
)


@add("ISDATE", 1, result=INT, null_if_null=False)
def _isdate(call: Call) -> Callable[..., Any]:
    text = call.as_text(0)

    def isdate(value: Any) -> int:
        if value is None or call.types[0].name in {"date", "time", "datetime2", "datetimeoffset"}:
            return 0
        if call.types[0].name in {"datetime", "smalldatetime"}:
            return 1
        try:
            point, zoned = parsing.parse_moment(text(value), digits=3)
            from_moment(point, DATETIME)
        except ValueError:
            return 0
        return int(bool(text(value).strip()) and not zoned)

    return isdate
