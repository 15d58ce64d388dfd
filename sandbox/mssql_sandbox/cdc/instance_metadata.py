"""The rows of a capture instance in the metadata tables: inserted when it is enabled, deleted with it."""

from __future__ import annotations

from mssql_sandbox.cdc import layout
from mssql_sandbox.cdc.instances import CaptureInstance, DatabaseCapture
from mssql_sandbox.cdc.metadata import Metadata
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.types import reported_name


def write_metadata(metadata: Metadata, instance: CaptureInstance, index: Index | None) -> None:
    """Insert the metadata rows of an instance; `index` identifies its rows."""
    source = instance.source
    object_id = instance.change_table.object_id
    metadata.insert(
        layout.CHANGE_TABLES,
        (
            object_id,
            0,
            source.object_id,
            instance.name,
            instance.start_lsn,
            None,
            int(instance.supports_net_changes),
            0,
            instance.role,
            instance.index_name,
            instance.filegroup,
            instance.create_date,
            int(instance.partition_switch),
        ),
    )
    by_id = {column.column_id: column for column in source.columns}
    metadata.insert(
        layout.CAPTURED_COLUMNS,
        *(
            (
                object_id,
                captured.name,
                captured.column_id,
                reported_name(by_id[captured.column_id].type),
                captured.ordinal,
                int(captured.kind == "computed"),
                by_id[captured.column_id].masking,
            )
            for captured in instance.columns
        ),
    )
    if index is not None:
        keyed = [source.column(name) for name, _ in index.columns]
        rows = [(object_id, c.name, number, c.column_id) for number, c in enumerate(keyed, 1) if c is not None]
        metadata.insert(layout.INDEX_COLUMNS, *rows)
    _backfill_ddl(metadata, instance)


def _backfill_ddl(metadata: Metadata, instance: CaptureInstance) -> None:
    """An instance inherits the DDL history of an older instance of the same source [fab]."""
    source_id, object_id = instance.source.object_id, instance.change_table.object_id
    older = {
        record["ddl_lsn"]: record
        for record in metadata.records(layout.DDL_HISTORY)
        if record["source_object_id"] == source_id
    }
    metadata.insert(layout.DDL_HISTORY, *(tuple({**r, "object_id": object_id}.values()) for r in older.values()))


def disable_instance(capture: DatabaseCapture, transaction: Transaction, instance: CaptureInstance) -> None:
    """Drop an instance: change table, functions and metadata rows; the source stays tracked while another exists."""
    database, source = capture.database, instance.source
    metadata = Metadata(database, transaction)
    object_id = instance.change_table.object_id
    for table in (layout.CHANGE_TABLES, layout.CAPTURED_COLUMNS, layout.INDEX_COLUMNS, layout.DDL_HISTORY):
        metadata.delete(table, lambda record: record["object_id"] == object_id)
    database.drop_object(transaction, instance.change_table)
    functions = (layout.ALL_CHANGES + instance.name, layout.NET_CHANGES + instance.name)
    for name in (*functions, *layout.instance_procedures(object_id)):
        module = database.find(layout.SCHEMA, name)
        if module is not None:
            database.drop_object(transaction, module)
    pending = capture.pending_ddl
    marks = [(column, column.replicated) for column in source.columns]

    def undo() -> None:
        capture.instances[object_id] = instance
        capture.pending_ddl = pending
        source.tracked = True
        for column, mark in marks:
            column.replicated = mark

    transaction.on_undo(undo)
    del capture.instances[object_id]
    capture.pending_ddl = [row for row in pending if row[1] != object_id]
    left = {column.column_id for other in capture.of_source(source.object_id) for column in other.columns}
    source.tracked = bool(capture.of_source(source.object_id))
    for column in source.columns:
        column.replicated = column.column_id in left
