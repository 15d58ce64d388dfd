"""Search arguments: splitting conditions, and the access path that they allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.comparison import sort_key
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.expressions.base import Expr, Fn, coerce, hoist
from mssql_sandbox.exec.expressions.conditions import common_type
from mssql_sandbox.exec.query.scans import Access, Bound
from mssql_sandbox.tsql import ast

_INVERSE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRROR = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def conjuncts(node: ast.Expression | None) -> list[ast.Expression]:
    """The conditions joined by AND, with NOT moved inwards and BETWEEN split."""
    if node is None:
        return []
    if isinstance(node, ast.Logical) and node.operator == "AND":
        return [part for operand in node.operands for part in conjuncts(operand)]
    if isinstance(node, ast.Not):
        turned = inverse(node.operand)
        return [turned] if isinstance(turned, ast.Not) else conjuncts(turned)
    if isinstance(node, ast.Between) and not node.negated:
        return [ast.Comparison(">=", node.operand, node.low), ast.Comparison("<=", node.operand, node.high)]
    return [node]


def inverse(node: ast.Expression) -> ast.Expression:
    """NOT node, moved inwards where three-valued logic allows."""
    if isinstance(node, ast.Not):
        return node.operand
    if isinstance(node, ast.Comparison):
        return ast.Comparison(_INVERSE[node.operator], node.left, node.right)
    if isinstance(node, ast.Logical):
        operands = tuple(inverse(operand) for operand in node.operands)
        return ast.Logical("OR" if node.operator == "AND" else "AND", operands)
    if isinstance(node, (ast.IsNull, ast.Like, ast.In, ast.Between, ast.IsDistinct)):
        return replace(node, negated=not node.negated)
    return ast.Not(node)


@dataclass(slots=True)
class Sarg:
    """`column operator value` with the value in a form that suits the column's index key."""

    column: int
    operator: str
    value: Expr
    exact: bool = True
    node: ast.Expression | None = None


@dataclass(slots=True)
class OrBound:
    """The bound that an OR gives to one column: all its branches bound it from one side."""

    column: int
    operator: str
    values: list[Expr]
    inclusive: bool


Compile = Callable[[ast.Expression], Expr]


def find_sarg(node: ast.Expression, left: Compile, right: Compile) -> Sarg | None:
    """`node` as a search argument: one side a plain column of `left`, the other computed by `right` from elsewhere."""
    if not isinstance(node, ast.Comparison) or node.operator == "<>":
        return None
    for column_node, value_node, operator in (
        (node.left, node.right, node.operator),
        (node.right, node.left, _MIRROR[node.operator]),
    ):
        if not isinstance(column_node, ast.ColumnRef):
            continue
        try:
            column = left(column_node)
            if column.column < 0:
                continue
            value = right(value_node)
        except SqlError:
            continue
        if value.null or value.predicate:
            continue
        usable = seek_value(column.type, value, column)
        if usable is not None and (operator == "=" or not _ordered_otherwise(column.type, value.type)):
            return Sarg(column.column, operator, usable, node=node)
    return None


def seek_value(type_: SqlType, value: Expr, column: Expr) -> Expr | None:
    """The value in a form that compares with stored keys of `type_` as in SQL; None if there is none."""
    try:
        common = common_type(column, value)
    except SqlError:
        return None
    if type_.name in t.STRINGS:
        if common.name not in t.STRINGS or common.collation != type_.collation:
            return None
        return hoist(
            coerce(value, replace(common, length=t.MAX, name="nvarchar")) if value.type.name not in t.STRINGS else value
        )
    if type_.name in t.NUMBERS:
        approximate = type_.name in t.APPROXIMATE
        if common.name not in t.NUMBERS or (common.name in t.APPROXIMATE) != approximate:
            return None
        return hoist(value if value.type.name in t.NUMBERS else coerce(value, common))
    if type_.name in t.BINARIES:
        return hoist(value) if value.type.name in t.BINARIES else None
    if common.name != type_.name:
        return None
    return hoist(coerce(value, common))


def _ordered_otherwise(stored: SqlType, value: SqlType) -> bool:
    """Whether the order of an index on the column differs from the comparison, which uses Unicode rules then."""
    if stored.name not in t.SINGLE_BYTE or value.name not in t.NATIONAL or stored.collation is None:
        return False
    return stored.collation.narrow_key is not stored.collation.key


def or_bounds(node: ast.Expression, compile_sarg: Callable[[ast.Expression], Sarg | None]) -> list[OrBound]:
    """Bounds that hold in every branch of an OR: `(a = 1 AND b > 2) OR a > 1` gives `a >= 1`."""
    if not isinstance(node, ast.Logical) or node.operator != "OR":
        return []
    per_branch: list[list[Sarg]] = []
    for operand in node.operands:
        found = [sarg for part in conjuncts(operand) if (sarg := compile_sarg(part)) is not None]
        if not found:
            return []
        per_branch.append(found)
    bounds = []
    for column in {sarg.column for sarg in per_branch[0]}:
        for operators in ((">", ">=", "="), ("<", "<=", "=")):
            chosen = [
                next((s for s in branch if s.column == column and s.operator in operators), None)
                for branch in per_branch
            ]
            if all(chosen):
                sargs = [sarg for sarg in chosen if sarg is not None]
                inclusive = any(sarg.operator not in ("<", ">") for sarg in sargs) or len(sargs) > 1
                bounds.append(OrBound(column, operators[1], [sarg.value for sarg in sargs], inclusive))
    return bounds


@dataclass(slots=True)
class Choice:
    """An access path, the conditions left to check, and its order."""

    access: Access
    score: int
    covered: list[ast.Expression] = field(default_factory=list)
    order: tuple[tuple[int, bool], ...] = ()


def choose_access(
    table: Table,
    sargs: Sequence[Sarg],
    ors: Sequence[OrBound],
    wanted: Sequence[tuple[int, bool]],
    *,
    prefer_order: bool,
) -> Choice:
    """The best path: a unique point, then long prefixes and ranges, then the wanted order, then the clustered order."""
    best = _scored(table, None, sargs, ors, wanted, prefer_order=prefer_order)
    for index in table.indexes:
        if index.disabled or index.predicate is not None:
            continue
        choice = _scored(table, index, sargs, ors, wanted, prefer_order=prefer_order)
        if choice.score > best.score or (choice.score == best.score and index.clustered):
            best = choice
    return best


def _scored(
    table: Table,
    index: Index | None,
    sargs: Sequence[Sarg],
    ors: Sequence[OrBound],
    wanted: Sequence[tuple[int, bool]],
    *,
    prefer_order: bool,
) -> Choice:
    if index is None:
        return Choice(Access(), 0)
    places = index.ordinals
    equal: list[Fn] = []
    covered: list[ast.Expression] = []
    for place in places:
        sarg = next((s for s in sargs if s.column == place and s.operator == "="), None)
        if sarg is None:
            break
        equal.append(sarg.value.fn)
        if sarg.node is not None:
            covered.append(sarg.node)
    low = high = None
    if len(equal) < len(places):
        place = places[len(equal)]
        low, high, nodes = _bounds(place, sargs, ors)
        # NULL is the lowest value, wherever the index begins: a range without a low bound includes it.
        if not table.columns[place].nullable or low is not None:
            covered.extend(nodes)
    natural = [(place, down) for place, (_, down) in zip(places, index.columns, strict=True)]
    rest = natural[len(equal) :]
    fixed = set(places[: len(equal)])
    needed = [item for item in wanted if item[0] not in fixed]
    descending = bool(needed) and bool(rest) and needed[0][0] == rest[0][0] and needed[0][1] != rest[0][1]
    order = [(place, not down) for place, down in rest] if descending else rest
    point = index.unique and len(equal) == len(places)
    satisfied = point or _satisfies(order, needed, unique=index.unique)
    score = 1000 if point else 100 * len(equal) + 30 * (low is not None) + 30 * (high is not None)
    if wanted and satisfied:
        score += 40 if prefer_order else 15
    if index.clustered:
        score += 10
    access = Access(index, tuple(equal), low, high, descending=descending and satisfied)
    given = tuple(order) if descending and satisfied else tuple(rest)
    if wanted and satisfied:
        # Columns fixed by equality and columns after a complete unique key may be in any order.
        given = tuple(wanted)
    return Choice(access, score, covered, given)


def _satisfies(order: Sequence[tuple[int, bool]], needed: Sequence[tuple[int, bool]], *, unique: bool) -> bool:
    for position, item in enumerate(needed):
        if position == len(order):
            return unique
        if order[position] != item:
            return False
    return True


def _bounds(
    place: int, sargs: Sequence[Sarg], ors: Sequence[OrBound]
) -> tuple[Bound | None, Bound | None, list[ast.Expression]]:
    sides: list[Bound | None] = []
    covered: list[ast.Expression] = []
    for operators in ((">", ">="), ("<", "<=")):
        sarg = next((s for s in sargs if s.column == place and s.operator in operators), None)
        if sarg is not None:
            sides.append(Bound((sarg.value.fn,), sarg.operator == operators[1]))
            if sarg.node is not None:
                covered.append(sarg.node)
            continue
        alternative = next((o for o in ors if o.column == place and o.operator == operators[1]), None)
        if alternative is None:
            sides.append(None)
        else:
            key = sort_key(alternative.values[0].type)
            sides.append(Bound(tuple(value.fn for value in alternative.values), alternative.inclusive, key))
    return sides[0], sides[1], covered
