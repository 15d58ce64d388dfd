"""Masked columns in queries: conditions and order use the values, principals without UNMASK get masked results.

A mask follows the column through derived tables, views and set operations, and is applied where rows leave: to the
client, into variables and tables, as the value of a subquery. Evidence: Microsoft's documentation; which expressions
keep the column's own function was measured by others [pub].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine.masking import DEFAULT, conceal
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, column
from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.query.operators import Projection
from mssql_sandbox.exec.scope import Field, Scope
from mssql_sandbox.exec.security import masked_columns
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.tsql import ast

_KEEPING = frozenset({"ISNULL", "COALESCE", "NULLIF", "IIF", "CHOOSE"})


def masked_fields(session: SessionState, table: Table, fields: list[Field]) -> list[Field]:
    """The fields of a stored table with the masks for the session; computed columns have the default mask."""
    masks = masked_columns(session, table)
    if not masks:
        return fields
    found = []
    for field, col in zip(fields, table.columns, strict=False):
        over = col.computed is not None and bool(masks.keys() & col.computed.references)
        mask = DEFAULT if over else masks.get(col.name, "")
        found.append(replace(field, masking=mask) if mask else field)
    return [*found, *fields[len(table.columns) :]]


def any_masked(scope: Scope) -> bool:
    """Whether a column in scope, or farther out, is masked."""
    level: Scope | None = scope
    while level is not None:
        if any(field.masking for field in level.base.fields):
            return True
        level = level.parent
    return False


def mask_of(node: ast.Expression | None, expr: Expr, scope: Scope) -> str:
    """The mask of an item: the column's own for a bare column, the default for expressions."""
    if expr.masking:
        return expr.masking
    if node is None:
        return scope.base.fields[expr.column].masking if 0 <= expr.column < len(scope.base.fields) else ""
    if isinstance(node, ast.Cast) and isinstance(node.operand, ast.ColumnRef):
        place = scope.base.find(node.operand.parts)
        if place is not None and scope.base.fields[place].type == expr.type:
            return scope.base.fields[place].masking
    return _mask(node, scope)


def _mask(node: Any, scope: Scope) -> str:
    if isinstance(node, ast.ColumnRef):
        try:
            found, place = scope.base.resolve(node.parts)
        except SqlError:
            return ""
        return found.fields[place].masking
    if isinstance(node, ast.Case):
        arms = [value for _, value in node.whens] + [node.otherwise]
        return _common(_mask(arm, scope) for arm in arms)
    if isinstance(node, ast.Function) and node.name[-1].upper() in _KEEPING:
        return _common(_mask(argument, scope) for argument in node.arguments)
    masked = any(_mask(part, scope) for part in _parts(node))
    return DEFAULT if masked else ""


def _common(masks: Iterator[str]) -> str:
    found = {mask for mask in masks if mask}
    return found.pop() if len(found) == 1 else DEFAULT if found else ""


def _parts(node: Any) -> Iterator[Any]:
    """The expressions directly below a node; queries within are masked by themselves."""
    for name in getattr(node, "__slots__", ()):
        value = getattr(node, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, (ast.Expression, ast.Over, ast.OrderItem)):
                yield part


def common_mask(first: Field, second: Field) -> str:
    """The mask of a column of a set operation."""
    return _common(iter((first.masking, second.masking)))


def concealed(plan: Operator) -> Operator:
    """The plan with masked columns masked, where rows leave it."""
    if not any(field.masking for field in plan.fields):
        return plan
    exprs = [_shown(place, field) for place, field in enumerate(plan.fields)]
    return Projection(plan, exprs, [replace(field, masking="") for field in plan.fields])


def _shown(place: int, field: Field) -> Expr:
    plain = column(place, field.type, nullable=field.nullable, origin=field.origin)
    return masked_value(plain, field.masking)


def as_seen(node: ast.Expression, expr: Expr, scope: Scope) -> Expr:
    """An expression of the statement, with the mask of its columns."""
    return masked_value(expr, mask_of(node, expr, scope)) if expr.masking or any_masked(scope) else expr


def masked_value(expr: Expr, mask: str) -> Expr:
    """The expression as principals without UNMASK see it; NULL stays NULL."""
    if not mask:
        return expr
    show, inner = conceal(mask, expr.type), expr.fn

    def fn(row: tuple, context: Context) -> Any:
        value = inner(row, context)
        return None if value is None else show(value, context.random)

    return Expr(expr.type, fn, expr.nullable, rank=expr.rank, origin=expr.origin)
