"""A run that a dead host or a replaced container leaves STARTED: the sensor continues without it, and says so."""

from __future__ import annotations

import time

import dagster as dg
import pytest

from mssql_cdc.defs import life
from mssql_cdc.defs.handover import STATE_TAG, STREAMING, Handover
from mssql_cdc.defs.life import SILENT_SECONDS, Lives, Pulse, newest_event
from mssql_cdc.defs.runs import RANGE_TAG, SNAPSHOT_TAG
from mssql_cdc_tests.dagster.kit import Location
from mssql_cdc_tests.dagster.sensing import ask, attempt, begin, report

pytestmark = [pytest.mark.spark]
SAYS = r"run {} has shown no sign of life .* slot of the pool {}: end it in the UI"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run counts as ended if it shows nothing new from one tick to the next."""
    monkeypatch.setattr(life, "SILENT_SECONDS", 1e-9)


def by_hand(location: Location, key: dg.AssetKey) -> dg.DagsterRun:
    """Record a run by hand whose step has begun."""
    made = dg.DagsterRun(job_name="__ASSET_JOB", asset_selection={key}, status=dg.DagsterRunStatus.STARTED)
    run = location.instance.add_run(made)
    report(location, run, dg.DagsterEventType.STEP_START)
    return run


@pytest.mark.usefixtures("impatient")
def test_a_stream_without_a_sign_of_life_gets_a_successor_and_the_ticks_are_red(streaming):
    location = streaming.reloaded(dagster_max_run_seconds=600)
    dead = begin(location, ask(location))
    assert "a run streams" in location.tick().skip_message
    successor = ask(location)
    assert successor.tags[STATE_TAG] == STREAMING
    assert dead.run_id[:8] in location.tick_log
    run = begin(location, successor)
    for _ in range(2):
        report(location, run, dg.DagsterEventType.ENGINE_EVENT)
        with pytest.raises(dg.Failure, match=SAYS.format(dead.run_id[:8], location.names.pool)):
            location.tick()
    location.instance.report_run_canceled(dead)
    report(location, run, dg.DagsterEventType.ENGINE_EVENT)
    assert "a run streams" in location.tick().skip_message


@pytest.mark.usefixtures("impatient")
def test_a_stream_that_is_late_and_shows_signs_of_life_is_no_dead_one(streaming):
    location = streaming.reloaded(dagster_max_run_seconds=600)
    run = begin(location, ask(location), seconds_ago=500)
    for _ in range(3):
        report(location, run, dg.DagsterEventType.ENGINE_EVENT, seconds_ago=500)  # Its host has another clock.
        assert "a run streams" in location.tick().skip_message


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("status", [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING])
def test_a_run_that_is_queued_or_starting_is_no_dead_one(streaming, status):
    location = streaming.reloaded(dagster_max_run_seconds=600)
    location.launch(ask(location), status)
    for _ in range(3):
        assert "a run streams" in location.tick().skip_message


@pytest.mark.usefixtures("impatient")
def test_a_run_whose_step_waits_for_a_slot_is_no_dead_one(streaming):
    location = streaming.reloaded(dagster_max_run_seconds=600)
    location.launch(ask(location), dg.DagsterRunStatus.STARTED)
    for _ in range(3):
        assert "a run streams" in location.tick().skip_message


@pytest.mark.usefixtures("impatient")
def test_a_run_with_steps_of_others_is_no_dead_one(streaming):
    location = streaming.reloaded(dagster_max_run_seconds=600)
    selected = {location.current("orders"), dg.AssetKey("report")}
    run = dg.DagsterRun(job_name="theirs", asset_selection=selected, status=dg.DagsterRunStatus.STARTED)
    report(location, location.instance.add_run(run), dg.DagsterEventType.STEP_START)
    begin(location, ask(location))
    assert "a run streams" in location.tick().skip_message


@pytest.mark.usefixtures("impatient")
def test_a_range_whose_run_is_dead_is_requested_again_while_the_ticks_are_red(streaming):
    """A failed tick keeps no cursor, but the wait before the second attempt is kept."""
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    first = ask(streaming)
    dead = begin(streaming, first)
    assert dead.run_id[:8] in streaming.tick().skip_message
    with pytest.raises(dg.Failure, match=r"did not finish.*no sign of life"):
        streaming.tick()
    time.sleep(0.05)
    second = ask(streaming)
    assert (second.tags[RANGE_TAG], attempt(second)) == (first.tags[RANGE_TAG], 2)


@pytest.mark.usefixtures("impatient")
def test_the_snapshot_of_a_dead_run_is_requested_again(shop, locate):
    shop.create("orders", "id int NOT NULL PRIMARY KEY")
    location = locate()
    first = ask(location)
    dead = begin(location, first)
    assert dead.run_id[:8] not in str(location.tick().skip_message)
    second = ask(location)
    assert second.tags[SNAPSHOT_TAG] == first.tags[SNAPSHOT_TAG]
    location.launch(second, dg.DagsterRunStatus.QUEUED)
    with pytest.raises(dg.Failure, match=SAYS.format(dead.run_id[:8], location.names.snapshot_pool)):
        location.tick()


@pytest.mark.usefixtures("impatient")
def test_a_dead_snapshot_by_hand_keeps_no_other_from_being_taken(shop, locate):
    shop.create("orders", "id int NOT NULL PRIMARY KEY")
    location = locate()
    by_hand(location, location.snapshots)
    shop.scan()
    assert location.tick().run_requests == []
    assert ask(location).tags[SNAPSHOT_TAG].startswith("snapshot-")


@pytest.mark.usefixtures("impatient")
def test_a_capture_that_stands_still_beside_a_dead_run_names_both(streaming):
    dead = by_hand(streaming, streaming.key("orders"))
    streaming.tick()
    streaming.shop.run("EXEC sandbox.agent_stop", "EXEC sandbox.advance_clock @seconds = 300")
    try:
        with pytest.raises(dg.Failure, match=rf"capture has not scanned since .*{dead.run_id[:8]}"):
            streaming.tick()
    finally:
        streaming.shop.run("EXEC sandbox.agent_start")


def test_a_run_counts_as_ended_after_five_minutes_without_an_event_by_the_clock_of_the_sensor(streaming):
    run, times = by_hand(streaming, streaming.key("orders")), iter([0.0, 299.0, 300.0, 599.0, 600.0])
    lives = Lives(lambda: next(times))
    assert not lives.silent(streaming.instance, [run])
    assert not lives.silent(streaming.instance, [run])
    report(streaming, run, dg.DagsterEventType.ENGINE_EVENT, seconds_ago=-3600)
    assert not lives.silent(streaming.instance, [run])
    assert not lives.silent(streaming.instance, [run])
    assert lives.silent(streaming.instance, [run]) == {run.run_id: SILENT_SECONDS}


def test_a_run_shows_that_it_lives_where_it_writes_nothing_else(streaming, monkeypatch):
    monkeypatch.setattr(life, "PULSE_SECONDS", 0.01)
    run = by_hand(streaming, streaming.key("orders"))
    before = newest_event(streaming.instance, run.run_id)
    with Pulse(streaming.instance, run):
        end = time.monotonic() + 60
        while newest_event(streaming.instance, run.run_id) == before and time.monotonic() < end:
            time.sleep(0.01)
    assert newest_event(streaming.instance, run.run_id) != before


@pytest.mark.parametrize("what", ["stream", "snapshot"])
def test_each_step_shows_that_it_lives(streaming, monkeypatch, what):
    monkeypatch.setattr(life, "PULSE_SECONDS", 0.001)
    done = (
        streaming.materialize(streaming.key("orders"), partition=streaming.window)
        if what == "stream"
        else streaming.materialize(streaming.snapshots, partition="dbo.orders")
    )
    assert done.success
    entries = streaming.instance.all_logs(done.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
    assert any(entry.dagster_event and "at work" in str(entry.dagster_event.message) for entry in entries)


@pytest.mark.parametrize(("seconds_ago", "waits"), [(10, True), (3600, False)])
def test_a_run_that_takes_over_does_not_wait_for_one_that_is_dead(streaming, seconds_ago, waits):
    location = streaming.reloaded(dagster_max_run_seconds=600)
    request = ask(location)
    first, second = begin(location, request, seconds_ago=seconds_ago), begin(location, request)
    assert Handover(location.instance, second, 600).take_over() == [first.run_id] * waits
