"""`sp_table_privileges`, `sp_column_privileges`: privileges for ODBC and JDBC. The owner has all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, procedure, result_set
from mssql_sandbox.catalog.procedures.patterns import check_qualifier, name_test
from mssql_sandbox.engine.events import Event
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.exec.security import sees_object

_TABLES = columns(
    "TABLE_QUALIFIER sysname?, TABLE_OWNER sysname?, TABLE_NAME sysname, GRANTOR sysname?, GRANTEE sysname?, "
    "PRIVILEGE varchar(32), IS_GRANTABLE varchar(3)"
)
_COLUMNS = columns(
    "TABLE_QUALIFIER sysname?, TABLE_OWNER sysname?, TABLE_NAME sysname, COLUMN_NAME sysname, GRANTOR sysname?, "
    "GRANTEE sysname?, PRIVILEGE varchar(32), IS_GRANTABLE varchar(3)"
)
_ON_TABLES = ("DELETE", "INSERT", "REFERENCES", "SELECT", "UPDATE")
_ON_COLUMNS = ("INSERT", "REFERENCES", "SELECT", "UPDATE")
_OWNER = "dbo"


def _tables(call: Call, *, patterns: bool) -> list[Table]:
    fits_name = name_test(call.text("table_name"), patterns=patterns)
    fits_owner = name_test(call.text("table_owner"), patterns=patterns)
    found = [item for item in call.scope.database.objects() if isinstance(item, Table)]
    found = [table for table in found if fits_name(table.name) and fits_owner(table.schema.name)]
    found = [table for table in found if sees_object(call.scope.session, call.scope.database, table)]
    return sorted(found, key=lambda table: (table.schema.name, table.name))


async def _table_privileges(call: Call) -> AsyncIterator[Event]:
    check_qualifier(call, "table_qualifier")
    database = call.scope.database.name
    rows = [
        (database, table.schema.name, table.name, _OWNER, _OWNER, privilege, "YES")
        for table in _tables(call, patterns=call.arguments.get("fusepattern") in (None, 1))
        for privilege in _ON_TABLES
    ]
    for event in result_set(_TABLES, rows):
        yield event


async def _column_privileges(call: Call) -> AsyncIterator[Event]:
    check_qualifier(call, "table_qualifier")
    database, fits = call.scope.database.name, name_test(call.text("column_name"))
    rows = [
        (database, table.schema.name, table.name, column.name, _OWNER, _OWNER, privilege, "YES")
        for table in _tables(call, patterns=False)
        for column in sorted(table.columns, key=lambda column: column.name)
        if fits(column.name)
        for privilege in _ON_COLUMNS
    ]
    for event in result_set(_COLUMNS, rows):
        yield event


PROCEDURES = (
    procedure(
        "sys.sp_table_privileges",
        "@table_name nvarchar(384), @table_owner nvarchar(384) = NULL, @table_qualifier sysname = NULL, "
        "@fUsePattern bit = 1",
        _table_privileges,
    ),
    procedure(
        "sys.sp_column_privileges",
        "@table_name sysname, @table_owner sysname = NULL, @table_qualifier sysname = NULL, "
        "@column_name nvarchar(384) = NULL",
        _column_privileges,
    ),
)
