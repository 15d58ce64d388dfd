"""Answers requests for blocking snapshots of which no table can be read: all are excluded, or gone for good.

A table that may come back, since a permission is missing or its loss was not acknowledged, keeps its request waiting.
"""

from __future__ import annotations

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.notifications import Notifier
from mssql_cdc.capture.requests import id_of
from mssql_cdc.capture.survey import Survey
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.steps import signal_answered


def answer_unread_requests(database: Database, seen: Survey) -> bool:
    """Answer requests none of whose tables is captured with SKIPPED, as Debezium does; return whether there were any.

    Args:
        database: The database.
        seen: A survey of the source.

    Raises:
        FencedError: Another run has begun a new epoch.
    """
    if seen.facts.restored is not None:
        return False  # Only the next epoch shows which tables there are.
    tables = {*seen.tables, *(absent.table for absent in seen.facts.absent)}
    left = [request for request in seen.requests if not request.of(tables)]
    offsets = seen.offsets
    for request in left:
        stamp = database.stamp(seen.facts.epoch)
        row = signal_answered(stamp, snapshot=request.key, signal=request.signal_id)
        offsets = append_offsets(database.layout, row, seen=offsets, storage=database.storage)
        names = ", ".join(request.action.collections)
        database.log(f"signal {id_of(request.signal_id)} is ignored: none of its tables is captured: {names}")
        notifier = Notifier(database, id_of(request.signal_id))
        notifier.add("SKIPPED")
        notifier.flush()
    return bool(left)
