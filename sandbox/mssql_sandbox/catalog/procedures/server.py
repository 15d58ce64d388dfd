"""`sp_server_info` and `sp_databases`."""

from __future__ import annotations

from collections.abc import AsyncIterator

from mssql_sandbox.catalog.columns import columns
from mssql_sandbox.catalog.definitions import Call, procedure, result_set
from mssql_sandbox.engine.events import Event

_INFO = columns("attribute_id int, attribute_name varchar(60), attribute_value varchar(255)?")
_WHO = columns(
    "spid smallint, ecid smallint, status nchar(30), loginame nvarchar(128), hostname nchar(128), blk char(5), "
    "dbname nvarchar(128)?, cmd nchar(26), request_id int"
)
_ATTRIBUTES = (
    (1, "DBMS_NAME", "Microsoft SQL Server"),
    (2, "DBMS_VER", "Microsoft SQL Server {year} - {version}"),
    (10, "OWNER_TERM", "owner"),
    (11, "TABLE_TERM", "table"),
    (12, "MAX_OWNER_NAME_LENGTH", "128"),
    (13, "TABLE_LENGTH", "128"),
    (14, "MAX_QUAL_LENGTH", "128"),
    (15, "COLUMN_LENGTH", "128"),
    (16, "IDENTIFIER_CASE", "MIXED"),
    (17, "TX_ISOLATION", "2"),
    (18, "COLLATION_SEQ", "charset=iso_1 sort_order=nocase_iso charset_num=1 sort_order_num=52"),
    (19, "SAVEPOINT_SUPPORT", "Y"),
    (20, "MULTI_RESULT_SETS", "Y"),
    (22, "ACCESSIBLE_TABLES", "Y"),
    (100, "USERID_LENGTH", "128"),
    (101, "QUALIFIER_TERM", "database"),
    (102, "NAMED_TRANSACTIONS", "Y"),
    (103, "SPROC_AS_LANGUAGE", "Y"),
    (104, "ACCESSIBLE_SPROC", "Y"),
    (105, "MAX_INDEX_COLS", "16"),
    (106, "RENAME_TABLE", "Y"),
    (107, "RENAME_COLUMN", "Y"),
    (108, "DROP_COLUMN", "Y"),
    (109, "INCREASE_COLUMN_LENGTH", "Y"),
    (110, "DDL_IN_TRANSACTION", "Y"),
    (111, "DESCENDING_INDEXES", "Y"),
    (112, "SP_RENAME", "Y"),
    (113, "REMOTE_SPROC", "Y"),
    (500, "SYS_SPROC_VERSION", "{version}"),
)


async def _server_info(call: Call) -> AsyncIterator[Event]:
    wanted = call.number("attribute_id")
    version, year = call.scope.server.version.version, call.scope.server.version.year
    rows = [
        (number, name, value.format(version=version, year=year))
        for number, name, value in _ATTRIBUTES
        if wanted in (None, number)
    ]
    for event in result_set(_INFO, rows):
        yield event


async def _databases(call: Call) -> AsyncIterator[Event]:
    rows = [(database.name, 8192, None) for database in call.scope.server.databases.values()]
    shape = columns("DATABASE_NAME sysname, DATABASE_SIZE int?, REMARKS varchar(254)?")
    for event in result_set(shape, rows):
        yield event


PROCEDURES = (
    procedure("sys.sp_server_info", "@attribute_id int = NULL", _server_info),
    procedure("sys.sp_databases", "", _databases),
)
