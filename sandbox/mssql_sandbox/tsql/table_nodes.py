"""Syntax tree of tables: columns, constraints, indexes, CREATE and ALTER TABLE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from mssql_sandbox.tsql.ast import Expression, Name, TypeName
from mssql_sandbox.tsql.flow_nodes import Statement


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
    not_for_replication: bool = False


@dataclass(frozen=True, slots=True)
class Constraint:
    """A table constraint; `clustered` None if not specified; `column` for a default of ALTER TABLE."""

    kind: OneOf["primary", "unique", "foreign", "check", "default"]
    name: str = ""
    columns: tuple[KeyColumn, ...] = ()
    clustered: bool | None = None
    reference: ForeignReference | None = None
    expression: Expression | None = None
    column: str = ""
    check_existing: bool = True
    not_for_replication: bool = False
    options: tuple[tuple[str, str], ...] = ()


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
    masking: str | None = None
    not_for_replication: bool = False
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
    """The contents of the parentheses of CREATE TABLE."""

    columns: tuple[ColumnDefinition, ...]
    constraints: tuple[Constraint, ...] = ()
    indexes: tuple[IndexDefinition, ...] = ()
    period: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class DeclareTable(Statement):
    """DECLARE @t TABLE (…)."""

    name: str
    table: TableDefinition


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
    """ALTER TABLE … ALTER COLUMN c type [NULL | NOT NULL], or ADD/DROP of a column property.

    `masking` is the function of MASKED WITH, None if not specified.
    """

    table: Name
    column: str
    type: TypeName | None
    nullable: bool | None = None
    property: str = ""
    masking: str | None = None


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
class SwitchPartition(Statement):
    """ALTER TABLE source SWITCH [PARTITION n] TO target [PARTITION m]; None if no partition is named."""

    table: Name
    target: Name
    source_partition: Expression | None = None
    target_partition: Expression | None = None


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
