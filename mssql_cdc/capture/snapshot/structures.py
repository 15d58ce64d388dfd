"""Keeps the structure of the tables that are not captured, as the initial snapshot of a database finds them (SNP-19).

They are only described in records: they are not captured, not checked, and not assets.
"""

from __future__ import annotations

from datetime import UTC, datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.structures import record_structures
from mssql_cdc.source.protocol import SourceSession


def keep_structures(database: Database, session: SourceSession, offsets: Offsets) -> None:
    """Keep the structures that the connector wants described, before the first snapshot of the database begins.

    Args:
        database: The database.
        session: A session on the source.
        offsets: The offsets before the snapshot.
    """
    if offsets.snapshot_rows:
        return
    captured = {table.table_id for table in session.tables()}
    describes = database.connector.describes
    found = [one for one in session.structures() if one.table_id not in captured and describes(*one.table_id.parts)]
    if found:
        record_structures(database.layout, found, at=datetime.now(UTC), storage=database.storage)
