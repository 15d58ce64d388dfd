"""Offsets and time zones: SWITCHOFFSET, TODATETIMEOFFSET, AT TIME ZONE."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mssql_sandbox.engine import parsing
from mssql_sandbox.engine.functions.definition import Call, Registry
from mssql_sandbox.engine.functions.windows_zones import WINDOWS_ZONES
from mssql_sandbox.engine.ticks import LAST_TICK, MAX_OFFSET, MINUTE_TICKS
from mssql_sandbox.engine.types import (
    INT,
    STRINGS,
    SqlType,
    datetimeoffset,
)  # fmt: skip
from mssql_sandbox.errors import error

registry = Registry()
add = registry.add


def _offset_minutes(call: Call, place: int, function: str) -> Callable[[Any], int]:
    if call.types[place].name in STRINGS:

        def parse(value: Any) -> int:
            try:
                return parsing.parse_offset(value)
            except ValueError:
                raise error(9812, function=function) from None

        return parse
    return call.to(place, INT)


def _offset_type(call: Call) -> SqlType:
    type_ = call.types[0]
    scale = (
        type_.scale if type_.name in {"datetime2", "datetimeoffset", "time"} else 3 if type_.name == "datetime" else 7
    )
    return datetimeoffset(0 if type_.name in {"smalldatetime", "date"} else scale)


def _shown(utc: int, minutes: int) -> bool:
    """Whether both the UTC and the local time are in the years 1 to 9999."""
    return 0 <= utc <= LAST_TICK and 0 <= utc + minutes * MINUTE_TICKS <= LAST_TICK


def _with_offset(utc: int, minutes: int, function: str, *, state: int) -> tuple[int, int]:
    """A datetimeoffset; errors 9812 for an offset beyond 14 hours, 9813 outside the years 1 to 9999."""
    if abs(minutes) > MAX_OFFSET:
        raise error(9812, function=function)
    if not _shown(utc, minutes):
        raise error(9813, function=function, state=state)
    return utc, minutes


@add("SWITCHOFFSET", 2, result=_offset_type)
def _switchoffset(call: Call) -> Callable[..., Any]:
    value, offset = call.to(0, _offset_type(call)), _offset_minutes(call, 1, "switchoffset")
    return lambda given, zone: _with_offset(value(given)[0], offset(zone), "switchoffset", state=0)


@add("TODATETIMEOFFSET", 2, result=_offset_type)
def _todatetimeoffset(call: Call) -> Callable[..., Any]:
    type_ = _offset_type(call)
    value, offset = call.to(0, type_), _offset_minutes(call, 1, "todatetimeoffset")

    def attach(given: Any, zone: Any) -> tuple[int, int]:
        utc, own = value(given)
        minutes = offset(zone)
        return _with_offset(utc + (own - minutes) * MINUTE_TICKS, minutes, "todatetimeoffset", state=2)

    return attach


def zone_named(name: str) -> ZoneInfo:
    """A time zone by its Windows or IANA name; error 9820 for an unknown one."""
    try:
        return ZoneInfo(WINDOWS_ZONES.get(name.strip().lower(), name.strip()))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise error(9820, value=name) from None


def zone_offset(zone: ZoneInfo, ticks: int, *, utc: bool) -> int:
    """Offset in minutes at a datetime2 tick count, in UTC or in the zone's local time.

    A local time that a clock change repeats or skips has the offset from before the change.
    """
    when = datetime(1, 1, 1) + timedelta(microseconds=min(ticks, LAST_TICK) // 10)  # noqa: DTZ001 - zone follows
    # At the ends of the calendar `zoneinfo` overflows; the neighbouring year has the same rules.
    when = when.replace(year=min(max(when.year, 2), 9998), tzinfo=zone)
    offset = zone.fromutc(when).utcoffset() if utc else when.utcoffset()
    return int((offset or timedelta()).total_seconds()) // 60


@add("AT TIME ZONE", 2, result=_offset_type)
def _at_time_zone(call: Call) -> Callable[..., Any]:
    """`value AT TIME ZONE name`: attaches the zone's offset to local types, converts datetimeoffset to the zone."""
    type_ = _offset_type(call)
    moves = call.types[0].name == "datetimeoffset"
    last = LAST_TICK + 1 - 10 ** (7 - type_.scale)
    value = call.to(0, type_)

    def convert(given: Any, name: Any) -> tuple[int, int]:
        zone = zone_named(name)
        utc, _ = value(given)
        if moves:
            minutes = zone_offset(zone, utc, utc=True)
            if _shown(utc, minutes):
                return utc, minutes
            # The server clamps values that the zone cannot represent to the first or the last moment of UTC.
            return (0 if minutes < 0 else last), 0
        instant = utc - zone_offset(zone, utc, utc=False) * MINUTE_TICKS
        if not 0 <= instant <= LAST_TICK:
            raise error(9813, function="AT TIME ZONE")
        # A local time that a clock change skips is one hour later, in the offset from after the change.
        return instant, zone_offset(zone, instant, utc=True)

    return convert
