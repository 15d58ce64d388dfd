"""`sys.sp_cdc_scan` and `sys.sp_cdc_cleanup_change_table`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from itertools import count

from mssql_sandbox.catalog.definitions import Call, SystemProcedure, procedure
from mssql_sandbox.catalog.views.sessions import SYSTEM_SESSIONS
from mssql_sandbox.cdc.agent import run_scans
from mssql_sandbox.cdc.cleanup import delete_changes, raise_low_end, require_mapped
from mssql_sandbox.cdc.instances import DatabaseCapture
from mssql_sandbox.cdc.job_settings import MAX_POLLING, JobSettings
from mssql_sandbox.cdc.procedures.common import require_capture, require_owner, required_text, run, service
from mssql_sandbox.cdc_messages import MESSAGES, cdc_error
from mssql_sandbox.engine.events import Event, Message
from mssql_sandbox.engine.product import ProductVersion
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.security import is_owner

_CLEANUP = "sp_cdc_cleanup_change_table"
_CLEANUP_WORK = "sp_cdc_cleanup_change_table_internal"


def require_publisher(call: Call) -> None:
    """Error 21050 of the check shared with replication [sys]."""
    if not is_owner(call.scope.session, call.scope.database):
        raise cdc_error(21050, procedure="sp_MSreplcheck_publish")


def _check_scan(call: Call, *, procedure: str) -> None:
    """Check the parameters in the server's order [sys]: errors 22998, 22999, 22990, 22991, 22970."""
    continuous, polling = call.number("continuous"), call.number("pollinginterval")
    if continuous not in (0, 1):
        raise cdc_error(22998, procedure=procedure)
    if not continuous and polling:
        raise cdc_error(22999, procedure=procedure)
    if continuous and (polling is None or not 0 <= polling <= MAX_POLLING):
        raise cdc_error(22990, procedure=procedure)
    if (call.number("maxtrans") or 0) <= 0:
        raise cdc_error(22991, procedure=procedure)
    if (call.number("maxscans") or 0) <= 0:
        raise cdc_error(22970, procedure=procedure)


async def scan_log(call: Call, capture: DatabaseCapture, settings: JobSettings) -> None:
    """Up to `maxscans` passes, endlessly if continuous.

    Raises:
        SqlError: 22903, the capture job does so already; or a pass failed.
    """
    if settings.continuous and service(call).agent.is_running(capture, "capture"):
        known = call.scope.server.sessions
        holder = next(number for number in count(SYSTEM_SESSIONS + 1) if number not in known)
        raise cdc_error(22903, holder, procedure="sp_replcmds")
    while True:
        run_scans(capture, maxtrans=settings.maxtrans, maxscans=settings.maxscans)
        if not settings.continuous:
            return
        await call.scope.server.clock.sleep(max(settings.pollinginterval, 0.01))


async def _scan(call: Call) -> AsyncIterator[Event]:
    """Works even if Agent is stopped [fab]."""
    name = "sp_cdc_scan"
    require_publisher(call)
    capture = require_capture(call, procedure=name)
    _check_scan(call, procedure=name)
    numbers = {wanted: call.number(wanted) or 0 for wanted in ("maxtrans", "maxscans", "pollinginterval")}
    await scan_log(call, capture, JobSettings(**numbers, continuous=bool(call.number("continuous"))))
    return
    yield  # an async generator without events


async def _cleanup_change_table(call: Call) -> AsyncIterator[Event]:
    """Checks in the server's order [sys]; a threshold of NULL passes.

    Rows locked by other transactions are left for the next run: 22852, a message [doc].
    """
    require_owner(call, procedure=_CLEANUP)
    capture = service(call).capture(call.scope.database)
    if capture is None:
        raise cdc_error(22910, call.scope.database.name, procedure=_CLEANUP)
    threshold = call.number("threshold")
    if threshold is not None and threshold <= 0:
        raise cdc_error(22850, procedure=_CLEANUP)
    mark = call.arguments["low_water_mark"]
    low = mark if isinstance(mark, bytes) else None
    await run(call, _CLEANUP, lambda transaction: require_mapped(capture, transaction, low))
    instance = capture.named(required_text(call, "capture_instance", procedure=_CLEANUP_WORK))
    if instance is None:
        raise cdc_error(22981, procedure=_CLEANUP_WORK)
    end = await run(call, _CLEANUP, lambda transaction: raise_low_end(capture, transaction, instance, low))
    call.outputs["fcleanupfailed"] = 0
    try:
        await run(call, _CLEANUP, lambda transaction: delete_changes(capture, transaction, instance, end))
    except SqlError as failure:
        call.outputs["fcleanupfailed"] = 1
        command = f"delete top( @p1 ) from [cdc].[{instance.change_table.name}] where __$start_lsn < @p2"
        severity, text = MESSAGES[22852]
        said = text % (call.scope.database.name, command, failure.number, failure.message)
        yield Message(22852, 1, severity, said, _CLEANUP_WORK, 1)


_OF_VERSION: dict[str, Callable[[ProductVersion], object]] = {
    "maxtrans": lambda version: version.capture.scan_maxtrans,
    "maxscans": lambda version: version.capture.scan_maxscans,
    "threshold": lambda version: version.capture.threshold,
}


def _with_version(declared: SystemProcedure) -> SystemProcedure:
    """The procedure with the defaults that differ between versions."""
    parameters = tuple(replace(p, by_version=_OF_VERSION.get(p.name)) for p in declared.parameters)
    return replace(declared, parameters=parameters)


PROCEDURES = (
    _with_version(
        procedure(
            "sys.sp_cdc_scan",
            "@maxtrans int = 500, @maxscans int = 10, @continuous tinyint = 0, @pollinginterval bigint = 0, "
            "@is_from_job int = 0",
            _scan,
        )
    ),
    _with_version(
        procedure(
            "sys.sp_cdc_cleanup_change_table",
            "@capture_instance sysname, @low_water_mark binary(10), @threshold bigint = 5000, "
            "@fCleanupFailed bit = 0 OUTPUT",
            _cleanup_change_table,
        )
    ),
)
