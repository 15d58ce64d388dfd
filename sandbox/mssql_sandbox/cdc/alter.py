"""How the capture job handles DDL in the log: history rows and changed column types.

Rules: §1.8 of the product's documentation on DDL and change data capture [doc]; the rest [fab][est].
"""

from __future__ import annotations

from dataclasses import replace

from mssql_sandbox.cdc.instances import Captured, CaptureInstance, DatabaseCapture
from mssql_sandbox.cdc.layout import CAPTURED_COLUMNS, LEADING
from mssql_sandbox.cdc.metadata import Metadata, Record
from mssql_sandbox.cdc_messages import cdc_error
from mssql_sandbox.engine.conversion import assigner
from mssql_sandbox.engine.log import DdlChange
from mssql_sandbox.engine.storage import alter
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.types import SqlType, make_type, reported_name
from mssql_sandbox.errors import SqlError


def captured_type(type_: SqlType) -> SqlType:
    """The type of a captured column in the change table: rowversion becomes binary(8), others are unchanged [doc]."""
    return make_type("binary", 8) if type_.name == "rowversion" else type_


def follow_ddl(
    capture: DatabaseCapture, metadata: Metadata, change: DdlChange, instances: list[CaptureInstance]
) -> None:
    """Apply one DDL statement to all capture instances of its table; its history rows become pending."""
    for instance in instances:
        update = 0
        if instance.start_lsn < change.lsn:
            if change.kind == "alter column":
                update = int(_alter_column(capture, metadata, instance, change))
            _apply(metadata, instance, change)
        _remember(capture, instance, change, update)


def _remember(capture: DatabaseCapture, instance: CaptureInstance, change: DdlChange, update: int) -> None:
    """Add the pending history row; a statement over several columns has one row."""
    row = (instance.source.object_id, instance.change_table.object_id, update, change.command, change.lsn, change.time)
    same = [old for old in capture.pending_ddl if (old[1], old[3], old[5]) == (row[1], row[3], row[5])]
    if not same:
        capture.pending_ddl.append(row)


def _apply(metadata: Metadata, instance: CaptureInstance, change: DdlChange) -> None:
    before = list(instance.layout)

    def undo() -> None:
        instance.layout = before
        instance.resolve()

    metadata.transaction.on_undo(undo)
    instance.apply(change)


def _new_column(change: DdlChange) -> Column | None:
    """The column after ALTER COLUMN; the log's details are this column, or the pair of old and new."""
    details = change.details[-1] if isinstance(change.details, tuple) else change.details
    return details if isinstance(details, Column) else None


def _alter_column(capture: DatabaseCapture, metadata: Metadata, instance: CaptureInstance, change: DdlChange) -> bool:
    """Change the column's type in the change table; returns whether that was necessary.

    A failure becomes rows of `sys.dm_cdc_errors`.
    """
    column = _new_column(change)
    captured = instance.captured(column.column_id) if column is not None else None
    if column is None or captured is None:
        return False
    place = LEADING + captured.ordinal - 1
    current = instance.change_table.columns[place]
    wanted = captured_type(column.type)
    if wanted == current.type:
        return False
    table = instance.change_table
    convert = assigner(current.type, wanted, table=table.long_name, column=current.name)
    try:
        alter.alter_column(table, metadata.transaction, _with_type(current, wanted), convert)
    except SqlError as failure:
        _note_failure(capture, metadata, instance, captured, change, failure)
        return False
    _retype(metadata, instance, captured, column)
    return True


def _with_type(column: Column, type_: SqlType) -> Column:
    return replace(column, type=type_)


def _note_failure(
    capture: DatabaseCapture,
    metadata: Metadata,
    instance: CaptureInstance,
    captured: Captured,
    change: DdlChange,
    failure: SqlError,
) -> None:
    now = metadata.transaction.manager.clock.local_datetime()
    table, source = instance.change_table.name, instance.source.name
    wrapped = cdc_error(22976, captured.name, table, source, source, procedure="sp_cdc_scan")
    for error in (failure, wrapped):
        capture.history.fail(now, error.number, error.severity, error.state, error.message, change.lsn.hex())


def _retype(metadata: Metadata, instance: CaptureInstance, captured: Captured, column: Column) -> None:
    """Record the new type in `cdc.captured_columns` and in the instance."""
    object_id = instance.change_table.object_id

    def same(record: Record) -> bool:
        return record["object_id"] == object_id and record["column_ordinal"] == captured.ordinal

    metadata.update(CAPTURED_COLUMNS, same, column_type=reported_name(column.type))
    old_kind, new_kind = captured.kind, Captured.of(column, captured.ordinal).kind

    def undo() -> None:
        captured.kind = old_kind
        instance.resolve()

    metadata.transaction.on_undo(undo)
    captured.kind = new_kind
    instance.resolve()
