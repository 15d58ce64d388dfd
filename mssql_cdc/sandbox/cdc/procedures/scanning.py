"""`sys.sp_cdc_scan` and `sys.sp_cdc_cleanup_change_table`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from mssql_cdc.sandbox.catalog.definitions import Call, SystemProcedure, procedure
from mssql_cdc.sandbox.cdc.agent import run_scans
from mssql_cdc.sandbox.cdc.cleanup import cleanup_instance
from mssql_cdc.sandbox.cdc.job_settings import MAX_POLLING
from mssql_cdc.sandbox.cdc.messages import cdc_error
from mssql_cdc.sandbox.cdc.procedures.common import require_capture, require_owner, required_text, run, service
from mssql_cdc.sandbox.engine.events import Event
from mssql_cdc.sandbox.engine.product import ProductVersion

_CLEANUP = "sp_cdc_cleanup_change_table"


async def _scan(call: Call) -> AsyncIterator[Event]:
    """Up to `@maxscans` passes, for ever when continuous; works with the Agent stopped [fab]."""
    name = "sp_cdc_scan"
    capture = require_capture(call, procedure=name)
    require_owner(call, procedure=name)
    continuous, polling = call.number("continuous") or 0, call.number("pollinginterval") or 0
    maxtrans, maxscans = call.number("maxtrans"), call.number("maxscans")
    if continuous not in (0, 1):
        raise cdc_error(22998, procedure=name)
    if not continuous and polling:
        raise cdc_error(22999, procedure=name)
    if not 0 <= polling <= MAX_POLLING:
        raise cdc_error(22990, procedure=name)
    if maxtrans is None or maxtrans <= 0:
        raise cdc_error(22991, procedure=name)
    if maxscans is None or maxscans <= 0:
        raise cdc_error(22970, procedure=name)
    if continuous and service(call).agent.is_running(capture, "capture"):
        raise cdc_error(22903, call.scope.session.spid, procedure="sp_replcmds")
    while True:
        run_scans(capture, maxtrans=maxtrans, maxscans=maxscans)
        if not continuous:
            return
        await call.scope.server.clock.sleep(max(polling, 0.01))
    yield  # an async generator without events


async def _cleanup_change_table(call: Call) -> AsyncIterator[Event]:
    require_owner(call, procedure=_CLEANUP)
    capture = service(call).capture(call.scope.database)
    if capture is None:
        raise cdc_error(22910, call.scope.database.name, procedure=_CLEANUP)
    threshold = call.number("threshold")
    if threshold is None or threshold <= 0:
        raise cdc_error(22850, procedure=_CLEANUP)
    instance = capture.named(required_text(call, "capture_instance", procedure=_CLEANUP))
    if instance is None:
        raise cdc_error(22981, procedure=_CLEANUP)
    mark = call.arguments["low_water_mark"]
    low = mark if isinstance(mark, bytes) else None
    await run(call, _CLEANUP, lambda transaction: cleanup_instance(capture, transaction, instance, low))
    call.outputs["fcleanupfailed"] = 0
    return
    yield  # an async generator without events


_OF_VERSION: dict[str, Callable[[ProductVersion], object]] = {
    "maxtrans": lambda version: version.capture.scan_maxtrans,
    "maxscans": lambda version: version.capture.scan_maxscans,
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
    procedure(
        "sys.sp_cdc_cleanup_change_table",
        "@capture_instance sysname, @low_water_mark binary(10), @threshold bigint = 5000, "
        "@fCleanupFailed bit = NULL OUTPUT",
        _cleanup_change_table,
    ),
)
