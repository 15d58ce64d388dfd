"""Offsets and time zones: SWITCHOFFSET, TODATETIMEOFFSET, AT TIME ZONE."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mssql_sandbox.engine import parsing
from mssql_sandbox.engine.functions.definition import Call, Registry
from mssql_sandbox.engine.functions.windows_zones import WINDOWS_ZONES
from mssql_sandbox.engine.ticks import (
    MINUTE_TICKS,
)  # fmt: skip
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


@add("SWITCHOFFSET", 2, result=_offset_type)
def _switchoffset(call: Call) -> Callable[..., Any]:
    value, offset = call.to(0, _offset_type(call)), _offset_minutes(call, 1, "switchoffset")
    return lambda given, zone: (value(given)[0], offset(zone))


@add("TODATETIMEOFFSET", 2, result=_offset_type)
def _todatetimeoffset(call: Call) -> Callable[..., Any]:
    type_ = _offset_type(call)
    value, offset = call.to(0, type_), _offset_minutes(call, 1, "todatetimeoffset")

    def attach(given: Any, zone: Any) -> tuple[int, int]:
        utc, own = value(given)
        minutes = offset(zone)
        return utc + (own - minutes) * MINUTE_TICKS, minutes

    return attach


def zone_named(name: str) -> ZoneInfo:
    """A time zone by its Windows or IANA name; error 9820 for an unknown one."""
    try:
        return ZoneInfo(WINDOWS_ZONES.get(name.strip().lower(), name.strip()))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise error(9820, value=name) from None


def zone_offset(zone: ZoneInfo, ticks: int, *, utc: bool) -> int:
    """Offset in minutes at a datetime2 tick count, which is UTC or the zone's local time.

    A local time that a clock change repeats has the offset from before the change; so has one that it skips.
    """
    when = datetime(1, 1, 1) + timedelta(microseconds=min(ticks, 3_155_378_975_999_999_999) // 10)  # noqa: DTZ001 - zone follows
    if utc:
        offset = (
            zone.utcoffset(when.replace(tzinfo=zone))
            if when.year < 2
            else zone.fromutc(when.replace(tzinfo=zone)).utcoffset()
        )
    else:
        offset = when.replace(tzinfo=zone, fold=0).utcoffset()
    return int((offset or timedelta()).total_seconds()) // 60


@add("AT TIME ZONE", 2, result=_offset_type)
def _at_time_zone(call: Call) -> Callable[..., Any]:
    """`value AT TIME ZONE name`: attaches the zone's offset to local types, converts datetimeoffset to the zone."""
    type_ = _offset_type(call)
    moves = call.types[0].name == "datetimeoffset"
    value = call.to(0, type_)

    def convert(given: Any, name: Any) -> tuple[int, int]:
        zone = zone_named(name)
        utc, _ = value(given)
        if moves:
            return utc, zone_offset(zone, utc, utc=True)
        instant = utc - zone_offset(zone, utc, utc=False) * MINUTE_TICKS
        # A local time that a clock change skips is one hour later, in the offset from after the change.
        return instant, zone_offset(zone, instant, utc=True)

    return convert
