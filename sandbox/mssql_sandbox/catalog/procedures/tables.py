"""`sp_tables`, `sp_columns`, `sp_columns_90`, `sp_columns_100`: tables and columns for ODBC and JDBC."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from mssql_sandbox.catalog import views
from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, SystemProcedure, procedure, result_set
from mssql_sandbox.catalog.odbc_columns import odbc_column
from mssql_sandbox.catalog.procedures.patterns import check_qualifier, name_test
from mssql_sandbox.catalog.relations import columns_of
from mssql_sandbox.engine.events import Event
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import ResultColumn
from mssql_sandbox.exec.security import sees_object

_TABLES = columns(
    "TABLE_QUALIFIER sysname?, TABLE_OWNER sysname?, TABLE_NAME sysname?, TABLE_TYPE varchar(32)?, "
    "REMARKS varchar(254)?"
)
_COLUMNS_COMMON = (
    "TABLE_QUALIFIER sysname?, TABLE_OWNER sysname?, TABLE_NAME sysname, COLUMN_NAME sysname, DATA_TYPE smallint, "
    "TYPE_NAME sysname, PRECISION int?, LENGTH int?, SCALE smallint?, RADIX smallint?, NULLABLE smallint, "
    "REMARKS varchar(254)?, COLUMN_DEF nvarchar(4000)?, SQL_DATA_TYPE smallint, SQL_DATETIME_SUB smallint?, "
    "CHAR_OCTET_LENGTH int?, ORDINAL_POSITION int, IS_NULLABLE varchar(254)"
)
_COLUMNS_OLD = columns(_COLUMNS_COMMON + ", SS_DATA_TYPE tinyint")
_COLUMNS_NEW = columns(
    _COLUMNS_COMMON
    + ", SS_IS_SPARSE smallint?, SS_IS_COLUMN_SET smallint?, SS_IS_COMPUTED smallint?, SS_IS_IDENTITY smallint?, "
    "SS_UDT_CATALOG_NAME sysname?, SS_UDT_SCHEMA_NAME sysname?, SS_UDT_ASSEMBLY_TYPE_NAME nvarchar(max)?, "
    "SS_XML_SCHEMACOLLECTION_CATALOG_NAME sysname?, SS_XML_SCHEMACOLLECTION_SCHEMA_NAME sysname?, "
    "SS_XML_SCHEMACOLLECTION_NAME sysname?, SS_DATA_TYPE tinyint"
)
_TYPES = ("TABLE", "VIEW", "SYSTEM TABLE")


def _wanted_types(text: str | None) -> set[str]:
    """The types of a list such as `'TABLE','VIEW'`; a missing or empty list means all."""
    if not text:
        return set(_TYPES)
    return {part.strip().strip("'").upper() for part in text.split(",")}


def _enumeration(call: Call) -> list[tuple] | None:
    """ODBC's special calls: all databases, all schemas, all table types."""
    name, owner = call.arguments["table_name"], call.arguments["table_owner"]
    qualifier, kind = call.arguments["table_qualifier"], call.arguments["table_type"]
    if qualifier == "%" and name == "" and owner == "":
        return [(database.name, None, None, None, None) for database in call.scope.server.databases.values()]
    if owner == "%" and name == "" and qualifier == "":
        return [(None, schema.name, None, None, None) for schema in call.scope.database.schemas.values()]
    if kind == "%" and name == "" and owner == "" and qualifier == "":
        return [(None, None, None, known, None) for known in sorted(_TYPES)]
    return None


async def _tables(call: Call) -> AsyncIterator[Event]:
    rows = _enumeration(call)
    if rows is None:
        check_qualifier(call, "table_qualifier")
        rows = sorted(_table_rows(call), key=lambda row: (row[3], row[0], row[1], row[2]))
    for event in result_set(_TABLES, rows):
        yield event


def _table_rows(call: Call) -> Iterator[tuple]:
    patterns = call.number("fusepattern") != 0
    fits_name = name_test(call.text("table_name"), patterns=patterns)
    fits_owner = name_test(call.text("table_owner"), patterns=patterns)
    wanted = _wanted_types(call.text("table_type"))
    database = call.scope.database
    for item in database.objects():
        kind = "TABLE" if isinstance(item, Table) else "VIEW" if item.type_code == "V" else ""
        if isinstance(item, Table) and item.kind == "system":
            kind = "SYSTEM TABLE"
        named = kind in wanted and fits_name(item.name) and fits_owner(item.schema.name)
        if named and sees_object(call.scope.session, database, item):
            yield (database.name, item.schema.name, item.name, kind, None)
    if "VIEW" in wanted:
        for system in views.VIEWS:
            if fits_name(system.name) and fits_owner(system.schema):
                yield (database.name, system.schema, system.name, "VIEW", None)


def _column_rows(call: Call, *, new: bool) -> Iterator[tuple]:
    patterns = call.arguments.get("fusepattern") in (None, 1)
    fits_name = name_test(call.text("table_name"), patterns=patterns)
    fits_owner = name_test(call.text("table_owner"), patterns=patterns)
    fits_column = name_test(call.text("column_name"), patterns=patterns)
    version = call.number("odbcver") or 2
    items = [item for item in call.scope.database.objects() if isinstance(item, Table) or item.type_code == "V"]
    items = [item for item in items if fits_name(item.name) and fits_owner(item.schema.name)]
    items = [item for item in items if sees_object(call.scope.session, call.scope.database, item)]
    for item in sorted(items, key=lambda item: (item.schema.name, item.name)):
        for ordinal, column in enumerate(columns_of(call.scope.session, call.scope.database, item), 1):
            if fits_column(column.name):
                head = (call.scope.database.name, item.schema.name, item.name)
                yield _column_row(head, column, ordinal, version=version, new=new)


def _column_row(head: tuple, column: Column | ResultColumn, ordinal: int, *, version: int, new: bool) -> tuple:
    identity, computed = bool(column.identity), bool(column.computed)
    shape = odbc_column(column.type, nullable=column.nullable, identity=identity, odbc_version=version)
    default = getattr(column, "default", None)
    common = (
        *head,
        column.name,
        shape.data_type,
        shape.type_name,
        shape.precision,
        shape.length,
        shape.scale,
        shape.radix,
        int(column.nullable),
        None,
        default.text if default is not None else None,
        shape.sql_data_type,
        shape.sql_datetime_sub,
        shape.char_octet_length,
        ordinal,
        "YES" if column.nullable else "NO",
    )
    if not new:
        return (*common, shape.ss_data_type)
    sparse = int(getattr(column, "sparse", False))
    udt = column.type.name if shape.data_type == -151 else None
    udt_names = (None, "sys" if udt else None, f"Microsoft.SqlServer.Types.Sql{udt.capitalize()}" if udt else None)
    return (*common, sparse, 0, int(computed), int(identity), *udt_names, None, None, None, shape.ss_data_type)


def _columns(name: str, arguments: str, *, new: bool) -> SystemProcedure:
    async def run(call: Call) -> AsyncIterator[Event]:
        check_qualifier(call, "table_qualifier")
        for event in result_set(_COLUMNS_NEW if new else _COLUMNS_OLD, list(_column_rows(call, new=new))):
            yield event

    return procedure(f"sys.{name}", arguments, run)


_COLUMN_ARGUMENTS = (
    "@table_name nvarchar(384), @table_owner nvarchar(384) = NULL, @table_qualifier sysname = NULL, "
    "@column_name nvarchar(384) = NULL"
)

PROCEDURES = (
    procedure(
        "sys.sp_tables",
        "@table_name nvarchar(384) = NULL, @table_owner nvarchar(384) = NULL, @table_qualifier sysname = NULL, "
        "@table_type varchar(100) = NULL, @fUsePattern bit = 1",
        _tables,
    ),
    _columns("sp_columns", f"{_COLUMN_ARGUMENTS}, @ODBCVer int = 2", new=False),
    _columns("sp_columns_90", f"{_COLUMN_ARGUMENTS}, @ODBCVer int = 2, @fUsePattern bit = 1", new=False),
    _columns(
        "sp_columns_100",
        f"{_COLUMN_ARGUMENTS}, @NameScope int = 0, @ODBCVer int = 2, @fUsePattern bit = 1",
        new=True,
    ),
)
