"""Faults on demand: nothing happens unless it was ordered, and then exactly that."""

from __future__ import annotations

import asyncio

import pytest

from mssql_cdc.sandbox.engine.events import Columns
from mssql_cdc_tests.sandbox.cdc.client import LocalWorld

TABLE = "CREATE TABLE dbo.t (id int PRIMARY KEY, a int)"


@pytest.fixture
def world(local_world: LocalWorld) -> LocalWorld:
    """These tests move the clock and order faults."""
    return local_world


def prepared(world: LocalWorld) -> LocalWorld:
    world.execute(TABLE)
    world.enable("t")
    world.pass_time(0)
    return world


def test_paused_capture_waits_and_resumes(world: LocalWorld) -> None:
    prepared(world)
    world.execute("EXEC sandbox.capture_pause")
    world.execute("INSERT t VALUES (1, 1)")
    world.pass_time(60)
    assert world.changes("dbo_t") == []
    world.execute("EXEC sandbox.capture_resume")
    world.pass_time(6)
    assert len(world.changes("dbo_t")) == 1


def test_capture_run_ignores_the_pause(world: LocalWorld) -> None:
    prepared(world)
    world.execute("EXEC sandbox.capture_pause")
    world.execute("INSERT t VALUES (1, 1)")
    assert world.rows("EXEC sandbox.capture_run") == [(1,)]
    assert len(world.changes("dbo_t")) == 1


def test_capture_lag_holds_young_commits_back(world: LocalWorld) -> None:
    prepared(world)
    world.execute("EXEC sandbox.capture_lag @seconds = 30")
    world.execute("INSERT t VALUES (1, 1)")
    world.pass_time(20)
    assert world.changes("dbo_t") == []
    world.pass_time(20)
    assert len(world.changes("dbo_t")) == 1


def test_clock_is_advanced_for_everybody(world: LocalWorld) -> None:
    before = world.value("SELECT GETDATE()")
    world.execute("EXEC sandbox.advance_clock @seconds = 3600")
    assert world.value("SELECT GETDATE()") - before == 3600 * 300


def test_capture_error_is_a_row_of_dm_cdc_errors(world: LocalWorld) -> None:
    prepared(world)
    world.execute("EXEC sandbox.capture_error @number = 22859, @message = N'broken'")
    assert world.rows("SELECT error_number, error_message FROM sys.dm_cdc_errors") == [(22859, "broken")]


def test_failing_capture_stands_still_and_goes_on_afterwards(world: LocalWorld) -> None:
    """[doc] a failed scan is a row of both views; what it had read is read again."""
    prepared(world)
    world.execute("EXEC sandbox.capture_fail @number = 22863, @times = 2")
    world.execute("INSERT t VALUES (1, 1)")
    world.pass_time(5)
    world.pass_time(5)
    assert world.changes("dbo_t") == []
    assert world.rows("SELECT error_number FROM sys.dm_cdc_errors") == [(22863,), (22863,)]
    assert world.value("SELECT error_count FROM sys.dm_cdc_log_scan_sessions WHERE session_id = 0") == 2
    world.pass_time(5)
    assert world.changes("dbo_t", "id") == [(1,)]


ORDERED = {"deadlock": (1205, 13), "lock timeout": (1222, 16), "snapshot conflict": (3960, 16)}


@pytest.mark.parametrize(("number", "severity"), ORDERED.values(), ids=ORDERED)
def test_ordered_error_hits_the_nth_matching_statement_only(world: LocalWorld, number: int, severity: int) -> None:
    prepared(world)
    world.execute(f"EXEC sandbox.fail_statement @pattern = N'FROM t', @number = {number}, @nth = 2")
    select = "SELECT * FROM t"
    assert world.rows(select) == []
    failure = world.error(select)
    assert (failure.number, failure.severity) == (number, severity)
    assert world.rows(select) == []


ROLLS_BACK = {1205: 0, 3960: 0, 1222: 1}


@pytest.mark.parametrize(("number", "left"), ROLLS_BACK.items(), ids=map(str, ROLLS_BACK))
def test_ordered_errors_do_to_the_transaction_what_real_ones_do(world: LocalWorld, number: int, left: int) -> None:
    """[doc] deadlocks and snapshot conflicts roll back, a lock timeout ends the statement only."""
    prepared(world)
    world.execute(f"EXEC sandbox.fail_statement @pattern = N'UPDATE t', @number = {number}")
    world.execute("BEGIN TRAN INSERT t VALUES (1, 1)")
    assert world.error("UPDATE t SET a = 2").number == number
    assert world.value("SELECT @@TRANCOUNT") == left
    assert len(world.rows("SELECT * FROM t")) == left


def test_delayed_statement_begins_late_by_the_clock(world: LocalWorld) -> None:
    prepared(world)
    world.execute("EXEC sandbox.delay_statement @pattern = N'FROM t', @seconds = 30, @nth = 2")
    select = "SELECT COUNT(*) FROM t"
    assert world.value(select) == 0

    async def late() -> tuple[bool, bool]:
        reading = asyncio.create_task(anext(world.session().batch(select)))
        for _ in range(5):
            await asyncio.sleep(0)
        waits = not reading.done()
        world.clock.advance(30)
        return waits, isinstance(await asyncio.wait_for(reading, 30), Columns)

    assert world.run(late()) == (True, True)


def test_faults_are_cleared(world: LocalWorld) -> None:
    prepared(world)
    world.execute("EXEC sandbox.fail_statement @pattern = N'FROM t', @times = 100")
    world.execute("EXEC sandbox.clear_faults")
    assert world.rows("SELECT * FROM t") == []


def test_dropped_connection_loses_its_transaction(world: LocalWorld) -> None:
    prepared(world)
    world.execute("BEGIN TRAN INSERT t VALUES (1, 1)", name="victim")
    spid = world.session(name="victim").spid
    assert world.rows(f"EXEC sandbox.drop_connection @spid = {spid}") == [(1,)]
    assert world.rows("SELECT * FROM t") == []
