"""The progress of a current table: the `_batch` of its change log that it has reached, kept as a txn in its own log."""

from __future__ import annotations

from deltalake import DeltaTable

from mssql_cdc.lake.opened import open_table
from mssql_cdc.lake.table_log import TableLog
from mssql_cdc.schema.tables import TableSchema


def applied_batch(log: TableLog, newest: TableSchema) -> int:
    """The `_batch` that a current table has reached; it starts over with another key, and after a user's RESTORE."""
    if log.restored is not None:
        return 0
    if log.unreadable:
        return progress(open_table(log.uri, log.storage, version=log.version), newest)
    return log.txn(progress_id(log.table_id, newest))


def progress(table: DeltaTable, newest: TableSchema) -> int:
    """Return the `_batch` that an open current table has reached; it starts over with another key."""
    return table.transaction_version(progress_id(table.metadata().id, newest)) or 0


def progress_id(table_id: object, newest: TableSchema) -> str:
    """The app id of a current table's progress among its txns."""
    return f"{table_id}:{newest.key_id}"
