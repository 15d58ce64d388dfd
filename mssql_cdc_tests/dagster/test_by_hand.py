"""Runs that an operator launches say what the command line says: a capture that stands still, and every mistake."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from threading import Timer

import dagster as dg
import pytest

from mssql_cdc.defs import work
from mssql_cdc_tests.dagster.kit import Location, failures
from mssql_cdc_tests.dagster.watching import overtake

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]
STALLED = r"capture has not scanned since \d{4}-\d\d-\d\d \d\d:\d\d; SQL Server Agent is not running: start it"


@pytest.fixture
def standing_still(streaming: Location) -> Iterator[Location]:
    """A row is captured and not read; after that capture stands still."""
    streaming.settle()
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.shop.scan()
    streaming.shop.run("EXEC sandbox.agent_stop", "EXEC sandbox.advance_clock @seconds = 300")
    yield streaming
    streaming.shop.run("EXEC sandbox.agent_start")


@pytest.mark.feature("STR-14")
def test_a_window_materialized_while_capture_stands_still_is_late_and_the_run_says_why(standing_still):
    location = standing_still
    beats = len(location.materializations(location.setup.heartbeat_key))
    people = len(location.materializations(location.key("people")))
    keys = [location.key("orders"), location.key("people"), location.setup.heartbeat_key]
    done = location.materialize(*keys, partition=location.window)
    assert not done.success
    assert matches(STALLED, failures(done)[0])
    assert location.logged("orders")["mssql_cdc/inserts"] == 1, "what was captured is read"
    assert len(location.materializations(location.key("people"))) == people
    assert len(location.materializations(location.setup.heartbeat_key)) == beats
    assert is_late(location, "orders")
    assert is_late(location, "people")
    again = location.materialize(location.key("orders"), partition=location.window)
    assert not again.success, "nothing to read is no success while capture stands still"
    assert matches(STALLED, failures(again)[0])
    location.shop.run("EXEC sandbox.agent_start")
    location.shop.scan()
    done = location.materialize(*keys, partition=location.window)
    assert done.success, failures(done)
    assert location.checks("orders")[0] is True
    assert len(location.materializations(location.setup.heartbeat_key)) == beats + 1


def test_a_window_that_ended_before_capture_stood_still_is_reported_complete(standing_still):
    since = datetime.now(UTC) - timedelta(minutes=50)
    location = standing_still.reloaded(dagster_window="15 minutes", since=since)
    ended = location.setup.windows.definition.get_partition_keys()[-3]
    done = location.materialize(location.key("people"), partition=ended)
    assert done.success, failures(done)
    assert location.logged("people")["mssql_cdc/complete"] is True
    assert is_late(location, "people")


@pytest.mark.parametrize("patience", [180, 0])
def test_a_window_that_has_just_ended_is_read_when_capture_has_scanned_after_it(streaming, monkeypatch, patience):
    """A commit of 10:59:59 is captured at 11:00:04; the operator asks at 11:00:02."""
    since = datetime.now(UTC) - timedelta(minutes=50)
    location = streaming.reloaded(dagster_window="15 minutes", since=since)
    monkeypatch.setattr(work, "PATIENCE_SECONDS", patience)
    shop, windows = location.shop, location.setup.windows
    end = windows.start(datetime.now(UTC)) + windows.length
    shop.set_clock(end - timedelta(seconds=1))
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "EXEC sandbox.advance_clock @seconds = 4")
    scan = Timer(3, shop.run, ["EXEC sandbox.advance_clock @seconds = 150", "EXEC sys.sp_cdc_scan"])
    scan.start()
    done = location.materialize(location.key("orders"), partition=windows.key(end - windows.length))
    scan.join()
    shop.set_clock(datetime.now(UTC) + timedelta(minutes=30))
    if patience:
        assert done.success, failures(done)
        logged = location.logged("orders")
        assert (logged["mssql_cdc/inserts"], logged["mssql_cdc/complete"]) == (1, True)
        assert "waiting until capture has scanned the log up to" in location.said(done)
    else:
        assert matches("Not caught up: capture has scanned the log up to .*; materialize .* again", failures(done)[0])
        assert location.logged("orders")["mssql_cdc/complete"] is False


def test_a_window_that_another_run_reads_at_the_same_time_is_reported(streaming, monkeypatch):
    """Both have planned the same range, and the stream commits first: the operator's run failed with its fence."""
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.shop.scan()
    overtake(monkeypatch, streaming.database())
    done = streaming.materialize(streaming.key("orders"), partition=streaming.window)
    assert done.success, failures(done)
    assert streaming.logged("orders")["mssql_cdc/inserts"] == 1
    assert streaming.checks("orders")[0] is True


@pytest.mark.parametrize(
    "only",
    [["orders"], ["orders", "people"], pytest.param(None, marks=pytest.mark.long)],
    ids=["a table", "tables", "the range"],
)
@pytest.mark.parametrize(
    ("seconds", "begins"),
    [
        (0, "range"),
        (0, "window"),
        pytest.param(1, "range", marks=pytest.mark.long),
        pytest.param(1, "window", marks=pytest.mark.long),
    ],
)
def test_a_run_that_loses_a_table_to_another_one_succeeds(streaming, monkeypatch, seconds, begins, only):
    """Such as one whose successor has begun to read before its last step has ended."""
    location = streaming.reloaded(dagster_max_run_seconds=seconds)
    if begins == "window":
        location.cursor = json.dumps({**json.loads(location.cursor or "{}"), "window": "2026-01-01"})
        location.tick()
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "INSERT INTO dbo.people VALUES (1, N'Ann')")
    location.shop.scan()
    if begins == "range":
        location.tick()
    tables = [one.table_id for one in location.tables if one.table_id.name in only] if only else None
    overtake(monkeypatch, location.database(), tables)
    (request,) = location.requests
    done = location.run(request)
    assert done.success, failures(done)
    for name in ("orders", "people"):
        if not seconds:  # What ends while it streams leaves the report to its successor.
            assert location.logged(name)["mssql_cdc/inserts"] == 1
        assert [one.severity.value for one in location.evaluations(name) if not one.passed] == []


def test_merging_by_hand_while_capture_stands_still_leaves_the_check_late(standing_still):
    location = standing_still
    location.settle()
    location.shop.run("EXEC sandbox.advance_clock @seconds = 300")
    done = location.materialize(location.current("people"))
    assert done.success, failures(done)
    assert is_late(location, "people")


def test_a_check_executed_while_capture_stands_still_is_late(standing_still):
    location = standing_still
    location.settle()
    location.shop.run("EXEC sandbox.advance_clock @seconds = 300")
    check = dg.AssetCheckKey(location.key("orders"), "captured_faithfully")
    job = location.repository.get_implicit_global_asset_job_def()
    chosen = job.get_subset(asset_selection=set(), asset_check_selection={check})
    assert chosen.execute_in_process(instance=location.instance, raise_on_error=False).success
    assert is_late(location, "orders")


THEIRS = {"dagster/sensor_name": "theirs"}
"""The tag of runs that a user's own sensor requests; automation conditions have it, too."""


def test_a_snapshot_that_another_sensor_requests_is_taken(streaming):
    """A file has arrived: the table streams, and is to be read again."""
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.settle()
    done = streaming.materialize(streaming.snapshots, partition="dbo.orders", tags=THEIRS)
    assert done.success, failures(done)
    assert streaming.logged("orders")["mssql_cdc/reads"] == 1


def test_a_window_that_a_snapshot_reports_does_not_hide_unfinished_ones(streaming):
    """The run that opens the account goes back over windows that are said to be incomplete."""
    assert streaming.materialize(streaming.snapshots, partition="dbo.orders").success
    assert streaming.logged("orders")["mssql_cdc/complete"] is False


def test_a_window_that_another_sensor_requests_is_read_and_does_not_stream(streaming):
    location = streaming.reloaded(dagster_max_run_seconds=3600)
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    location.shop.scan()
    done = location.materialize(location.key("orders"), partition=location.window, tags=THEIRS)
    assert done.success, failures(done)
    assert location.logged("orders")["mssql_cdc/inserts"] == 1


def is_late(location: Location, name: str) -> bool:
    """Whether the table's check is a warning that names what is wrong with capture."""
    passed, severity, text = location.verdict(name)
    return (passed, severity) == (False, "WARN") and matches(f"late: .*{STALLED}", text)


def matches(pattern: str, text: str) -> bool:
    assert re.search(pattern, text), text
    return True
