"""Names and ids: databases, schemas, objects, columns, types, identities."""

from __future__ import annotations

from decimal import Decimal

from mssql_sandbox.catalog.definitions import Scope, function
from mssql_sandbox.catalog.names import ObjectRow, find_object, object_by_id, row_of, split_name
from mssql_sandbox.catalog.views.columns import type_ids
from mssql_sandbox.catalog.visibility import visible
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.system_types import TYPES
from mssql_sandbox.engine.types import max_length, parse_type
from mssql_sandbox.errors import SqlError


def database_of(scope: Scope, database_id: int | None) -> Database | None:
    """The database with this id, the current one for None."""
    return scope.database if database_id is None else scope.server.database_by_id(database_id)


def _db_id(scope: Scope, name: str | None = None) -> int | None:
    if name is None:
        return scope.session.current_database.id
    found = scope.server.databases.get(name.rstrip())
    return found.id if found is not None else None


def _db_name(scope: Scope, database_id: int | None = None) -> str | None:
    if database_id is None or database_id == 0:
        return scope.session.current_database.name
    found = scope.server.database_by_id(database_id)
    return found.name if found is not None else None


def resolve_object(scope: Scope, name: str | None) -> tuple[Database, ObjectRow] | None:
    """The object that a one- to three-part name refers to, with its database; temporary tables are in tempdb."""
    if name is None:
        return None
    parts = ["", "", "", *split_name(name)][-3:]
    if parts[-1].startswith("##"):
        parts[0] = "tempdb"
    elif parts[-1].startswith("#"):
        item = scope.session.temporary.find(parts[-1])
        return None if item is None else (scope.server.database("tempdb"), row_of(item))
    database = scope.server.databases.get(parts[0]) if parts[0] else scope.database
    if database is None:
        return None
    schemas = [parts[1]] if parts[1] else [scope.session.default_schema(database), "dbo"]
    found = find_object(database, schemas, parts[2])
    if found is None or not visible(scope.session, database, found.parent_object_id or found.object_id):
        return None
    return database, found


def _object_id(scope: Scope, name: str | None, kind: str | None = None) -> int | None:
    found = resolve_object(scope, name)
    if found is None:
        return None
    wanted = (kind or "").strip().upper()
    return found[1].object_id if wanted in ("", found[1].type_code) else None


def _object_name(scope: Scope, object_id: int | None, database_id: int | None = None) -> str | None:
    row = _row(scope, object_id, database_id)
    return row.name if row is not None else None


def _object_schema_name(scope: Scope, object_id: int | None, database_id: int | None = None) -> str | None:
    row = _row(scope, object_id, database_id)
    return row.schema.name if row is not None else None


def _row(scope: Scope, object_id: int | None, database_id: int | None) -> ObjectRow | None:
    database = database_of(scope, database_id)
    row = object_by_id(database, object_id) if database is not None and object_id is not None else None
    if row is None or database is None:
        return None
    return row if visible(scope.session, database, row.parent_object_id or row.object_id) else None


def _object_definition(scope: Scope, object_id: int | None) -> str | None:
    item = scope.database.object_by_id(object_id) if object_id is not None else None
    return item.text or None if item is not None else None


def _schema_id(scope: Scope, name: str | None = None) -> int | None:
    schema = scope.database.schemas.get(name or scope.session.default_schema(scope.database))
    return schema.schema_id if schema is not None else None


def _schema_name(scope: Scope, schema_id: int | None = None) -> str | None:
    if schema_id is None:
        return scope.session.default_schema(scope.database)
    return next((s.name for s in scope.database.schemas.values() if s.schema_id == schema_id), None)


def _table(scope: Scope, object_id: int | None) -> Table | None:
    item = scope.database.object_by_id(object_id) if object_id is not None else None
    return item if isinstance(item, Table) else None


def _col_name(scope: Scope, object_id: int | None, column_id: int | None) -> str | None:
    table = _table(scope, object_id)
    columns = table.columns if table is not None else ()
    return next((column.name for column in columns if column.column_id == column_id), None)


def _col_length(scope: Scope, table_name: str | None, column_name: str | None) -> int | None:
    found = resolve_object(scope, table_name)
    table = found[0].object_by_id(found[1].object_id) if found is not None else None
    column = table.column(column_name) if isinstance(table, Table) and column_name else None
    return max_length(column.type) if column is not None else None


def _type_id(scope: Scope, name: str | None) -> int | None:  # noqa: ARG001 - system types are the same everywhere
    try:
        return type_ids(parse_type((name or "").strip("[] ").removeprefix("sys.")))[1]
    except SqlError:
        return None


def _type_name(scope: Scope, type_id: int | None) -> str | None:  # noqa: ARG001
    name = next((name for name, info in TYPES.items() if info.user_type_id == type_id), None)
    return "timestamp" if name == "rowversion" else name


def _identity(which: str):
    def compute(scope: Scope, name: str | None) -> Decimal | None:
        found = resolve_object(scope, name)
        table = found[0].object_by_id(found[1].object_id) if found is not None else None
        identity = table.identity if isinstance(table, Table) else None
        if identity is None:
            return None
        if which == "current":
            return Decimal(identity.seed if identity.last is None else identity.last)
        return Decimal(identity.seed if which == "seed" else identity.increment)

    return compute


FUNCTIONS = (
    function("DB_ID", "smallint", "sysname", _db_id, optional=1),
    function("DB_NAME", "nvarchar(128)", "int", _db_name, optional=1),
    function("OBJECT_ID", "int", "nvarchar(1035); char(2)", _object_id, optional=1),
    function("OBJECT_NAME", "nvarchar(128)", "int; int", _object_name, optional=1),
    function("OBJECT_SCHEMA_NAME", "nvarchar(128)", "int; int", _object_schema_name, optional=1),
    function("OBJECT_DEFINITION", "nvarchar(max)", "int", _object_definition),
    function("SCHEMA_ID", "int", "sysname", _schema_id, optional=1),
    function("SCHEMA_NAME", "nvarchar(128)", "int", _schema_name, optional=1),
    function("COL_NAME", "nvarchar(128)", "int; int", _col_name),
    function("COL_LENGTH", "smallint", "nvarchar(1035); sysname", _col_length),
    function("TYPE_ID", "int", "nvarchar(256)", _type_id),
    function("TYPE_NAME", "nvarchar(128)", "int", _type_name),
    function("IDENT_CURRENT", "numeric(38,0)", "nvarchar(1035)", _identity("current")),
    function("IDENT_SEED", "numeric(38,0)", "nvarchar(1035)", _identity("seed")),
    function("IDENT_INCR", "numeric(38,0)", "nvarchar(1035)", _identity("increment")),
)
