"""Syntax tree of expressions: what was written, nothing resolved.

Queries have their own module (`query_nodes`); `ast` offers both. Names are tuples of parts as written, outermost
first, empty where a part was left out (`db..t` is `("db", "", "t")`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from typing import Literal as OneOf

if TYPE_CHECKING:
    from mssql_sandbox.tsql.query_nodes import Query


class Expression:
    """Anything with a value or a truth value."""

    __slots__ = ()


Name = tuple[str, ...]
LiteralKind = OneOf["int", "decimal", "float", "money", "string", "nstring", "binary", "null", "default"]


@dataclass(frozen=True, slots=True)
class TypeName:
    """A data type as written: `name` parts, numeric arguments (-1 for `max`), the schema collection of typed xml."""

    name: Name
    arguments: tuple[int, ...] = ()
    collation: str = ""
    schema: Name = ()


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
    """`= <> < <= > >=` (`!=`, `!<`, `!>` are normalised to these)."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Quantified(Expression):
    """`x > ALL (query)`; `every` distinguishes ALL from ANY and SOME."""

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
class CurrentOf(Expression):
    """WHERE CURRENT OF cursor, of a positioned UPDATE or DELETE."""

    cursor: str


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """CASE [operand] WHEN … THEN … ELSE … END."""

    operand: Expression | None
    whens: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """CAST, CONVERT and their TRY_ forms; `form` is the keyword."""

    form: OneOf["cast", "convert"]
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
    """OVER ([window] PARTITION BY … ORDER BY … frame); `window` is a name of the WINDOW clause."""

    partition: tuple[Expression, ...]
    order: tuple[OrderItem, ...]
    frame: Frame | None
    window: str = ""


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
class FullText(Expression):
    """CONTAINS | FREETEXT (…): parsed, because modules use it, and refused when a statement is compiled."""


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
    """NEXT VALUE FOR sequence [OVER (ORDER BY …)]."""

    sequence: Name
    over: Over | None = None
