"""`sp_describe_first_result_set` and `sp_describe_undeclared_parameters`, for drivers that prepare statements.

`catalog.inference` and `catalog.first_result` compute the answer; these procedures only lay out the columns. The source
of a column is reported in browse mode only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, procedure, result_set
from mssql_sandbox.catalog.first_result import result_columns
from mssql_sandbox.catalog.inference import Type, parameter_types
from mssql_sandbox.catalog.views.columns import type_ids
from mssql_sandbox.engine.events import Event, Message
from mssql_sandbox.engine.types import ResultColumn, SqlType, declaration, max_length
from mssql_sandbox.errors import SqlError

FIRST = columns(
    "is_hidden bit, column_ordinal int, name sysname?, is_nullable bit, system_type_id int, "
    "system_type_name nvarchar(256)?, max_length smallint, precision tinyint, scale tinyint, collation_name sysname?, "
    "user_type_id int?, user_type_database sysname?, user_type_schema sysname?, user_type_name sysname?, "
    "assembly_qualified_type_name nvarchar(4000)?, xml_collection_id int?, xml_collection_database sysname?, "
    "xml_collection_schema sysname?, xml_collection_name sysname?, is_xml_document bit, is_case_sensitive bit, "
    "is_fixed_length_clr_type bit, source_server sysname?, source_database sysname?, source_schema sysname?, "
    "source_table sysname?, source_column sysname?, is_identity_column bit?, is_part_of_unique_key bit?, "
    "is_updateable bit?, is_computed_column bit?, is_sparse_column_set bit?, ordinal_in_order_by_list smallint?, "
    "order_by_is_descending smallint?, order_by_list_length smallint?, tds_type_id int, tds_length int, "
    "tds_collation_id int?, tds_collation_sort_id tinyint?"
)
_PARAMETERS = columns(
    "parameter_ordinal int, name sysname, suggested_system_type_id int, suggested_system_type_name nvarchar(256)?, "
    "suggested_max_length smallint, suggested_precision tinyint, suggested_scale tinyint, "
    "suggested_user_type_id int?, suggested_user_type_database sysname?, suggested_user_type_schema sysname?, "
    "suggested_user_type_name sysname?, suggested_assembly_qualified_type_name nvarchar(4000)?, "
    "suggested_xml_collection_id int?, suggested_xml_collection_database sysname?, "
    "suggested_xml_collection_schema sysname?, suggested_xml_collection_name sysname?, suggested_is_xml_document bit, "
    "suggested_is_case_sensitive bit, suggested_is_fixed_length_clr_type bit, suggested_is_input bit, "
    "suggested_is_output bit, formal_parameter_name sysname?, suggested_tds_type_id int, suggested_tds_length int"
)
_TDS = {
    "bit": 104, "tinyint": 38, "smallint": 38, "int": 38, "bigint": 38, "real": 109, "float": 109, "money": 110,
    "smallmoney": 110, "decimal": 106, "numeric": 108, "datetime": 111, "smalldatetime": 111, "date": 40, "time": 41,
    "datetime2": 42, "datetimeoffset": 43, "uniqueidentifier": 36, "char": 175, "varchar": 167, "nchar": 239,
    "nvarchar": 231, "binary": 173, "varbinary": 165, "rowversion": 173, "text": 35, "ntext": 99, "image": 34,
    "xml": 241, "sql_variant": 98, "hierarchyid": 240, "geometry": 240, "geography": 240,
}  # fmt: skip
_TABLE_TYPE, _SYNTAX = 243, 15


def _tds(type_: SqlType) -> tuple[int, int]:
    """The type id and length on the wire; 65535 for (max)."""
    length = max_length(type_)
    return _TDS[type_.name], 65535 if length < 0 else 17 if type_.name in ("decimal", "numeric") else length


def result_row(ordinal: int, column: ResultColumn, *, browse: bool) -> tuple:
    """The row of `FIRST` for one column."""
    type_ = column.type
    collation = type_.collation.name if type_.collation is not None else None
    from_table = browse and bool(column.table)
    source = (*(None,) * (4 - len(column.table)), *column.table)[-4:] if from_table else (None,) * 4
    return (
        0,
        ordinal,
        column.name or None,
        int(column.nullable),
        type_ids(type_)[0],
        declaration(type_),
        max_length(type_),
        type_.precision,
        type_.scale,
        collation,
        *(None,) * 9,
        0,
        0,
        0,
        *source,
        column.name if from_table else None,
        int(column.identity),
        None,
        int(not column.computed and not column.identity),
        int(column.computed),
        0,
        None,
        None,
        None,
        *_tds(type_),
        13632521 if collation else None,
        52 if collation else None,
    )


def _parameter_row(ordinal: int, name: str, type_: Type) -> tuple:
    if not isinstance(type_, SqlType):
        own = (None, type_.database, type_.schema, type_.name)
        nothing = (None,) * 5
        return (ordinal, name, _TABLE_TYPE, None, -1, 0, 0, *own, *nothing, 0, 0, 0, 1, 0, None, _TABLE_TYPE, -1)
    return (
        ordinal,
        name,
        type_ids(type_)[0],
        declaration(type_),
        max_length(type_),
        type_.precision,
        type_.scale,
        *(None,) * 9,
        0,
        0,
        0,
        1,
        0,
        None,
        *_tds(type_),
    )


async def _first_result_set(call: Call) -> AsyncIterator[Event]:
    try:
        described = result_columns(call.scope.session, call.text("tsql") or "", call.text("params") or "")
    except SqlError as failure:
        yield Message(failure.number, failure.state, failure.severity, failure.message, "", max(failure.line, 1))
        raise _undetermined(failure) from failure
    browse = bool(call.number("browse_information_mode"))
    rows = [result_row(ordinal, column, browse=browse) for ordinal, column in enumerate(described, 1)]
    for event in result_set(FIRST, rows):
        yield event


def _undetermined(failure: SqlError) -> SqlError:
    """The error after the reason: 11501 if the text does not compile at all, else 11529."""
    if failure.severity == _SYNTAX:
        return SqlError(11501, "The batch could not be analyzed because of compile errors.")
    return SqlError(
        11529, "The metadata could not be determined because every code path results in an error; see previous errors "
        "for some of these."
    )  # fmt: skip


async def _undeclared_parameters(call: Call) -> AsyncIterator[Event]:
    found = parameter_types(call.scope.session, call.text("tsql") or "", call.text("params") or "")
    rows = [_parameter_row(ordinal, name, type_) for ordinal, (name, type_) in enumerate(found, 1)]
    for event in result_set(_PARAMETERS, rows):
        yield event


PROCEDURES = (
    procedure(
        "sys.sp_describe_first_result_set",
        "@tsql nvarchar(max), @params nvarchar(max) = NULL, @browse_information_mode tinyint = 0",
        _first_result_set,
    ),
    procedure(
        "sys.sp_describe_undeclared_parameters",
        "@tsql nvarchar(max), @params nvarchar(max) = NULL",
        _undeclared_parameters,
    ),
)
