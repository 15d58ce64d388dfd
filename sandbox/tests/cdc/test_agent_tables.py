"""SQL Server Agent's tables and procedures in msdb: what scripts that watch over change data capture read."""

from __future__ import annotations

import pytest

from tests.cdc.client import LocalWorld, World
from tests.cdc.rules import TRACKED, Rule, check, prepare

OWN = "j.name LIKE 'cdc.' + DB_NAME() + '[_]%'"
STEPS = (
    "SELECT s.step_id, s.step_name, s.subsystem, s.command, s.on_success_action, s.on_fail_action, s.retry_attempts, "
    "s.retry_interval FROM msdb.dbo.sysjobs j JOIN msdb.dbo.sysjobsteps s ON s.job_id = j.job_id "
    f"WHERE {OWN} AND s.database_name = DB_NAME() AND j.name LIKE '%{{}}' ORDER BY s.step_id"
)
RULES = {
    "[pub] jobs of a database": Rule(
        TRACKED,
        "SELECT REPLACE(j.name, DB_NAME(), 'db'), j.enabled, j.description, c.name FROM msdb.dbo.sysjobs j "
        "JOIN msdb.dbo.syscategories c ON c.category_id = j.category_id "
        "JOIN msdb.dbo.cdc_jobs d ON d.job_id = j.job_id "
        f"WHERE {OWN} ORDER BY 1",
        [
            ("cdc.db_capture", 1, "CDC Log Scan Job", "REPL-LogReader"),
            ("cdc.db_cleanup", 1, "CDC Cleanup Job", "REPL-Checkup"),
        ],
    ),
    "[pub] steps of the capture job": Rule(
        TRACKED,
        STEPS.format("capture"),
        [
            (1, "Starting Change Data Capture Collection Agent", "TSQL", "RAISERROR(22801, 10, -1)", 3, 3, 10, 1),
            (2, "Change Data Capture Collection Agent", "TSQL", "sys.sp_MScdc_capture_job", 1, 2, 10, 1),
        ],
    ),
    "[pub] the step of the cleanup job": Rule(
        TRACKED,
        STEPS.format("cleanup"),
        [(1, "Change Data Capture Cleanup Agent", "TSQL", "sys.sp_MScdc_cleanup_job", 1, 2, 10, 1)],
    ),
    "[pub] schedules: with Agent, and daily at two": Rule(
        TRACKED,
        "SELECT s.name, s.freq_type, s.freq_interval, s.active_start_time FROM msdb.dbo.sysjobs j "
        "JOIN msdb.dbo.sysjobschedules x ON x.job_id = j.job_id JOIN msdb.dbo.sysschedules s "
        f"ON s.schedule_id = x.schedule_id WHERE {OWN} ORDER BY 1",
        [("CDC capture agent schedule.", 64, 0, 0), ("CDC cleanup agent schedule.", 4, 1, 20000)],
    ),
    "[doc] a job that is no more": Rule(
        (*TRACKED, "EXEC sys.sp_cdc_disable_table N'dbo', N't', N'all'"),
        f"SELECT COUNT(*) FROM msdb.dbo.sysjobs j WHERE {OWN}",
        [(0,)],
    ),
    "[doc] a job that never was": Rule(
        (),
        "EXEC msdb.dbo.sp_start_job @job_name = N'no such job'",
        14262,
        text="The specified @job_name ('no such job') does not exist.",
    ),
    "[doc] a job without name and id": Rule((), "EXEC msdb.dbo.sp_stop_job", 14294),
    "[doc] the tables are msdb's alone": Rule((), "SELECT * FROM dbo.sysjobs", 208),
    "[doc] nor is there such a schema": Rule((), "SELECT * FROM msdb.sysjobs", 208),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_tables_of_agent(world: World, rule: Rule) -> None:
    check(world, rule)


def test_tables_of_agent_are_for_sysadmins(world: World) -> None:
    """[doc] others need one of Agent's roles in msdb."""
    world.add_user("reader", "db_owner")
    assert world.error("SELECT * FROM msdb.dbo.sysjobs", login="reader").number == 229


HISTORY = (
    "SELECT step_id, sql_message_id, run_status, run_date, run_time FROM msdb.dbo.sysjobhistory ORDER BY instance_id"
)


def test_history_tells_scans_failures_and_the_end(local_world: LocalWorld) -> None:
    """[sys] a scan that has found something writes 22803 (in progress), one that fails its error."""
    world = local_world
    prepare(world, TRACKED)
    world.pass_time(0)
    world.execute("INSERT t VALUES (1, 1, 1)")
    world.pass_time(5)
    world.execute("EXEC sandbox.capture_fail @number = 22859")
    world.pass_time(5)
    world.execute("EXEC sys.sp_cdc_stop_job")
    assert world.rows(HISTORY) == [
        (1, 22801, 1, 20260105, 120000),
        (2, 22803, 4, 20260105, 120000),
        (2, 22803, 4, 20260105, 120005),
        (2, 22859, 0, 20260105, 120010),
        (0, 0, 3, 20260105, 120000),
    ]


def test_activity_tells_what_runs(local_world: LocalWorld) -> None:
    """[doc] a job that runs has a start and no end; the cleanup job waits for two o'clock."""
    world = local_world
    prepare(world, TRACKED)
    activity = (
        "SELECT CASE WHEN start_execution_date IS NULL THEN 0 ELSE 1 END, CASE WHEN stop_execution_date IS NULL THEN 0 "
        "ELSE 1 END, CONVERT(varchar(16), next_scheduled_run_date, 120) FROM msdb.dbo.sysjobactivity a "
        "JOIN msdb.dbo.sysjobs j ON j.job_id = a.job_id ORDER BY j.name"
    )
    assert world.rows(activity) == [(1, 0, None), (0, 0, "2026-01-06 02:00")]
    world.execute(f"EXEC msdb.dbo.sp_stop_job @job_name = N'cdc.{world.database}_capture'")
    assert world.rows(activity)[0] == (1, 1, None)
    world.execute(f"EXEC msdb.dbo.sp_start_job @job_name = N'cdc.{world.database}_capture'")
    assert world.rows(activity)[0] == (1, 0, None)


def test_help_job_shows_what_a_job_is_doing(local_world: LocalWorld) -> None:
    """[doc] current_execution_status: 1 executing, 4 idle."""
    world = local_world
    prepare(world, TRACKED)
    answer = world.execute("EXEC msdb.dbo.sp_help_job")
    places = [answer.names[-1].index(name) for name in ("name", "current_execution_status", "has_step")]
    assert [tuple(row[place] for place in places) for row in answer.sets[-1]] == [
        ("cdc.testdb_capture", 1, 2),
        ("cdc.testdb_cleanup", 4, 1),
    ]
