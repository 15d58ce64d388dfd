"""SERVERPROPERTY, DATABASEPROPERTYEX, COLUMNPROPERTY, OBJECTPROPERTY, INDEXPROPERTY: tables of properties by name."""

from __future__ import annotations

from collections.abc import Callable

from mssql_sandbox.catalog.columns import column_type
from mssql_sandbox.catalog.definitions import Scope, function
from mssql_sandbox.catalog.names import ObjectRow, object_by_id
from mssql_sandbox.catalog.product import PROPERTIES
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import DATETIME, SqlType, max_length, nvarchar

Variant = "tuple[SqlType, object]"


def variant(value: str | int | bytes | None) -> tuple[SqlType, object] | None:
    """A sql_variant in storage form: int, nvarchar(128), or varbinary of the value's length."""
    if value is None:
        return None
    if isinstance(value, int):
        return column_type("int"), value
    return column_type("nvarchar(128)" if isinstance(value, str) else f"varbinary({len(value)})"), value


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
    if key == "resourcelastupdatedatetime":
        return DATETIME, convert(server.version.built, nvarchar(30), DATETIME)
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
    "isautoclose": lambda db: int(db.properties.get("auto_close") == "ON"),
    "isautoshrink": lambda db: int(db.properties.get("auto_shrink") == "ON"),
    "isfulltextenabled": lambda _: 1,
    "isinstandby": lambda _: 0,
    "issyncwithbackup": lambda _: 0,
    "ispublished": lambda _: 0,
    "edition": lambda db: "GeneralPurpose" if db.server.version.is_azure else None,
    "serviceobjective": lambda db: "GP_Gen5_2" if db.server.version.is_azure else None,
    "isansinulldefault": lambda db: int(db.options.ansi_null_default),
    "isautocreatestatistics": lambda db: int(db.properties.get("auto_create_statistics", "ON") == "ON"),
    "isautoupdatestatistics": lambda db: int(db.properties.get("auto_update_statistics", "ON") == "ON"),
    "isrecursivetriggersenabled": lambda db: int(db.options.recursive_triggers),
    "isparameterizationforced": lambda db: int(db.properties.get("parameterization") == "FORCED"),
    "ismergepublished": lambda _: 0,
    "issubscribed": lambda _: 0,
    "istornpagedetectionenabled": lambda db: int(db.properties.get("page_verify") == "TORN_PAGE_DETECTION"),
    "isxtpsupported": lambda _: 1,
    "lastgoodcheckdbtime": lambda _: "1900-01-01T00:00:00.000",
}


def _database_property(scope: Scope, name: str | None, key: str | None) -> object:
    database = scope.server.databases.get(name or "")
    wanted = (key or "").strip().casefold()
    if database is not None and wanted == "updateability" and scope.server.replica.serves(scope.session.spid):
        return variant("READ_ONLY")
    compute = _DATABASE.get(wanted)
    return variant(compute(database)) if database is not None and compute is not None else None


_GENERATED = {"": 0, "start": 1, "end": 2}
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
    "generatedalwaystype": lambda _, column: _GENERATED[column.generated],
    "isdeterministic": lambda _, column: None if column.computed is None else int(column.computed.stored),
    "isidnotforrepl": lambda _, column: int(column.identity is not None and column.identity.not_for_replication),
    "isfulltextindexed": lambda *_: 0,
    "isoutparam": lambda *_: None,
    "isxmlindexable": lambda _, column: int(column.type.name == "xml"),
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
        "tablehasnonclustindex": any(not index.clustered for index in table.indexes),
        "tablehasrowguidcol": any(column.rowguid for column in table.columns),
        "tablehascolumnset": False,
        "tablehasactivefulltextindex": False,
        "tableisfake": False,
        "tableislockedonbulkload": False,
        "tableismemoryoptimized": False,
        "isindexed": bool(table.indexes),
        "isindexable": True,
        "isansinullson": True,
        "isquotedidenton": True,
    }


_NUMBERS: dict[str, Callable[[Table], int]] = {
    "cardinality": lambda table: table.row_count,
    "tabletemporaltype": lambda table: int(table.properties.get("temporal_type", 0)),
    "tabletextinrowlimit": lambda _: 0,
}
_FIRED = {
    "hasaftertrigger": ("after", ""), "hasinsteadoftrigger": ("instead of", ""), "hasinserttrigger": ("", "insert"),
    "hasupdatetrigger": ("", "update"), "hasdeletetrigger": ("", "delete"), "tablehasinserttrigger": ("", "insert"),
    "tablehasupdatetrigger": ("", "update"), "tablehasdeletetrigger": ("", "delete"),
}  # fmt: skip
"""Properties of triggers: timing and event, where they matter."""


def _fires(trigger: object, item: object, wanted: tuple[str, str]) -> bool:
    """Whether an object is a trigger of a table or view, with the given timing and event."""
    if getattr(trigger, "type_code", "") != "TR" or trigger.parent_object_id != getattr(item, "object_id", 0):  # type: ignore[attr-defined]
        return False
    module, (timing, event) = trigger.definition, wanted  # type: ignore[attr-defined]
    instead = module.node.timing == "instead of"
    return (not timing or instead == (timing == "instead of")) and (not event or event in module.events)


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
    if isinstance(item, Table) and name in _NUMBERS:
        return _NUMBERS[name](item)
    if name in _FIRED:
        return int(any(_fires(trigger, item, _FIRED[name]) for trigger in scope.database.objects()))
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
        "isdisabled": int(index.disabled and not index.hypothetical),
        "ishypothetical": int(index.hypothetical),
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
