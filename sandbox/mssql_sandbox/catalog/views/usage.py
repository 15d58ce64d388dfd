"""INFORMATION_SCHEMA's views of dependencies and privileges [doc]: columns, tables, types."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.exec.variables import walk
from mssql_sandbox.tsql import ast

_SHOWN = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "REFERENCES"})


def _keys(table: Table) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names of a table's constraints with their columns."""
    for index in table.indexes:
        if index.constraint:
            yield index.name, tuple(column for column, _ in index.columns)
    for key in table.foreign_keys:
        yield key.name, tuple(key.columns)
    for check in table.checks:
        yield check.name, tuple(column.name for column in table.columns if f"[{column.name}]" in check.text)


def _constraint_columns(scope: Scope) -> Iterator[tuple]:
    name = scope.database.name
    for table in scope.database.tables():
        place = (name, table.schema.name, table.name)
        for constraint, columns in _keys(table):
            for column in columns:
                yield (*place, column, name, table.schema.name, constraint)


def _constraint_tables(scope: Scope) -> Iterator[tuple]:
    name = scope.database.name
    for table in scope.database.tables():
        for constraint, _ in _keys(table):
            yield (name, table.schema.name, table.name, name, table.schema.name, constraint)


def _domain_columns(scope: Scope) -> Iterator[tuple]:
    name = scope.database.name
    types = {item.name: item for item in scope.database.objects() if item.type_code == "TYPE"}
    for table in scope.database.tables():
        for column in table.columns:
            domain = types.get(column.type.alias)
            if domain is not None:
                yield (name, domain.schema.name, domain.name, name, table.schema.name, table.name, column.name)


def _view_tables(scope: Scope) -> Iterator[tuple]:
    """The tables and views that a view's query names, once each."""
    name = scope.database.name
    for item in scope.database.objects():
        if item.type_code != "V" or item.definition is None:
            continue
        found = {}
        for part in walk(item.definition.node.query):
            if isinstance(part, ast.NamedTable):
                *qualifiers, named = part.name
                schema = qualifiers[-1] if qualifiers else ""
                used = scope.database.find(schema or item.schema.name, named)
                if used is not None:
                    found[used.object_id] = used
        for used in found.values():
            yield (name, item.schema.name, item.name, name, used.schema.name, used.name)


def _view_columns(scope: Scope) -> Iterator[tuple]:
    """The columns of tables that a view's query uses."""
    for row in _view_tables(scope):
        used = scope.database.find(row[4], row[5])
        owner = scope.database.find(row[1], row[2])
        if not isinstance(used, Table) or owner is None:
            continue
        query = owner.definition.node.query
        named = {part.parts[-1].casefold() for part in walk(query) if isinstance(part, ast.ColumnRef)}
        stars = any(isinstance(part, ast.Star) for part in walk(query))
        for column in used.columns:
            if stars or column.name.casefold() in named:
                yield (*row, column.name)


def _grants(scope: Scope) -> Iterator[tuple[str, Table, str, str, str]]:
    """(grantee, table, column or "", privilege, whether it is grantable) for all grants on tables."""
    for principal in scope.database.principals.values():
        for state, permission, kind, target in principal.permissions:
            schema, _, name = target.partition(".")
            name, _, column = name.rpartition(".") if kind == "COLUMN" else (name, "", "")
            table = scope.database.table(schema, name) if kind in ("OBJECT", "COLUMN") else None
            if table is not None and permission in _SHOWN and state != "DENY":
                onward = "YES" if state == "GRANT_WITH_GRANT_OPTION" else "NO"
                yield principal.name, table, column, permission, onward


def _table_privileges(scope: Scope) -> Iterator[tuple]:
    for grantee, table, column, privilege, onward in _grants(scope):
        if not column:
            place = (scope.database.name, table.schema.name, table.name)
            yield (table.schema.owner, grantee, *place, privilege, onward)


def _column_privileges(scope: Scope) -> Iterator[tuple]:
    for grantee, table, column, privilege, onward in _grants(scope):
        place = (scope.database.name, table.schema.name, table.name)
        for name in [column] if column else [each.name for each in table.columns] if privilege != "DELETE" else []:
            yield (table.schema.owner, grantee, *place, name, privilege, onward)


_TABLE = "TABLE_CATALOG nvarchar(128)?, TABLE_SCHEMA nvarchar(128)?, TABLE_NAME sysname"
_CONSTRAINT = "CONSTRAINT_CATALOG nvarchar(128)?, CONSTRAINT_SCHEMA nvarchar(128)?, CONSTRAINT_NAME sysname"
_VIEW = "VIEW_CATALOG nvarchar(128)?, VIEW_SCHEMA nvarchar(128)?, VIEW_NAME sysname"
_DOMAIN = "DOMAIN_CATALOG nvarchar(128)?, DOMAIN_SCHEMA nvarchar(128)?, DOMAIN_NAME sysname"
VIEWS = (
    view(
        "INFORMATION_SCHEMA.CONSTRAINT_COLUMN_USAGE",
        f"{_TABLE}, COLUMN_NAME nvarchar(128)?, {_CONSTRAINT}",
        _constraint_columns,
    ),
    view("INFORMATION_SCHEMA.CONSTRAINT_TABLE_USAGE", f"{_TABLE}, {_CONSTRAINT}", _constraint_tables),
    view("INFORMATION_SCHEMA.COLUMN_DOMAIN_USAGE", f"{_DOMAIN}, {_TABLE}, COLUMN_NAME sysname?", _domain_columns),
    view("INFORMATION_SCHEMA.VIEW_TABLE_USAGE", f"{_VIEW}, {_TABLE}", _view_tables),
    view("INFORMATION_SCHEMA.VIEW_COLUMN_USAGE", f"{_VIEW}, {_TABLE}, COLUMN_NAME sysname?", _view_columns),
    view(
        "INFORMATION_SCHEMA.TABLE_PRIVILEGES",
        f"GRANTOR nvarchar(128)?, GRANTEE nvarchar(128)?, {_TABLE}, PRIVILEGE_TYPE varchar(10)?, "
        "IS_GRANTABLE varchar(3)?",
        _table_privileges,
    ),
    view(
        "INFORMATION_SCHEMA.COLUMN_PRIVILEGES",
        f"GRANTOR nvarchar(128)?, GRANTEE nvarchar(128)?, {_TABLE}, COLUMN_NAME sysname?, "
        "PRIVILEGE_TYPE varchar(10)?, IS_GRANTABLE varchar(3)? = 'YES'",
        _column_privileges,
    ),
    view(
        "INFORMATION_SCHEMA.DOMAIN_CONSTRAINTS",
        f"{_CONSTRAINT}, {_DOMAIN}, IS_DEFERRABLE varchar(2) = 'NO', INITIALLY_DEFERRED varchar(2) = 'NO'",
        lambda _scope: (),
    ),
)
