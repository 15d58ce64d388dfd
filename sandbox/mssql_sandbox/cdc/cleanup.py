"""Removing old changes: the cleanup job and `sp_cdc_cleanup_change_table`.

The job's low-water mark is relative to the newest captured commit, not to now [doc]. One transaction raises the
instances below it, the next removes the rows.
"""

from __future__ import annotations

from mssql_sandbox.cdc.instances import CaptureInstance, DatabaseCapture
from mssql_sandbox.cdc.layout import CHANGE_TABLES, LSN_TIME_MAPPING
from mssql_sandbox.cdc.metadata import Metadata, own_transaction
from mssql_sandbox.cdc_messages import cdc_error
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction

_DATETIME_PER_MINUTE = 300 * 60
PROCEDURE = "sp_cdc_cleanup_change_table"


def retention_mark(metadata: Metadata, minutes: int) -> bytes | None:
    """The new low-water mark of the cleanup job: the last commit at least `minutes` before the newest one."""
    newest = metadata.newest_time()
    if newest is None:
        return None
    limit = newest - minutes * _DATETIME_PER_MINUTE
    return metadata.lsn_by_time(limit, below=True, inclusive=True)


def run_cleanup(capture: DatabaseCapture, retention_minutes: int) -> bytes | None:
    """One run of the cleanup job; returns the mark, or None if nothing is old enough."""
    server = capture.database.server
    with own_transaction(server, "CDC cleanup") as transaction:
        metadata = Metadata(capture.database, transaction)
        mark = retention_mark(metadata, retention_minutes)
        if mark is None:
            return None
        for instance in capture.instances.values():
            if instance.start_lsn < mark:
                _raise_low_end(metadata, instance, mark)
    with own_transaction(server, "CDC cleanup") as transaction:
        metadata = Metadata(capture.database, transaction)
        for instance in capture.instances.values():
            _delete_below(transaction, metadata, instance.change_table, mark)
        _delete_mappings(capture, metadata, mark)
    capture.commit_times.clear()
    return mark


def require_mapped(capture: DatabaseCapture, transaction: Transaction, mark: bytes | None) -> tuple | None:
    """The row of the mapping for a mark; None without a mark.

    Raises:
        SqlError: 22964, the mark is no `start_lsn` of the mapping.
    """
    if mark is None:
        return None
    row = Metadata(capture.database, transaction).mapping(mark)
    if row is None:
        raise cdc_error(22964, "0X" + mark.hex().upper(), procedure=PROCEDURE)
    return row


def raise_low_end(
    capture: DatabaseCapture, transaction: Transaction, instance: CaptureInstance, mark: bytes | None
) -> bytes:
    """Raise the low-water mark of one instance to `mark` (None: keep it), and delete the changes below it."""
    metadata = Metadata(capture.database, transaction)
    low = instance.start_lsn
    row = None if mark is None else require_mapped(capture, transaction, mark)
    if mark is not None and row is not None:
        low = metadata.lsn_by_time(row[2], below=False, inclusive=True) or mark
        if low > instance.start_lsn:
            _raise_low_end(metadata, instance, low)
    return low


def delete_changes(capture: DatabaseCapture, transaction: Transaction, instance: CaptureInstance, low: bytes) -> int:
    """Delete an instance's changes below `low`; returns the number of rows."""
    return _delete_below(transaction, Metadata(capture.database, transaction), instance.change_table, low)


def _raise_low_end(metadata: Metadata, instance: CaptureInstance, mark: bytes) -> None:
    object_id, before = instance.change_table.object_id, instance.start_lsn
    metadata.update(CHANGE_TABLES, lambda record: record["object_id"] == object_id, start_lsn=mark)

    def undo() -> None:
        instance.start_lsn = before

    metadata.transaction.on_undo(undo)
    instance.start_lsn = mark


def _delete_below(transaction: Transaction, metadata: Metadata, table: Table, mark: bytes) -> int:
    view = metadata.view(for_update=True)
    rowids = [rowid for slice_ in table.scan_entries(view, high=(mark,), high_inclusive=False) for rowid, _ in slice_]
    table.delete(transaction, rowids)
    return len(rowids)


def _delete_mappings(capture: DatabaseCapture, metadata: Metadata, mark: bytes) -> None:
    """Delete mapping rows below the lowest end point of all instances."""
    lowest = min((instance.start_lsn for instance in capture.instances.values()), default=mark)
    _delete_below(metadata.transaction, metadata, metadata.table(LSN_TIME_MAPPING), min(lowest, mark))
