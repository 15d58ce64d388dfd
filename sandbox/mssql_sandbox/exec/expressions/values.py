"""Literals, variables, CASE and related functions, CAST, COLLATE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.collation import Collation
from mssql_sandbox.engine.conversion import convert, converter
from mssql_sandbox.engine.conversion_columns import column_converter
from mssql_sandbox.engine.conversion_strings import utf16_length
from mssql_sandbox.engine.precedence import promote
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.arithmetic import operand_type
from mssql_sandbox.exec.expressions.base import (
    NULL,
    Chain,
    Expr,
    chain_of,
    chained,
    coerce,
    constant,
    derived,
    same_storage,
)  # fmt: skip
from mssql_sandbox.exec.expressions.conditions import common_collation, comparison, require_condition
from mssql_sandbox.tsql import ast


def literal(node: ast.Literal, collation: Collation | None) -> Expr:
    """A constant with the type of its spelling."""
    value = node.value
    kind = node.kind
    if kind == "null":
        return NULL
    if kind == "int":
        return constant(value, t.INT)
    if kind in ("string", "nstring"):
        text = str(value)
        if kind == "string" and collation is not None:
            text = collation.to_code_page(text)
        limit = 4000 if kind == "nstring" else 8000
        size = utf16_length(text) if kind == "nstring" or collation is None else len(collation.encode(text))
        length = t.MAX if size > limit else max(size, 1)
        name = "nvarchar" if kind == "nstring" else "varchar"
        return constant(text, SqlType(name, length, collation=collation))
    if kind == "binary":
        assert isinstance(value, bytes)
        return constant(value, t.varbinary(t.MAX if len(value) > 8000 else max(len(value), 1)))
    if kind == "float":
        return constant(value, t.FLOAT)
    if kind == "money":
        return constant(value, t.MONEY_TYPE)
    if kind == "decimal":
        assert isinstance(value, Decimal)
        return _decimal_literal(value)
    raise error(156, keyword="DEFAULT")


def _decimal_literal(value: Decimal) -> Expr:
    _, signs, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(signs) + max(0, exponent), scale, 1)
    if precision > 38:
        raise error(1007, value=value)
    return constant(value, t.numeric(precision, scale))


def variable(slot: int, type_: SqlType) -> Expr:
    """A variable by its slot."""
    return Expr(type_, lambda _row, context: context.values[slot], constant=True, simple=True)


def unified(parts: Sequence[Expr], what: str = "CASE") -> SqlType:
    """The type that all results of CASE, COALESCE, UNION … are converted to, by precedence."""
    typed = [part for part in parts if not part.null]
    if not typed:
        return t.INT
    found = typed[0]
    for part in typed[1:]:
        found = _joined(found, part, what)
    return found.type


def _joined(left: Expr, right: Expr, what: str) -> Expr:
    a, b = left.type, right.type
    if a == b:  # no longer a literal: its digits do not limit the others
        return replace(left if left.rank >= right.rank else right, literal=False)
    exact = t.EXACT | t.INTEGERS
    if a.name in exact and b.name in exact and (a.name in t.EXACT or b.name in t.EXACT):
        type_ = promote(operand_type(left), operand_type(right))
        return replace(left, type=type_, literal=False)
    type_ = promote(a, b)
    if type_.name in t.STRINGS:
        type_ = t.with_collation(type_, common_collation(left, right, what))
    return replace(left, type=type_, rank=max(left.rank, right.rank), literal=False)


def case(operand: Expr | None, whens: list[tuple[Expr, Expr]], otherwise: Expr | None) -> Expr:
    """Simple and searched CASE; branches are evaluated only if taken."""
    conditions = [
        require_condition(when, "THEN") if operand is None else comparison("=", operand, when) for when, _ in whens
    ]
    results = [result for _, result in whens]
    last = otherwise if otherwise is not None else NULL
    type_ = unified([*results, last])
    if all(result.null for result in [*results, last]):
        if otherwise is None:
            raise error(8133)
        type_ = t.INT
    branches = tuple(
        (condition.fn, coerce(result, type_).fn) for condition, result in zip(conditions, results, strict=True)
    )
    rest = coerce(last, type_).fn

    def fn(row: tuple, context: Context) -> Any:
        for condition, result in branches:
            if condition(row, context) is True:
                return result(row, context)
        return rest(row, context)

    nullable = otherwise is None or any(result.nullable for result in [*results, last])
    return derived(type_, fn, *conditions, *results, last, nullable=nullable)


def coalesce(parts: list[Expr]) -> Expr:
    """COALESCE: the first value that is not NULL, in the common type."""
    type_ = unified(parts, "COALESCE")
    functions = tuple(coerce(part, type_).fn for part in parts)

    def fn(row: tuple, context: Context) -> Any:
        for function in functions:
            value = function(row, context)
            if value is not None:
                return value
        return None

    return derived(type_, fn, *parts, nullable=all(part.nullable for part in parts))


def is_null_function(first: Expr, second: Expr) -> Expr:
    """ISNULL(a, b): the type of a."""
    type_ = second.type if first.null else first.type
    a, b = coerce(first, type_).fn, coerce(second, type_).fn

    def fn(row: tuple, context: Context) -> Any:
        value = a(row, context)
        return b(row, context) if value is None else value

    return derived(type_, fn, first, second, nullable=second.nullable)


def nullif(first: Expr, second: Expr) -> Expr:
    """NULLIF(a, b)."""
    equal, value = comparison("=", first, second).fn, first.fn
    return derived(
        first.type,
        lambda row, context: None if equal(row, context) is True else value(row, context),
        first,
        second,
        nullable=True,
    )


def choose(index: Expr, options: list[Expr]) -> Expr:
    """CHOOSE(index, a, b, …)."""
    type_ = unified(options, "CHOOSE")
    functions = tuple(coerce(option, type_).fn for option in options)
    place = coerce(index, t.INT).fn

    def fn(row: tuple, context: Context) -> Any:
        number = place(row, context)
        if number is None or not 1 <= number <= len(functions):
            return None
        return functions[number - 1](row, context)

    return derived(type_, fn, index, *options, nullable=True)


def conversion(operand: Expr, target: SqlType, style: Expr | None, *, try_: bool) -> Expr:
    """CAST, CONVERT and their TRY_ forms."""
    source = operand.type
    inner, style_fn = operand.fn, style.fn if style is not None else None
    if operand.null:
        return replace(operand, type=target, null=False, literal=False)

    def fn(row: tuple, context: Context) -> Any:
        value = inner(row, context)
        if value is None:
            return None
        number = None if style_fn is None else style_fn(row, context)
        if style_fn is not None and number is None:
            return None
        return convert(value, source, target, style=number, try_=try_)

    if not try_ and (style is None or (style.literal and isinstance(style.value, int))):
        return _cast(operand, target, None if style is None else style.value)
    parts = [operand] if style is None else [operand, style]
    made = derived(target, fn, *parts, nullable=operand.nullable or try_)
    return replace(made, rank=operand.rank if target.name in t.STRINGS and source.name in t.STRINGS else 0)


def _cast(operand: Expr, target: SqlType, style: int | None) -> Expr:
    """CAST, or CONVERT in a fixed style. Without style, impossible conversions fail here, before any row."""
    both = target.name in t.STRINGS and operand.type.name in t.STRINGS
    rank = operand.rank if both else 0
    if style is None and same_storage(operand.type, target):
        return replace(derived(target, operand.fn, operand), rank=rank, chain=chain_of(operand))
    inner, source = operand.fn, operand.type
    function = converter(source, target) if style is None else _when_called(source, target, style)

    def fn(row: tuple, context: Context) -> Any:
        value = inner(row, context)
        return None if value is None else function(value)

    return replace(derived(target, fn, operand), rank=rank, chain=_conversion_chain(operand, target, style))


def _when_called(source: SqlType, target: SqlType, style: int) -> Callable[[Any], Any]:
    """An invalid style is an error of the first value, not of the statement."""
    made: list[Callable[[Any], Any]] = []

    def function(value: Any) -> Any:
        if not made:
            made.append(converter(source, target, style))
        return made[0](value)

    return function


def _conversion_chain(operand: Expr, target: SqlType, style: int | None) -> Chain | None:
    try:
        return chained(operand, column_converter(operand.type, target, style))
    except SqlError:
        return None


def collated(operand: Expr, collation: Collation) -> Expr:
    """Expression COLLATE name."""
    if operand.type.name not in t.STRINGS or operand.type.name == "xml":
        raise error(447, type=t.reported_name(operand.type))
    return replace(operand, type=t.with_collation(operand.type, collation), rank=2)
