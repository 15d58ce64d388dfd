"""Dates made of other dates or of numbers: EOMONTH, DATEFROMPARTS and similar functions, ISDATE."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine import parsing
from mssql_sandbox.engine.functions.dates import shift
from mssql_sandbox.engine.functions.definition import Call, Registry, refuse
from mssql_sandbox.engine.ticks import (
    SECOND_TICKS,
    Moment,
    OutOfRangeError,
    civil,
    days,
    from_moment,
)  # fmt: skip
from mssql_sandbox.engine.types import (
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
    time,
)  # fmt: skip
from mssql_sandbox.errors import error

registry = Registry()
add = registry.add


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
