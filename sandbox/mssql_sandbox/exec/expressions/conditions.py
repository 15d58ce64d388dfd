"""Comparisons and three-valued logic: True, False, None (unknown)."""

from __future__ import annotations

import operator as op
from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.comparison import sort_key
from mssql_sandbox.engine.precedence import promote
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import error
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, Fn, coerce, derived, hoist

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": op.eq, "<>": op.ne, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge,
}  # fmt: skip
_WORDS = {
    "+": "add",
    "=": "equal to", "<>": "not equal to", "<": "less than", "<=": "less than or equal to", ">": "greater than",
    ">=": "greater than or equal to",
}  # fmt: skip
_INCOMPARABLE = frozenset({"text", "ntext", "image", "xml", "geometry", "geography"})


def common_type(left: Expr, right: Expr, operator: str = "=") -> SqlType:
    """The type in which two values are compared; 402, 206 or 468 if there is none."""
    if left.null or right.null:
        return right.type if left.null else left.type
    for side in (left, right):
        if side.type.name in _INCOMPARABLE:
            word = _WORDS.get(operator, "equal to")
            raise error(402, left=t.reported_name(left.type), right=t.reported_name(right.type), operator=word)
    common = promote(left.type, right.type)
    if common.name in t.STRINGS:
        return t.with_collation(common, common_collation(left, right, operator))
    return common


def common_collation(left: Expr, right: Expr, operator: str) -> Any:
    """The resulting collation; 468 if two columns, or two COLLATE clauses, conflict."""
    first, second = left.type.collation, right.type.collation
    if left.type.name not in t.STRINGS:
        return second
    if right.type.name not in t.STRINGS or first == second:
        return first
    if left.rank == right.rank and left.rank > 0 and first is not None and second is not None:
        word = _WORDS.get(operator, operator)
        raise error(468, left=first.name, right=second.name, operator=word)
    return first if (left.rank >= right.rank and first is not None) or second is None else second


def keyed(expr: Expr, type_: SqlType) -> Fn:
    """The comparison key of an expression that already has `type_`; NULL stays None."""
    key = sort_key(type_)
    inner = hoist(expr).fn
    if key is None:
        return inner
    if expr.literal:
        fixed = None if expr.value is None else key(expr.value)
        return lambda _row, _context: fixed
    if expr.column >= 0:
        place = expr.column

        def of_column(row: tuple, _context: Context) -> Any:
            value = row[place]
            return None if value is None else key(value)

        return of_column
    if expr.constant and not expr.varying:
        token = object()

        def once(row: tuple, context: Context) -> Any:
            cache = context.cache
            if token in cache:
                return cache[token]
            value = inner(row, context)
            value = cache[token] = None if value is None else key(value)
            return value

        return once

    def fn(row: tuple, context: Context) -> Any:
        value = inner(row, context)
        return None if value is None else key(value)

    return fn


def comparison(operator: str, left: Expr, right: Expr) -> Expr:
    """`left operator right`."""
    require_value(left, operator)
    require_value(right, operator)
    type_ = common_type(left, right, operator)
    first, second = coerce(left, type_), coerce(right, type_)
    a, b = keyed(first, type_), keyed(second, type_)
    compare = _COMPARE[operator]
    if first.column >= 0 and sort_key(type_) is None:
        place = first.column

        def fast(row: tuple, context: Context) -> bool | None:
            x = row[place]
            if x is None:
                return None
            y = b(row, context)
            return None if y is None else compare(x, y)

        return derived(t.BIT, fast, left, right, predicate=True)

    def fn(row: tuple, context: Context) -> bool | None:
        x = a(row, context)
        if x is None:
            return None
        y = b(row, context)
        return None if y is None else compare(x, y)

    return derived(t.BIT, fn, left, right, predicate=True)


def require_value(expr: Expr, near: str) -> None:
    """102 for a condition in the place of a value."""
    if expr.predicate:
        raise error(102, near=near)


def require_condition(expr: Expr, near: str = "") -> Expr:
    """4145 for a value in the place of a condition."""
    if not expr.predicate:
        raise error(4145, near=near or "<end of statement>")
    return expr


def conjunction(parts: list[Expr]) -> Expr:
    """AND."""
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        a, b = parts[0].fn, parts[1].fn

        def both(row: tuple, context: Context) -> bool | None:
            x = a(row, context)
            if x is False:
                return False
            y = b(row, context)
            return False if y is False else (None if x is None or y is None else True)

        return derived(t.BIT, both, *parts, predicate=True)
    functions = tuple(part.fn for part in parts)

    def fn(row: tuple, context: Context) -> bool | None:
        result: bool | None = True
        for function in functions:
            value = function(row, context)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return derived(t.BIT, fn, *parts, predicate=True)


def disjunction(parts: list[Expr]) -> Expr:
    """OR."""
    functions = tuple(part.fn for part in parts)

    def fn(row: tuple, context: Context) -> bool | None:
        result: bool | None = False
        for function in functions:
            value = function(row, context)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    return derived(t.BIT, fn, *parts, predicate=True)


def negation(operand: Expr) -> Expr:
    """NOT."""
    inner = require_condition(operand).fn

    def fn(row: tuple, context: Context) -> bool | None:
        value = inner(row, context)
        return None if value is None else not value

    return derived(t.BIT, fn, operand, predicate=True)


def is_null(operand: Expr, *, negated: bool) -> Expr:
    """IS [NOT] NULL."""
    inner = operand.fn
    if operand.column >= 0:
        place = operand.column
        fn: Fn = (lambda row, _c: row[place] is not None) if negated else (lambda row, _c: row[place] is None)
    elif negated:
        fn = lambda row, context: inner(row, context) is not None  # noqa: E731
    else:
        fn = lambda row, context: inner(row, context) is None  # noqa: E731
    return derived(t.BIT, fn, operand, nullable=False, predicate=True)


def is_distinct(left: Expr, right: Expr, *, negated: bool) -> Expr:
    """IS [NOT] DISTINCT FROM: NULL is a value here."""
    type_ = common_type(left, right)
    a, b = keyed(coerce(left, type_), type_), keyed(coerce(right, type_), type_)

    def fn(row: tuple, context: Context) -> bool:
        return (a(row, context) == b(row, context)) is negated

    return derived(t.BIT, fn, left, right, nullable=False, predicate=True)


def in_list(operand: Expr, items: list[Expr], *, negated: bool) -> Expr:
    """[NOT] IN over expressions: a set of keys when all are literals of one type."""
    if len(items) > 1 and all(item.literal and not item.null and item.value is not None for item in items):
        types = {common_type(operand, item) for item in items}
        if len(types) == 1:
            type_ = types.pop()
            probe = keyed(coerce(operand, type_), type_)
            keys = {keyed(coerce(item, type_), type_)((), None) for item in items}  # type: ignore[arg-type]

            def among(row: tuple, context: Context) -> bool | None:
                value = probe(row, context)
                return None if value is None else (value in keys) is not negated

            return derived(t.BIT, among, operand, predicate=True)
    either = disjunction([comparison("=", operand, item) for item in items])
    return negation(either) if negated else either
