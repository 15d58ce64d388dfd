"""`sys.sp_cdc_enable_db` and `sys.sp_cdc_disable_db` (also under RDS's names in msdb)."""

from __future__ import annotations

from collections.abc import AsyncIterator

from mssql_sandbox.catalog.definitions import Call, procedure
from mssql_sandbox.cdc.enable_database import disable_database, enable_database
from mssql_sandbox.cdc.job_table import JobTable
from mssql_sandbox.cdc.layout import SCHEMA
from mssql_sandbox.cdc.procedures.common import require_owner, require_sysadmin, run, service
from mssql_sandbox.cdc_messages import MESSAGES, cdc_error
from mssql_sandbox.engine.events import Event, Message
from mssql_sandbox.engine.transaction import Transaction

_ENABLE = "sp_cdc_enable_db_internal"


def _require_rights(call: Call, *, procedure: str) -> None:
    """Sysadmin; db_owner is enough in Azure SQL Database [doc]."""
    check = require_owner if call.scope.server.version.is_azure else require_sysadmin
    check(call, procedure=procedure)


async def _enable_db(call: Call) -> AsyncIterator[Event]:
    """Checks in the server's order [sys]: rights, containment, system database, already enabled (a message), names."""
    database = call.scope.database
    _require_rights(call, procedure="sp_cdc_enable_db")
    if database.properties.get("containment", "NONE") != "NONE":
        raise cdc_error(12839, database.name, procedure="sp_cdc_enable_db")
    if database.is_system:
        raise cdc_error(22989, database.name, procedure=_ENABLE)
    if database.options.cdc_enabled:
        severity, text = MESSAGES[22905]
        yield Message(22905, 1, severity, text % database.name, _ENABLE, 1)
        return
    if database.properties.get("delayed_durability", "DISABLED") != "DISABLED":
        raise cdc_error(22891, "Change Data Capture", database.name, "Change Data Capture", procedure=_ENABLE)
    if SCHEMA in database.schemas or SCHEMA in database.principals:
        raise cdc_error(22906, database.name, procedure=_ENABLE)
    cdc = service(call)

    def enable(transaction: Transaction) -> None:
        transaction.on_undo(lambda: cdc.remove(database))
        cdc.add(enable_database(database, transaction))

    await run(call, "sp_cdc_enable_db", enable)


async def _disable_db(call: Call) -> AsyncIterator[Event]:
    database = call.scope.database
    _require_rights(call, procedure="sp_cdc_disable_db")
    if not database.options.cdc_enabled:
        _, text = MESSAGES[22901]
        yield Message(22901, 1, 10, text % database.name, "sp_cdc_disable_db", 1)
        return
    cdc = service(call)
    capture = cdc.capture(database)

    def restore() -> None:
        if capture is not None:
            cdc.add(capture)

    def disable(transaction: Transaction) -> None:
        jobs = JobTable(call.scope.server, transaction)
        jobs.drop(database, "capture")
        jobs.drop(database, "cleanup")
        disable_database(database, transaction)
        transaction.on_undo(restore)
        cdc.remove(database)

    await run(call, "sp_cdc_disable_db", disable)


PROCEDURES = (
    procedure("sys.sp_cdc_enable_db", "@fCreateCDCUserImplicit bit = 1", _enable_db),
    procedure("sys.sp_cdc_disable_db", "", _disable_db),
)
