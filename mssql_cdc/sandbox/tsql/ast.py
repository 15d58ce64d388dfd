"""Syntax tree of expressions and queries: what was written, nothing resolved.

Statements have their own module (`statements`). Names are tuples of parts as written, outermost first, empty
where a part was left out (`db..t` is `("db", "", "t")`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf

from mssql_cdc.sandbox.tsql.patterns import CELLS


class Expression:
    """Anything that has a value or a truth value."""

    __slots__ = ()


class TableSource:
    """Anything that can stand in FROM."""

    __slots__ = ()


class QueryBody:
    """A query specification, a set operation or VALUES."""

    __slots__ = ()


Name = tuple[str, ...]
LiteralKind = OneOf["int", "decimal", "float", "money", "string", "nstring", "binary", "null", "default"]


@dataclass(frozen=True, slots=True)
class TypeName:
    """A data type as written: `name` parts, numeric arguments (-1 for `max`), words such as `PRECISION`."""

    name: Name
    arguments: tuple[int, ...] = ()
    collation: str = ""


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A constant; `value` is int, Decimal, float, str, bytes or None."""

    value: object
    kind: LiteralKind


@dataclass(frozen=True, slots=True)
class Variable(Expression):
    """`@name` (with its @)."""

    name: str


@dataclass(frozen=True, slots=True)
class GlobalVariable(Expression):
    """`@@NAME` (with both @)."""

    name: str


@dataclass(frozen=True, slots=True)
class ColumnRef(Expression):
    """A column, or a word that a function takes as a date part."""

    parts: Name
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Star(Expression):
    """`*` or `t.*`."""

    qualifier: Name = ()


@dataclass(frozen=True, slots=True)
class Unary(Expression):
    """`-x`, `+x`, `~x`."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Expression):
    """Arithmetic, bit and concatenation operators."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    """`= <> < <= > >=` (`!=`, `!<`, `!>` are written in these)."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Quantified(Expression):
    """`x > ALL (query)`; `every` tells ALL from ANY and SOME."""

    operator: str
    left: Expression
    query: Query
    every: bool


@dataclass(frozen=True, slots=True)
class Logical(Expression):
    """AND / OR over two or more operands."""

    operator: OneOf["AND", "OR"]
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """NOT condition."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    """IS [NOT] NULL."""

    operand: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class IsDistinct(Expression):
    """IS [NOT] DISTINCT FROM."""

    left: Expression
    right: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class Like(Expression):
    """[NOT] LIKE pattern [ESCAPE character]."""

    operand: Expression
    pattern: Expression
    escape: Expression | None
    negated: bool


@dataclass(frozen=True, slots=True)
class In(Expression):
    """[NOT] IN over a list or a query."""

    operand: Expression
    items: tuple[Expression, ...]
    query: Query | None
    negated: bool


@dataclass(frozen=True, slots=True)
class Between(Expression):
    """[NOT] BETWEEN low AND high."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class Exists(Expression):
    """EXISTS (query)."""

    query: Query


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """CASE [operand] WHEN … THEN … ELSE … END."""

    operand: Expression | None
    whens: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """CAST, CONVERT, PARSE and their TRY_ forms; `form` says which."""

    form: OneOf["cast", "convert", "parse"]
    operand: Expression
    type: TypeName
    style: Expression | None = None
    try_: bool = False


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One ORDER BY element."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """ROWS/RANGE; a bound is (kind, count) with kind `unbounded preceding`, `preceding`, `current`, ..."""

    unit: OneOf["ROWS", "RANGE"]
    start: tuple[str, Expression | None]
    end: tuple[str, Expression | None]


@dataclass(frozen=True, slots=True)
class Over:
    """OVER (PARTITION BY … ORDER BY … frame)."""

    partition: tuple[Expression, ...]
    order: tuple[OrderItem, ...]
    frame: Frame | None


@dataclass(frozen=True, slots=True)
class Function(Expression):
    """A call: scalar, aggregate or window function; `star` for COUNT(*)."""

    name: Name
    arguments: tuple[Expression, ...]
    distinct: bool = False
    star: bool = False
    over: Over | None = None
    within: tuple[OrderItem, ...] = ()
    ignore_nulls: bool = False
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class MethodCall(Expression):
    """`value.method(...)` or `type::method(...)` of XML, spatial and hierarchyid values."""

    target: Expression | Name
    method: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ScalarSubquery(Expression):
    """(SELECT one value)."""

    query: Query


@dataclass(frozen=True, slots=True)
class Collate(Expression):
    """expression COLLATE name."""

    operand: Expression
    collation: str


@dataclass(frozen=True, slots=True)
class AtTimeZone(Expression):
    """expression AT TIME ZONE zone."""

    operand: Expression
    zone: Expression


@dataclass(frozen=True, slots=True)
class NextValueFor(Expression):
    """NEXT VALUE FOR sequence."""

    sequence: Name


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
    """One query specification."""

    items: tuple[SelectItem, ...]
    distinct: bool = False
    top: Top | None = None
    into: Name = ()
    source: TableSource | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    having: Expression | None = None


@dataclass(frozen=True, slots=True)
class SetOperation(QueryBody):
    """UNION [ALL], EXCEPT, INTERSECT."""

    operator: OneOf["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]
    left: QueryBody
    right: QueryBody


@dataclass(frozen=True, slots=True)
class Values(QueryBody):
    """VALUES (…), (…)."""

    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, slots=True)
class LiteralRows(QueryBody):
    """VALUES of two or more rows that hold nothing but literals, as text: `INSERT` reads them column by column."""

    text: str

    def cells(self, width: int) -> list[str] | None:
        """The literals as written, row after row; None unless every row has `width` of them."""
        found: list[str] = CELLS.findall(self.text)
        if not width or len(found) % width or any(cell[0] != "(" for cell in found[::width]):
            return None
        if sum(cell[0] == "(" for cell in found) * width != len(found):
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
class Query:
    """A whole query expression."""

    body: QueryBody
    ctes: tuple[CommonTable, ...] = ()
    order: tuple[OrderItem, ...] = ()
    offset: Expression | None = None
    fetch: Expression | None = None
    for_clause: str = ""
    options: tuple[tuple[str, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class NamedTable(TableSource):
    """A table, view, common table expression or synonym, by name."""

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
