"""Jobs, scans by hand and cleanup by hand: what their procedures accept, refuse and do."""

from __future__ import annotations

import pytest

from tests.cdc.client import World
from tests.cdc.rules import CAPTURE, ENABLE_DB, TRACKED, WAIT, Rule, T, check, prepare

CHANGE, ADD = "EXEC sys.sp_cdc_change_job ", "EXEC sys.sp_cdc_add_job "
JOB = (
    "SELECT maxtrans, maxscans, continuous, pollinginterval, retention, threshold FROM msdb.dbo.cdc_jobs "
    "WHERE database_id = DB_ID() AND job_type = N'{}'"
)
CLEANUP = "EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'dbo_t', @low_water_mark = "
LSN_OF = "(SELECT __$start_lsn FROM cdc.dbo_t_CT WHERE id = {})"
THREE = (
    *TRACKED, "EXEC sys.sp_cdc_stop_job",
    "INSERT t VALUES (1, 0, 0)", CAPTURE, WAIT, "INSERT t VALUES (2, 0, 0)", CAPTURE, WAIT, "INSERT t VALUES (3, 0, 0)",
    CAPTURE,
)  # fmt: skip

RULES = {
    "[doc] unknown job type": Rule(TRACKED, CHANGE + "@job_type = N'other'", 22992),
    "[doc] no job type": Rule(TRACKED, ADD + "@job_type = NULL", 22992),
    "[sys] capture's settings on cleanup": Rule(TRACKED, CHANGE + "@job_type = N'cleanup', @maxscans = 5", 22996),
    "[sys] cleanup's settings on capture": Rule(TRACKED, CHANGE + "@threshold = 5", 22995),
    "[doc] polling a day": Rule(TRACKED, CHANGE + "@pollinginterval = 86400", 22990),
    "[doc] polling backwards": Rule(TRACKED, CHANGE + "@pollinginterval = -1", 22990),
    "[doc] no transactions": Rule(TRACKED, CHANGE + "@maxtrans = 0", 22991),
    "[doc] no scans": Rule(TRACKED, CHANGE + "@maxscans = 0", 22970),
    "[doc] no retention": Rule(TRACKED, CHANGE + "@job_type = N'cleanup', @retention = 0", 22994),
    "[doc] a century": Rule(TRACKED, CHANGE + "@job_type = N'cleanup', @retention = 52594801", 22994),
    "[doc] no threshold": Rule(TRACKED, CHANGE + "@job_type = N'cleanup', @threshold = 0", 22850),
    "[sys] a job that was dropped": Rule(
        (*TRACKED, "EXEC sys.sp_cdc_drop_job N'cleanup'"), CHANGE + "@job_type = N'cleanup', @retention = 5", 22997
    ),
    "[doc] jobs of a database without change data capture": Rule((), CHANGE + "@maxtrans = 5", 22901),
    "[doc] one shot does not poll": Rule(
        (*TRACKED, CHANGE + "@continuous = 0"), JOB.format("capture"), [(500, 10, 0, 0, 0, 0)]
    ),
    "[sys] polling makes continuous": Rule(
        (*TRACKED, CHANGE + "@continuous = 0", CHANGE + "@pollinginterval = 7"),
        JOB.format("capture"),
        [(500, 10, 1, 7, 0, 0)],
    ),
    "[doc] what is NULL is left": Rule(
        (*TRACKED, CHANGE + "@job_type = N'cleanup', @retention = 60"),
        JOB.format("cleanup"),
        [(0, 0, 0, 0, 60, 5000)],
    ),
    "[doc] a job of one's own settings": Rule(
        (
            *TRACKED,
            "EXEC sys.sp_cdc_drop_job N'cleanup'",
            ADD + "N'cleanup', @start_job = 0, @retention = 9, @threshold = 7",
        ),
        JOB.format("cleanup"),
        [(0, 0, 0, 0, 9, 7)],
    ),
    "[doc] disabling the last table drops the jobs": Rule(
        (*TRACKED, "EXEC sys.sp_cdc_disable_table N'dbo', N't', N'dbo_t'"), JOB.format("capture"), []
    ),
    "[doc] scan without change data capture": Rule((), "EXEC sys.sp_cdc_scan", 22901),
    "[doc] scan: continuous is 0 or 1": Rule(TRACKED, "EXEC sys.sp_cdc_scan @continuous = 2", 22998),
    "[doc] scan: polling only when continuous": Rule(TRACKED, "EXEC sys.sp_cdc_scan @pollinginterval = 1", 22999),
    "[doc] scan: transactions": Rule(TRACKED, "EXEC sys.sp_cdc_scan @maxtrans = 0", 22991),
    "[doc] scan: scans": Rule(TRACKED, "EXEC sys.sp_cdc_scan @maxscans = 0", 22970),
    "[doc] cleanup without change data capture": Rule((T,), CLEANUP + "NULL", 22910),
    "[doc] cleanup: threshold": Rule(TRACKED, CLEANUP + "NULL, @threshold = 0", 22850),
    "[doc] cleanup: a mark that is no commit": Rule(TRACKED, CLEANUP + "0x00000027000000990003", 22964),
    "[sys] the mark is looked at before the instance": Rule(
        TRACKED,
        "EXEC sys.sp_cdc_cleanup_change_table N'nothing', 0x01",
        22964,
        text="LSN 0X01000000000000000000, specif",
    ),
    "[sys] cleanup: a threshold of NULL is none": Rule(
        THREE,
        f"DECLARE @failed bit; {CLEANUP}NULL, @threshold = NULL, @fCleanupFailed = @failed OUTPUT; SELECT @failed",
        [(0,)],
    ),
    "[sys] scan: continuous is not NULL": Rule(TRACKED, "EXEC sys.sp_cdc_scan @continuous = NULL", 22998),
    "[sys] scan: a continuous one polls": Rule(
        TRACKED, "EXEC sys.sp_cdc_scan @continuous = 1, @pollinginterval = NULL", 22990
    ),
    "[sys] scan: polling is not looked at otherwise": Rule(
        TRACKED, "EXEC sys.sp_cdc_scan @pollinginterval = -1", 22999
    ),
    "[sys] the security check of jobs asks for change data capture": Rule(
        (), CHANGE, 22901, procedure="sp_MScdc_job_security_check"
    ),
    "[sys] dropping a job does not": Rule((), "EXEC sys.sp_cdc_drop_job N'other'", 22992),
    "[sys] no job type is called null": Rule(
        TRACKED, ADD + "@job_type = NULL", 22992, text="The specified @job_type, (null), is not supported."
    ),
    "[sys] job types are trimmed, in any case": Rule(
        (*TRACKED, CHANGE + "@job_type = N' CleanUp ', @retention = 7"), JOB.format("cleanup"), [(0, 0, 0, 0, 7, 5000)]
    ),
    "[sys] a new job that is not continuous does not poll": Rule(
        (*TRACKED, "EXEC sys.sp_cdc_drop_job N'capture'", ADD + "N'capture', @start_job = 0, @continuous = 0"),
        JOB.format("capture"),
        [(500, 10, 0, 0, 0, 0)],
    ),
    "[sys] unless it is told to": Rule(
        (
            *TRACKED,
            "EXEC sys.sp_cdc_drop_job N'capture'",
            ADD + "N'capture', @start_job = 0, @continuous = 0, @pollinginterval = 9",
        ),
        JOB.format("capture"),
        [(500, 10, 0, 9, 0, 0)],
    ),
    "[sys] the capture job's own procedure scans": Rule(
        (
            *TRACKED,
            "EXEC sys.sp_cdc_stop_job",
            CHANGE + "@continuous = 0",
            "INSERT t VALUES (1, 1, 1)",
            "EXEC sys.sp_MScdc_capture_job",
        ),
        "SELECT id FROM cdc.dbo_t_CT",
        [(1,)],
    ),
    "[sys] and needs change data capture": Rule((), "EXEC sys.sp_MScdc_capture_job", 22901),
    "[sys] the cleanup job's too": Rule((), "EXEC sys.sp_MScdc_cleanup_job", 22910),
    "[doc] there is no such snapshot": Rule((), "EXEC sys.sp_cdc_dbsnapshotLSN N'nothing'", 22862),
    "[doc] cleanup deletes below the mark": Rule(
        (*THREE, f"DECLARE @m binary(10) = {LSN_OF.format(2)}; {CLEANUP}@m"),
        "SELECT id FROM cdc.dbo_t_CT ORDER BY id",
        [(2,), (3,)],
    ),
    "[doc] and raises the low end to it": Rule(
        (*THREE, f"DECLARE @m binary(10) = {LSN_OF.format(2)}; {CLEANUP}@m"),
        f"SELECT CASE WHEN sys.fn_cdc_get_min_lsn('dbo_t') = {LSN_OF.format(2)} THEN 1 ELSE 0 END",
        [(1,)],
    ),
    "[doc] which never goes back": Rule(
        (
            *THREE,
            f"DECLARE @m binary(10) = {LSN_OF.format(2)}, @n binary(10) = {LSN_OF.format(3)}; {CLEANUP}@n; {CLEANUP}@m",
        ),
        f"SELECT CASE WHEN sys.fn_cdc_get_min_lsn('dbo_t') = {LSN_OF.format(3)} THEN 1 ELSE 0 END",
        [(1,)],
    ),
    "[doc] without a mark: what lies below the low end": Rule(
        (*THREE, CLEANUP + "NULL"), "SELECT COUNT(*) FROM cdc.dbo_t_CT", [(3,)]
    ),
    "[doc] cleanup says whether it failed": Rule(
        THREE, f"DECLARE @failed bit; {CLEANUP}NULL, @fCleanupFailed = @failed OUTPUT; SELECT @failed", [(0,)]
    ),
    "[doc] functions refuse what was cleaned up": Rule(
        (*THREE, f"DECLARE @m binary(10) = {LSN_OF.format(3)}; {CLEANUP}@m"),
        "SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t((SELECT MIN(start_lsn) FROM cdc.lsn_time_mapping), "
        "sys.fn_cdc_get_max_lsn(), N'all')",
        313,
    ),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_jobs_scans_and_cleanup_follow_the_rules(world: World, rule: Rule) -> None:
    check(world, rule)


def test_help_jobs_has_its_columns_and_shows_the_defaults(world: World) -> None:
    """[doc][?] job_name is in current builds, though not in the list of the documentation."""
    for statement in (T, ENABLE_DB):
        world.execute(statement)
    world.enable_table("t")
    answer = world.execute("EXEC sys.sp_cdc_help_jobs")
    assert answer.names[-1] == [
        "job_id", "job_type", "job_name", "maxtrans", "maxscans", "continuous", "pollinginterval", "retention",
        "threshold",
    ]  # fmt: skip
    assert [row[1:] for row in map(tuple, answer.sets[-1])] == [
        ("capture", f"cdc.{world.database}_capture", 500, 10, 1, 5, 0, 0),
        ("cleanup", f"cdc.{world.database}_cleanup", 0, 0, 0, 0, 4320, 5000),
    ]


def test_a_cleanup_that_cannot_delete_says_so_and_leaves_the_rows(world: World) -> None:
    """[doc] 22852 is a message, @fCleanupFailed tells it; the low end is raised all the same."""
    prepare(world, (*THREE, "SET LOCK_TIMEOUT 0"))
    world.execute("BEGIN TRAN; SELECT * FROM cdc.dbo_t_CT WITH (XLOCK, HOLDLOCK)", name="reader")
    clean = f"DECLARE @m binary(10) = (SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping), @failed bit; {CLEANUP}@m"
    assert world.value(f"{clean}, @fCleanupFailed = @failed OUTPUT; SELECT @failed") == 1
    world.execute("ROLLBACK", name="reader")
    assert len(world.changes("dbo_t")) == 3
    assert world.value(f"DECLARE @failed bit; {CLEANUP}NULL, @fCleanupFailed = @failed OUTPUT; SELECT @failed") == 0
    assert len(world.changes("dbo_t")) == 1


def test_a_scan_honours_maxtrans_and_maxscans(world: World) -> None:
    """[doc] up to maxscans passes of up to maxtrans transactions."""
    prepare(world, (*TRACKED, CAPTURE))
    for number in range(7):
        world.execute(f"INSERT t VALUES ({number}, 0, 0)")
    world.execute("EXEC sys.sp_cdc_scan @maxtrans = 2, @maxscans = 2")
    assert len(world.changes("dbo_t")) == 4


def test_the_first_scan_writes_the_row_of_a_new_instance(world: World) -> None:
    """[sys] (start_lsn, create_date, create_date, 0x0, 0x0)."""
    prepare(world, (*TRACKED, CAPTURE))
    assert world.rows(
        "SELECT c.start_lsn, c.create_date, c.create_date, 0x00, CAST(0x00 AS binary(10)) FROM cdc.change_tables c"
    ) == world.rows(
        "SELECT TOP 1 start_lsn, tran_begin_time, tran_end_time, tran_id, tran_begin_lsn FROM cdc.lsn_time_mapping "
        "WHERE tran_id = 0x00 ORDER BY start_lsn"
    )


def test_the_transaction_that_enables_an_instance_is_mapped_like_one_with_changes(world: World) -> None:
    """[dbz] its tests wait for exactly one `tran_id <> 0x00` row per enabled table and changing commit.

    Its heartbeats for a table without changes rest on the newest row being such a one.
    """
    prepare(world, (*TRACKED, CAPTURE))
    assert world.rows(
        "SELECT c.capture_instance, CASE WHEN m.start_lsn = sys.fn_cdc_get_max_lsn() THEN 1 ELSE 0 END "
        "FROM cdc.lsn_time_mapping m LEFT JOIN cdc.change_tables c "
        "ON c.start_lsn BETWEEN m.tran_begin_lsn AND m.start_lsn WHERE m.tran_id <> 0x00"
    ) == [("dbo_t", 1)]
