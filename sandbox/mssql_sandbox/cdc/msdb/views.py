"""`msdb.dbo.sysjobs` and related tables [doc], computed from the jobs of change data capture.

Dates and times are numbers, 20260105 and 143000, as Agent stores them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.cdc.agent import seconds_to_cleanup
from mssql_sandbox.cdc.instances import DatabaseCapture
from mssql_sandbox.cdc.job_runs import KINDS, JobKey, JobKind, JobRuns, Line
from mssql_sandbox.cdc.job_table import JobRow, JobTable
from mssql_sandbox.cdc.layout import job_name
from mssql_sandbox.cdc.metadata import own_transaction
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.security import is_sysadmin

_PER_SECOND = 300
_PER_DAY = 300 * 86_400
_SA = b"\x01"
_CATEGORIES = {0: "[Uncategorized (Local)]", 13: "REPL-LogReader", 16: "REPL-Checkup"}
_SCHEDULES = uuid.UUID("0c0f1f86-3c4c-4b39-9d0a-52a2c3f3a5d1")


@dataclass(frozen=True, slots=True)
class Job:
    """A job with the capture that it works for."""

    row: JobRow
    capture: DatabaseCapture
    runs: JobRuns

    @property
    def database(self) -> Database:
        """The database that it works on."""
        return self.capture.database

    @property
    def key(self) -> JobKey:
        """The key of its runs."""
        return self.database.id, self.row.job_type

    @property
    def kind(self) -> JobKind:
        """What it shares with other jobs of its type."""
        return KINDS[self.row.job_type]

    @property
    def name(self) -> str:
        """`cdc.<database>_capture` or `_cleanup`."""
        return job_name(self.database.name, self.row.job_type)

    @property
    def schedule_id(self) -> int:
        """The schedule's id: a database has two schedules."""
        return self.database.id * 2 + (self.row.job_type == "cleanup")

    @property
    def created(self) -> int:
        """When it was created."""
        return self.runs.created.get(self.key, self.database.create_date)

    @property
    def last(self) -> Line | None:
        """The newest outcome."""
        return next((line for line in reversed(self.runs.history(self.key)) if line.step == 0), None)


def jobs(scope: Scope, *, action: str = "SELECT", on: str = "sysjobs") -> list[Job]:
    """All jobs, for sysadmins: Agent's own roles do not exist here. Error 229 for others."""
    if not is_sysadmin(scope.session):
        text = f"The {action} permission was denied on the object '{on}', database 'msdb', schema 'dbo'."
        raise SqlError(229, text, severity=14, state=5)
    server, cdc = scope.server, scope.server.catalog.cdc
    found: list[Job] = []
    with own_transaction(server, "SQLServerAgent", spid=scope.session.spid) as transaction:
        table = JobTable(server, transaction)
        for capture in cdc.captures():
            found += [Job(row, capture, cdc.agent.runs) for row in table.jobs(capture.database)]
    return found


def date_number(time: int | None) -> int:
    """20260105 for a `datetime` storage value; 0 for none."""
    if time is None:
        return 0
    day = date(1900, 1, 1) + timedelta(days=time // _PER_DAY)
    return day.year * 10_000 + day.month * 100 + day.day


def clock_number(seconds: int) -> int:
    """143000 for seconds of a day, or of a duration."""
    return seconds // 3600 * 10_000 + seconds // 60 % 60 * 100 + seconds % 60


def time_number(time: int | None) -> int:
    """143000 for a `datetime` storage value; 0 for none."""
    return 0 if time is None else clock_number(time % _PER_DAY // _PER_SECOND)


def last_run(job: Job) -> tuple[int, int, int, int]:
    """Outcome, date, time and duration of the newest run; outcome 5 is unknown."""
    line = job.last
    if line is None:
        return 5, 0, 0, 0
    lasted = clock_number((line.ended - line.began) // _PER_SECOND)
    return line.status, date_number(line.began), time_number(line.began), lasted


def _sysjobs(scope: Scope) -> Iterator[tuple]:
    for job in jobs(scope):
        kind = job.kind
        yield (job.row.job_id, job.name, kind.description, kind.category_id, _SA, job.created, job.created)


def _steps(scope: Scope) -> Iterator[tuple]:
    for job in jobs(scope):
        outcome, day, time, lasted = last_run(job)
        for number, step in enumerate(job.kind.steps, 1):
            ends = (step.on_success, step.on_failure)
            shown = (outcome, lasted, day, time, uuid.uuid5(job.row.job_id, str(number)))
            yield (job.row.job_id, number, step.name, step.command, *ends, job.database.name, *shown)


def _servers(scope: Scope) -> Iterator[tuple]:
    for job in jobs(scope):
        line = job.last
        outcome, day, time, lasted = last_run(job)
        yield (job.row.job_id, outcome, None if line is None else line.message, day, time, lasted)


def next_run(scope: Scope, job: Job) -> int | None:
    """When the schedule next starts the job; the capture job starts with Agent."""
    if job.row.job_type == "capture":
        return None
    now = scope.server.clock.local_datetime()
    return now + int(seconds_to_cleanup(now) * _PER_SECOND)


def _job_schedules(scope: Scope) -> Iterator[tuple]:
    for job in jobs(scope):
        due = next_run(scope, job)
        yield (job.schedule_id, job.row.job_id, date_number(due), time_number(due))


def _schedules(scope: Scope) -> Iterator[tuple]:
    for job in jobs(scope):
        kind = job.kind
        number, made = uuid.uuid5(_SCHEDULES, str(job.row.job_id)), date_number(job.created)
        named = (job.schedule_id, number, kind.schedule, _SA)
        yield (*named, *kind.frequency, 0, made, kind.start_time, job.created, job.created)


def _activity(scope: Scope) -> Iterator[tuple]:
    for job in jobs(scope):
        run = job.runs.activity.get(job.key)
        if run is None:
            yield (1, job.row.job_id, None, None, None, None, None, None, None, next_run(scope, job))
            continue
        step = len(job.kind.steps) - 1 if run.stopped is None else len(job.kind.steps)
        done = (step or None, run.requested if step else None, run.stopped)
        history = job.last.instance if run.stopped is not None and job.last is not None else None
        times = (run.requested, "4", run.requested)
        yield (1, job.row.job_id, *times, *done, history, next_run(scope, job))


def _sessions(scope: Scope) -> Iterator[tuple]:
    yield (1, scope.server.catalog.cdc.agent.runs.agent_started)


def _history(scope: Scope) -> Iterator[tuple]:
    rows = ((job, line) for job in jobs(scope) for line in job.runs.history(job.key))
    for job, line in sorted(rows, key=lambda found: found[1].instance):
        lasted = clock_number((line.ended - line.began) // _PER_SECOND)
        told = (line.message_id, line.severity, line.message, line.status)
        when = (date_number(line.began), time_number(line.began), lasted)
        yield (line.instance, job.row.job_id, line.step, line.step_name, *told, *when, scope.server.name)


def _categories(_scope: Scope) -> Iterable[tuple]:
    return [(number, 3 if number == 0 else 1, name) for number, name in _CATEGORIES.items()]


VIEWS = (
    view(
        "msdb.sysjobs",
        "job_id uniqueidentifier, originating_server_id int = 0, name sysname, enabled tinyint = 1, "
        "description nvarchar(512)?, start_step_id int = 1, category_id int, owner_sid varbinary(85), "
        "notify_level_eventlog int = 2, notify_level_email int = 0, notify_level_netsend int = 0, "
        "notify_level_page int = 0, notify_email_operator_id int = 0, notify_netsend_operator_id int = 0, "
        "notify_page_operator_id int = 0, delete_level int = 0, date_created datetime, date_modified datetime, "
        "version_number int = 1",
        _sysjobs,
    ),
    view(
        "msdb.sysjobsteps",
        "job_id uniqueidentifier, step_id int, step_name sysname, subsystem nvarchar(40) = 'TSQL', "
        "command nvarchar(max)?, flags int = 4, additional_parameters nvarchar(max)? = NULL, "
        "cmdexec_success_code int = 0, on_success_action tinyint, on_success_step_id int = 0, on_fail_action tinyint, "
        "on_fail_step_id int = 0, server sysname? = NULL, database_name sysname?, database_user_name sysname? = NULL, "
        "retry_attempts int = 10, retry_interval int = 1, os_run_priority int = 0, "
        "output_file_name nvarchar(200)? = NULL, last_run_outcome int, last_run_duration int, "
        "last_run_retries int = 0, last_run_date int, last_run_time int, proxy_id int? = NULL, "
        "step_uid uniqueidentifier?",
        _steps,
    ),
    view(
        "msdb.sysjobservers",
        "job_id uniqueidentifier, server_id int = 0, last_run_outcome tinyint, last_outcome_message nvarchar(4000)?, "
        "last_run_date int, last_run_time int, last_run_duration int",
        _servers,
    ),
    view(
        "msdb.sysjobschedules",
        "schedule_id int?, job_id uniqueidentifier?, next_run_date int, next_run_time int",
        _job_schedules,
    ),
    view(
        "msdb.sysschedules",
        "schedule_id int, schedule_uid uniqueidentifier, originating_server_id int = 0, name sysname, "
        "owner_sid varbinary(85), enabled int = 1, freq_type int, freq_interval int, freq_subday_type int, "
        "freq_subday_interval int, freq_relative_interval int, freq_recurrence_factor int, active_start_date int, "
        "active_end_date int = 99991231, active_start_time int, active_end_time int = 235959, date_created datetime, "
        "date_modified datetime, version_number int = 1",
        _schedules,
    ),
    view(
        "msdb.sysjobactivity",
        "session_id int, job_id uniqueidentifier, run_requested_date datetime?, run_requested_source sysname?, "
        "queued_date datetime? = NULL, start_execution_date datetime?, last_executed_step_id int?, "
        "last_executed_step_date datetime?, stop_execution_date datetime?, job_history_id int?, "
        "next_scheduled_run_date datetime?",
        _activity,
    ),
    view("msdb.syssessions", "session_id int, agent_start_date datetime", _sessions),
    view(
        "msdb.sysjobhistory",
        "instance_id int, job_id uniqueidentifier, step_id int, step_name sysname, sql_message_id int, "
        "sql_severity int, message nvarchar(4000)?, run_status int, run_date int, run_time int, run_duration int, "
        "operator_id_emailed int = 0, operator_id_netsent int = 0, operator_id_paged int = 0, "
        "retries_attempted int = 0, server sysname",
        _history,
    ),
    view(
        "msdb.syscategories",
        "category_id int, category_class int = 1, category_type tinyint, name sysname",
        _categories,
    ),
)
"""Available as tables of the schema dbo in msdb only."""
