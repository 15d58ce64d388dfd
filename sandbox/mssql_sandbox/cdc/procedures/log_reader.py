"""`sp_repltrans`, `sp_repldone` and `sp_replflush`: the position of the log reader, shared with replication.

Change data capture reads the log as replication does; other tools that read it (AWS DMS, Datastream) move the position
themselves. Changes that are marked as done before capture has read them never reach the change tables [doc].
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, procedure, result_set
from mssql_sandbox.cdc.instances import DatabaseCapture
from mssql_sandbox.cdc.procedures.common import service
from mssql_sandbox.cdc.procedures.scanning import require_publisher
from mssql_sandbox.cdc_messages import cdc_error
from mssql_sandbox.engine.events import Event
from mssql_sandbox.engine.log import CommittedTransaction

_TRANSACTIONS = columns("xdesid binary(10)?, xact_seqno binary(10)?")


def _capture(call: Call, *, procedure: str) -> DatabaseCapture:
    """The capture of the current database, without which its log has no reader: error 18757 [doc]."""
    require_publisher(call)
    capture = service(call).capture(call.scope.database)
    if capture is None:
        raise cdc_error(18757, procedure=procedure)
    return capture


def _unread(capture: DatabaseCapture) -> list[CommittedTransaction]:
    log = capture.database.log
    return log.read(capture.position, log.end_position)


async def _repltrans(call: Call) -> AsyncIterator[Event]:
    """First and last LSN of the transactions that are not read yet."""
    capture = _capture(call, procedure="sp_repltrans")
    for event in result_set(_TRANSACTIONS, [(one.begin_lsn, one.commit_lsn) for one in _unread(capture)]):
        yield event


async def _repldone(call: Call) -> AsyncIterator[Event]:
    """Mark transactions as read: all with `@reset = 1`, else those up to `@xact_seqno` [doc].

    With `@reset = 0` and no LSN the position returns to the first unmarked transaction, where it already is.
    """
    capture = _capture(call, procedure="sp_repldone")
    if service(call).agent.is_running(capture, "capture"):
        raise cdc_error(18752, procedure="sp_repldone")
    last = call.arguments["xact_seqno"]
    if isinstance(last, bytes):
        done = sum(one.commit_lsn <= last.ljust(10, b"\0") for one in _unread(capture))
    else:
        done = len(_unread(capture)) if call.number("reset") else 0
    capture.position += done
    capture.database.log.truncate(capture.position)
    return
    yield  # an async generator without events


async def _replflush(call: Call) -> AsyncIterator[Event]:
    """Nothing to release: a scan does not hold the log after it has ended."""
    _capture(call, procedure="sp_replflush")
    return
    yield  # an async generator without events


PROCEDURES = (
    procedure("sys.sp_repltrans", "", _repltrans),
    procedure(
        "sys.sp_repldone",
        "@xactid binary(10), @xact_seqno binary(10), @numtrans int = 0, @time int = 0, @reset int = 0",
        _repldone,
    ),
    procedure("sys.sp_replflush", "", _replflush),
)
