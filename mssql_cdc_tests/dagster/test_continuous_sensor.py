"""The sensor when runs are continuous: it keeps one going, requests its successor, and snapshots beside it."""

from __future__ import annotations

from collections.abc import Callable

import dagster as dg
import pytest

from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.defs import sensors
from mssql_cdc.defs.handover import STATE_TAG, STREAMING
from mssql_cdc.defs.runs import RANGE_TAG, SNAPSHOT_TAG
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc_tests.dagster.kit import Location
from mssql_cdc_tests.dagster.sensing import ask, begin

pytestmark = [pytest.mark.spark]


@pytest.fixture
def continuous(streaming: Location) -> Callable[..., Location]:
    """The two tables with runs of so many seconds."""
    return lambda seconds=600: streaming.reloaded(dagster_max_run_seconds=seconds)


def test_a_database_without_changes_gets_a_run_too(continuous):
    location = continuous()
    location.tick()
    (request,) = location.requests
    assert request.partition_key == location.window
    assert request.tags[STATE_TAG] == STREAMING
    assert set(request.asset_selection) == {*location.setup.log_keys, *location.setup.current_keys, *extra(location)}


def extra(location: Location) -> list[dg.AssetKey]:
    return [location.setup.heartbeat_key]


def test_while_a_run_streams_the_sensor_requests_only_snapshots(continuous):
    location = continuous()
    location.tick()
    (request,) = location.requests
    begin(location, request)
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    location.shop.scan()
    assert "a run streams" in location.tick().skip_message
    ask_for_snapshot(location.database(), "asked", ["dbo.orders"], channel="dagster")
    (snapshot,) = ask_and_tick(location)
    assert str(snapshot.job_name).endswith("__snapshot")
    assert snapshot.partition_key == "dbo.orders"
    assert snapshot.tags[SNAPSHOT_TAG].startswith("snapshot-")


def ask_and_tick(location: Location) -> list[dg.RunRequest]:
    location.tick()
    return location.requests


@pytest.mark.parametrize(("seconds_ago", "successors"), [(100, 0), (560, 1)])
def test_a_successor_is_requested_once_before_the_end(continuous, seconds_ago, successors):
    location = continuous(600)
    location.tick()
    (request,) = location.requests
    run = begin(location, request, seconds_ago=seconds_ago)
    requests = ask_and_tick(location)
    tags = [(one.tags[STATE_TAG], one.tags[RANGE_TAG]) for one in requests]
    assert tags == [(STREAMING, f"after {run.run_id}")] * successors
    for successor in requests:
        location.launch(successor, dg.DagsterRunStatus.STARTING)
        assert ask_and_tick(location) == []


def test_a_successor_that_failed_is_requested_again_later_and_snapshots_are_at_once(continuous):
    """Each tick requested another one, for three minutes of each hour."""
    location = continuous(600).reloaded(retriable_restart_connector_wait_ms=600_000)
    begin(location, ask(location), seconds_ago=560)
    (successor,) = ask_and_tick(location)
    location.launch(successor, dg.DagsterRunStatus.FAILURE)
    assert "a run streams" in location.tick().skip_message
    ask_for_snapshot(location.database(), "asked", ["dbo.orders"], channel="dagster")
    (snapshot,) = ask_and_tick(location)
    assert str(snapshot.job_name).endswith("__snapshot")


def test_a_run_that_failed_with_nothing_to_read_is_requested_again_later(continuous):
    location = continuous().reloaded(retriable_restart_connector_wait_ms=600_000)
    location.tick()
    (request,) = location.requests
    location.launch(request, dg.DagsterRunStatus.FAILURE)
    assert "failed" in location.tick().skip_message


def test_a_run_begins_with_the_range_that_is_due(continuous):
    location = continuous()
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    request = ask(location)
    assert "-" in request.tags[RANGE_TAG]
    assert request.tags[STATE_TAG] == STREAMING


@pytest.mark.parametrize("seconds", [0, 600])
def test_every_window_gets_a_run_even_if_nothing_changes(continuous, seconds):
    location = continuous(seconds)
    location.cursor = None
    location.tick()
    (request,) = location.requests
    assert request.tags[RANGE_TAG] == f"from {location.window}"
    assert (STATE_TAG in request.tags) == bool(seconds)


def by_hand(location: Location, key: dg.AssetKey) -> dg.DagsterRun:
    """Record a run that an operator has launched, and that does not end."""
    tags = {"dagster/partition": location.window}
    run = dg.DagsterRun(job_name="__ASSET_JOB", asset_selection={key}, status=dg.DagsterRunStatus.STARTED, tags=tags)
    return location.instance.add_run(run)


@pytest.mark.parametrize(
    "what", ["log", pytest.param("current", marks=pytest.mark.long), pytest.param("heartbeat", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("changes", [False, True], ids=["quiet", "changes"])
def test_a_run_by_hand_that_hangs_does_not_keep_the_stream_from_beginning(continuous, what: str, changes: bool):  # noqa: FBT001
    """The pool has a slot for it, and the fence makes the overlap harmless."""
    location = continuous()
    keys = {"log": location.key("orders"), "current": location.current("orders")}
    by_hand(location, keys.get(what, location.setup.heartbeat_key))
    if changes:
        location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    assert ask(location).tags[STATE_TAG] == STREAMING


def test_a_snapshot_that_runs_does_not_keep_the_stream_of_the_others_from_beginning(continuous):
    location = continuous()
    by_hand(location, location.snapshots)
    assert ask(location).tags[STATE_TAG] == STREAMING


def test_a_run_that_was_queued_a_moment_ago_counts_as_one_that_streams(continuous):
    location = continuous()
    location.launch(ask(location), dg.DagsterRunStatus.QUEUED)
    location.tick()
    assert "a run streams" in location.tick().skip_message


def test_a_run_that_stays_queued_is_a_red_tick_and_the_sensor_does_the_rest(continuous, monkeypatch):
    """Its places were taken by other databases: no heartbeat, no report, and a green tick."""
    location = continuous().reloaded(
        heartbeat_interval_ms=1, heartbeat_action_query="INSERT INTO dbo.beats VALUES (SYSUTCDATETIME())"
    )
    location.shop.run("CREATE TABLE dbo.beats (at datetime2 NOT NULL)")
    run = location.launch(ask(location), dg.DagsterRunStatus.QUEUED)
    location.shop.run("DELETE dbo.beats", "INSERT INTO dbo.orders VALUES (1, N'one')")
    location.shop.run("EXEC sys.sp_cdc_disable_table N'dbo', N'people', N'all'")
    location.shop.scan()
    monkeypatch.setattr(sensors, "QUEUED_SECONDS", 1e-6)
    location.cursor = None
    for _ in range(2):
        with pytest.raises(
            dg.Failure, match=rf"no run streams: {run.run_id[:8]} has been queued .*max_concurrent_runs"
        ):
            location.tick()
    with control(location.shop.connection, location.shop.catalog) as found:
        assert found.value("SELECT COUNT(*) FROM dbo.beats", doing="counting heartbeats") == 2
    assert location.verdict("people")[0] is False
    ask_for_snapshot(location.database(), "asked", ["dbo.orders"], channel="dagster")
    (snapshot,) = ask_and_tick(location)
    assert str(snapshot.job_name).endswith("__snapshot")
