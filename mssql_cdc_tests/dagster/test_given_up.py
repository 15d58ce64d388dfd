"""A table that was given up, with runs of one range: the first run of each window tries it again, by itself."""

from __future__ import annotations

import json

import dagster as dg
import pytest

from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc_tests.dagster.kit import Location
from mssql_cdc_tests.dagster.sensing import ask, entry

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

FAULT = "EXEC sandbox.fail_statement @pattern = N'SELECT TOP.*dbo_people_CT', @number = 208, @times = 1000"


@pytest.fixture
def given_up(streaming: Location) -> Location:
    """`people` cannot be read and was given up; `orders` goes on."""
    location = streaming.reloaded(dagster_max_attempts=1)
    write(location, 1)
    location.shop.run(FAULT)
    assert not location.run(ask(location)).success
    write(location, 2)
    assert location.run(ask(location)).success
    assert entry(location, "people").status == "failed"
    return location


def write(location: Location, number: int) -> None:
    location.shop.run(
        f"INSERT INTO dbo.orders VALUES ({number}, N'x')", f"INSERT INTO dbo.people VALUES ({number}, N'x')"
    )


def turn_window(location: Location) -> None:
    """The sensor's last run was requested in the window before."""
    memory = json.loads(location.cursor or "{}")
    location.cursor = json.dumps({**memory, "window": "2026-01-01"})


def next_run(location: Location, number: int) -> dg.ExecuteInProcessResult:
    """Write, tick, and run what is requested: on a busy database, each run begins with a range."""
    write(location, number)
    return location.run(ask(location))


def test_a_table_that_was_given_up_streams_again_with_the_next_window(given_up: Location):
    location = given_up
    location.shop.run("EXEC sandbox.clear_faults")
    assert next_run(location, 3).success
    assert entry(location, "people").status == "failed", "it is tried again once a window"
    turn_window(location)
    assert next_run(location, 4).success
    assert entry(location, "people").status == "streaming"
    assert location.checks("people")[0] is True
    assert location.logged("people")["mssql_cdc/inserts"] == 4
    last = load_offsets(location.database().layout).history.rows[-1]
    assert (last.complete, last.failed) == (True, ())


def test_a_table_that_fails_again_holds_the_others_back_no_more_than_before(given_up: Location):
    location = given_up
    for number, total in ((3, 3), (4, 5)):
        turn_window(location)
        done = next_run(location, number)
        assert not done.success
        cut = load_offsets(location.database().layout).last_cut()
        assert cut is not None
        assert cut.to == entry(location, "orders").to, "the cut waited for the table that was given up"
        assert location.logged("orders")["mssql_cdc/inserts"] == total
        assert next_run(location, 10 + number).success, "it was tried twice in a window"


def test_the_check_says_when_it_is_tried_again_and_what_to_do_at_once(given_up: Location):
    passed, severity, problem = given_up.verdict("people")
    assert (passed, severity) == (False, "ERROR")
    assert "gave up after 1 attempts" in problem
    assert "the first run of the next window (day) tries the table again" in problem
    assert "materialize its newest window to do so at once" in problem
    given_up.shop.run("EXEC sandbox.clear_faults")
    assert given_up.materialize(given_up.key("people"), partition=given_up.window).success
    assert entry(given_up, "people").status == "streaming"


def test_the_last_table_is_tried_again_although_nothing_streams(given_up: Location):
    """The others are no longer captured: no range is due, and no run was requested for people alone."""
    location = given_up
    for other in ("orders", "first_table"):
        location.shop.run(f"EXEC sys.sp_cdc_disable_table N'dbo', N'{other}', N'all'")
    location.shop.run("EXEC sandbox.clear_faults")
    location.shop.scan()
    for _ in range(2):  # The loss is written first.
        turn_window(location)
        location.tick()
    (request,) = location.requests
    location.run(request)
    assert entry(location, "people").status == "streaming"
