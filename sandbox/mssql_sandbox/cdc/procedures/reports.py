"""`sys.sp_cdc_help_change_data_capture`, `sys.sp_cdc_get_captured_columns`, `sys.sp_cdc_get_ddl_history`."""

from __future__ import annotations

from collections.abc import AsyncIterator

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, procedure, result_set
from mssql_sandbox.catalog.measures import measures
from mssql_sandbox.cdc.functions import may_see
from mssql_sandbox.cdc.instances import CaptureInstance, DatabaseCapture
from mssql_sandbox.cdc.layout import DDL_HISTORY, LEADING
from mssql_sandbox.cdc.metadata import Metadata
from mssql_sandbox.cdc.names import bracket_list
from mssql_sandbox.cdc.procedures.common import require_capture, run
from mssql_sandbox.cdc_messages import cdc_error
from mssql_sandbox.engine.events import Event
from mssql_sandbox.engine.types import reported_name

_HELP = columns(
    "source_schema sysname?, source_table sysname?, capture_instance sysname?, object_id int?, source_object_id int?, "
    "start_lsn binary(10)?, end_lsn binary(10)?, supports_net_changes bit?, has_drop_pending bit?, role_name sysname?, "
    "index_name sysname?, filegroup_name sysname?, create_date datetime?, index_column_list nvarchar(max)?, "
    "captured_column_list nvarchar(max)?"
)
_INDEX_LIST = 13
_CAPTURED = columns(
    "source_schema sysname?, source_table sysname?, capture_instance sysname?, column_name sysname?, column_id int?, "
    "column_ordinal int?, data_type sysname?, character_maximum_length int?, numeric_precision tinyint?, "
    "numeric_precision_radix smallint?, numeric_scale int?, datetime_precision smallint?"
)
_DDL = columns(
    "source_schema sysname?, source_table sysname?, capture_instance sysname?, required_column_update bit?, "
    "ddl_command nvarchar(max)?, ddl_lsn binary(10)?, ddl_time datetime?"
)


def _help_row(instance: CaptureInstance) -> tuple:
    return (
        instance.source.schema.name,
        instance.source.name,
        instance.name,
        instance.change_table.object_id,
        instance.source.object_id,
        instance.start_lsn,
        None,
        int(instance.supports_net_changes),
        0,
        instance.role,
        instance.index_name,
        instance.filegroup,
        instance.create_date,
        bracket_list(instance.key) if instance.key else None,
        bracket_list(column.name for column in instance.columns),
    )


async def _help_change_data_capture(call: Call) -> AsyncIterator[Event]:
    name = "sp_cdc_help_change_data_capture"
    capture = require_capture(call, procedure=name)
    schema, table = call.text("source_schema"), call.text("source_name")
    if bool(schema) != bool(table):
        raise cdc_error(22972, procedure=name)
    instances = list(capture.instances.values())
    if schema and table:
        source = capture.database.table(schema, table)
        if source is None:
            raise cdc_error(22931, schema, table, procedure=name)
        instances = capture.of_source(source.object_id)
        if not instances:
            raise cdc_error(22985, schema, table, procedure=name)
    rows = [_help_row(instance) for instance in instances if may_see(call.scope, instance)]
    for event in result_set(_HELP, rows if schema else _with_lists_left_standing(rows)):
        yield event


def _with_lists_left_standing(rows: list[tuple]) -> list[tuple]:
    """For all tables, an instance without an index shows the columns of the previous one: a bug of the server [fab]."""
    shown: list[tuple] = []
    last: str | None = None
    for row in rows:
        last = row[_INDEX_LIST] or last
        shown.append((*row[:_INDEX_LIST], last, *row[_INDEX_LIST + 1 :]))
    return shown


def _visible(call: Call, capture: DatabaseCapture, name: str) -> CaptureInstance:
    """The instance of the `@capture_instance` argument; error 22981 if it is unknown or hidden."""
    instance = capture.named(call.text("capture_instance") or "")
    if instance is None or not may_see(call.scope, instance):
        raise cdc_error(22981, procedure=name)
    return instance


async def _get_captured_columns(call: Call) -> AsyncIterator[Event]:
    name = "sp_cdc_get_captured_columns"
    capture = require_capture(call, procedure=name)
    instance = _visible(call, capture, name)
    source_types = {column.column_id: column.type for column in instance.source.columns}
    rows = []
    for captured in instance.columns:
        kept = instance.change_table.columns[LEADING + captured.ordinal - 1].type
        type_ = source_types.get(captured.column_id, kept)
        sizes = measures(type_)
        rows.append(
            (
                instance.source.schema.name,
                instance.source.name,
                instance.name,
                captured.name,
                captured.column_id,
                captured.ordinal,
                reported_name(type_),
                sizes.characters,
                sizes.precision,
                sizes.radix,
                sizes.scale,
                sizes.fraction,
            )
        )
    for event in result_set(_CAPTURED, rows):
        yield event


async def _get_ddl_history(call: Call) -> AsyncIterator[Event]:
    name = "sp_cdc_get_ddl_history"
    capture = require_capture(call, procedure=name)
    instance = _visible(call, capture, name)
    records = await run(
        call, name, lambda transaction: list(Metadata(capture.database, transaction).records(DDL_HISTORY))
    )
    rows = [
        (
            instance.source.schema.name,
            instance.source.name,
            instance.name,
            record["required_column_update"],
            record["ddl_command"],
            record["ddl_lsn"],
            record["ddl_time"],
        )
        for record in records
        if record["object_id"] == instance.change_table.object_id
    ]
    for event in result_set(_DDL, rows):
        yield event


PROCEDURES = (
    procedure(
        "sys.sp_cdc_help_change_data_capture",
        "@source_schema sysname = NULL, @source_name sysname = NULL",
        _help_change_data_capture,
    ),
    procedure("sys.sp_cdc_get_captured_columns", "@capture_instance sysname", _get_captured_columns),
    procedure("sys.sp_cdc_get_ddl_history", "@capture_instance sysname", _get_ddl_history),
)
