"""A capture job that stands still is seen by the newest scan, whatever the server's clock did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mssql_cdc.source.sqlserver.health import capture_health, stalled
from mssql_cdc_tests.sandbox_source.kit import Shop


@pytest.mark.feature("STR-14")
def test_a_capture_job_that_stands_still_is_seen_in_the_hour_in_which_clocks_go_back(shop: Shop) -> None:
    """Audit of issue 10, 5: its last scan seemed to be still to come, and capture healthy for an hour."""
    scanned = datetime(2026, 10, 25, 2, 50, tzinfo=UTC)
    shop.run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)")
    shop.enable("t")
    shop.run("INSERT dbo.t VALUES (1)")
    try:
        shop.set_clock(scanned)
        start = shop.scan()
        shop.run("INSERT dbo.t VALUES (2)")
        shop.scan()
        for minutes, stands in ((1, False), (15, True)):
            at = scanned + timedelta(minutes=minutes) - timedelta(hours=1)
            shop.run(f"EXEC sandbox.set_clock @utc = '{at:%Y-%m-%dT%H:%M:%S}'")
            assert bool(stalled(shop.control, shop.connection)) is stands, minutes
            health = capture_health(shop.control, shop.connection, [start])
            assert health.scanned is not None
            assert abs(health.now - health.scanned - timedelta(minutes=minutes)) < timedelta(seconds=30)
            assert bool(health.problem) is stands
            assert abs(health.now - health.unread[start] - timedelta(minutes=minutes)) < timedelta(seconds=30)
    finally:
        shop.set_clock(datetime.now(UTC))


@pytest.mark.feature("STR-14")
def test_a_capture_job_that_stands_still_is_seen_after_the_clock_was_set_back(shop: Shop) -> None:
    now = datetime.now(UTC)
    shop.run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)")
    shop.enable("t")
    shop.run("INSERT dbo.t VALUES (1)")  # The scan that finds it has a session of its own.
    try:
        shop.set_clock(now + timedelta(hours=1))
        shop.set_clock(now)
        assert stalled(shop.control, shop.connection) is None
        shop.run("EXEC sandbox.advance_clock @seconds = 300")
        assert "capture has not scanned since" in (stalled(shop.control, shop.connection) or "")
        health = capture_health(shop.control, shop.connection, [])
        assert health.scanned is not None
        assert health.now - health.scanned >= timedelta(seconds=300)
    finally:
        shop.set_clock(datetime.now(UTC))


def test_a_capture_job_that_is_behind_is_seen_by_the_age_of_what_it_found_last(shop: Shop) -> None:
    shop.create("late", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT dbo.late VALUES (1)")
    try:
        shop.run("EXEC sandbox.advance_clock @seconds = 300", "EXEC sys.sp_cdc_scan @maxscans = 1, @maxtrans = 1")
        assert capture_health(shop.control, shop.connection, []).behind >= timedelta(seconds=299)
        shop.scan()
        assert capture_health(shop.control, shop.connection, []).behind == timedelta(0), "nothing was left to find"
    finally:
        shop.set_clock(datetime.now(UTC))
