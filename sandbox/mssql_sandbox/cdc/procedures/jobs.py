"""`sys.sp_cdc_add_job`, `_drop_job`, `_change_job`, `_start_job`, `_stop_job`, `_help_jobs`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, information, procedure, result_set
from mssql_sandbox.cdc.instances import DatabaseCapture
from mssql_sandbox.cdc.job_settings import (
    JobChange,
    JobType,
    added,
    changed,
    check_change,
    check_job_type,
    defaults,
)
from mssql_sandbox.cdc.job_table import JobRow, JobTable
from mssql_sandbox.cdc.layout import job_name
from mssql_sandbox.cdc.procedures.common import require_capture, require_owner, run, service
from mssql_sandbox.cdc_messages import AGENT_NOT_RUNNING, cdc_error
from mssql_sandbox.engine.events import Event, Message
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.transaction import Transaction

AGENT_ERROR = 22022
_SECURITY = "sp_MScdc_job_security_check"
_SETTINGS = (
    "@maxtrans int = NULL, @maxscans int = NULL, @continuous bit = NULL, @pollinginterval bigint = NULL, "
    "@retention bigint = NULL, @threshold bigint = NULL"
)
_JOBS = columns(
    "job_id uniqueidentifier, job_type nvarchar(20), job_name sysname?, maxtrans int?, maxscans int?, continuous bit?, "
    "pollinginterval bigint?, retention bigint?, threshold bigint?"
)


def _change(call: Call) -> JobChange:
    continuous = call.number("continuous")
    return JobChange(
        maxtrans=call.number("maxtrans"),
        maxscans=call.number("maxscans"),
        continuous=None if continuous is None else bool(continuous),
        pollinginterval=call.number("pollinginterval"),
        retention=call.number("retention"),
        threshold=call.number("threshold"),
    )


def _job(database: Database, jobs: JobTable, job_type: JobType, *, procedure_name: str) -> JobRow:
    """The job; errors 22993 (no job table), 22997 (no such job)."""
    if not jobs.exists(database):
        raise cdc_error(22993, database.name, procedure=procedure_name)
    job = jobs.job(database, job_type)
    if job is None:
        raise cdc_error(22997, job_type, procedure=procedure_name)
    return job


def _secured(call: Call) -> DatabaseCapture:
    """The capture of the current database; errors 22904 and 22901 of the check that these procedures share [sys]."""
    require_owner(call, procedure=_SECURITY)
    return require_capture(call, procedure=_SECURITY)


async def _existing(call: Call, database: Database, job_type: JobType, name: str) -> JobRow:
    """The job as it is stored."""
    server = call.scope.server
    return await run(call, name, lambda work: _job(database, JobTable(server, work), job_type, procedure_name=name))


async def _add_job(call: Call) -> AsyncIterator[Event]:
    name = "sp_cdc_add_job"
    capture = _secured(call)
    job_type = check_job_type(call.arguments["job_type"], procedure=name)
    change = _change(call)
    check_change(job_type, change, procedure=name)
    settings = added(defaults(call.scope.server.version)[job_type], change)

    def add(transaction: Transaction) -> None:
        jobs = JobTable(call.scope.server, transaction)
        if jobs.job(capture.database, job_type) is None:
            jobs.add(capture.database, job_type, settings)

    await run(call, name, add)
    if call.number("start_job"):
        async for event in start(call, capture, job_type):
            yield event


async def _drop_job(call: Call) -> AsyncIterator[Event]:
    """The database may have change data capture disabled already [sys]."""
    name = "sp_cdc_drop_job"
    require_owner(call, procedure=name)
    job_type = check_job_type(call.arguments["job_type"], procedure=name)

    def drop(transaction: Transaction) -> None:
        jobs = JobTable(call.scope.server, transaction)
        _job(call.scope.database, jobs, job_type, procedure_name=name)
        jobs.drop(call.scope.database, job_type)

    await run(call, name, drop)
    capture, agent = service(call).capture(call.scope.database), service(call).agent
    if capture is not None:
        agent.stop(capture, job_type)
        if job_type == "cleanup":
            agent.unschedule(capture)
    return
    yield  # an async generator without events


async def _change_job(call: Call) -> AsyncIterator[Event]:
    """New settings take effect after stop and start [doc]."""
    name = "sp_cdc_change_job"
    _secured(call)
    job_type = check_job_type(call.arguments["job_type"], procedure=name)
    change = _change(call)
    check_change(job_type, change, procedure=name)

    def alter(transaction: Transaction) -> None:
        jobs = JobTable(call.scope.server, transaction)
        job = _job(call.scope.database, jobs, job_type, procedure_name=name)
        jobs.change(call.scope.database, job_type, changed(job.settings, change))

    await run(call, name, alter)
    return
    yield  # an async generator without events


def _refusal(call: Call, job: str, reason: str) -> Message:
    """Agent errors are messages: TRY/CATCH does not see them [fab]."""
    login = call.scope.session.login
    text = f"SQLServerAgent Error: Request to {reason.format(job=job, login=login)}"
    return Message(AGENT_ERROR, 1, 16, text, "sp_sqlagent_notify", 1)


async def start(call: Call, capture: DatabaseCapture, job_type: JobType) -> AsyncIterator[Event]:
    """Start a job; Agent's refusals are messages."""
    cdc = service(call)
    if not call.scope.server.agent_running:
        yield Message(AGENT_ERROR, 1, 16, AGENT_NOT_RUNNING, "sp_sqlagent_notify", 1)
        return
    job = await _existing(call, capture.database, job_type, "sp_cdc_start_job")
    label = job_name(capture.database.name, job_type)
    if cdc.agent.is_running(capture, job_type):
        reason = "run job {job} (from User {login}) refused because the job is already running from a request by User "
        yield _refusal(call, label, reason + "{login}.")
        return
    cdc.agent.start(capture, job_type, job.settings)
    if job_type == "cleanup":
        cdc.agent.schedule_cleanup(capture, job.settings)
    yield information(f"Job '{label}' started successfully.")


async def stop(call: Call, capture: DatabaseCapture, job_type: JobType) -> AsyncIterator[Event]:
    """Stop a job; Agent's refusals are messages."""
    await _existing(call, capture.database, job_type, "sp_cdc_stop_job")
    label = job_name(capture.database.name, job_type)
    agent = service(call).agent
    if not agent.is_running(capture, job_type):
        reason = "stop job {job} (from User {login}) refused because the job is not currently running."
        yield _refusal(call, label, reason)
        return
    agent.stop(capture, job_type)
    yield information(f"Job '{label}' stopped successfully.")


async def _start_job(call: Call) -> AsyncIterator[Event]:
    capture = _secured(call)
    async for event in start(call, capture, check_job_type(call.arguments["job_type"], procedure="sp_cdc_start_job")):
        yield event


async def _stop_job(call: Call) -> AsyncIterator[Event]:
    capture = _secured(call)
    async for event in stop(call, capture, check_job_type(call.arguments["job_type"], procedure="sp_cdc_stop_job")):
        yield event


async def _help_jobs(call: Call) -> AsyncIterator[Event]:
    name = "sp_cdc_help_jobs"
    _secured(call)
    database = call.scope.database
    jobs = await run(call, name, lambda transaction: JobTable(call.scope.server, transaction).jobs(database))
    rows = [
        (
            job.job_id,
            job.job_type,
            job_name(database.name, job.job_type),
            job.settings.maxtrans,
            job.settings.maxscans,
            int(job.settings.continuous),
            job.settings.pollinginterval,
            job.settings.retention,
            job.settings.threshold,
        )
        for job in jobs
    ]
    for event in result_set(_JOBS, rows):
        yield event


def _of_type(name: str, run: Callable[[Call], AsyncIterator[Event]], default: str):
    return procedure(f"sys.{name}", f"@job_type nvarchar(20){default}", run)


PROCEDURES = (
    procedure(
        "sys.sp_cdc_add_job",
        f"@job_type nvarchar(20), @start_job bit = 1, {_SETTINGS}, @check_for_logreader bit = 0",
        _add_job,
    ),
    procedure("sys.sp_cdc_change_job", f"@job_type nvarchar(20) = 'capture', {_SETTINGS}", _change_job),
    _of_type("sp_cdc_drop_job", _drop_job, ""),
    _of_type("sp_cdc_start_job", _start_job, " = 'capture'"),
    _of_type("sp_cdc_stop_job", _stop_job, " = 'capture'"),
    procedure("sys.sp_cdc_help_jobs", "", _help_jobs),
)
