"""A capture job that stands still is seen by the newest scan, whatever the server's clock did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mssql_cdc.source.sqlserver.health import SeenScans, capture_health, stalled
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


@pytest.mark.feature("STR-14")
def test_a_job_that_is_not_continuous_is_judged_by_its_agent_only(shop: Shop) -> None:
    """It scans when somebody starts it, which may be seldom; without SQL Server Agent no job of any kind will."""
    shop.create("seldom", "id int NOT NULL PRIMARY KEY")
    shop.run("EXEC sys.sp_cdc_change_job @job_type = N'capture', @continuous = 0, @pollinginterval = 0")
    shop.run("EXEC sys.sp_cdc_scan")
    try:
        shop.run("EXEC sandbox.advance_clock @seconds = 300")
        assert stalled(shop.control, shop.connection) is None
        shop.run("EXEC sandbox.agent_stop")
        said = stalled(shop.control, shop.connection) or ""
        assert said.endswith("SQL Server Agent is not running: start it")
        assert capture_health(shop.control, shop.connection, []).problem == said
    finally:
        shop.run("EXEC sandbox.agent_start")
        shop.set_clock(datetime.now(UTC))


@pytest.mark.feature("STR-14")
def test_a_scan_that_does_not_end_is_healthy_as_long_as_it_goes_on(shop: Shop) -> None:
    """Only a process that looks twice can tell; the first look, and one soon after the scan began, says nothing."""
    shop.create("t", "id int NOT NULL PRIMARY KEY")
    seen = SeenScans()
    try:
        shop.run("EXEC sandbox.capture_hang")
        assert stalled(shop.control, shop.connection, seen) is None
        for records in (1, 1, 1):
            shop.run("EXEC sandbox.advance_clock @seconds = 800", f"EXEC sandbox.capture_hang @records = {records}")
            assert stalled(shop.control, shop.connection, seen) is None
        shop.run("EXEC sandbox.advance_clock @seconds = 800")
        assert stalled(shop.control, shop.connection, seen) is None
        shop.run("EXEC sandbox.advance_clock @seconds = 200")
        said = stalled(shop.control, shop.connection, seen) or ""
        assert "has made no progress for 16 minutes" in said
        assert "sp_cdc_stop_job" in said
        health = capture_health(shop.control, shop.connection, [], seen)
        assert health.problem == said
        assert health.scanned is not None
        assert health.now - health.scanned >= timedelta(seconds=3400), "since the scan began"
        assert stalled(shop.control, shop.connection) is None, "another process has not seen it before"
        shop.run("EXEC sandbox.capture_hang @records = 1")
        assert stalled(shop.control, shop.connection, seen) is None
    finally:
        shop.run("EXEC sandbox.capture_resume")
        shop.set_clock(datetime.now(UTC))


@pytest.mark.feature("STR-14")
def test_a_scan_that_a_stopped_agent_has_left_behind_is_named_at_the_first_look(shop: Shop) -> None:
    """It looked like capture at work, for ever."""
    shop.create("t", "id int NOT NULL PRIMARY KEY")
    try:
        shop.run("EXEC sandbox.capture_hang", "EXEC sandbox.agent_stop")
        assert stalled(shop.control, shop.connection) is None
        shop.run("EXEC sandbox.advance_clock @seconds = 300")
        said = stalled(shop.control, shop.connection) or ""
        assert "the scan of the log that began at" in said
        assert said.endswith("SQL Server Agent is not running: start it")
    finally:
        shop.run("EXEC sandbox.agent_start", "EXEC sandbox.capture_resume")
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


@pytest.mark.feature("STR-14")
def test_a_scan_after_an_outage_does_not_count_as_one_of_now(shop: Shop) -> None:
    """It is the first one in an hour, and far from the log's end: the lag was zero until it had ended."""
    shop.create("t", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT dbo.t VALUES (1)")
    shop.scan()
    try:
        shop.run("EXEC sandbox.advance_clock @seconds = 3600", "EXEC sandbox.capture_hang")
        health = capture_health(shop.control, shop.connection, [])
        assert health.problem is None, "it has just begun"
        assert health.scanned is not None
        assert timedelta(seconds=3599) <= health.now - health.scanned < timedelta(seconds=3700)
    finally:
        shop.run("EXEC sandbox.capture_resume")
        shop.set_clock(datetime.now(UTC))
