"""Capture and cleanup jobs, on a clock that the tests move."""

from __future__ import annotations

import pytest

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


def test_capture_job_polls_every_five_seconds(world: LocalWorld) -> None:
    """[doc][fab] latency is one polling interval."""
    prepared(world)
    world.execute("INSERT t VALUES (1, 1)")
    world.pass_time(4)
    assert world.changes("dbo_t") == []
    world.pass_time(2)
    assert len(world.changes("dbo_t")) == 1


def test_change_of_polling_interval_counts_after_a_restart(world: LocalWorld) -> None:
    """[doc] effective only after stop and start."""
    prepared(world)
    world.execute("EXEC sys.sp_cdc_change_job @job_type = 'capture', @pollinginterval = 60")
    world.execute("INSERT t VALUES (1, 1)")
    world.pass_time(6)
    assert len(world.changes("dbo_t")) == 1
    world.execute("EXEC sys.sp_cdc_stop_job @job_type = 'capture'")
    world.execute("EXEC sys.sp_cdc_start_job @job_type = 'capture'")
    world.pass_time(0)
    world.execute("INSERT t VALUES (2, 2)")
    world.pass_time(6)
    assert len(world.changes("dbo_t")) == 1
    world.pass_time(60)
    assert len(world.changes("dbo_t")) == 2


def test_stopped_job_captures_nothing_until_started(world: LocalWorld) -> None:
    """[doc] the log keeps what is not yet captured."""
    prepared(world)
    world.execute("EXEC sys.sp_cdc_stop_job")
    world.execute("INSERT t VALUES (1, 1)")
    world.pass_time(600)
    assert world.changes("dbo_t") == []
    world.execute("EXEC sys.sp_cdc_start_job")
    world.pass_time(0)
    assert len(world.changes("dbo_t")) == 1


def test_stopping_a_stopped_job_is_22022_and_not_catchable(world: LocalWorld) -> None:
    """[fab] the Agent's refusal is an error message which TRY/CATCH does not see."""
    prepared(world)
    world.execute("EXEC sys.sp_cdc_stop_job")
    answer = world.send("BEGIN TRY EXEC sys.sp_cdc_stop_job END TRY BEGIN CATCH SELECT 'caught' END CATCH")
    (message,) = answer.messages
    assert message.number == 22022
    assert message.text.startswith("SQLServerAgent Error: Request to stop job cdc.testdb_capture")
    assert message.text.endswith("refused because the job is not currently running.")
    assert answer.sets == []


def test_agent_stop_stops_the_capture_job(world: LocalWorld) -> None:
    prepared(world)
    status = "SELECT status FROM sys.dm_server_services WHERE servicename LIKE N'SQL Server Agent (%'"
    assert world.value(status) == 4
    world.execute("EXEC sandbox.agent_stop")
    assert world.value(status) == 1
    world.execute("INSERT t VALUES (1, 1)")
    world.pass_time(60)
    assert world.changes("dbo_t") == []
    world.execute("EXEC sandbox.agent_start")
    world.pass_time(0)
    assert len(world.changes("dbo_t")) == 1


def test_manual_scan_works_without_agent(world: LocalWorld) -> None:
    """[fab]."""
    prepared(world)
    world.execute("EXEC sandbox.agent_stop")
    world.execute("INSERT t VALUES (1, 1)")
    world.execute("EXEC sys.sp_cdc_scan")
    assert len(world.changes("dbo_t")) == 1


def dummy_rows(world: LocalWorld) -> int:
    return world.value("SELECT COUNT(*) FROM cdc.lsn_time_mapping WHERE tran_id = 0x00")


def test_instance_is_met_by_the_scan_that_reads_its_committed_transaction(world: LocalWorld) -> None:
    """The job starts before a transaction around the procedure ends, and must not see what is not committed."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, a int)")
    world.enable()
    world.execute("BEGIN TRAN")
    world.enable_table("t")
    world.capture()
    assert world.value("SELECT sys.fn_cdc_get_max_lsn()") is None
    world.execute("COMMIT")
    world.capture()
    assert world.value("SELECT COUNT(*) FROM cdc.lsn_time_mapping") == 2


def test_dummy_row_only_after_five_idle_minutes(world: LocalWorld) -> None:
    """[sys] the newest row's end time must be more than 300 s old."""
    prepared(world)
    assert dummy_rows(world) == 1
    for _ in range(59):
        world.pass_time(5)
    assert dummy_rows(world) == 1
    for _ in range(3):
        world.pass_time(5)
    assert dummy_rows(world) == 2


def test_cleanup_job_runs_at_two_in_the_morning(world: LocalWorld) -> None:
    """[doc] retention 4320 minutes, relative to the newest captured commit and not to now."""
    prepared(world)
    world.execute("INSERT t VALUES (1, 1)")
    world.pass_time(3600)
    world.execute("INSERT t VALUES (2, 2)")
    world.capture()
    world.execute("EXEC sandbox.capture_pause")
    world.pass_time(4 * 86_400)
    assert world.changes("dbo_t", "id") == [(1,), (2,)]
    world.execute("EXEC sandbox.capture_resume")
    world.execute("INSERT t VALUES (3, 3)")
    world.capture()
    for _ in range(24):
        world.pass_time(3600)
    assert world.changes("dbo_t", "id") == [(2,), (3,)]


def test_cleanup_raises_the_low_end_and_prunes_the_mapping(world: LocalWorld) -> None:
    """[doc] min_lsn, change rows and mapping rows go together."""
    prepared(world)
    for number in range(3):
        world.execute(f"INSERT t VALUES ({number}, 0)")
        world.capture()
        world.clock.advance(60)
    (mark,) = world.rows("EXEC sandbox.cleanup_now @retention = 1")[0]
    assert world.value("SELECT sys.fn_cdc_get_min_lsn('dbo_t')") == mark
    assert world.value("SELECT MIN(start_lsn) FROM cdc.lsn_time_mapping") == mark
    assert world.changes("dbo_t", "id") == [(1,), (2,)]
