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


def test_manual_scan_honours_maxtrans_and_maxscans(world: LocalWorld) -> None:
    """[doc] up to maxscans passes of up to maxtrans transactions."""
    prepared(world)
    world.execute("EXEC sandbox.agent_stop")
    for number in range(7):
        world.execute(f"INSERT t VALUES ({number}, 0)")
    world.execute("EXEC sys.sp_cdc_scan @maxtrans = 2, @maxscans = 2")
    assert len(world.changes("dbo_t")) == 4


def test_help_jobs_lists_both_with_defaults(world: LocalWorld) -> None:
    """[doc]."""
    prepared(world)
    rows = world.rows("EXEC sys.sp_cdc_help_jobs")
    assert [row[1:] for row in rows] == [
        ("capture", "cdc.testdb_capture", 500, 10, 1, 5, 0, 0),
        ("cleanup", "cdc.testdb_cleanup", 0, 0, 0, 0, 4320, 5000),
    ]


def test_cdc_jobs_does_not_exist_before_the_first_job(world: LocalWorld) -> None:
    """[fab] Msg 208."""
    assert world.error("SELECT * FROM msdb.dbo.cdc_jobs").number == 208
    prepared(world)
    assert world.value("SELECT COUNT(*) FROM msdb.dbo.cdc_jobs") == 2


BAD_CALLS = {
    "[sys] job type": ("EXEC sys.sp_cdc_change_job @job_type = N'other'", 22992),
    "[sys] capture setting on cleanup": ("EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @maxtrans = 1", 22996),
    "[sys] retention on capture": ("EXEC sys.sp_cdc_change_job @job_type = N'capture', @retention = 1", 22995),
    "[doc] polling too long": ("EXEC sys.sp_cdc_change_job @pollinginterval = 86400", 22990),
    "[doc] scan polls only when continuous": ("EXEC sys.sp_cdc_scan @pollinginterval = 5", 22999),
    "[doc] scan continuous is 0 or 1": ("EXEC sys.sp_cdc_scan @continuous = 2", 22998),
    "[doc] scan maxtrans": ("EXEC sys.sp_cdc_scan @maxtrans = 0", 22991),
    "[doc] scan maxscans": ("EXEC sys.sp_cdc_scan @maxscans = 0", 22970),
}


@pytest.mark.parametrize(("statement", "number"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_job_procedures_check_their_parameters(world: LocalWorld, statement: str, number: int) -> None:
    prepared(world)
    assert world.error(statement).number == number


def test_drop_job_then_change_job_is_22997(world: LocalWorld) -> None:
    """[sys]."""
    prepared(world)
    world.execute("EXEC sys.sp_cdc_drop_job @job_type = N'cleanup'")
    failure = world.error("EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = 10")
    assert failure.number == 22997
    world.execute("EXEC sys.sp_cdc_add_job @job_type = N'cleanup', @retention = 10, @start_job = 0")
    assert world.value("SELECT retention FROM msdb.dbo.cdc_jobs WHERE job_type = 'cleanup'") == 10


def dummy_rows(world: LocalWorld) -> int:
    return world.value("SELECT COUNT(*) FROM cdc.lsn_time_mapping WHERE tran_id = 0x00")


def test_enabling_row_is_written_by_the_first_scan(world: LocalWorld) -> None:
    """[sys] (start_lsn, create_date, create_date, 0x0, 0x0)."""
    prepared(world)
    assert world.rows(
        "SELECT c.start_lsn, c.create_date, c.create_date, 0x00, CAST(0x00 AS binary(10)) FROM cdc.change_tables c"
    ) == world.rows(
        "SELECT start_lsn, tran_begin_time, tran_end_time, tran_id, tran_begin_lsn FROM cdc.lsn_time_mapping "
        "WHERE tran_id = 0x00"
    )


def test_transaction_that_enables_an_instance_is_mapped_like_one_with_changes(world: LocalWorld) -> None:
    """[dbz] its tests wait for exactly one `tran_id <> 0x00` row per enabled table and changing commit.

    Its heartbeats for a table without changes rest on the newest row being such a one.
    """
    prepared(world)
    assert world.rows(
        "SELECT c.capture_instance, CASE WHEN m.start_lsn = sys.fn_cdc_get_max_lsn() THEN 1 ELSE 0 END "
        "FROM cdc.lsn_time_mapping m LEFT JOIN cdc.change_tables c "
        "ON c.start_lsn BETWEEN m.tran_begin_lsn AND m.start_lsn WHERE m.tran_id <> 0x00"
    ) == [("dbo_t", 1)]


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


def test_scan_sessions_share_a_row_while_nothing_happens(world: LocalWorld) -> None:
    """[dbz] an empty scan's start_lsn ends with a NUL character."""
    prepared(world)
    world.execute("INSERT t VALUES (1, 1)")
    for _ in range(4):
        world.pass_time(5)
    rows = world.rows(
        "SELECT session_id, start_lsn, tran_count, empty_scan_count FROM sys.dm_cdc_log_scan_sessions "
        "ORDER BY session_id DESC"
    )
    assert rows[0][1] == "00000000:00000000:0000\0"
    assert rows[0][3] > 1
    assert (rows[1][2], rows[1][3]) == (1, 0)
    assert rows[-1][0] == 0


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


def test_cleanup_change_table_takes_only_mapped_lsns(world: LocalWorld) -> None:
    """[doc] 22964 shows the LSN in upper case."""
    prepared(world)
    failure = world.error("EXEC sys.sp_cdc_cleanup_change_table N'dbo_t', 0x00000027000000ABCDEF")
    assert failure.number == 22964
    assert failure.text.startswith("LSN 0X00000027000000ABCDEF, ")


def test_cleanup_change_table_deletes_below_the_mark(world: LocalWorld) -> None:
    """[doc] the mark itself stays."""
    prepared(world)
    for number in range(3):
        world.execute(f"INSERT t VALUES ({number}, 0)")
        world.clock.advance(1)
    world.capture()
    lsns = [row[0] for row in world.changes("dbo_t", "__$start_lsn")]
    world.execute(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_t', 0x{lsns[1].hex()}")
    assert [row[0] for row in world.changes("dbo_t", "__$start_lsn")] == lsns[1:]
    assert world.value("SELECT sys.fn_cdc_get_min_lsn('dbo_t')") == lsns[1]


def test_cleanup_change_table_without_cdc_is_22910(world: LocalWorld) -> None:
    assert world.error("EXEC sys.sp_cdc_cleanup_change_table N'dbo_t', NULL").number == 22910
