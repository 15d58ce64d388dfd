"""Syntax tree of queries and of FROM; `ast` offers these together with the expressions."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import Literal as OneOf

from mssql_sandbox.tsql.expression_nodes import Expression, Function, Name, OrderItem, Over, TypeName
from mssql_sandbox.tsql.patterns import CELLS


class TableSource:
    """Any source in FROM."""

    __slots__ = ()


class QueryBody:
    """A query specification, a set operation or VALUES."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One element of a select list; `assign` names a variable (`SELECT @v += x`), with its operator."""

    expression: Expression
    alias: str = ""
    assign: str = ""
    operator: str = "="


@dataclass(frozen=True, slots=True)
class Top:
    """TOP (count) [PERCENT] [WITH TIES]."""

    count: Expression
    percent: bool = False
    ties: bool = False


@dataclass(frozen=True, slots=True)
class Select(QueryBody):
    """One query specification; `grouping_sets` for GROUP BY with ROLLUP, CUBE or GROUPING SETS, else None."""

    items: tuple[SelectItem, ...]
    distinct: bool = False
    top: Top | None = None
    into: Name = ()
    source: TableSource | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    grouping_sets: tuple[tuple[Expression, ...], ...] | None = None
    windows: tuple[tuple[str, Over], ...] = ()


SetOperator = OneOf["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]


@dataclass(frozen=True, slots=True)
class SetOperation(QueryBody):
    """UNION [ALL], EXCEPT, INTERSECT."""

    operator: SetOperator
    left: QueryBody
    right: QueryBody

    def chain(self) -> tuple[QueryBody, list[tuple[SetOperator, QueryBody]]]:
        """The leftmost operand, and the operands combined with it in turn: a long chain is not deeply nested."""
        steps: list[tuple[SetOperator, QueryBody]] = []
        first: QueryBody = self
        while isinstance(first, SetOperation):
            steps.append((first.operator, first.right))
            first = first.left
        return first, steps[::-1]


@dataclass(frozen=True, slots=True)
class Values(QueryBody):
    """VALUES (…), (…)."""

    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, slots=True)
class LiteralRows(QueryBody):
    """VALUES of two or more rows of literals only, as text: `INSERT` reads them column by column."""

    text: str

    def cells(self, width: int) -> list[str] | None:
        """The literals as written, row after row; None unless every row has `width` of them."""
        found: list[str] = CELLS.findall(self.text)
        if not width or len(found) % width:
            return None
        marks = list(map(itemgetter(0), found))
        if not marks.count("(") == marks[::width].count("(") == len(found) // width:
            return None
        found[::width] = [cell[1:].lstrip() for cell in found[::width]]
        return found


@dataclass(frozen=True, slots=True)
class Nested(QueryBody):
    """A parenthesised query used as an operand of a set operation."""

    query: Query


@dataclass(frozen=True, slots=True)
class CommonTable:
    """One element of WITH."""

    name: str
    columns: tuple[str, ...]
    query: Query


@dataclass(frozen=True, slots=True)
class ForClause:
    """FOR JSON | BROWSE: mode, options as (NAME, text)."""

    kind: OneOf["JSON", "BROWSE"]
    mode: OneOf["", "PATH", "AUTO"] = ""
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query expression."""

    body: QueryBody
    ctes: tuple[CommonTable, ...] = ()
    order: tuple[OrderItem, ...] = ()
    offset: Expression | None = None
    fetch: Expression | None = None
    for_clause: ForClause | None = None
    options: tuple[tuple[str, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class NamedTable(TableSource):
    """A table, view, common table expression or synonym, by name; a hint names its index as `INDEX=name`."""

    name: Name
    alias: str = ""
    hints: tuple[str, ...] = ()
    system_time: tuple[str, tuple[Expression, ...]] | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class VariableTable(TableSource):
    """A table variable."""

    name: str
    alias: str = ""


@dataclass(frozen=True, slots=True)
class FunctionTable(TableSource):
    """A table-valued function; `schema` is the WITH clause of OPENJSON."""

    name: Name
    arguments: tuple[Expression, ...]
    alias: str = ""
    columns: tuple[str, ...] = ()
    schema: tuple[tuple[str, TypeName, str], ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class FullTextTable(TableSource):
    """CONTAINSTABLE | FREETEXTTABLE (…): parsed, because modules use it, and refused when a statement is compiled."""

    alias: str


@dataclass(frozen=True, slots=True)
class DerivedTable(TableSource):
    """(query) alias(columns)."""

    query: Query
    alias: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Join(TableSource):
    """A join of two sources; APPLY kinds have no condition."""

    kind: OneOf["INNER", "LEFT", "RIGHT", "FULL", "CROSS", "CROSS APPLY", "OUTER APPLY"]
    left: TableSource
    right: TableSource
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Pivot(TableSource):
    """source PIVOT (aggregate FOR column IN (values)) alias."""

    source: TableSource
    aggregate: Function
    column: Name
    values: tuple[str, ...]
    alias: str
