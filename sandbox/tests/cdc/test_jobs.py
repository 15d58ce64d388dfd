"""Capture and cleanup jobs, on a clock that the tests move."""

from __future__ import annotations

from tests.cdc.client import LocalWorld


def test_capture_job_polls_every_five_seconds(tracking: LocalWorld) -> None:
    """[doc][fab] latency is one polling interval."""
    tracking.execute("INSERT t VALUES (1, 1)")
    tracking.pass_time(4)
    assert tracking.changes("dbo_t") == []
    tracking.pass_time(2)
    assert len(tracking.changes("dbo_t")) == 1


def test_change_of_polling_interval_counts_after_a_restart(tracking: LocalWorld) -> None:
    """[doc] effective only after stop and start."""
    tracking.execute("EXEC sys.sp_cdc_change_job @job_type = 'capture', @pollinginterval = 60")
    tracking.execute("INSERT t VALUES (1, 1)")
    tracking.pass_time(6)
    assert len(tracking.changes("dbo_t")) == 1
    tracking.execute("EXEC sys.sp_cdc_stop_job @job_type = 'capture'")
    tracking.execute("EXEC sys.sp_cdc_start_job @job_type = 'capture'")
    tracking.pass_time(0)
    tracking.execute("INSERT t VALUES (2, 2)")
    tracking.pass_time(6)
    assert len(tracking.changes("dbo_t")) == 1
    tracking.pass_time(60)
    assert len(tracking.changes("dbo_t")) == 2


def test_stopped_job_captures_nothing_until_started(tracking: LocalWorld) -> None:
    """[doc] the log keeps what is not yet captured."""
    tracking.execute("EXEC sys.sp_cdc_stop_job")
    tracking.execute("INSERT t VALUES (1, 1)")
    tracking.pass_time(600)
    assert tracking.changes("dbo_t") == []
    tracking.execute("EXEC sys.sp_cdc_start_job")
    tracking.pass_time(0)
    assert len(tracking.changes("dbo_t")) == 1


def test_stopping_a_stopped_job_is_22022_and_not_catchable(tracking: LocalWorld) -> None:
    """[fab] the Agent's refusal is an error message which TRY/CATCH does not see."""
    tracking.execute("EXEC sys.sp_cdc_stop_job")
    answer = tracking.send("BEGIN TRY EXEC sys.sp_cdc_stop_job END TRY BEGIN CATCH SELECT 'caught' END CATCH")
    (message,) = answer.messages
    assert message.number == 22022
    assert message.text.startswith("SQLServerAgent Error: Request to stop job cdc.testdb_capture")
    assert message.text.endswith("refused because the job is not currently running.")
    assert answer.sets == []


def test_agent_stop_stops_the_capture_job(tracking: LocalWorld) -> None:
    status = "SELECT status FROM sys.dm_server_services WHERE servicename LIKE N'SQL Server Agent (%'"
    assert tracking.value(status) == 4
    tracking.execute("EXEC sandbox.agent_stop")
    assert tracking.value(status) == 1
    tracking.execute("INSERT t VALUES (1, 1)")
    tracking.pass_time(60)
    assert tracking.changes("dbo_t") == []
    tracking.execute("EXEC sandbox.agent_start")
    tracking.pass_time(0)
    assert len(tracking.changes("dbo_t")) == 1


def test_manual_scan_works_without_agent(tracking: LocalWorld) -> None:
    """[fab]."""
    tracking.execute("EXEC sandbox.agent_stop")
    tracking.execute("INSERT t VALUES (1, 1)")
    tracking.execute("EXEC sys.sp_cdc_scan")
    assert len(tracking.changes("dbo_t")) == 1


def dummy_rows(world: LocalWorld) -> int:
    return world.value("SELECT COUNT(*) FROM cdc.lsn_time_mapping WHERE tran_id = 0x00")


def test_instance_is_met_by_the_scan_that_reads_its_committed_transaction(local_world: LocalWorld) -> None:
    """The job starts before a transaction around the procedure ends, and must not see what is not committed."""
    local_world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, a int)")
    local_world.enable()
    local_world.execute("BEGIN TRAN")
    local_world.enable_table("t")
    local_world.capture()
    assert local_world.value("SELECT sys.fn_cdc_get_max_lsn()") is None
    local_world.execute("COMMIT")
    local_world.capture()
    assert local_world.value("SELECT COUNT(*) FROM cdc.lsn_time_mapping") == 2


def test_dummy_row_only_after_five_idle_minutes(tracking: LocalWorld) -> None:
    """[sys] the newest row's end time must be more than 300 s old."""
    assert dummy_rows(tracking) == 1
    for _ in range(59):
        tracking.pass_time(5)
    assert dummy_rows(tracking) == 1
    for _ in range(3):
        tracking.pass_time(5)
    assert dummy_rows(tracking) == 2


def test_cleanup_job_runs_at_two_in_the_morning(tracking: LocalWorld) -> None:
    """[doc] retention 4320 minutes, relative to the newest captured commit and not to now."""
    tracking.execute("INSERT t VALUES (1, 1)")
    tracking.pass_time(3600)
    tracking.execute("INSERT t VALUES (2, 2)")
    tracking.capture()
    tracking.execute("EXEC sandbox.capture_pause")
    tracking.pass_time(4 * 86_400)
    assert tracking.changes("dbo_t", "id") == [(1,), (2,)]
    tracking.execute("EXEC sandbox.capture_resume")
    tracking.execute("INSERT t VALUES (3, 3)")
    tracking.capture()
    for _ in range(24):
        tracking.pass_time(3600)
    assert tracking.changes("dbo_t", "id") == [(2,), (3,)]


def test_cleanup_raises_the_low_end_and_prunes_the_mapping(tracking: LocalWorld) -> None:
    """[doc] min_lsn, change rows and mapping rows go together."""
    for number in range(3):
        tracking.execute(f"INSERT t VALUES ({number}, 0)")
        tracking.capture()
        tracking.clock.advance(60)
    (mark,) = tracking.rows("EXEC sandbox.cleanup_now @retention = 1")[0]
    assert tracking.value("SELECT sys.fn_cdc_get_min_lsn('dbo_t')") == mark
    assert tracking.value("SELECT MIN(start_lsn) FROM cdc.lsn_time_mapping") == mark
    assert tracking.changes("dbo_t", "id") == [(1,), (2,)]
