"""What another connector's snapshots have not read yet when it is taken over: requested again, or reported as missing.

Its offset names the tables of an unfinished incremental snapshot, beginning with the one that is being read. They are
read whole: the last key that it read is a Java object.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import REQUESTED, SignalRow, note_signal
from mssql_cdc.config.filters import spoken_name
from mssql_cdc.config.signals import expand_collections
from mssql_cdc.records.source_offsets import INCREMENTAL, Remaining, SourceOffset
from mssql_cdc.schema import TableId

_CHANNEL = "take-over"


def request_remaining(database: Database, offset: SourceOffset, tables: Collection[TableId]) -> None:
    """Request the rest of an incremental snapshot, as signals; log what is not read.

    Args:
        database: A database without a lake.
        offset: The position of the other connector.
        tables: The captured tables.
    """
    for one in offset.remaining:
        found, _ = expand_collections([one.collection], [table.parts for table in tables])
        if not found:
            database.log(f"the incremental snapshot of {one.collection} is not continued: it is not captured")
        for name in found:
            _request(database, one, spoken_name(name), offset.correlation or str(uuid.uuid4()))
    if offset.snapshot == INCREMENTAL:
        database.log(
            "the offset is that of a row of an incremental snapshot, and does not name its tables: rows that were not "
            "read are missing. If the snapshot was not finished, send its signal execute-snapshot again"
        )
    elif offset.is_unfinished_snapshot:
        database.log(
            "a blocking snapshot was not finished, and is not repeated: its rows that were not read are missing. "
            "Take it again: mssql-cdc snapshot"
        )


def _request(database: Database, one: Remaining, table: str, signal_id: str) -> None:
    data: dict[str, object] = {"type": "incremental", "data-collections": [table]}
    if one.condition:
        data["additional-conditions"] = [{"data-collection": table, "filter": one.condition}]
    if one.surrogate:
        data["surrogate-key"] = one.surrogate
    where = f" where {one.condition}" if one.condition else ""
    what = f"an incremental snapshot of {table}{where}, which was not finished"
    note_signal(database, SignalRow(signal_id, "execute-snapshot", json.dumps(data)), _CHANNEL, REQUESTED, what)
    database.log(f"requested {what}")
