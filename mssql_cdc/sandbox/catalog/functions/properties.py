"""SERVERPROPERTY, DATABASEPROPERTYEX, COLUMNPROPERTY, OBJECTPROPERTY, INDEXPROPERTY: tables of properties by name."""

from __future__ import annotations

from collections.abc import Callable

from mssql_cdc.sandbox.catalog.columns import column_type
from mssql_cdc.sandbox.catalog.definitions import Scope, function
from mssql_cdc.sandbox.catalog.names import ObjectRow, object_by_id
from mssql_cdc.sandbox.catalog.product import PROPERTIES
from mssql_cdc.sandbox.engine.storage.columns import Column
from mssql_cdc.sandbox.engine.storage.database import Database
from mssql_cdc.sandbox.engine.storage.table import Table
from mssql_cdc.sandbox.engine.types import SqlType, max_length

Variant = "tuple[SqlType, object]"


def variant(value: str | int | None) -> tuple[SqlType, object] | None:
    """A sql_variant in storage form: int or nvarchar(128)."""
    if value is None:
        return None
    return (column_type("nvarchar(128)"), value) if isinstance(value, str) else (column_type("int"), value)


def _server_property(scope: Scope, name: str | None) -> object:
    server, key = scope.server, (name or "").strip().casefold()
    own: dict[str, str | int | None] = {
        "servername": server.name,
        "machinename": server.name,
        "computernamephysicalnetbios": server.name,
        "processid": 41,
        "productversion": server.version.version,
        "productbuild": str(server.version.numbers[2]),
        "productupdatereference": server.version.update_reference,
        "resourceversion": f"{server.version.major:02}.00.{server.version.numbers[2]}",
        "productlevel": server.version.level,
        "productupdatelevel": server.version.update_level,
        "productmajorversion": str(server.version.major),
        "edition": server.version.edition,
        "engineedition": server.version.engine_edition,
        "collation": server.collation.name,
        "ishadrenabled": int(server.replica.active),
    }
    return variant(own.get(key, PROPERTIES.get(key)))


_DATABASE: dict[str, Callable[[Database], str | int | None]] = {
    "collation": lambda db: db.collation.name,
    "recovery": lambda db: db.options.recovery_model,
    "status": lambda db: db.options.state,
    "useraccess": lambda db: db.options.user_access,
    "updateability": lambda db: "READ_ONLY" if db.options.read_only else "READ_WRITE",
    "version": lambda db: db.server.version.database_version,
    "comparisonstyle": lambda _: 196609,
    "lcid": lambda db: db.collation.lcid,
    "sqlsortorder": lambda db: db.collation.sort_id,
    "isautoclose": lambda _: 0,
    "isautoshrink": lambda _: 0,
    "isfulltextenabled": lambda _: 1,
    "isinstandby": lambda _: 0,
    "issyncwithbackup": lambda _: 0,
    "ispublished": lambda _: 0,
    "edition": lambda _: None,
    "serviceobjective": lambda _: None,
}


def _database_property(scope: Scope, name: str | None, key: str | None) -> object:
    database = scope.server.databases.get(name or "")
    wanted = (key or "").strip().casefold()
    if database is not None and wanted == "updateability" and scope.server.replica.serves(scope.session.spid):
        return variant("READ_ONLY")
    compute = _DATABASE.get(wanted)
    return variant(compute(database)) if database is not None and compute is not None else None


_COLUMN: dict[str, Callable[[Table, Column], int | None]] = {
    "allowsnull": lambda _, column: int(column.nullable),
    "columnid": lambda _, column: column.column_id,
    "iscomputed": lambda _, column: int(column.computed is not None),
    "isidentity": lambda _, column: int(column.identity is not None),
    "isrowguidcol": lambda _, column: int(column.rowguid),
    "issparse": lambda _, column: int(column.sparse),
    "ishidden": lambda _, column: int(column.hidden),
    "iscolumnset": lambda *_: 0,
    "ispersisted": lambda _, column: int(column.computed is not None and column.computed.persisted),
    "isindexable": lambda _, column: int(max_length(column.type) >= 0),
    "ordinal": lambda table, column: table.columns.index(column) + 1,
    "precision": lambda _, column: column.type.precision or max(column.type.length, 0) or None,
    "scale": lambda _, column: column.type.scale if column.type.precision else None,
    "charmaxlen": lambda _, column: column.type.length or None,
    "generatedalwaystype": lambda *_: 0,
    "usesansitrim": lambda *_: 1,
}


def _column_property(scope: Scope, object_id: int | None, name: str | None, key: str | None) -> int | None:
    table = scope.database.object_by_id(object_id) if object_id is not None else None
    column = table.column(name) if isinstance(table, Table) and name else None
    compute = _COLUMN.get((key or "").strip().casefold())
    return compute(table, column) if isinstance(table, Table) and column is not None and compute is not None else None


_OF_TYPE = {
    "istable": ("U", "S"),
    "isusertable": ("U",),
    "isview": ("V",),
    "isprocedure": ("P",),
    "isprimarykey": ("PK",),
    "isuniquecnst": ("UQ",),
    "isforeignkey": ("F",),
    "ischeckcnst": ("C",),
    "isdefaultcnst": ("D",),
    "isdefault": ("D",),
    "isscalarfunction": ("FN",),
    "istablefunction": ("IF", "TF"),
    "isinlinefunction": ("IF",),
    "istrigger": ("TR",),
    "isconstraint": ("PK", "UQ", "F", "C", "D"),
    "issystemtable": ("S",),
}


def _tests(table: Table) -> dict[str, bool]:
    return {
        "tablehasprimarykey": table.primary_key is not None,
        "tablehasidentity": table.identity is not None,
        "tablehasclustindex": table.clustered is not None,
        "tablehasindex": bool(table.indexes),
        "tablehasforeignkey": bool(table.foreign_keys),
        "tablehasforeignref": bool(table.referenced_by),
        "tablehasuniquecnst": any(index.constraint == "UNIQUE" for index in table.indexes),
        "tablehastimestamp": table.rowversion_at >= 0,
        "tablehastextimage": any(c.type.name in ("text", "ntext", "image") for c in table.columns),
        "tablehascheckcnst": bool(table.checks),
        "tablehasdefaultcnst": any(column.default is not None for column in table.columns),
    }


def _object_property(scope: Scope, object_id: int | None, key: str | None) -> int | None:
    row: ObjectRow | None = object_by_id(scope.database, object_id) if object_id is not None else None
    if row is None or key is None:
        return None
    name = key.strip().casefold()
    if name in _OF_TYPE:
        return int(row.type_code in _OF_TYPE[name])
    if name == "ismsshipped":
        return int(row.is_ms_shipped)
    if name in ("schemaid", "ownerid"):
        return row.schema.schema_id if name == "schemaid" else 1
    item = scope.database.object_by_id(row.object_id)
    test = _tests(item).get(name) if isinstance(item, Table) else None
    if name == "cardinality" and isinstance(item, Table):
        return item.row_count
    return None if test is None else int(test)


def _object_property_ex(scope: Scope, object_id: int | None, key: str | None) -> object:
    if key is not None and key.strip().casefold() == "basetype":
        row = object_by_id(scope.database, object_id) if object_id is not None else None
        return variant(row.type_code) if row is not None else None
    return variant(_object_property(scope, object_id, key))


def _index_property(scope: Scope, object_id: int | None, name: str | None, key: str | None) -> int | None:
    table = scope.database.object_by_id(object_id) if object_id is not None else None
    index = table.index(name) if isinstance(table, Table) and name else None
    if index is None:
        return None
    return {
        "isunique": int(index.unique),
        "isclustered": int(index.clustered),
        "isdisabled": int(index.disabled),
        "indexid": index.index_id,
        "isprimarykey": int(index.constraint == "PRIMARY KEY"),
        "indexdepth": 1,
        "indexfillfactor": 0,
    }.get((key or "").strip().casefold())


FUNCTIONS = (
    function("SERVERPROPERTY", "sql_variant", "nvarchar(128)", _server_property),
    function("DATABASEPROPERTYEX", "sql_variant", "sysname; nvarchar(128)", _database_property),
    function("COLUMNPROPERTY", "int", "int; sysname; nvarchar(128)", _column_property),
    function("OBJECTPROPERTY", "int", "int; nvarchar(128)", _object_property),
    function("OBJECTPROPERTYEX", "sql_variant", "int; nvarchar(128)", _object_property_ex),
    function("INDEXPROPERTY", "int", "int; sysname; nvarchar(128)", _index_property),
)
