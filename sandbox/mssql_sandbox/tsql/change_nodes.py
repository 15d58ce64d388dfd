"""Syntax tree of queries as statements, of row changes, and of EXECUTE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from mssql_sandbox.tsql.ast import Expression, LiteralRows, Name, Query, TableSource, Top, TypeName
from mssql_sandbox.tsql.flow_nodes import Statement


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
    ctes: tuple = ()


@dataclass(frozen=True, slots=True)
class InsertBulk(Statement):
    """INSERT BULK with (column, type) pairs and the words of its options."""

    target: Name
    columns: tuple[tuple[str, TypeName], ...]
    options: frozenset[str]


@dataclass(frozen=True, slots=True)
class BulkInsert(Statement):
    """BULK INSERT target FROM 'file' with its options as (NAME, text); flags have no text."""

    target: Name
    file: str
    options: tuple[tuple[str, str], ...] = ()


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
class Execute(Statement):
    """EXEC [@r =] procedure arguments; `procedure` is a name or a variable with one."""

    procedure: Name | str
    arguments: tuple[Argument, ...] = ()
    result: str = ""


@dataclass(frozen=True, slots=True)
class ExecuteString(Statement):
    """EXEC ('text' + @more [, arguments]) [AS USER | LOGIN = 'name'] [AT server]; `kind` is user or login."""

    text: Expression
    kind: str = ""
    name: str = ""
    server: str = ""
