"""Restores to an earlier point, and failovers with and without loss.

A restore brings back the database with its change data capture: LSNs after the point are used again, with other
content, and `recovery_fork_guid` changes [doc].
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, procedure, result_set
from mssql_sandbox.cdc.enable_database import disable_database
from mssql_sandbox.cdc.job_settings import JOB_TYPES
from mssql_sandbox.cdc.job_table import JobTable
from mssql_sandbox.cdc.metadata import own_transaction
from mssql_sandbox.cdc.scan_sessions import ScanHistory
from mssql_sandbox.engine.events import Event
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.incidents.image import Image

IDENTITY_CACHE = {"tinyint": 10, "smallint": 100, "int": 1000}
"""Identity values that a server reserves in memory and loses when it stops; 10 000 for wider types [?]."""
_WIDE_CACHE = 10_000


def _point_key(call: Call) -> tuple[int, str]:
    return call.scope.database.id, (call.text("point") or "").casefold()


async def _restore_point(call: Call) -> AsyncIterator[Event]:
    """Save the state of the database under a name; a later point with the same name replaces it."""
    scope = call.scope
    capture = scope.server.catalog.cdc.capture(scope.database)
    scope.server.catalog.restore_points[_point_key(call)] = Image(scope.database, capture)
    for event in result_set(columns("log_end_lsn binary(10)"), [(scope.database.log.end_lsn,)]):
        yield event


def _put_back(call: Call) -> Database:
    """Restore the database to the point, and end all other sessions in it.

    Raises:
        SqlError: 3021 within a transaction, 50000 when there is no such point.
    """
    scope = call.scope
    image: Image | None = scope.server.catalog.restore_points.get(_point_key(call))
    if image is None:
        known = sorted(name for number, name in scope.server.catalog.restore_points if number == scope.database.id)
        text = f"There is no restore point '{call.text('point')}' of database '{scope.database.name}'"
        raise SqlError(50000, f"{text}; known are {known or 'none'}. Make one with EXEC sandbox.restore_point.")
    if scope.session.transactions.current is not None:
        raise error(3021)
    _end_others(call)
    scope.server.replica.leave()
    image.put_back()
    database, cdc = image.database, scope.server.catalog.cdc
    database.recovery.fork_at(database.log.end_lsn)
    if image.capture is not None:
        cdc.add(image.capture)
    else:
        cdc.remove(database)
    for session in scope.server.sessions.values():
        session.routines.clear()
    return database


def _end_others(call: Call) -> None:
    """End all other sessions in the database."""
    for session in list(call.scope.server.sessions.values()):
        if session is not call.scope.session and session.current_database is call.scope.database:
            session.kill()


async def _restore(call: Call) -> AsyncIterator[Event]:
    database = _put_back(call)
    if not call.number("keep_cdc") and database.options.cdc_enabled:
        server = call.scope.server
        with own_transaction(server, "RESTORE") as transaction:
            disable_database(database, transaction)
        _drop_jobs(call, database)
        server.catalog.cdc.remove(database)
    return
    yield


def _drop_jobs(call: Call, database: Database) -> None:
    server = call.scope.server
    with own_transaction(server, "SQLServerAgent") as transaction:
        jobs = JobTable(server, transaction)
        for job_type in JOB_TYPES:
            jobs.drop(database, job_type)
    capture = server.catalog.cdc.capture(database)
    if capture is not None:
        server.catalog.cdc.agent.forget(capture)


async def _failover(call: Call) -> AsyncIterator[Event]:
    """Another server takes over: with the state of the named point if there is one, and without jobs by default."""
    scope = call.scope
    if call.text("point"):
        _put_back(call)
    else:
        _end_others(call)
        scope.server.replica.leave()
    for table in scope.database.tables():
        if table.identity_column is not None:
            lose_reserved_identities(table.identity_column)
    if not call.number("with_jobs"):
        _drop_jobs(call, scope.database)
    capture = scope.server.catalog.cdc.capture(scope.database)
    if capture is not None:
        capture.history = ScanHistory()
    scope.server.name = call.text("server_name") or scope.server.name
    return
    yield


def lose_reserved_identities(column: Column) -> None:
    """The next value comes from a new block: the numbers in between are never used [doc]."""
    identity = column.identity
    if identity is None or identity.last is None:
        return
    block = IDENTITY_CACHE.get(column.type.name, _WIDE_CACHE)
    used = (identity.last - identity.seed) // identity.increment + 1
    identity.last = identity.seed + identity.increment * (-(-used // block) * block - 1)


PROCEDURES = (
    procedure("sandbox.restore_point", "@point sysname = 'default'", _restore_point),
    procedure("sandbox.restore_database", "@point sysname = 'default', @keep_cdc bit = 1", _restore),
    procedure(
        "sandbox.failover",
        "@point sysname = NULL, @with_jobs bit = 0, @server_name sysname = NULL",
        _failover,
    ),
)
