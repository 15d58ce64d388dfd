"""Faults on demand: nothing happens unless it was ordered, and then exactly that."""

from __future__ import annotations

import asyncio

import pytest

from mssql_sandbox.engine.events import Columns
from tests.cdc.client import LocalWorld


def test_paused_capture_waits_and_resumes(tracking: LocalWorld) -> None:
    tracking.execute("EXEC sandbox.capture_pause")
    tracking.execute("INSERT t VALUES (1, 1)")
    tracking.pass_time(60)
    assert tracking.changes("dbo_t") == []
    tracking.execute("EXEC sandbox.capture_resume")
    tracking.pass_time(6)
    assert len(tracking.changes("dbo_t")) == 1


def test_a_hanging_scan_has_no_end_until_capture_resumes(tracking: LocalWorld) -> None:
    """[doc] NULL in `end_time` and `end_lsn`: the session is active."""
    newest = (
        "SELECT TOP (1) end_time, end_lsn, log_record_count FROM sys.dm_cdc_log_scan_sessions ORDER BY session_id DESC"
    )
    tracking.execute("EXEC sandbox.capture_hang")
    tracking.execute("INSERT t VALUES (1, 1)")
    tracking.pass_time(60)
    assert tracking.changes("dbo_t") == []
    assert tracking.rows(newest) == [(None, None, 0)]
    assert tracking.value("SELECT end_time FROM sys.dm_cdc_log_scan_sessions WHERE session_id = 0") is not None
    tracking.execute("EXEC sandbox.capture_hang @records = 9")
    assert tracking.rows(newest) == [(None, None, 9)]
    tracking.execute("EXEC sandbox.capture_resume")
    assert tracking.rows(newest)[0][0] is not None
    tracking.pass_time(6)
    assert len(tracking.changes("dbo_t")) == 1


def test_capture_run_ignores_the_pause(tracking: LocalWorld) -> None:
    tracking.execute("EXEC sandbox.capture_pause")
    tracking.execute("INSERT t VALUES (1, 1)")
    assert tracking.rows("EXEC sandbox.capture_run") == [(1,)]
    assert len(tracking.changes("dbo_t")) == 1


def test_capture_lag_holds_young_commits_back(tracking: LocalWorld) -> None:
    tracking.execute("EXEC sandbox.capture_lag @seconds = 30")
    tracking.execute("INSERT t VALUES (1, 1)")
    tracking.pass_time(20)
    assert tracking.changes("dbo_t") == []
    tracking.pass_time(20)
    assert len(tracking.changes("dbo_t")) == 1


def test_clock_is_advanced_for_everybody(local_world: LocalWorld) -> None:
    before = local_world.value("SELECT GETDATE()")
    local_world.execute("EXEC sandbox.advance_clock @seconds = 3600")
    assert local_world.value("SELECT GETDATE()") - before == 3600 * 300


def test_capture_error_is_a_row_of_dm_cdc_errors(tracking: LocalWorld) -> None:
    tracking.execute("EXEC sandbox.capture_error @number = 22859, @message = N'broken'")
    assert tracking.rows("SELECT error_number, error_message FROM sys.dm_cdc_errors") == [(22859, "broken")]


def test_failing_capture_stands_still_and_goes_on_afterwards(tracking: LocalWorld) -> None:
    """[doc] a failed scan is a row of both views; what it had read is read again."""
    tracking.execute("EXEC sandbox.capture_fail @number = 22863, @times = 2")
    tracking.execute("INSERT t VALUES (1, 1)")
    tracking.pass_time(5)
    tracking.pass_time(5)
    assert tracking.changes("dbo_t") == []
    assert tracking.rows("SELECT error_number FROM sys.dm_cdc_errors") == [(22863,), (22863,)]
    assert tracking.value("SELECT error_count FROM sys.dm_cdc_log_scan_sessions WHERE session_id = 0") == 2
    tracking.pass_time(5)
    assert tracking.changes("dbo_t", "id") == [(1,)]


ORDERED = {"deadlock": (1205, 13), "lock timeout": (1222, 16), "snapshot conflict": (3960, 16)}


@pytest.mark.parametrize(("number", "severity"), ORDERED.values(), ids=ORDERED)
def test_ordered_error_hits_the_nth_matching_statement_only(tracking: LocalWorld, number: int, severity: int) -> None:
    tracking.execute(f"EXEC sandbox.fail_statement @pattern = N'FROM t', @number = {number}, @nth = 2")
    select = "SELECT * FROM t"
    assert tracking.rows(select) == []
    failure = tracking.error(select)
    assert (failure.number, failure.severity) == (number, severity)
    assert tracking.rows(select) == []


ROLLS_BACK = {1205: 0, 3960: 0, 1222: 1}


@pytest.mark.parametrize(("number", "left"), ROLLS_BACK.items(), ids=map(str, ROLLS_BACK))
def test_ordered_errors_do_to_the_transaction_what_real_ones_do(tracking: LocalWorld, number: int, left: int) -> None:
    """[doc] deadlocks and snapshot conflicts roll back, a lock timeout ends the statement only."""
    tracking.execute(f"EXEC sandbox.fail_statement @pattern = N'UPDATE t', @number = {number}")
    tracking.execute("BEGIN TRAN INSERT t VALUES (1, 1)")
    assert tracking.error("UPDATE t SET a = 2").number == number
    assert tracking.value("SELECT @@TRANCOUNT") == left
    assert len(tracking.rows("SELECT * FROM t")) == left


def test_delayed_statement_begins_late_by_the_clock(tracking: LocalWorld) -> None:
    tracking.execute("EXEC sandbox.delay_statement @pattern = N'FROM t', @seconds = 30, @nth = 2")
    select = "SELECT COUNT(*) FROM t"
    assert tracking.value(select) == 0

    async def late() -> tuple[bool, bool]:
        reading = asyncio.create_task(anext(tracking.session().batch(select)))
        for _ in range(5):
            await asyncio.sleep(0)
        waits = not reading.done()
        tracking.clock.advance(30)
        return waits, isinstance(await asyncio.wait_for(reading, 30), Columns)

    assert tracking.run(late()) == (True, True)


def test_faults_are_cleared(tracking: LocalWorld) -> None:
    tracking.execute("EXEC sandbox.fail_statement @pattern = N'FROM t', @times = 100")
    tracking.execute("EXEC sandbox.clear_faults")
    assert tracking.rows("SELECT * FROM t") == []


def test_dropped_connection_loses_its_transaction(tracking: LocalWorld) -> None:
    tracking.execute("BEGIN TRAN INSERT t VALUES (1, 1)", name="victim")
    spid = tracking.session(name="victim").spid
    assert tracking.rows(f"EXEC sandbox.drop_connection @spid = {spid}") == [(1,)]
    assert tracking.rows("SELECT * FROM t") == []
