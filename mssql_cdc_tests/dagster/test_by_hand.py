"""Runs that an operator launches say what the command line says: a capture that stands still, and every mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from mssql_cdc_tests.dagster.kit import Location, failures

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


def is_late(location: Location, name: str) -> bool:
    """Whether the table's check is a warning that names what is wrong with capture."""
    passed, severity, text = location.verdict(name)
    return (passed, severity) == (False, "WARN") and matches(f"late: .*{STALLED}", text)


def matches(pattern: str, text: str) -> bool:
    assert re.search(pattern, text), text
    return True
