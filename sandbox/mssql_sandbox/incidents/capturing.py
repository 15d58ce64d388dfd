"""A capture job that fails on demand: its scans raise errors and capture nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator

from mssql_sandbox.catalog.definitions import Call, procedure
from mssql_sandbox.cdc_messages import MESSAGES, cdc_error
from mssql_sandbox.engine.events import Event
from mssql_sandbox.errors import SqlError


async def _fail(call: Call) -> AsyncIterator[Event]:
    """Make the next `@times` scans fail; without a message they use the documented text of the number.

    Raises:
        SqlError: 22901, the database is not enabled.
    """
    scope = call.scope
    capture = scope.server.catalog.cdc.capture(scope.database)
    if capture is None:
        raise cdc_error(22901, scope.database.name, procedure="sandbox")
    number = call.number("number") or 0
    text = call.text("message") or MESSAGES.get(number, (16, f"Error {number} was ordered for this scan."))[1]
    for _ in range(call.number("times") or 0):
        capture.failures.append(SqlError(number, text, procedure="sp_replcmds"))
    return
    yield


PROCEDURES = (
    procedure("sandbox.capture_fail", "@number int = 22859, @message nvarchar(1024) = NULL, @times int = 1", _fail),
)
