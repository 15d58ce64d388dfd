"""Expressions under SET options that are OFF: ANSI_WARNINGS and ARITHABORT, CONCAT_NULL_YIELDS_NULL.

The options are read when a statement is compiled; `statements/settings.py` discards plans when they change.
"""

from __future__ import annotations

from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import converter
from mssql_sandbox.engine.events import Message
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, derived
from mssql_sandbox.exec.options import ARITHMETIC_ERRORS, SessionOptions

_OVERFLOW, _DIVISION = 3606, 3607
_WARNINGS = {_OVERFLOW: "Arithmetic overflow occurred.", _DIVISION: "Division by zero occurred."}
_DIVIDED = 8134
_TOO_LONG = frozenset({2628, 8152})


def forgiven(expr: Expr, options: SessionOptions) -> Expr:
    """NULL and a warning instead of an overflow or a division by zero, if both options are OFF."""
    if not options.forgives_arithmetic:
        return expr
    inner, silent = expr.fn, options.arithignore

    def fn(row: tuple, context: Context) -> Any:
        try:
            return inner(row, context)
        except SqlError as failure:
            if failure.number not in ARITHMETIC_ERRORS:
                raise
            if not silent:
                number = _DIVISION if failure.number == _DIVIDED else _OVERFLOW
                context.once(number, lambda: context.session.pending.append(Message(number, 0, 0, _WARNINGS[number])))
            return None

    return derived(expr.type, fn, expr, nullable=True)


def joined(whole: Expr, left: Expr, right: Expr, options: SessionOptions) -> Expr:
    """Concatenation in which NULL counts as empty text, unless both sides are NULL."""
    if options.concat_null or whole.type.name not in t.STRINGS:
        return whole
    first, second, both = left.fn, right.fn, whole.fn

    def fn(row: tuple, context: Context) -> Any:
        x, y = first(row, context), second(row, context)
        return y if x is None else x if y is None else both(row, context)

    return derived(whole.type, fn, left, right)


def settled(failure: SqlError, value: Any, source: t.SqlType, column: Column, options: SessionOptions) -> Any:
    """What a column stores for a value that does not fit: a part of it, or NULL; otherwise the error is raised."""
    if failure.number in _TOO_LONG and not options.ansi_warnings:
        return converter(source, column.type)(value)
    if failure.number in ARITHMETIC_ERRORS and options.forgives_arithmetic:
        return None
    raise failure
