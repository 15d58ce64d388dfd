"""`sys.sp_cdc_enable_table` and `sys.sp_cdc_disable_table`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from mssql_sandbox.catalog.definitions import Call, information, procedure
from mssql_sandbox.cdc.enable_table import EnableRequest, enable_table
from mssql_sandbox.cdc.instance_metadata import disable_instance
from mssql_sandbox.cdc.instances import CaptureInstance, DatabaseCapture
from mssql_sandbox.cdc.job_settings import JOB_TYPES, JobType, defaults
from mssql_sandbox.cdc.job_table import JobTable
from mssql_sandbox.cdc.layout import job_name
from mssql_sandbox.cdc.procedures.common import require_capture, require_owner, required_text, run, service
from mssql_sandbox.cdc_messages import AGENT_NOT_RUNNING, MESSAGES, cdc_error
from mssql_sandbox.engine.events import Event, Message
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError

_ENABLE = "sp_cdc_enable_table"
_DISABLE = "sp_cdc_disable_table"


async def _enable_table(call: Call) -> AsyncIterator[Event]:
    require_owner(call, procedure=_ENABLE)
    capture = require_capture(call, procedure=_ENABLE)
    if call.number("enable_extended_ddl_handling"):
        raise cdc_error(22874, procedure=_ENABLE)
    net = call.number("supports_net_changes")
    switch = call.number("allow_partition_switch")
    if switch is None:
        raise cdc_error(22844, "@allow_partition_switch", procedure=_ENABLE)
    role = call.text("role_name")
    if role is not None and role.casefold() == "null":
        role = None
    request = EnableRequest(
        source_schema=required_text(call, "source_schema", procedure=_ENABLE),
        source_name=required_text(call, "source_name", procedure=_ENABLE),
        capture_instance=call.text("capture_instance"),
        supports_net_changes=None if net is None else bool(net),
        role_name=role,
        index_name=call.text("index_name"),
        captured_column_list=call.text("captured_column_list"),
        filegroup_name=call.text("filegroup_name"),
        allow_partition_switch=bool(switch),
    )

    def enable(transaction: Transaction) -> tuple[CaptureInstance, list[JobType]]:
        return enable_table(capture, transaction, request), _add_missing_jobs(call, capture, transaction)

    try:
        instance, added = await run(call, _ENABLE, enable)
    except SqlError as failure:
        raise _wrapped(request, failure) from failure
    warning = _switch_warning(instance, allowed=bool(switch))
    if warning:
        severity, text = MESSAGES[warning]
        yield Message(warning, 1, severity, text, _ENABLE, 1)
    if not instance.masks and instance.supports_net_changes:
        severity, text = MESSAGES[22969]
        yield Message(22969, 1, severity, text, _ENABLE, 1)
    for event in _start_jobs(call, capture, added):
        yield event


_MAKING = frozenset({1701, 1702, 1919, 2705, 2714, 2716})
"""Errors of creating the change table and its functions."""


def _wrapped(request: EnableRequest, failure: SqlError) -> SqlError:
    """22832 about a failure while the instance was created [sys]; the checks before it have their own errors."""
    if failure.number not in _MAKING:
        return failure
    table = f"[{request.source_schema}].[{request.source_name}]"
    command = "[sys].[sp_cdc_create_change_table]"
    return cdc_error(22832, table, command, failure.number, failure.message, procedure="sp_cdc_enable_table_internal")


def _switch_warning(instance: CaptureInstance, *, allowed: bool) -> int:
    """Messages about switching partitions: 22855, 22856 for partitioned tables, 22857 or none for others."""
    if "partitioned" in instance.source.properties:
        return 22855 if allowed else 22856
    return 0 if allowed else 22857


def _add_missing_jobs(call: Call, capture: DatabaseCapture, transaction: Transaction) -> list[JobType]:
    """The first table of a database creates its two jobs."""
    jobs = JobTable(call.scope.server, transaction)
    missing: list[JobType] = [kind for kind in JOB_TYPES if jobs.job(capture.database, kind) is None]
    for kind in missing:
        jobs.add(capture.database, kind, defaults(call.scope.server.version)[kind])
    return missing


def _start_jobs(call: Call, capture: DatabaseCapture, added: list[JobType]) -> Iterator[Event]:
    """Start the added jobs and report it; if Agent is not running, its four refusals are sent instead [fab]."""
    server, agent = call.scope.server, service(call).agent
    settings = defaults(server.version)
    if added and not server.agent_running:
        for _ in range(4):
            yield information(AGENT_NOT_RUNNING)
        return
    for kind in added:
        if kind == "capture":
            agent.start(capture, "capture", settings["capture"])
        else:
            agent.schedule_cleanup(capture, settings["cleanup"])
        if server.version.is_azure:
            continue
        yield information(f"Job '{job_name(capture.database.name, kind)}' started successfully.")


async def _disable_table(call: Call) -> AsyncIterator[Event]:
    require_owner(call, procedure=_DISABLE)
    capture = require_capture(call, procedure=_DISABLE)
    schema = required_text(call, "source_schema", procedure=_DISABLE)
    name = required_text(call, "source_name", procedure=_DISABLE)
    wanted = required_text(call, "capture_instance", procedure=_DISABLE)
    table = capture.database.table(schema, name)
    if table is None:
        raise cdc_error(22931, schema, name, procedure=_DISABLE)
    instances = capture.of_source(table.object_id)
    if wanted.casefold() != "all":
        if not instances:
            raise cdc_error(22985, schema, name, procedure=_DISABLE)
        named = capture.named(wanted)
        if named is None or named not in instances:
            raise cdc_error(22960, wanted, schema, name, procedure="sp_cdc_verify_capture_instance")
        instances = [named]

    def disable(transaction: Transaction) -> None:
        for instance in instances:
            disable_instance(capture, transaction, instance)
        if not capture.instances:
            jobs = JobTable(call.scope.server, transaction)
            for kind in JOB_TYPES:
                jobs.drop(capture.database, kind)

    await run(call, _DISABLE, disable)
    if not capture.instances:
        service(call).agent.forget(capture)
    return
    yield  # an async generator without events


PROCEDURES = (
    procedure(
        "sys.sp_cdc_enable_table",
        "@source_schema sysname, @source_name sysname, @capture_instance nvarchar(4000) = NULL, "
        "@supports_net_changes bit = NULL, @role_name sysname, @index_name sysname = NULL, "
        "@captured_column_list nvarchar(max) = NULL, @filegroup_name sysname = NULL, "
        "@allow_partition_switch bit = 1, @enable_extended_ddl_handling bit = 0",
        _enable_table,
    ),
    procedure(
        "sys.sp_cdc_disable_table",
        "@source_schema sysname, @source_name sysname, @capture_instance sysname",
        _disable_table,
    ),
)
