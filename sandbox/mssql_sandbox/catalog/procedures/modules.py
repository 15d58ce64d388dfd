"""`sp_stored_procedures`, `sp_sproc_columns`, `sp_sproc_columns_100`: procedures and parameters for ODBC and JDBC."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from mssql_sandbox.catalog.columns import column_type, columns
from mssql_sandbox.catalog.definitions import Call, SystemProcedure, procedure, result_set
from mssql_sandbox.catalog.odbc_columns import odbc_column
from mssql_sandbox.catalog.procedures.patterns import check_qualifier, name_test
from mssql_sandbox.catalog.relations import parameters_of
from mssql_sandbox.engine.events import Event
from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.exec.security import sees_object

_PROCEDURES = columns(
    "PROCEDURE_QUALIFIER sysname?, PROCEDURE_OWNER sysname?, PROCEDURE_NAME nvarchar(134), NUM_INPUT_PARAMS int, "
    "NUM_OUTPUT_PARAMS int, NUM_RESULT_SETS int, REMARKS varchar(254)?, PROCEDURE_TYPE smallint"
)
_COMMON = (
    "PROCEDURE_QUALIFIER sysname?, PROCEDURE_OWNER sysname?, PROCEDURE_NAME nvarchar(134), COLUMN_NAME sysname, "
    "COLUMN_TYPE smallint, DATA_TYPE smallint, TYPE_NAME sysname, PRECISION int?, LENGTH int?, SCALE smallint?, "
    "RADIX smallint?, NULLABLE smallint, REMARKS varchar(254)?, COLUMN_DEF nvarchar(4000)?, SQL_DATA_TYPE smallint, "
    "SQL_DATETIME_SUB smallint?, CHAR_OCTET_LENGTH int?, ORDINAL_POSITION int, IS_NULLABLE varchar(254)"
)
_COLUMNS_OLD = columns(_COMMON + ", SS_DATA_TYPE tinyint")
_COLUMNS_NEW = columns(
    _COMMON + ", SS_TYPE_CATALOG_NAME sysname?, SS_TYPE_SCHEMA_NAME sysname?, SS_UDT_CATALOG_NAME sysname?, "
    "SS_UDT_SCHEMA_NAME sysname?, SS_UDT_ASSEMBLY_TYPE_NAME nvarchar(max)?, SS_XML_SCHEMACOLLECTION_CATALOG_NAME "
    "sysname?, SS_XML_SCHEMACOLLECTION_SCHEMA_NAME sysname?, SS_XML_SCHEMACOLLECTION_NAME sysname?, "
    "SS_DATA_TYPE tinyint"
)
_PROCEDURE, _FUNCTION = 1, 2
_NUMBERS = {"P": _PROCEDURE, "FN": _FUNCTION, "IF": _FUNCTION, "TF": _FUNCTION}
_INPUT, _INPUT_OUTPUT, _RETURN_VALUE = 1, 2, 5
_STATUS = column_type("int")


def _modules(call: Call, name: str, owner: str) -> list[SchemaObject]:
    """Procedures and functions of the current database whose names match."""
    patterns = call.arguments.get("fusepattern") in (None, 1)
    fits_name = name_test(call.text(name), patterns=patterns)
    fits_owner = name_test(call.text(owner), patterns=patterns)
    found = [
        item for item in call.scope.database.objects()
        if item.type_code in _NUMBERS and item.definition is not None
        and fits_name(item.name) and fits_owner(item.schema.name)
        and sees_object(call.scope.session, call.scope.database, item)
    ]  # fmt: skip
    return sorted(found, key=lambda item: (item.schema.name, item.name))


def _shown(item: SchemaObject) -> str:
    """The name with its number: 1 for procedures, 0 for functions."""
    return f"{item.name};{1 if _NUMBERS[item.type_code] == _PROCEDURE else 0}"


async def _stored_procedures(call: Call) -> AsyncIterator[Event]:
    check_qualifier(call, "sp_qualifier")
    rows = [
        (call.scope.database.name, item.schema.name, _shown(item), -1, -1, -1, None, _NUMBERS[item.type_code])
        for item in _modules(call, "sp_name", "sp_owner")
    ]
    for event in result_set(_PROCEDURES, rows):
        yield event


def _parameters(call: Call, item: SchemaObject) -> Iterator[tuple[int, str, int, SqlType]]:
    """(ordinal, name, kind, type) of a module, the return value first; table-valued parameters are left out."""
    if item.type_code == "P":
        yield 0, "@RETURN_VALUE", _RETURN_VALUE, _STATUS
    for parameter in parameters_of(call.scope.session, call.scope.database, item):
        if parameter.number == 0 and parameter.type is not None:
            yield 0, "@RETURN_VALUE", _RETURN_VALUE, parameter.type
        elif parameter.type is not None:
            yield parameter.number, parameter.name, _INPUT_OUTPUT if parameter.output else _INPUT, parameter.type


def _rows(call: Call, *, new: bool) -> Iterator[tuple]:
    fits = name_test(call.text("column_name"), patterns=call.arguments.get("fusepattern") in (None, 1))
    for item in _modules(call, "procedure_name", "procedure_owner"):
        for ordinal, name, kind, type_ in _parameters(call, item):
            if not fits(name):
                continue
            nullable = kind != _RETURN_VALUE
            shape = odbc_column(type_, nullable=nullable, identity=False, odbc_version=call.number("odbcver") or 2)
            yield (
                call.scope.database.name, item.schema.name, _shown(item), name, kind, shape.data_type,
                shape.type_name, shape.precision, shape.length, shape.scale, shape.radix, int(nullable), None, None,
                shape.sql_data_type, shape.sql_datetime_sub, shape.char_octet_length, ordinal,
                "YES" if nullable else "NO", *((None,) * 8 if new else ()), shape.ss_data_type,
            )  # fmt: skip


def _columns(name: str, *, new: bool) -> SystemProcedure:
    async def run(call: Call) -> AsyncIterator[Event]:
        check_qualifier(call, "procedure_qualifier")
        for event in result_set(_COLUMNS_NEW if new else _COLUMNS_OLD, list(_rows(call, new=new))):
            yield event

    arguments = (
        "@procedure_name nvarchar(390) = N'%', @procedure_owner nvarchar(384) = NULL, @procedure_qualifier sysname = "
        "NULL, @column_name nvarchar(384) = NULL, @ODBCVer int = 2, @fUsePattern bit = 1"
    )
    return procedure(f"sys.{name}", arguments, run)


PROCEDURES = (
    procedure(
        "sys.sp_stored_procedures",
        "@sp_name nvarchar(390) = NULL, @sp_owner nvarchar(384) = NULL, @sp_qualifier sysname = NULL, "
        "@fUsePattern bit = 1",
        _stored_procedures,
    ),
    _columns("sp_sproc_columns", new=False),
    _columns("sp_sproc_columns_90", new=True),
    _columns("sp_sproc_columns_100", new=True),
)
