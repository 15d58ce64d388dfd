"""The views of INFORMATION_SCHEMA."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_cdc.sandbox.catalog.definitions import Scope, view
from mssql_cdc.sandbox.catalog.measures import measures
from mssql_cdc.sandbox.engine.storage.table import Table
from mssql_cdc.sandbox.engine.types import ResultColumn, reported_name

_ROUTINES = {"P": "PROCEDURE", "FN": "FUNCTION", "IF": "FUNCTION", "TF": "FUNCTION"}


def view_columns(scope: Scope, item: object) -> tuple[ResultColumn, ...]:
    """The columns of a view as the executor knows them."""
    describe = getattr(scope.session, "view_columns", None)
    return tuple(describe(item)) if describe is not None else ()


def _tables(scope: Scope) -> Iterator[tuple]:
    for item in scope.database.objects():
        if isinstance(item, Table):
            yield (scope.database.name, item.schema.name, item.name, "BASE TABLE")
        elif item.type_code == "V":
            yield (scope.database.name, item.schema.name, item.name, "VIEW")


def _columns(scope: Scope) -> Iterator[tuple]:
    name = scope.database.name
    for item in scope.database.objects():
        if not isinstance(item, Table):
            continue
        for ordinal, column in enumerate(item.columns, 1):
            sizes, type_ = measures(column.type), column.type
            default = column.default.text if column.default is not None else None
            collation = type_.collation.name if type_.collation is not None else None
            character_set = None if collation is None else "UNICODE" if type_.name.startswith("n") else "iso_1"
            yield (
                name,
                item.schema.name,
                item.name,
                column.name,
                ordinal,
                default,
                "YES" if column.nullable else "NO",
                reported_name(type_) if not type_.alias else type_.name,
                sizes.characters,
                sizes.octets,
                sizes.precision,
                sizes.radix,
                sizes.scale,
                sizes.fraction,
                character_set,
                collation,
                "sysname" if type_.alias == "sysname" else None,
            )


def _schemata(scope: Scope) -> Iterator[tuple]:
    for schema in scope.database.schemas.values():
        yield (scope.database.name, schema.name, schema.owner)


def _views(scope: Scope) -> Iterator[tuple]:
    for item in scope.database.objects():
        if item.type_code == "V":
            yield (scope.database.name, item.schema.name, item.name, item.text or None)


def _routines(scope: Scope) -> Iterator[tuple]:
    name = scope.database.name
    for item in scope.database.objects():
        kind = _ROUTINES.get(item.type_code)
        if kind is not None:
            schema = item.schema.name
            yield (name, schema, item.name, name, schema, item.name, kind, item.text or None)


def _constraints(scope: Scope) -> Iterator[tuple]:
    name = scope.database.name
    for table in scope.database.tables():
        head = (name, table.schema.name)
        tail = (name, table.schema.name, table.name)
        for index in table.indexes:
            if index.constraint:
                yield (*head, index.name, *tail, index.constraint)
        for check in table.checks:
            yield (*head, check.name, *tail, "CHECK")
        for key in table.foreign_keys:
            yield (*head, key.name, *tail, "FOREIGN KEY")


def _key_columns(scope: Scope) -> Iterator[tuple]:
    name = scope.database.name
    for table in scope.database.tables():
        keys = [(index.name, tuple(c for c, _ in index.columns)) for index in table.indexes if index.constraint]
        keys += [(key.name, key.columns) for key in table.foreign_keys]
        for constraint, columns in keys:
            for ordinal, column in enumerate(columns, 1):
                schema = table.schema.name
                yield (name, schema, constraint, name, schema, table.name, column, ordinal)


def _referential(scope: Scope) -> Iterator[tuple]:
    name = scope.database.name
    for table in scope.database.tables():
        for key in table.foreign_keys:
            wanted = set(key.referenced_columns)
            target = next(
                (i.name for i in key.referenced.indexes if i.unique and {c for c, _ in i.columns} == wanted), None
            )
            schema = key.referenced.schema.name
            yield (name, table.schema.name, key.name, name, schema, target, key.on_update, key.on_delete)


def _checks(scope: Scope) -> Iterator[tuple]:
    for table in scope.database.tables():
        for check in table.checks:
            yield (scope.database.name, table.schema.name, check.name, check.text)


_CONSTRAINT = "CONSTRAINT_CATALOG nvarchar(128)?, CONSTRAINT_SCHEMA nvarchar(128)?, CONSTRAINT_NAME sysname"
_TABLE = "TABLE_CATALOG nvarchar(128)?, TABLE_SCHEMA nvarchar(128)?, TABLE_NAME sysname"

VIEWS = (
    view("INFORMATION_SCHEMA.TABLES", _TABLE + ", TABLE_TYPE varchar(10)?", _tables),
    view(
        "INFORMATION_SCHEMA.COLUMNS",
        _TABLE
        + ", COLUMN_NAME sysname?, ORDINAL_POSITION int?, COLUMN_DEFAULT nvarchar(4000)?, IS_NULLABLE varchar(3)?, "
        "DATA_TYPE nvarchar(128)?, CHARACTER_MAXIMUM_LENGTH int?, CHARACTER_OCTET_LENGTH int?, "
        "NUMERIC_PRECISION tinyint?, NUMERIC_PRECISION_RADIX smallint?, NUMERIC_SCALE int?, "
        "DATETIME_PRECISION smallint?, CHARACTER_SET_CATALOG sysname? = NULL, CHARACTER_SET_SCHEMA sysname? = NULL, "
        "CHARACTER_SET_NAME sysname?, COLLATION_CATALOG sysname? = NULL, COLLATION_SCHEMA sysname? = NULL, "
        "COLLATION_NAME sysname?, DOMAIN_CATALOG sysname? = NULL, DOMAIN_SCHEMA sysname? = NULL, DOMAIN_NAME sysname?",
        _columns,
    ),
    view(
        "INFORMATION_SCHEMA.SCHEMATA",
        "CATALOG_NAME sysname?, SCHEMA_NAME sysname, SCHEMA_OWNER nvarchar(128)?, "
        "DEFAULT_CHARACTER_SET_CATALOG sysname? = NULL, DEFAULT_CHARACTER_SET_SCHEMA sysname? = NULL, "
        "DEFAULT_CHARACTER_SET_NAME sysname? = 'iso_1'",
        _schemata,
    ),
    view(
        "INFORMATION_SCHEMA.VIEWS",
        _TABLE + ", VIEW_DEFINITION nvarchar(4000)?, CHECK_OPTION varchar(7)? = 'NONE', IS_UPDATABLE varchar(2) = 'NO'",
        _views,
    ),
    view(
        "INFORMATION_SCHEMA.ROUTINES",
        "SPECIFIC_CATALOG nvarchar(128)?, SPECIFIC_SCHEMA nvarchar(128)?, SPECIFIC_NAME sysname, "
        "ROUTINE_CATALOG nvarchar(128)?, ROUTINE_SCHEMA nvarchar(128)?, ROUTINE_NAME sysname, "
        "ROUTINE_TYPE nvarchar(20)?, ROUTINE_DEFINITION nvarchar(4000)?",
        _routines,
    ),
    view(
        "INFORMATION_SCHEMA.TABLE_CONSTRAINTS",
        f"{_CONSTRAINT}, {_TABLE}, CONSTRAINT_TYPE varchar(11)?, IS_DEFERRABLE varchar(2) = 'NO', "
        "INITIALLY_DEFERRED varchar(2) = 'NO'",
        _constraints,
    ),
    view(
        "INFORMATION_SCHEMA.KEY_COLUMN_USAGE",
        f"{_CONSTRAINT}, {_TABLE}, COLUMN_NAME nvarchar(128)?, ORDINAL_POSITION int",
        _key_columns,
    ),
    view(
        "INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS",
        f"{_CONSTRAINT}, UNIQUE_CONSTRAINT_CATALOG nvarchar(128)?, UNIQUE_CONSTRAINT_SCHEMA nvarchar(128)?, "
        "UNIQUE_CONSTRAINT_NAME sysname?, MATCH_OPTION varchar(7)? = 'SIMPLE', UPDATE_RULE varchar(11)?, "
        "DELETE_RULE varchar(11)?",
        _referential,
    ),
    view("INFORMATION_SCHEMA.CHECK_CONSTRAINTS", f"{_CONSTRAINT}, CHECK_CLAUSE nvarchar(4000)?", _checks),
)
