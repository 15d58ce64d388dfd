"""`sysobjects` and `sysdatabases`, system tables of SQL Server 2000 that current servers still offer.

Scripts of old sample databases read them, without a schema or with `dbo`. Evidence: Microsoft's documentation "System
compatibility views".
"""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.catalog.names import all_objects

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


def _databases(scope: Scope) -> Iterator[tuple]:
    for database in scope.server.databases.values():
        path = f"/var/opt/mssql/data/{database.name}.mdf"
        yield (database.name, database.id, database.create_date, database.options.compatibility_level, path)


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
        "sys.sysdatabases",
        "name sysname, dbid smallint?, sid varbinary(85)? = NULL, mode smallint? = 0, status int? = 65536, "
        "status2 int? = 1090519040, crdate datetime, reserved datetime? = NULL, category int? = 0, "
        "cmptlevel tinyint, filename nvarchar(260)?, version smallint? = 957",
        _databases,
    ),
)
NAMES = frozenset(item.name for item in VIEWS)
