"""`msdb.dbo.sp_start_job`, `sp_stop_job` and `sp_help_job` [doc]."""

from __future__ import annotations

from collections.abc import AsyncIterator

from mssql_sandbox.catalog.columns import layout
from mssql_sandbox.catalog.definitions import Call, procedure, result_set
from mssql_sandbox.cdc.msdb.views import Job, date_number, jobs, last_run, next_run, time_number
from mssql_sandbox.cdc.procedures.common import service
from mssql_sandbox.cdc.procedures.jobs import start, stop
from mssql_sandbox.engine.events import Event
from mssql_sandbox.errors import SqlError

_EXECUTING, _IDLE = 1, 4
_HELP = layout(
    "job_id uniqueidentifier, originating_server nvarchar(30)?, name sysname, enabled tinyint = 1, "
    "description nvarchar(512)?, start_step_id int = 1, category sysname, owner sysname = 'sa', "
    "notify_level_eventlog int = 2, notify_level_email int = 0, notify_level_netsend int = 0, "
    "notify_level_page int = 0, notify_email_operator sysname = '(unknown)', "
    "notify_netsend_operator sysname = '(unknown)', notify_page_operator sysname = '(unknown)', delete_level int = 0, "
    "date_created datetime, date_modified datetime, version_number int = 1, last_run_date int, last_run_time int, "
    "last_run_outcome int, next_run_date int, next_run_time int, next_run_schedule_id int, "
    "current_execution_status int, current_execution_step nvarchar(128)?, current_retry_attempt int = 0, has_step int, "
    "has_schedule int = 1, has_target int = 1, type int = 1"
)


def _chosen(call: Call, name: str, *, required: bool = True) -> list[Job]:
    """The jobs with the name or the id; all of them if neither is given and none is `required`.

    Raises:
        SqlError: 14294, neither is given; 14262, there is no such job.
    """
    known = jobs(call.scope, action="EXECUTE", on=name)
    wanted, number = call.text("job_name"), call.arguments["job_id"]
    if wanted is None and number is None:
        if required:
            raise SqlError(14294, "Supply either @job_id or @job_name to identify the job.", procedure=name)
        return known
    found = [
        job
        for job in known
        if (wanted is None or job.name.casefold() == wanted.casefold()) and number in (None, job.row.job_id)
    ]
    if not found:
        parameter, value = ("@job_name", wanted) if wanted is not None else ("@job_id", str(number).upper())
        raise SqlError(
            14262, f"The specified {parameter} ('{value}') does not exist.", procedure="sp_verify_job_identifiers"
        )
    return found


async def _start_job(call: Call) -> AsyncIterator[Event]:
    for job in _chosen(call, "sp_start_job"):
        async for event in start(call, job.capture, job.row.job_type):
            yield event


async def _stop_job(call: Call) -> AsyncIterator[Event]:
    for job in _chosen(call, "sp_stop_job"):
        async for event in stop(call, job.capture, job.row.job_type):
            yield event


def _help_row(call: Call, job: Job) -> tuple:
    outcome, day, time, _ = last_run(job)
    due, steps = next_run(call.scope, job), job.kind.steps
    running = service(call).agent.is_running(job.capture, job.row.job_type)
    step = f"{len(steps)} ({steps[-1].name})" if running else "0 (unknown)"
    told = (job.kind.description, job.kind.category, job.created, job.created)
    runs = (day, time, outcome, date_number(due), time_number(due), job.schedule_id)
    state = (_EXECUTING if running else _IDLE, step, len(steps))
    return (job.row.job_id, call.scope.server.name, job.name, *told, *runs, *state)


async def _help_job(call: Call) -> AsyncIterator[Event]:
    rows = [_help_row(call, job) for job in _chosen(call, "sp_help_job", required=False)]
    for event in result_set(_HELP.columns, list(_HELP.rows(rows))):
        yield event


_WHICH = "@job_name sysname = NULL, @job_id uniqueidentifier = NULL"
PROCEDURES = (
    procedure(
        "msdb.sp_start_job",
        f"{_WHICH}, @error_flag int = 1, @server_name sysname = NULL, @step_name sysname = NULL, @output_flag int = 1",
        _start_job,
    ),
    procedure(
        "msdb.sp_stop_job",
        f"{_WHICH}, @originating_server sysname = NULL, @server_name sysname = NULL",
        _stop_job,
    ),
    procedure("msdb.sp_help_job", "@job_id uniqueidentifier = NULL, @job_name sysname = NULL", _help_job),
)
"""Available as procedures of the schema dbo in msdb only."""
