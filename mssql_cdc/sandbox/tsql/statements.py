"""Syntax tree of statements. Every statement knows the line of its first word (1-based, within the batch)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf

from mssql_cdc.sandbox.tsql.ast import Expression, LiteralRows, Name, Query, TableSource, Top, TypeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Common to all statements: the line, and where the text begins and ends (known for ALTER TABLE only)."""

    line: int = 0
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)


# ---- control of flow ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Block(Statement):
    """BEGIN … END."""

    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class If(Statement):
    """IF condition statement [ELSE statement]."""

    condition: Expression
    then: Statement
    otherwise: Statement | None = None


@dataclass(frozen=True, slots=True)
class While(Statement):
    """WHILE condition statement."""

    condition: Expression
    body: Statement


@dataclass(frozen=True, slots=True)
class Jump(Statement):
    """BREAK, CONTINUE."""

    kind: OneOf["break", "continue"]


@dataclass(frozen=True, slots=True)
class Goto(Statement):
    """GOTO label."""

    label: str


@dataclass(frozen=True, slots=True)
class Label(Statement):
    """label: (a target of GOTO)."""

    name: str


@dataclass(frozen=True, slots=True)
class Return(Statement):
    """RETURN [value | query of an inline function]."""

    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class TryCatch(Statement):
    """BEGIN TRY … END TRY BEGIN CATCH … END CATCH."""

    body: tuple[Statement, ...]
    handler: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Throw(Statement):
    """THROW [number, message, state]."""

    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class RaiseError(Statement):
    """RAISERROR (message, severity, state, arguments…) WITH options."""

    message: Expression
    severity: Expression
    state: Expression
    arguments: tuple[Expression, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Print(Statement):
    """PRINT value."""

    value: Expression


@dataclass(frozen=True, slots=True)
class WaitFor(Statement):
    """WAITFOR DELAY | TIME value."""

    kind: OneOf["DELAY", "TIME"]
    value: Expression


# ---- variables and options ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VariableDeclaration:
    """One element of DECLARE, or a parameter of a module."""

    name: str
    type: TypeName
    default: Expression | None = None
    output: bool = False
    cursor: bool = False
    readonly: bool = False


@dataclass(frozen=True, slots=True)
class Declare(Statement):
    """DECLARE @a int = 1, @b int."""

    variables: tuple[VariableDeclaration, ...]


@dataclass(frozen=True, slots=True)
class DeclareTable(Statement):
    """DECLARE @t TABLE (…)."""

    name: str
    table: TableDefinition


@dataclass(frozen=True, slots=True)
class SetVariable(Statement):
    """SET @v = value (operator `=` or `+=` …)."""

    name: str
    operator: str
    value: Expression


@dataclass(frozen=True, slots=True)
class SetOption(Statement):
    """SET option[, option] ON | OFF | value."""

    names: tuple[str, ...]
    value: str | Expression


@dataclass(frozen=True, slots=True)
class SetIsolation(Statement):
    """SET TRANSACTION ISOLATION LEVEL and the level's words."""

    level: str


@dataclass(frozen=True, slots=True)
class SetIdentityInsert(Statement):
    """SET IDENTITY_INSERT table ON | OFF."""

    table: Name
    on: bool


@dataclass(frozen=True, slots=True)
class Use(Statement):
    """USE database."""

    database: str


# ---- queries and changes ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SelectStatement(Statement):
    """A query on its own."""

    query: Query


@dataclass(frozen=True, slots=True)
class Output:
    """OUTPUT items [INTO table (columns)]; items are (expression, alias)."""

    items: tuple[tuple[Expression, str], ...]
    into: Name = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Insert(Statement):
    """INSERT; `source` is a query (VALUES included), rows of literals, an EXECUTE, or None for DEFAULT VALUES."""

    target: Name
    columns: tuple[str, ...]
    source: Query | LiteralRows | Statement | None
    top: Top | None = None
    output: tuple[Output, ...] = ()
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InsertBulk(Statement):
    """INSERT BULK with (column, type) pairs and the words of its options."""

    target: Name
    columns: tuple[tuple[str, TypeName], ...]
    options: frozenset[str]


@dataclass(frozen=True, slots=True)
class Assignment:
    """One SET element; `column` empty: only a variable, `variable` empty: only a column."""

    column: Name
    variable: str
    operator: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Update(Statement):
    """UPDATE target SET … [FROM source] [WHERE …]."""

    target: Name
    assignments: tuple[Assignment, ...]
    source: TableSource | None = None
    where: Expression | None = None
    top: Top | None = None
    output: tuple[Output, ...] = ()
    hints: tuple[str, ...] = ()
    ctes: tuple = ()


@dataclass(frozen=True, slots=True)
class Delete(Statement):
    """DELETE target [FROM source] [WHERE …]."""

    target: Name
    source: TableSource | None = None
    where: Expression | None = None
    top: Top | None = None
    output: tuple[Output, ...] = ()
    hints: tuple[str, ...] = ()
    ctes: tuple = ()


@dataclass(frozen=True, slots=True)
class MergeClause:
    """WHEN [NOT] MATCHED [BY …] [AND condition] THEN action."""

    match: OneOf["matched", "target", "source"]
    condition: Expression | None
    action: OneOf["update", "delete", "insert"]
    assignments: tuple[Assignment, ...] = ()
    columns: tuple[str, ...] = ()
    values: tuple[Expression, ...] | None = ()


@dataclass(frozen=True, slots=True)
class Merge(Statement):
    """MERGE; match `target` is NOT MATCHED [BY TARGET], `source` NOT MATCHED BY SOURCE."""

    target: Name
    alias: str
    source: TableSource
    condition: Expression
    clauses: tuple[MergeClause, ...]
    output: tuple[Output, ...] = ()
    hints: tuple[str, ...] = ()
    top: Top | None = None
    ctes: tuple = ()


@dataclass(frozen=True, slots=True)
class Truncate(Statement):
    """TRUNCATE TABLE."""

    table: Name


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of EXECUTE; `value` None means DEFAULT."""

    name: str
    value: Expression | None
    output: bool = False


@dataclass(frozen=True, slots=True)
class ResultColumnDefinition:
    """A column of WITH RESULT SETS."""

    name: str
    type: TypeName
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Execute(Statement):
    """EXEC [@r =] procedure arguments; `procedure` is a name or a variable that holds one.

    `result_sets` is what WITH RESULT SETS describes: None where nothing is said, () for NONE.
    """

    procedure: Name | str
    arguments: tuple[Argument, ...] = ()
    result: str = ""
    result_sets: tuple[tuple[ResultColumnDefinition, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class ExecuteString(Statement):
    """EXEC ('text' + @more [, arguments]) [AS USER | LOGIN = 'name'] [AT server]; `kind` is user or login."""

    text: Expression
    kind: str = ""
    name: str = ""
    server: str = ""


# ---- transactions -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TransactionStatement(Statement):
    """BEGIN, COMMIT, ROLLBACK, SAVE TRANSACTION [name | @variable]."""

    action: OneOf["begin", "commit", "rollback", "save"]
    name: str | Expression = ""


@dataclass(frozen=True, slots=True)
class Kill(Statement):
    """KILL session."""

    session: Expression


# ---- cursors ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeclareCursor(Statement):
    """DECLARE name CURSOR options FOR query; as a variable: SET @c = CURSOR options."""

    name: str
    options: tuple[str, ...]
    query: Query


@dataclass(frozen=True, slots=True)
class CursorAction(Statement):
    """OPEN, CLOSE, DEALLOCATE."""

    action: OneOf["open", "close", "deallocate"]
    cursor: str


@dataclass(frozen=True, slots=True)
class Fetch(Statement):
    """FETCH direction [count] FROM cursor [INTO variables]."""

    direction: str
    count: Expression | None
    cursor: str
    into: tuple[str, ...] = ()


# ---- definitions --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a key or an index."""

    name: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class ForeignReference:
    """REFERENCES table (columns) with its ON DELETE and ON UPDATE actions."""

    table: Name
    columns: tuple[str, ...] = ()
    on_delete: str = "NO ACTION"
    on_update: str = "NO ACTION"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A table constraint; `clustered` None where not said; `column` for a default of ALTER TABLE."""

    kind: OneOf["primary", "unique", "foreign", "check", "default"]
    name: str = ""
    columns: tuple[KeyColumn, ...] = ()
    clustered: bool | None = None
    reference: ForeignReference | None = None
    expression: Expression | None = None
    column: str = ""
    check_existing: bool = True


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column of CREATE TABLE; `computed` is set instead of `type` for a computed one."""

    name: str
    type: TypeName | None
    nullable: bool | None = None
    identity: tuple[int, int] | None = None
    default: Constraint | None = None
    computed: Expression | None = None
    persisted: bool = False
    generated: OneOf["", "start", "end"] = ""
    hidden: bool = False
    sparse: bool = False
    rowguid: bool = False
    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """An index, inline or of CREATE INDEX."""

    name: str
    columns: tuple[KeyColumn, ...]
    unique: bool = False
    clustered: bool = False
    include: tuple[str, ...] = ()
    where: Expression | None = None
    columnstore: bool = False


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """What stands between the parentheses of CREATE TABLE."""

    columns: tuple[ColumnDefinition, ...]
    constraints: tuple[Constraint, ...] = ()
    indexes: tuple[IndexDefinition, ...] = ()
    period: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class CreateTable(Statement):
    """CREATE TABLE; `options` are the WITH options as (name, text)."""

    name: Name
    table: TableDefinition
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AlterTableAdd(Statement):
    """ALTER TABLE … ADD columns and constraints."""

    table: Name
    definition: TableDefinition
    with_values: bool = False


@dataclass(frozen=True, slots=True)
class AlterColumn(Statement):
    """ALTER TABLE … ALTER COLUMN c type [NULL | NOT NULL], or ADD/DROP of a column property."""

    table: Name
    column: str
    type: TypeName | None
    nullable: bool | None = None
    property: str = ""


@dataclass(frozen=True, slots=True)
class AlterTableDrop(Statement):
    """ALTER TABLE … DROP [COLUMN | CONSTRAINT] [IF EXISTS] names."""

    table: Name
    items: tuple[tuple[OneOf["column", "constraint", "period"], str], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterTableSet(Statement):
    """Remaining forms: `set` options, `check`/`nocheck` constraint, `enable`/`disable` trigger, `rebuild`."""

    table: Name
    action: str
    names: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateIndex(Statement):
    """CREATE [UNIQUE] [CLUSTERED | NONCLUSTERED] INDEX."""

    table: Name
    index: IndexDefinition
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DropIndex(Statement):
    """DROP INDEX name ON table."""

    table: Name
    index: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterIndex(Statement):
    """ALTER INDEX name | ALL ON table REBUILD | REORGANIZE | DISABLE."""

    table: Name
    index: str
    action: str


@dataclass(frozen=True, slots=True)
class CreateSchema(Statement):
    """CREATE SCHEMA name [AUTHORIZATION owner] with tables, views and permissions made along with it."""

    name: str
    owner: str = ""
    elements: tuple[Statement, ...] = ()


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


@dataclass(frozen=True, slots=True)
class AlterDatabase(Statement):
    """ALTER DATABASE name SET options | COLLATE c | MODIFY NAME = n | a filegroup; an empty name is CURRENT.

    `filegroup` is what happens (add, remove, modify; use: a file is put there) and the name.
    """

    name: str
    options: tuple[tuple[str, str], ...] = ()
    collation: str = ""
    new_name: str = ""
    filegroup: tuple[str, str] = ("", "")


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
    """The columns of the table which the permissions are limited to."""


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
