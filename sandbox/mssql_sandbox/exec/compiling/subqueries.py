"""Subqueries in expressions: scalar, EXISTS, IN, ANY and ALL.

A subquery without outer columns runs once per statement; any other one runs for every outer row, found in
`context.outer`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import MAX_DEPTH, Context
from mssql_sandbox.exec.expressions.base import Expr, coerce, column, constant, derived
from mssql_sandbox.exec.expressions.conditions import common_type, comparison, keyed
from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.query.operators import gather
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.tsql import ast


class TracingScope(Scope):
    """The enclosing scope as a subquery sees it; records whether any of its columns is used."""

    __slots__ = ("_real", "used")

    def __init__(self, real: Scope) -> None:
        super().__init__(real.fields, real.fold, parent=real.parent, level=real.level)
        self._real = real
        self.used = False

    def find(self, parts: tuple[str, ...]) -> int | None:
        """Record the use of a column of this level."""
        place = self._real.find(parts)
        self.used = self.used or place is not None
        return place

    def passed_by(self) -> None:
        """A subquery that reaches further out is correlated as well."""
        self.used = True


def compiled(compiler: Compiler, query: ast.Query, scope: Scope) -> tuple[Operator, bool]:
    """The plan of a subquery, and whether it depends on outer rows."""
    if scope.level + 1 >= MAX_DEPTH:
        raise SqlError(191, "Some part of your SQL statement is nested too deeply. Rewrite the query or break it up "
                       "into smaller queries.", severity=15)  # fmt: skip
    trace = TracingScope(scope)
    plan = compiler.query(query, trace)
    return plan, trace.used


def _per_row(
    plan: Operator, level: int, evaluate: Callable[[Context], Any], *, correlated: bool
) -> Callable[[tuple, Context], Any]:
    """`evaluate` run once per statement, or once per outer row."""
    if not correlated:
        return lambda _row, context: context.once(plan, lambda: evaluate(context))

    def fn(row: tuple, context: Context) -> Any:
        context.outer[level] = row
        return evaluate(context)

    return fn


def scalar(compiler: Compiler, query: ast.Query, scope: Scope) -> Expr:
    """(SELECT one value); 512 if there are more rows, NULL if there are none."""
    plan, correlated = compiled(compiler, query, scope)
    if len(plan.fields) != 1:
        raise error(116)
    field = plan.fields[0]

    def evaluate(context: Context) -> Any:
        rows: list[tuple] = []
        for slice_ in plan.open(context):
            rows.extend(slice_)
            if len(rows) > 1:
                raise error(512)
        return rows[0][0] if rows else None

    fn = _per_row(plan, scope.level, evaluate, correlated=correlated)
    return Expr(field.type, fn, True, constant=not correlated, varying=correlated, rank=1, masking=field.masking)


def exists(compiler: Compiler, query: ast.Query, scope: Scope) -> Expr:
    """EXISTS (query): stops at the first row."""
    plan, correlated = compiled(compiler, query, scope)

    def evaluate(context: Context) -> bool:
        return any(plan.open(context))

    fn = _per_row(plan, scope.level, evaluate, correlated=correlated)
    return Expr(t.BIT, fn, False, constant=not correlated, varying=correlated, predicate=True)


def in_query(compiler: Compiler, operand: Expr, query: ast.Query, scope: Scope, *, negated: bool) -> Expr:
    """[NOT] IN (query)."""
    plan, correlated = compiled(compiler, query, scope)
    if len(plan.fields) != 1:
        raise error(116)
    inner = column(0, plan.fields[0].type, nullable=plan.fields[0].nullable)
    type_ = common_type(operand, inner)
    probe = keyed(coerce(operand, type_), type_)
    key = keyed(replace(coerce(inner, type_)), type_)

    def evaluate(context: Context) -> tuple[set, bool]:
        keys = {key(row, context) for row in gather(plan.open(context))}
        has_null = None in keys
        keys.discard(None)
        return keys, has_null

    members = _per_row(plan, scope.level, evaluate, correlated=correlated)

    def fn(row: tuple, context: Context) -> bool | None:
        keys, has_null = members(row, context)
        value = probe(row, context)
        if value is None:
            return None if keys or has_null else negated
        if value in keys:
            return not negated
        return None if has_null else negated

    made = derived(t.BIT, fn, operand, predicate=True, nullable=True)
    return replace(made, varying=made.varying or correlated, constant=made.constant and not correlated)


def quantified(compiler: Compiler, left: Expr, operator: str, query: ast.Query, scope: Scope, *, every: bool) -> Expr:
    """`x > ALL (query)` and `x > ANY (query)`."""
    plan, correlated = compiled(compiler, query, scope)
    if len(plan.fields) != 1:
        raise error(116)
    holder: list[Any] = [None]
    right = replace(
        constant(None, plan.fields[0].type, literal=False), fn=lambda _row, _context: holder[0], varying=True
    )
    test = comparison(operator, left, right).fn

    def evaluate(context: Context) -> list[tuple]:
        return gather(plan.open(context))

    members = _per_row(plan, scope.level, evaluate, correlated=correlated)

    def fn(row: tuple, context: Context) -> bool | None:
        result: bool | None = every
        for (value,) in members(row, context):
            holder[0] = value
            outcome = test(row, context)
            if outcome is (not every):
                return not every
            if outcome is None:
                result = None
        return result

    return Expr(t.BIT, fn, True, constant=False, varying=True, predicate=True)
