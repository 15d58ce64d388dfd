"""The procedures that Agent's job steps call: `sys.sp_MScdc_capture_job`, `sys.sp_MScdc_cleanup_job`.

Servers without Agent call them too. Also `sys.sp_cdc_vupgrade` and `sys.sp_cdc_dbsnapshotLSN`. Checks and their order
[sys].
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from mssql_sandbox.catalog.definitions import Call, procedure
from mssql_sandbox.cdc.cleanup import run_cleanup
from mssql_sandbox.cdc.job_settings import JobSettings, JobType, defaults
from mssql_sandbox.cdc.job_table import JobTable
from mssql_sandbox.cdc.procedures.common import require_capture, require_owner, run, service
from mssql_sandbox.cdc.procedures.scanning import require_publisher, scan_log
from mssql_sandbox.cdc_messages import cdc_error
from mssql_sandbox.engine.events import Event, Message
from mssql_sandbox.errors import SqlError

_CAPTURE, _CLEANUP, _UPGRADE = "sp_MScdc_capture_job", "sp_MScdc_cleanup_job", "sp_cdc_vupgrade"


async def _settings(call: Call, job_type: JobType) -> JobSettings:
    """The settings of the database's job, or the server's defaults."""
    server, database = call.scope.server, call.scope.database
    job = await run(call, "sp_cdc_get_job_parameters", lambda work: JobTable(server, work).job(database, job_type))
    return job.settings if job is not None else defaults(server.version)[job_type]


async def _capture_job(call: Call) -> AsyncIterator[Event]:
    """Scan with the job's settings, endlessly if it is continuous; 22864 follows an error."""
    try:
        require_publisher(call)
        capture = require_capture(call, procedure=_CAPTURE)
        await scan_log(call, capture, await _settings(call, "capture"))
    except SqlError as failure:
        if failure.number == 22901:
            raise
        yield Message(failure.number, failure.state, failure.severity, failure.message, failure.procedure, failure.line)
        raise cdc_error(22864, call.scope.database.name, procedure=_CAPTURE) from failure


async def _cleanup_job(call: Call) -> AsyncIterator[Event]:
    """One run of the cleanup with the job's retention."""
    require_owner(call, procedure=_CLEANUP)
    capture = service(call).capture(call.scope.database)
    if capture is None:
        raise cdc_error(22910, call.scope.database.name, procedure=_CLEANUP)
    run_cleanup(capture, (await _settings(call, "cleanup")).retention)
    return
    yield  # an async generator without events


async def _upgrade(call: Call) -> AsyncIterator[Event]:
    """Nothing to upgrade: no object is older than the server."""
    require_owner(call, procedure=_UPGRADE)
    return
    yield  # an async generator without events


async def _snapshot_lsn(call: Call) -> AsyncIterator[Event]:
    """There are no database snapshots, so none has the given name."""
    raise cdc_error(22862, call.text("db_snapshot") or "(null)", procedure="sp_cdc_dbsnapshotLSN")
    yield  # an async generator without events


PROCEDURES = (
    procedure(f"sys.{_CAPTURE}", "", _capture_job),
    procedure(f"sys.{_CLEANUP}", "", _cleanup_job),
    procedure(f"sys.{_UPGRADE}", "@force_metadata_fixup bit = 0", _upgrade),
    procedure(
        "sys.sp_cdc_dbsnapshotLSN",
        "@db_snapshot sysname, @lastLSN binary(10) = NULL OUTPUT, @lastLSNstr nvarchar(40) = NULL OUTPUT",
        _snapshot_lsn,
    ),
)
