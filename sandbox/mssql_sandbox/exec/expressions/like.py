"""[NOT] LIKE with ESCAPE, by the collation that both sides resolve to."""

from __future__ import annotations

from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.functions.patterns import like as matches
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, change, derived
from mssql_sandbox.exec.expressions.conditions import common_collation

_TEXT = t.nvarchar(t.MAX)


def like(operand: Expr, pattern: Expr, escape: Expr | None, *, negated: bool) -> Expr:
    """`operand [NOT] LIKE pattern [ESCAPE escape]`; 506 for an escape that is not one character."""
    collation = common_collation(operand, pattern, "like")
    first, second, third = _text(operand), _text(pattern), _text(escape) if escape is not None else None

    national = operand.type.name in t.NATIONAL or pattern.type.name in t.NATIONAL

    def fn(row: tuple, context: Context) -> bool | None:
        value = first(row, context)
        wanted = second(row, context)
        if value is None or wanted is None:
            return None
        sign = None if third is None else third(row, context)
        if third is not None and (sign is None or len(sign) != 1):
            if sign is None:
                return None
            raise SqlError(506, f'The invalid escape character "{sign}" was specified in a LIKE predicate.')
        return matches(value, wanted, collation, sign, national=national) is not negated

    parts = [operand, pattern] if escape is None else [operand, pattern, escape]
    return derived(t.BIT, fn, *parts, predicate=True)


def _text(expr: Expr) -> Any:
    """The value as text: LIKE converts values of any type."""
    if expr.type.name in t.STRINGS or expr.null:
        return expr.fn
    to_text = change(expr.type, _TEXT)
    inner = expr.fn
    assert to_text is not None
    return lambda row, context: to_text(inner(row, context))
