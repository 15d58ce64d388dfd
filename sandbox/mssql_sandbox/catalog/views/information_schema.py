"""The views of INFORMATION_SCHEMA."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.catalog.measures import measures
from mssql_sandbox.catalog.relations import columns_of
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import ResultColumn, SqlType, reported_name

_SHOWN = 4000
"""Longer definitions are NULL."""


def _tables(scope: Scope) -> Iterator[tuple]:
    for item in scope.database.objects():
        if isinstance(item, Table):
            yield (scope.database.name, item.schema.name, item.listed_name, "BASE TABLE")
        elif item.type_code == "V":
            yield (scope.database.name, item.schema.name, item.name, "VIEW")


def character_set(type_: SqlType) -> str | None:
    """The character set of a type."""
    return None if type_.collation is None else "UNICODE" if type_.name.startswith("n") else "iso_1"


def column_shape(database: Database, column: Column | ResultColumn, ordinal: int) -> tuple:
    """The columns of COLUMNS and ROUTINE_COLUMNS from the name on."""
    sizes, type_ = measures(column.type), column.type
    default = column.default.text if isinstance(column, Column) and column.default is not None else None
    return (
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
        character_set(type_),
        type_.collation.name if type_.collation is not None else None,
        *_domain(database, type_),
    )


def _domain(database: Database, type_: SqlType) -> tuple[str | None, str | None, str | None]:
    """The database and schema of a column's alias type."""
    if not type_.alias:
        return None, None, None
    own = next((item for item in database.objects() if item.type_code == "TYPE" and item.name == type_.alias), None)
    return database.name, "sys" if own is None else own.schema.name, type_.alias


def _columns(scope: Scope) -> Iterator[tuple]:
    for item in scope.database.objects():
        if isinstance(item, Table) or item.type_code == "V":
            place = (scope.database.name, item.schema.name, item.listed_name)
            for ordinal, column in enumerate(columns_of(scope.session, scope.database, item), 1):
                yield (*place, *column_shape(scope.database, column, ordinal))


def _schemata(scope: Scope) -> Iterator[tuple]:
    for schema in scope.database.schemas.values():
        yield (scope.database.name, schema.name, schema.owner)


def _views(scope: Scope) -> Iterator[tuple]:
    for item in scope.database.objects():
        if item.type_code == "V":
            text = item.text if item.text and len(item.text) <= _SHOWN else None
            yield (scope.database.name, item.schema.name, item.name, text)


def _constraints(scope: Scope) -> Iterator[tuple]:
    name = scope.database.name
    for table in scope.database.tables():
        head = (name, table.schema.name)
        tail = (name, table.schema.name, table.listed_name)
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
                yield (name, schema, constraint, name, schema, table.listed_name, column, ordinal)


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

COLUMN_SHAPE = (
    "COLUMN_NAME sysname?, ORDINAL_POSITION int?, COLUMN_DEFAULT nvarchar(4000)?, IS_NULLABLE varchar(3)?, "
    "DATA_TYPE nvarchar(128)?, CHARACTER_MAXIMUM_LENGTH int?, CHARACTER_OCTET_LENGTH int?, NUMERIC_PRECISION tinyint?, "
    "NUMERIC_PRECISION_RADIX smallint?, NUMERIC_SCALE int?, DATETIME_PRECISION smallint?, "
    "CHARACTER_SET_CATALOG sysname? = NULL, CHARACTER_SET_SCHEMA sysname? = NULL, CHARACTER_SET_NAME sysname?, "
    "COLLATION_CATALOG sysname? = NULL, COLLATION_SCHEMA sysname? = NULL, COLLATION_NAME sysname?, "
    "DOMAIN_CATALOG sysname?, DOMAIN_SCHEMA sysname?, DOMAIN_NAME sysname?"
)
"""The columns that `column_shape` fills."""

VIEWS = (
    view("INFORMATION_SCHEMA.TABLES", _TABLE + ", TABLE_TYPE varchar(10)?", _tables),
    view(
        "INFORMATION_SCHEMA.COLUMNS",
        f"{_TABLE}, {COLUMN_SHAPE}",
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
