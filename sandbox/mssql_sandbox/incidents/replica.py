"""A readable secondary on demand: connections with `ApplicationIntent=ReadOnly` read from it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from mssql_sandbox.catalog.definitions import Call, procedure
from mssql_sandbox.engine.events import Event


async def _lag(call: Call) -> AsyncIterator[Event]:
    call.scope.server.replica.follow(float(call.arguments["seconds"]))  # type: ignore[arg-type]
    return
    yield


async def _freeze(call: Call) -> AsyncIterator[Event]:
    call.scope.server.replica.freeze()
    return
    yield


async def _disconnect(call: Call) -> AsyncIterator[Event]:
    server = call.scope.server
    server.replica.disconnect(database.log for database in server.databases.values())
    return
    yield


async def _drop(call: Call) -> AsyncIterator[Event]:
    call.scope.server.replica.leave()
    return
    yield


PROCEDURES = (
    procedure("sandbox.replica_lag", "@seconds float = 0", _lag),
    procedure("sandbox.replica_freeze", "", _freeze),
    procedure("sandbox.replica_disconnect", "", _disconnect),
    procedure("sandbox.replica_drop", "", _drop),
)
