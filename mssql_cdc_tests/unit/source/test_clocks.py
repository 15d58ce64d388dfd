"""The server's local times become instants that are not still to come, also when clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.source.sqlserver.health import Clocks

BERLIN = "Europe/Berlin"


def clocks(utc: datetime, zone: str = BERLIN) -> Clocks:
    return Clocks(utc, local(utc, zone))


def local(utc: datetime, zone: str = BERLIN) -> datetime:
    return utc.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


BACK, FORWARD = datetime(2026, 10, 25, 1, tzinfo=UTC), datetime(2026, 3, 29, 1, tzinfo=UTC)


@pytest.mark.parametrize("zone", [BERLIN, None])
@pytest.mark.parametrize("ago", [timedelta(seconds=5), timedelta(minutes=15), timedelta(minutes=55)])
def test_a_scan_before_the_clock_went_back_is_not_still_to_come(zone: str | None, ago: timedelta) -> None:
    now = BACK + timedelta(seconds=2)

    assert clocks(now).instant(local(now - ago), zone) == now - ago


def test_with_the_zone_a_scan_before_the_clock_went_forward_is_as_old_as_it_is() -> None:
    now, ago = FORWARD + timedelta(seconds=2), timedelta(seconds=5)

    assert clocks(now).instant(local(now - ago), BERLIN) == now - ago


def test_without_the_zone_a_scan_before_the_clock_went_forward_seems_an_hour_older_until_the_next_scan() -> None:
    now, ago = FORWARD + timedelta(seconds=2), timedelta(seconds=5)

    assert clocks(now).instant(local(now - ago), None) == now - ago - timedelta(hours=1)
    assert clocks(now).instant(local(now), None) == now


@given(
    now=st.timedeltas(timedelta(hours=-5), timedelta(hours=5)),
    ago=st.timedeltas(timedelta(0), timedelta(minutes=59)),
    change=st.sampled_from([BACK, FORWARD]),
)
def test_with_the_zone_no_scan_of_the_last_hour_is_taken_for_an_older_one(
    now: timedelta, ago: timedelta, change: datetime
) -> None:
    """Of the two passes of an hour the later one is meant, if it is not still to come."""
    at = change + now
    found = clocks(at).instant(local(at - ago), BERLIN)

    assert found >= at - ago
    assert found <= at + timedelta(minutes=1)
    assert found in (at - ago, at - ago + timedelta(hours=1))


def test_a_clock_that_was_set_back_further_makes_nothing_of_the_future() -> None:
    now = datetime(2026, 7, 1, tzinfo=UTC)

    assert clocks(now).instant(local(now + timedelta(hours=5)), None) == now
    assert clocks(now).instant(local(now + timedelta(hours=5)), BERLIN) == now
