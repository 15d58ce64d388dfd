"""The system tables of SQL Server 2000 as today's servers still offer them: `sysobjects`, `syscolumns`, ….

Scripts of old sample databases ask them, without a schema or with `dbo`. Evidence: Microsoft's documentation "System
compatibility views".
"""

from __future__ import annotations

from collections.abc import Iterator

from mssql_cdc.sandbox.catalog.definitions import Scope, view
from mssql_cdc.sandbox.catalog.names import all_objects
from mssql_cdc.sandbox.catalog.views.columns import type_ids
from mssql_cdc.sandbox.engine.system_types import TYPES
from mssql_cdc.sandbox.engine.types import max_length

_KINDS = {"S": 1, "V": 2, "U": 3, "P": 4, "D": 6, "TR": 8, "F": 11, "PK": 11, "UQ": 11, "C": 7}
"""The low four bits of `sysstat`."""
_OLD_TYPES = {"PK": "K", "UQ": "K"}


def _objects(scope: Scope) -> Iterator[tuple]:
    for row in all_objects(scope.database):
        yield (
            row.name, row.object_id, row.type_code.ljust(2), _owner(row.schema.schema_id), row.parent_object_id,
            row.create_date, _OLD_TYPES.get(row.type_code, row.type_code).ljust(2), _KINDS.get(row.type_code, 0),
            row.create_date, 2 if row.is_ms_shipped else 0,
        )  # fmt: skip


def _owner(schema_id: int) -> int:
    return schema_id if schema_id < 2**15 else 1


def _columns(scope: Scope) -> Iterator[tuple]:
    for table in scope.database.tables():
        for place, column in enumerate(table.columns, 1):
            type_ = column.type
            system, user = type_ids(type_, scope.database)
            status = 8 * column.nullable + 128 * (column.identity is not None)
            yield (
                column.name, table.object_id, system, user if user < 2**15 else 256, max_length(type_), type_.precision,
                type_.scale, column.column_id, place, status, column.default.object_id if column.default else 0,
                int(column.computed is not None), int(column.nullable),
                type_.collation.name if type_.collation is not None else None,
            )  # fmt: skip


def _indexes(scope: Scope) -> Iterator[tuple]:
    for table in scope.database.tables():
        if table.clustered is None:
            yield (table.object_id, 0, 0, None, 0, table.row_count, table.row_count)
        for index in table.indexes:
            status = 2 * index.unique + 16 * index.clustered + 2048 * (index.constraint == "PRIMARY KEY")
            status += 4096 * (index.constraint == "UNIQUE")
            yield (
                table.object_id,
                status,
                index.index_id,
                index.name,
                len(index.columns),
                table.row_count,
                table.row_count,
            )


def _databases(scope: Scope) -> Iterator[tuple]:
    for database in scope.server.databases.values():
        path = f"/var/opt/mssql/data/{database.name}.mdf"
        yield (database.name, database.id, database.options.compatibility_level, path)


def _users(scope: Scope) -> Iterator[tuple]:
    for principal in scope.database.principals.values():
        role = principal.type_code == "R"
        yield (principal.principal_id, principal.name, int(not role), int(role), int(principal.login is not None))


def _types(scope: Scope) -> Iterator[tuple]:
    for name, info in TYPES.items():
        shown = "timestamp" if name == "rowversion" else name
        yield (shown, info.system_type_id, info.user_type_id, info.size, 1)
    for item in scope.database.objects():
        if item.type_code == "TYPE":
            nullable = int(item.properties.get("nullable", True))
            base = TYPES[item.definition.name]
            yield (item.name, base.system_type_id, 256, max_length(item.definition), nullable)


def _comments(scope: Scope) -> Iterator[tuple]:
    for item in scope.database.objects():
        for number, start in enumerate(range(0, len(item.text), 4000), 1):
            yield (item.object_id, number, item.text[start : start + 4000])


def _foreign_keys(scope: Scope) -> Iterator[tuple]:
    for table in scope.database.tables():
        for key in table.foreign_keys:
            for number, (own, other) in enumerate(zip(key.columns, key.referenced_columns, strict=True), 1):
                left, right = table.column(own), key.referenced.column(other)
                if left is not None and right is not None:
                    ids = (key.object_id, table.object_id, key.referenced.object_id)
                    yield (*ids, left.column_id, right.column_id, number)


VIEWS = (
    view(
        "sys.sysobjects",
        "name sysname, id int, xtype char(2), uid smallint?, info smallint? = 0, status int? = 0, "
        "base_schema_ver int? = 0, replinfo int? = 0, parent_obj int, crdate datetime, ftcatid smallint? = 0, "
        "schema_ver int? = 0, stats_schema_ver int? = 0, type char(2)?, userstat smallint? = 1, sysstat smallint?, "
        "indexdel smallint? = 0, refdate datetime, version int? = 0, deltrig int? = 0, instrig int? = 0, "
        "updtrig int? = 0, seltrig int? = 0, category int?, cache smallint? = 0",
        _objects,
    ),
    view(
        "sys.syscolumns",
        "name sysname?, id int, xtype tinyint, typestat tinyint? = 0, xusertype smallint?, length smallint, "
        "xprec tinyint, xscale tinyint, colid smallint?, colorder smallint?, status tinyint?, cdefault int, "
        "domain int = 0, iscomputed int?, isnullable int?, collation sysname?",
        _columns,
    ),
    view(
        "sys.sysindexes",
        "id int, status int?, first binary(6)? = NULL, indid smallint?, root binary(6)? = NULL, name sysname?, "
        "minlen smallint? = 0, keycnt smallint?, groupid smallint? = 1, dpages int? = 1, reserved int? = 2, "
        "used int? = 2, rowcnt bigint?, rows int?",
        _indexes,
    ),
    view(
        "sys.sysdatabases",
        "name sysname, dbid smallint?, sid varbinary(85)? = NULL, mode smallint? = 0, status int? = 65536, "
        "status2 int? = 1090519040, category int? = 0, cmptlevel tinyint, filename nvarchar(260)?, version smallint? "
        "= 957",
        _databases,
    ),
    view(
        "sys.sysusers",
        "uid smallint?, status smallint? = 0, name sysname, issqluser int?, issqlrole int?, islogin int?",
        _users,
    ),
    view(
        "sys.systypes",
        "name sysname, xtype tinyint, status tinyint? = 0, xusertype smallint?, length smallint, allownulls bit?",
        _types,
    ),
    view("sys.syscomments", "id int, number smallint? = 1, colid smallint, status smallint = 2, text nvarchar(4000)?",
         _comments),
    view("sys.sysforeignkeys", "constid int, fkeyid int, rkeyid int, fkey smallint?, rkey smallint?, keyno smallint?",
         _foreign_keys),
)  # fmt: skip
NAMES = frozenset(item.name for item in VIEWS)
