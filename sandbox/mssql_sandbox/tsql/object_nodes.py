"""Syntax tree of all other definitions: schemas, databases, modules, types, principals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from mssql_sandbox.tsql.ast import Expression, Name, Query, TypeName
from mssql_sandbox.tsql.flow_nodes import Statement, VariableDeclaration
from mssql_sandbox.tsql.table_nodes import TableDefinition


@dataclass(frozen=True, slots=True)
class CreateSchema(Statement):
    """CREATE SCHEMA name [AUTHORIZATION owner]."""

    name: str
    owner: str = ""


@dataclass(frozen=True, slots=True)
class AlterSchema(Statement):
    """ALTER SCHEMA name TRANSFER object."""

    name: str
    kind: str
    object: Name


@dataclass(frozen=True, slots=True)
class CreatePartitionFunction(Statement):
    """CREATE PARTITION FUNCTION name (type) AS RANGE LEFT | RIGHT FOR VALUES (…)."""

    name: str
    type: TypeName
    boundaries: tuple[Expression, ...]
    right: bool = False


@dataclass(frozen=True, slots=True)
class CreatePartitionScheme(Statement):
    """CREATE PARTITION SCHEME name AS PARTITION function [ALL] TO (filegroups)."""

    name: str
    function: str
    filegroups: tuple[str, ...]
    every: bool = False


@dataclass(frozen=True, slots=True)
class CreateDatabase(Statement):
    """CREATE DATABASE name [COLLATE c] with its filegroups and options."""

    name: str
    collation: str = ""
    filegroups: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    attached: tuple[str, ...] = ()
    """The files of FOR ATTACH."""


@dataclass(frozen=True, slots=True)
class AlterDatabase(Statement):
    """ALTER DATABASE name SET options | COLLATE c | MODIFY NAME = n | a filegroup; an empty name is CURRENT.

    `filegroup` is the action (add, remove, modify; use: a file is added to it) and the name.
    """

    name: str
    options: tuple[tuple[str, str], ...] = ()
    collation: str = ""
    new_name: str = ""
    filegroup: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class SecurityPredicate:
    """ADD | DROP FILTER PREDICATE function(arguments) ON table; `rows` is the condition on the table's rows."""

    action: OneOf["add", "drop"]
    table: Name
    function: Name = ()
    arguments: tuple[Expression, ...] = ()
    rows: Expression | None = None


@dataclass(frozen=True, slots=True)
class SecurityPolicy(Statement):
    """CREATE | ALTER SECURITY POLICY; `enabled` is None where an ALTER leaves the state as it is."""

    name: Name
    alter: bool
    predicates: tuple[SecurityPredicate, ...]
    enabled: bool | None = None
    schema_bound: bool = True
    for_replication: bool = True


@dataclass(frozen=True, slots=True)
class Drop(Statement):
    """DROP kind [IF EXISTS] names."""

    kind: str
    names: tuple[Name, ...]
    if_exists: bool = False


ModuleForm = OneOf["create", "alter", "create or alter"]
PermissionAction = OneOf["grant", "deny", "revoke"]


@dataclass(frozen=True, slots=True)
class CreateModule(Statement):
    """CREATE | ALTER | CREATE OR ALTER of VIEW, PROCEDURE, FUNCTION, TRIGGER; `text` is what was written.

    `query` for views and inline functions, `body` for the others; `returns` for scalar functions,
    `returns_table` (variable, columns) for multi-statement ones.
    """

    kind: OneOf["view", "procedure", "function", "trigger"]
    form: ModuleForm
    name: Name
    text: str
    parameters: tuple[VariableDeclaration, ...] = ()
    columns: tuple[str, ...] = ()
    query: Query | None = None
    body: tuple[Statement, ...] = ()
    returns: TypeName | None = None
    returns_table: tuple[str, TableDefinition] | None = None
    options: tuple[str, ...] = ()
    table: Name = ()
    timing: str = ""
    events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateType(Statement):
    """CREATE TYPE name FROM type [NOT NULL] | AS TABLE (…)."""

    name: Name
    base: TypeName | None = None
    nullable: bool | None = None
    table: TableDefinition | None = None


@dataclass(frozen=True, slots=True)
class CreateSequence(Statement):
    """CREATE | ALTER SEQUENCE with its options as (name, number)."""

    name: Name
    type: TypeName | None
    options: tuple[tuple[str, int | None], ...] = ()
    alter: bool = False


@dataclass(frozen=True, slots=True)
class CreateSynonym(Statement):
    """CREATE SYNONYM name FOR target."""

    name: Name
    target: Name


@dataclass(frozen=True, slots=True)
class Principal(Statement):
    """CREATE | ALTER LOGIN, USER, ROLE, APPLICATION ROLE, SERVER ROLE with options as (name, text)."""

    action: OneOf["create", "alter"]
    kind: OneOf["login", "user", "role", "server role"]
    name: str
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Permission(Statement):
    """GRANT, DENY, REVOKE permissions [ON class::object] TO principals."""

    action: PermissionAction
    permissions: tuple[str, ...]
    securable_class: str
    securable: Name
    principals: tuple[str, ...]
    columns: tuple[str, ...] = ()
    """The columns of the table that the permissions are limited to."""


@dataclass(frozen=True, slots=True)
class ExecuteAs(Statement):
    """EXECUTE AS USER | LOGIN = 'name'; REVERT when `kind` is `revert`."""

    kind: str
    name: Expression | None = None


@dataclass(frozen=True, slots=True)
class Maintenance(Statement):
    """Statements without effect on data here: CHECKPOINT, DBCC, UPDATE STATISTICS, RECONFIGURE, BACKUP."""

    kind: str
    words: tuple[str, ...] = ()
