"""Creating a capture instance: checks, change table, functions. Its metadata rows are written by `instance_metadata`.

The caller (`procedures`) has checked the database and the caller's rights; this module checks what concerns the table
and the instance, in the server's order [sys].
"""

from __future__ import annotations

from dataclasses import dataclass

from mssql_sandbox.catalog.columns import layout as column_layout
from mssql_sandbox.cdc import layout
from mssql_sandbox.cdc.alter import captured_type
from mssql_sandbox.cdc.enable_database import Tool
from mssql_sandbox.cdc.instance_metadata import write_metadata
from mssql_sandbox.cdc.instances import Captured, CaptureInstance, DatabaseCapture
from mssql_sandbox.cdc.metadata import Metadata
from mssql_sandbox.cdc.names import split_column_list
from mssql_sandbox.cdc_messages import cdc_error
from mssql_sandbox.engine.storage import index_changes
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.columnstore import clustered_columnstore
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.objects import Principal
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, error

PROCEDURE = "sp_cdc_enable_table_internal"


@dataclass(frozen=True, slots=True)
class EnableRequest:
    """The arguments of `sys.sp_cdc_enable_table`; None where the caller passed none."""

    source_schema: str
    source_name: str
    capture_instance: str | None = None
    supports_net_changes: bool | None = None
    role_name: str | None = None
    index_name: str | None = None
    captured_column_list: str | None = None
    filegroup_name: str | None = None
    allow_partition_switch: bool = True


def enable_table(capture: DatabaseCapture, transaction: Transaction, request: EnableRequest) -> CaptureInstance:
    """Check the request and create the instance (errors 22931, 22974, 22926, 22932, 22927, 22962, 22939, 229xx)."""
    source = _source(capture, request)
    name = _instance_name(capture, source, request)
    columns = _captured_columns(source, request)
    filegroup = _filegroup(capture, request)
    index = _key_index(source, request)
    net = _net_changes(source, request, index)
    _check_key(source, index, columns, net=net)
    if request.role_name is not None:
        _gate(capture, transaction, request.role_name)
    table = _create_change_table(capture, transaction, name, columns, index if net else None)
    instance = _register(capture, transaction, request, source, table, name, columns, index, net=net)
    instance.filegroup = filegroup
    instance.partition_switch = request.allow_partition_switch or "partitioned" not in source.properties
    write_metadata(Metadata(capture.database, transaction), instance, index)
    tool = Tool(capture.database, transaction)
    for name_ in layout.instance_procedures(table.object_id):
        tool.procedure(name_)
    tool.function(layout.ALL_CHANGES + name, shipped=False, properties={"capture_instance": name})
    if net:
        tool.function(layout.NET_CHANGES + name, shipped=False, properties={"capture_instance": name})
    return instance


def _source(capture: DatabaseCapture, request: EnableRequest) -> Table:
    schema, name = request.source_schema, request.source_name
    table = capture.database.table(schema, name)
    if table is None or table.kind != "user":
        raise cdc_error(22931, schema, name, procedure=PROCEDURE)
    if table.schema.name.casefold() == layout.SCHEMA:
        raise cdc_error(22974, procedure=PROCEDURE)
    if "memory_optimized" in table.properties:
        raise SqlError(
            10794, "The feature 'Change Data Capture' is not supported with memory optimized tables.",
            procedure=PROCEDURE,
        )  # fmt: skip
    columnstore = clustered_columnstore(table)
    if columnstore is not None:
        raise error(35353, feature="Change data capture", index=columnstore.name, table=table.name)
    return table


def _filegroup(capture: DatabaseCapture, request: EnableRequest) -> str | None:
    """The filegroup of the change table; it must exist in the database."""
    name = request.filegroup_name
    known = capture.database.properties.get("filegroups", ["PRIMARY"])
    if name is not None and name.casefold() not in {group.casefold() for group in known}:
        raise cdc_error(22973, name, capture.database.name, procedure=PROCEDURE)
    return name


def _instance_name(capture: DatabaseCapture, source: Table, request: EnableRequest) -> str:
    given = request.capture_instance
    name = (given if given is not None else f"{source.schema.name}_{source.name}").rstrip()
    if not name or "\0" in name:
        raise cdc_error(22932, name, procedure=PROCEDURE)
    if len(name) > layout.MAX_INSTANCE_NAME:
        raise cdc_error(22927, name, procedure=PROCEDURE)
    if len(capture.of_source(source.object_id)) >= 2:
        raise cdc_error(22962, source.schema.name, source.name, procedure=PROCEDURE)
    if capture.named(name) is not None:
        raise cdc_error(22926, name, procedure=PROCEDURE)
    return name


def _captured_columns(source: Table, request: EnableRequest) -> list[Column]:
    schema, name = source.schema.name, source.name
    if request.captured_column_list is None:
        columns = list(source.columns)
    else:
        wanted = split_column_list(request.captured_column_list, procedure=PROCEDURE)
        columns = []
        for text in wanted:
            column = source.column(text)
            if column is None:
                raise cdc_error(22930, text, schema, name, procedure=PROCEDURE)
            columns.append(column)
        if not columns or len({id(column) for column in columns}) < len(columns):
            raise cdc_error(22942, schema, name, procedure=PROCEDURE)
        columns.sort(key=lambda column: column.column_id)
    if any(column.name.casefold() in layout.RESERVED_COLUMN_NAMES for column in columns):
        raise cdc_error(22975, name, procedure=PROCEDURE)
    if len(columns) > layout.MAX_CAPTURED_COLUMNS:
        raise cdc_error(22925, request.capture_instance or name, layout.MAX_CAPTURED_COLUMNS, procedure=PROCEDURE)
    return columns


def _key_index(source: Table, request: EnableRequest) -> Index | None:
    """The index that identifies rows: the given one, else the primary key's."""
    if request.index_name is None:
        return source.primary_key
    schema, name = source.schema.name, source.name
    index = source.index(request.index_name)
    if index is None:
        raise cdc_error(22928, request.index_name, schema, name, procedure=PROCEDURE)
    if not index.unique:
        raise cdc_error(22929, index.name, schema, name, procedure=PROCEDURE)
    if index.disabled:
        raise cdc_error(22980, index.name, schema, name, procedure=PROCEDURE)
    if any(column is not None and column.nullable for column in _columns_of(source, index)):
        raise cdc_error(22838, index.name, schema, name, procedure=PROCEDURE)
    return index


def _columns_of(source: Table, index: Index) -> list[Column | None]:
    return [source.column(name) for name, _ in index.columns]


def _net_changes(source: Table, request: EnableRequest, index: Index | None) -> bool:
    if request.supports_net_changes is None:
        return index is not None
    if request.supports_net_changes and index is None:
        raise cdc_error(22939, procedure=PROCEDURE)
    if request.supports_net_changes and index is not None and len(index.columns) > layout.MAX_KEY_COLUMNS:
        raise cdc_error(22865, index.name, source.schema.name, source.name, procedure=PROCEDURE)
    return request.supports_net_changes


def _check_key(source: Table, index: Index | None, columns: list[Column], *, net: bool) -> None:
    if index is None or not net:
        return
    if any(all(column is not other for other in columns) for column in _columns_of(source, index)):
        raise cdc_error(22943, procedure=PROCEDURE)


def _gate(capture: DatabaseCapture, transaction: Transaction, role: str) -> None:
    """Create the gating role if it does not exist."""
    if not role.strip():
        raise cdc_error(22907, procedure=PROCEDURE)
    principals = capture.database.principals
    known = principals.get(role)
    if known is None:
        now = capture.database.server.clock.local_datetime()
        number = capture.database.next_principal_id()
        principals[role] = Principal(role, number, "R", None, create_date=now)
        transaction.on_undo(lambda: principals.pop(role))
    elif known.type_code != "R":
        raise cdc_error(22938, role, procedure=PROCEDURE)


def _create_change_table(
    capture: DatabaseCapture, transaction: Transaction, name: str, columns: list[Column], net_index: Index | None
) -> Table:
    def system(specification: str) -> list[Column]:
        return [Column(c.name, c.type, nullable=c.nullable) for c in column_layout(specification).columns]

    command_id = capture.database.server.version.capture.command_id
    all_columns = [
        *system(layout.LEADING_COLUMNS),
        *(Column(c.name, captured_type(c.type), nullable=True, masking=c.masking) for c in columns),
        *system(layout.trailing_columns(command_id=command_id)),
    ]
    table = capture.database.create_table(
        transaction, layout.SCHEMA, layout.change_table_name(name), all_columns, is_ms_shipped=True
    )
    order = tuple((column, False) for column in layout.change_table_key(command_id=command_id))
    clustered = Index(layout.clustered_index_name(name), 0, order, unique=True, clustered=True)
    index_changes.add_index(table, transaction, clustered)
    if net_index is not None:
        key = (*net_index.columns, *order)
        index_changes.add_index(
            table,
            transaction,
            Index(layout.net_index_name(name), 0, key, unique=True, included=("__$update_mask",)),
        )
    return table


def _register(
    capture: DatabaseCapture,
    transaction: Transaction,
    request: EnableRequest,
    source: Table,
    table: Table,
    name: str,
    columns: list[Column],
    index: Index | None,
    *,
    net: bool,
) -> CaptureInstance:
    """Register the instance in memory and mark the source as tracked; a rollback undoes both."""
    instance = CaptureInstance(
        name=name,
        source=source,
        change_table=table,
        start_lsn=transaction.log_part(capture.database).instance_enabled(source.object_id),
        create_date=capture.database.server.clock.local_datetime(),
        columns=[Captured.of(column, ordinal) for ordinal, column in enumerate(columns, 1)],
        layout=[column.column_id for column in source.columns],
        key=tuple(column for column, _ in index.columns) if index is not None else (),
        supports_net_changes=net,
        role=request.role_name,
        index_name=index.name if index is not None else None,
        masks=bool(capture.database.server.config["clr enabled"]),
    )
    tracked, marks = source.tracked, [(column, column.replicated) for column in columns]

    def undo() -> None:
        capture.instances.pop(table.object_id, None)
        source.tracked = tracked
        for column, mark in marks:
            column.replicated = mark

    transaction.on_undo(undo)
    capture.instances[table.object_id] = instance
    source.tracked = True
    for column in columns:
        column.replicated = True
    return instance
