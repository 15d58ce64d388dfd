"""Arithmetic, bit and concatenation operators over compiled operands; types and values belong to the engine."""

from __future__ import annotations

from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.functions import binary_operator, complement
from mssql_sandbox.engine.functions import negation as engine_negation
from mssql_sandbox.engine.precedence import as_decimal
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, coerce, derived
from mssql_sandbox.exec.expressions.conditions import common_collation

_EXPLICIT = 2
"""The rank of a COLLATE clause."""


def binary(operator: str, left: Expr, right: Expr) -> Expr:
    """`left operator right`; 402, 206 or 8117 for incompatible types."""
    operator = "+" if operator == "||" else operator
    first, second = _operand(left, right), _operand(right, left)
    type_, operation = binary_operator(operator, first.type, second.type)
    if type_.name in t.STRINGS:
        if left.rank == right.rank == _EXPLICIT:
            common_collation(left, right, operator)
        chosen = left if left.rank >= right.rank else right
        type_ = t.with_collation(type_, chosen.type.collation or type_.collation)
    a, b = first.fn, second.fn

    def fn(row: tuple, context: Context) -> Any:
        x = a(row, context)
        if x is None:
            return None
        y = b(row, context)
        return None if y is None else operation(x, y)

    return derived(type_, fn, left, right)


def _operand(expr: Expr, other: Expr) -> Expr:
    """NULL takes the other side's type; an integer literal beside a decimal counts only its own digits."""
    if expr.null and not other.null:
        return coerce(expr, other.type)
    if other.type.name in t.EXACT and expr.literal and expr.type.name == "int" and expr.value is not None:
        return coerce(expr, operand_type(expr))
    return expr


def operand_type(expr: Expr) -> SqlType:
    """The decimal type of an exact operand in decimal arithmetic."""
    if expr.literal and expr.type.name == "int" and expr.value is not None:
        return t.decimal(len(str(abs(expr.value))), 0)
    return as_decimal(expr.type)


def negative(operand: Expr) -> Expr:
    """-x."""
    return _unary(operand, engine_negation(operand.type))


def inverted(operand: Expr) -> Expr:
    """~x."""
    return _unary(operand, complement(operand.type))


def _unary(operand: Expr, operation: Any) -> Expr:
    inner = operand.fn

    def fn(row: tuple, context: Context) -> Any:
        value = inner(row, context)
        return None if value is None else operation(value)

    return derived(operand.type, fn, operand)
