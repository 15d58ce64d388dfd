"""Parameters and results of procedures and functions: `sys.parameters`, INFORMATION_SCHEMA's routines [doc]."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.catalog.measures import measures
from mssql_sandbox.catalog.relations import MODULES, columns_of, parameters_of
from mssql_sandbox.catalog.views.columns import type_ids
from mssql_sandbox.catalog.views.information_schema import COLUMN_SHAPE, character_set, column_shape
from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.types import SqlType, max_length, reported_name

_TABLE_TYPE = 243
_FUNCTIONS = frozenset({"FN", "IF", "TF"})


def _modules(scope: Scope) -> Iterator[SchemaObject]:
    for item in scope.objects():
        if item.type_code in MODULES:
            yield item


def _parameters(scope: Scope) -> Iterator[tuple]:
    for item in _modules(scope):
        for parameter in parameters_of(scope.session, scope.database, item):
            type_ = parameter.type
            if type_ is None:
                shape: tuple = (_TABLE_TYPE, _TABLE_TYPE, -1, 0, 0)
            else:
                shape = (*type_ids(type_, scope.database), max_length(type_), type_.precision, type_.scale)
            own = (item.object_id, parameter.name, parameter.number, *shape)
            yield (*own, int(parameter.output), int(type_ is None), int(parameter.number > 0))


def _type_shape(type_: SqlType | None) -> tuple:
    """From DATA_TYPE to DATETIME_PRECISION, as far as INFORMATION_SCHEMA's routines and parameters show it."""
    if type_ is None:
        return ("table type", *(None,) * 8)
    sizes = measures(type_)
    collation = type_.collation.name if type_.collation is not None else None
    return (
        reported_name(type_), sizes.characters, sizes.octets, collation, character_set(type_), sizes.precision,
        sizes.radix, sizes.scale, sizes.fraction,
    )  # fmt: skip


def _parameters_shown(scope: Scope) -> Iterator[tuple]:
    for item in _modules(scope):
        for parameter in parameters_of(scope.session, scope.database, item):
            result = parameter.number == 0
            mode = "OUT" if result else "INOUT" if parameter.output else "IN"
            place = (scope.database.name, item.schema.name, item.name, parameter.number, mode)
            yield (*place, "YES" if result else "NO", parameter.name, *_type_shape(parameter.type))


def _routines(scope: Scope) -> Iterator[tuple]:
    for item in _modules(scope):
        place = (scope.database.name, item.schema.name, item.name)
        function = item.type_code in _FUNCTIONS
        returned = next((p for p in parameters_of(scope.session, scope.database, item) if p.number == 0), None)
        shape: tuple = (None,) * 9
        if item.type_code in ("IF", "TF"):
            shape = ("TABLE", *(None,) * 8)
        elif returned is not None:
            shape = _type_shape(returned.type)
        text = item.text if item.text and len(item.text) <= _SHOWN else None
        told = ("FUNCTION" if function else "PROCEDURE", *shape, text, "READS" if function else "MODIFIES")
        null_call = "NO" if item.type_code == "FN" else None
        yield (*place, *place, *told, null_call, 0 if function else -1, item.create_date, item.modify_date)


_SHOWN = 4000


def _routine_columns(scope: Scope) -> Iterator[tuple]:
    for item in _modules(scope):
        for ordinal, column in enumerate(columns_of(scope.session, scope.database, item), 1):
            yield (scope.database.name, item.schema.name, item.name, *column_shape(scope.database, column, ordinal))


_PARAMETER = (
    "object_id int, name sysname?, parameter_id int, system_type_id tinyint, user_type_id int, max_length smallint, "
    "precision tinyint, scale tinyint, is_output bit, is_cursor_ref bit = 0, has_default_value bit = 0, "
    "is_xml_document bit = 0, default_value sql_variant? = NULL, xml_collection_id int = 0, is_readonly bit, "
    "is_nullable bit?, encryption_type int? = NULL, encryption_type_desc nvarchar(64)? = NULL, "
    "encryption_algorithm_name sysname? = NULL, column_encryption_key_id int? = NULL, "
    "column_encryption_key_database_name sysname? = NULL"
)
_SPECIFIC = "SPECIFIC_CATALOG nvarchar(128)?, SPECIFIC_SCHEMA nvarchar(128)?, SPECIFIC_NAME nvarchar(128)"
_SHAPE = (
    "DATA_TYPE nvarchar(128)?, CHARACTER_MAXIMUM_LENGTH int?, CHARACTER_OCTET_LENGTH int?, "
    "COLLATION_CATALOG nvarchar(128)? = NULL, COLLATION_SCHEMA nvarchar(128)? = NULL, COLLATION_NAME nvarchar(128)?, "
    "CHARACTER_SET_CATALOG nvarchar(128)? = NULL, CHARACTER_SET_SCHEMA nvarchar(128)? = NULL, "
    "CHARACTER_SET_NAME nvarchar(128)?, NUMERIC_PRECISION tinyint?, NUMERIC_PRECISION_RADIX smallint?, "
    "NUMERIC_SCALE int?, DATETIME_PRECISION smallint?, INTERVAL_TYPE nvarchar(30)? = NULL, "
    "INTERVAL_PRECISION smallint? = NULL"
)
VIEWS = (
    view("sys.parameters", _PARAMETER, _parameters, about="object_id"),
    view("sys.all_parameters", _PARAMETER, _parameters, about="object_id"),
    view(
        "INFORMATION_SCHEMA.PARAMETERS",
        _SPECIFIC + ", ORDINAL_POSITION int, PARAMETER_MODE nvarchar(10)?, IS_RESULT nvarchar(10)?, "
        "AS_LOCATOR nvarchar(10)? = 'NO', PARAMETER_NAME nvarchar(128)?, " + _SHAPE + ", "
        "USER_DEFINED_TYPE_CATALOG nvarchar(128)? = NULL, USER_DEFINED_TYPE_SCHEMA nvarchar(128)? = NULL, "
        "USER_DEFINED_TYPE_NAME nvarchar(128)? = NULL, SCOPE_CATALOG nvarchar(128)? = NULL, "
        "SCOPE_SCHEMA nvarchar(128)? = NULL, SCOPE_NAME nvarchar(128)? = NULL",
        _parameters_shown,
    ),
    view(
        "INFORMATION_SCHEMA.ROUTINES",
        _SPECIFIC + ", ROUTINE_CATALOG nvarchar(128)?, ROUTINE_SCHEMA nvarchar(128)?, ROUTINE_NAME nvarchar(128), "
        "ROUTINE_TYPE nvarchar(20)?, MODULE_CATALOG nvarchar(128)? = NULL, MODULE_SCHEMA nvarchar(128)? = NULL, "
        "MODULE_NAME nvarchar(128)? = NULL, UDT_CATALOG nvarchar(128)? = NULL, UDT_SCHEMA nvarchar(128)? = NULL, "
        "UDT_NAME nvarchar(128)? = NULL, " + _SHAPE + ", TYPE_UDT_CATALOG nvarchar(128)? = NULL, "
        "TYPE_UDT_SCHEMA nvarchar(128)? = NULL, TYPE_UDT_NAME nvarchar(128)? = NULL, "
        "SCOPE_CATALOG nvarchar(128)? = NULL, SCOPE_SCHEMA nvarchar(128)? = NULL, SCOPE_NAME nvarchar(128)? = NULL, "
        "MAXIMUM_CARDINALITY bigint? = NULL, DTD_IDENTIFIER nvarchar(128)? = NULL, ROUTINE_BODY nvarchar(30)? = 'SQL', "
        "ROUTINE_DEFINITION nvarchar(4000)?, EXTERNAL_NAME nvarchar(128)? = NULL, "
        "EXTERNAL_LANGUAGE nvarchar(30)? = NULL, PARAMETER_STYLE nvarchar(30)? = NULL, "
        "IS_DETERMINISTIC nvarchar(10)? = 'NO', SQL_DATA_ACCESS nvarchar(30)?, IS_NULL_CALL nvarchar(10)?, "
        "SQL_PATH nvarchar(128)? = NULL, SCHEMA_LEVEL_ROUTINE nvarchar(10)? = 'YES', "
        "MAX_DYNAMIC_RESULT_SETS smallint?, IS_USER_DEFINED_CAST nvarchar(10)? = 'NO', "
        "IS_IMPLICITLY_INVOCABLE nvarchar(10)? = 'NO', CREATED datetime?, LAST_ALTERED datetime?",
        _routines,
    ),
    view(
        "INFORMATION_SCHEMA.ROUTINE_COLUMNS",
        "TABLE_CATALOG nvarchar(128)?, TABLE_SCHEMA nvarchar(128)?, TABLE_NAME nvarchar(128)?, " + COLUMN_SHAPE,
        _routine_columns,
    ),
)
