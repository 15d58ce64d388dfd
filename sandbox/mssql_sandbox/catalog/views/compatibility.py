"""The system tables of SQL Server 2000 as today's servers still offer them: `sysobjects`, `syscolumns`, ….

Scripts of old sample databases ask them, without a schema or with `dbo`. Evidence: Microsoft's documentation "System
compatibility views".
"""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.catalog.names import all_objects
from mssql_sandbox.catalog.type_info import type_info_rows
from mssql_sandbox.catalog.views.columns import type_ids
from mssql_sandbox.engine.system_types import TYPES, TypeInfo
from mssql_sandbox.engine.types import SqlType, max_length

_KINDS = {"S": 1, "V": 2, "U": 3, "P": 4, "D": 6, "TR": 8, "F": 11, "PK": 11, "UQ": 11, "C": 7}
"""The low four bits of `sysstat`."""
_OLD_TYPES = {"PK": "K", "UQ": "K"}
_SYS_SCHEMA = 4
_WIDE = frozenset({"nchar", "nvarchar", "sysname"})
_CHARACTERS = frozenset({"char", "varchar", "text", "ntext"}) | _WIDE
_VARIABLE = frozenset({"varchar", "nvarchar", "varbinary", "sysname", "sql_variant"})
_USERTYPES = {row[0]: row[-1] for row in type_info_rows(data_type=0, odbc_version=3, types_of_2008=True)}


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
            user = user if user < 2**15 else 256
            yield (
                column.name, table.object_id, system, user, max_length(type_), type_.precision, type_.scale,
                column.column_id, 4 * (column.computed is not None) + (column.identity is not None),
                column.default.object_id if column.default else 0, place, status, system, user,
                *_precision(type_, max_length(type_)), int(column.computed is not None), int(column.nullable),
                type_.collation.name if type_.collation is not None else None,
            )  # fmt: skip


def _precision(type_: SqlType, size: int) -> tuple[int, int | None]:
    """`prec` and `scale`: characters or bytes where the type has no digits, -1 for large ones."""
    if type_.precision:
        return type_.precision, type_.scale
    return (size // 2 if size > 0 and type_.name in _WIDE else size), None


def _indexes(scope: Scope) -> Iterator[tuple]:
    for table in scope.database.tables():
        if table.clustered is None:
            yield (table.object_id, 0, 0, 0, table.row_count, None, table.row_count)
        for index in table.indexes:
            status = 2 * index.unique + 16 * index.clustered + 2048 * (index.constraint == "PRIMARY KEY")
            status += 4096 * (index.constraint == "UNIQUE")
            yield (
                table.object_id,
                status,
                index.index_id,
                len(index.columns),
                table.row_count,
                index.name,
                table.row_count,
            )


def _databases(scope: Scope) -> Iterator[tuple]:
    for database in scope.server.databases.values():
        path = f"/var/opt/mssql/data/{database.name}.mdf"
        yield (database.name, database.id, database.create_date, database.options.compatibility_level, path)


def _users(scope: Scope) -> Iterator[tuple]:
    for principal in scope.database.principals.values():
        role = principal.type_code == "R"
        login = scope.server.logins.get(principal.login) if principal.login else None
        made, known = principal.create_date, int(login is not None)
        yield (
            principal.principal_id, principal.name, login.sid if login is not None else None, made, made,
            1 if role else None, principal.principal_id if role else 0, known, known, int(not role), int(role),
        )  # fmt: skip


def _types(scope: Scope) -> Iterator[tuple]:
    own = scope.database.collation.name
    for name, info in TYPES.items():
        shown = "timestamp" if name == "rowversion" else name
        schema = _SYS_SCHEMA
        yield _type_row(shown, name, info, (info.user_type_id, info.size, info.precision, info.scale, schema, 1), own)
    for item in scope.database.objects():
        if item.type_code == "TYPE":
            type_ = item.definition
            nullable, size = int(item.properties.get("nullable", True)), max_length(type_)
            facts = (256, size, type_.precision, type_.scale, _owner(item.schema.schema_id), nullable)
            yield _type_row(item.name, type_.name, TYPES[type_.name], facts, own)


def _type_row(name: str, base: str, info: TypeInfo, facts: tuple[int, ...], collation: str) -> tuple:
    """A row of `systypes`; `facts` are its user type, size, precision, scale, schema and whether it allows NULL."""
    user, size, precision, scale, schema, nullable = facts
    characters = base in _CHARACTERS
    wide = 2 if base in _WIDE and size > 0 else 1
    return (
        name, info.system_type_id, user, size, precision, scale, schema, _USERTYPES.get(base, 0),
        int(base in _VARIABLE), nullable, info.system_type_id, precision or size // wide, scale if precision else None,
        collation if characters else None,
    )  # fmt: skip


def _comments(scope: Scope) -> Iterator[tuple]:
    for item in scope.database.objects():
        for number, start in enumerate(range(0, len(item.text), 4000), 1):
            part = item.text[start : start + 4000]
            yield (item.object_id, number, part.encode("utf-16-le"), part)


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
        "xprec tinyint, xscale tinyint, colid smallint?, xoffset smallint? = 0, bitpos tinyint? = 0, "
        "reserved tinyint? = 0, colstat smallint?, cdefault int, domain int = 0, number smallint? = 0, "
        "colorder smallint?, autoval varbinary(8000)? = NULL, offset smallint? = 0, collationid int? = NULL, "
        "status tinyint?, type tinyint, usertype smallint?, printfmt varchar(255)? = NULL, prec smallint?, "
        "scale int?, iscomputed int?, isoutparam int? = 0, isnullable int?, collation sysname?",
        _columns,
    ),
    view(
        "sys.sysindexes",
        "id int, status int?, first binary(6)? = NULL, indid smallint?, root binary(6)? = NULL, "
        "minlen smallint? = 0, keycnt smallint?, groupid smallint? = 1, dpages int? = 1, reserved int? = 2, "
        "used int? = 2, rowcnt bigint?, rowmodctr int? = 0, reserved3 tinyint? = 0, reserved4 tinyint? = 0, "
        "xmaxlen smallint? = 0, maxirow smallint? = 0, OrigFillFactor tinyint? = 0, StatVersion tinyint? = 0, "
        "reserved2 int? = 0, FirstIAM binary(6)? = NULL, impid smallint? = 0, lockflags smallint? = 0, "
        "pgmodctr int? = 0, keys varbinary(1088)? = NULL, name sysname?, statblob image? = NULL, "
        "maxlen int? = 8000, rows int?",
        _indexes,
    ),
    view(
        "sys.sysdatabases",
        "name sysname, dbid smallint?, sid varbinary(85)? = NULL, mode smallint? = 0, status int? = 65536, "
        "status2 int? = 1090519040, crdate datetime, reserved datetime? = NULL, category int? = 0, "
        "cmptlevel tinyint, filename nvarchar(260)?, version smallint? = 957",
        _databases,
    ),
    view(
        "sys.sysusers",
        "uid smallint?, status smallint? = 0, name sysname, sid varbinary(85)?, roles varbinary(2048)? = NULL, "
        "createdate datetime, updatedate datetime, altuid smallint?, password varbinary(256)? = NULL, gid smallint?, "
        "environ varchar(255)? = NULL, hasdbaccess int?, islogin int?, isntname int? = 0, isntgroup int? = 0, "
        "isntuser int? = 0, issqluser int?, isaliased int? = 0, issqlrole int?, isapprole int? = 0",
        _users,
    ),
    view(
        "sys.systypes",
        "name sysname, xtype tinyint, status tinyint? = 0, xusertype smallint?, length smallint, xprec tinyint, "
        "xscale tinyint, tdefault int = 0, domain int = 0, uid smallint?, reserved smallint? = 0, "
        "collationid int? = NULL, usertype smallint?, variable bit?, allownulls bit?, type tinyint, "
        "printfmt varchar(255)? = NULL, prec smallint?, scale tinyint?, collation sysname?",
        _types,
    ),
    view("sys.syscomments", "id int, number smallint? = 1, colid smallint, status smallint = 2, "
         "ctext varbinary(8000)?, texttype smallint? = 2, language smallint? = 0, encrypted bit = 0, "
         "compressed bit = 0, text nvarchar(4000)?",
         _comments),
    view("sys.sysforeignkeys", "constid int, fkeyid int, rkeyid int, fkey smallint?, rkey smallint?, keyno smallint?",
         _foreign_keys),
)  # fmt: skip
NAMES = frozenset(item.name for item in VIEWS)
