"""Syntax nodes to compiled expressions: the dispatch, and what compilation needs to know around a statement."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.collation import Collation, collation_named
from mssql_cdc.sandbox.engine.types import SqlType
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.expressions import arithmetic, calls, conditions, like, subqueries, values
from mssql_cdc.sandbox.exec.expressions.base import Expr, column, constant, outer_column
from mssql_cdc.sandbox.exec.names import Names
from mssql_cdc.sandbox.exec.scope import Scope
from mssql_cdc.sandbox.exec.variables import VariableScope
from mssql_cdc.sandbox.tsql import ast

if TYPE_CHECKING:
    from mssql_cdc.sandbox.exec.query.operators import Operator
    from mssql_cdc.sandbox.exec.session import Session

EMPTY = Scope((), str)


class Compiler:
    """Compiles the expressions and queries of one statement."""

    def __init__(self, session: Session, variables: VariableScope | None = None) -> None:
        self.session = session
        self.names = Names(session)
        self.variables = variables or VariableScope()
        self.common_tables: dict[object, Any] = {}
        self.virtual_tables: dict[str, Any] = {}
        self.reads_tables = False
        self.module_depth = 0

    @property
    def collation(self) -> Collation:
        """The collation of literals and of names."""
        return self.names.database.collation

    @property
    def fold(self) -> Callable[[str], object]:
        """Names are the same when their folded forms are."""
        return self.collation.key

    def type_of(self, node: ast.TypeName, *, cast: bool = False, ordinal: int = 1) -> SqlType:
        """The type that is written; alias types of the database are looked up. 2715 when there is none."""
        collation = collation_named(node.collation) if node.collation else self.collation
        try:
            return t.make_type(node.name[-1], *node.arguments, collation=collation, cast=cast, ordinal=ordinal)
        except SqlError as failure:
            if failure.number != 243:
                raise
        found = self.names.find(node.name)
        if found is not None and found.type_code == "TYPE" and isinstance(found.definition, SqlType):
            return found.definition
        shown = ".".join(node.name)
        if cast:
            raise error(243, name=shown)
        raise SqlError(2715, f"Column, parameter, or variable #{ordinal}: Cannot find data type {shown}.", state=6)

    def table_type(self, node: ast.TypeName) -> Any:
        """The definition behind a table type's name; None when the name means anything else."""
        if len(node.name) == 1 and node.name[0].lower() in t.TYPES:
            return None
        found = self.names.find(node.name)
        return found.definition if found is not None and found.type_code == "TT" else None

    def expr(self, node: ast.Expression, scope: Scope = EMPTY) -> Expr:
        """Compile an expression or condition against the columns in scope."""
        if scope.replacements:
            known = scope.replacements.get(canonical(node, scope))
            if known is not None:
                return known
        compile_ = _DISPATCH.get(type(node))
        if compile_ is None:
            raise SqlError(
                102, f"Incorrect syntax: {type(node).__name__} cannot stand in an expression here.", severity=15
            )
        return compile_(self, node, scope)

    def value(self, node: ast.Expression, scope: Scope = EMPTY) -> Expr:
        """Compile an expression that must not be a condition."""
        found = self.expr(node, scope)
        if found.predicate:
            raise error(102, near=_near(node))
        return found

    def condition(self, node: ast.Expression, scope: Scope = EMPTY) -> Expr:
        """Compile a search condition."""
        return conditions.require_condition(self.expr(node, scope), _near(node))

    def query(self, query: ast.Query, parent: Scope | None = None) -> Operator:
        """Compile a query; `parent` is the scope whose columns it may refer to."""
        from mssql_cdc.sandbox.exec.query.planner import plan_query

        return plan_query(self, query, parent)


def _near(node: ast.Expression) -> str:
    operator = getattr(node, "operator", "")
    return operator if isinstance(operator, str) and operator else ")"


_CALL_PARTS = ("arguments", "distinct", "star", "over", "within", "ignore_nulls")


def canonical(node: Any, scope: Scope) -> Any:
    """A hashable form of an expression in which columns are resolved, so that equal meaning compares equal."""
    if isinstance(node, ast.ColumnRef):
        try:
            found, place = scope.base.resolve(node.parts)
        except SqlError:
            return ("?", node.parts)
        return ("column", found.level, place)
    if isinstance(node, ast.Function):
        name = tuple(part.lower() for part in node.name)
        rest = tuple(canonical(getattr(node, f), scope) for f in _CALL_PARTS)
        return ("call", name, rest)
    if isinstance(node, tuple):
        return tuple(canonical(part, scope) for part in node)
    if dataclasses.is_dataclass(node):
        return (type(node).__name__, *(canonical(getattr(node, part), scope) for part in node.__slots__))  # type: ignore[union-attr]
    return (type(node).__name__, node)


# ---- one function per kind of node -----------------------------------------------------------------------


def _literal(compiler: Compiler, node: ast.Literal, _scope: Scope) -> Expr:
    return values.literal(node, compiler.collation)


def _variable(compiler: Compiler, node: ast.Variable, _scope: Scope) -> Expr:
    slot = compiler.variables.scalar(node.name)
    if slot.type is None:
        raise error(137, name=node.name)
    return values.variable(slot.place, slot.type)


def _column(_compiler: Compiler, node: ast.ColumnRef, scope: Scope) -> Expr:
    if len(node.parts) == 1 and (
        node.parts[0].startswith("$") or node.parts[0].upper() in ("IDENTITYCOL", "ROWGUIDCOL")
    ):
        word = {"$IDENTITY": "identity", "IDENTITYCOL": "identity"}.get(node.parts[0].upper(), "rowguid")
        place = scope.special(word)
        if place is not None:
            return _field(scope, place)
    found, place = scope.resolve(node.parts, node.line)
    if found.level == scope.level:
        return _field(found, place)
    field = found.fields[place]
    return outer_column(found.level, place, field.type, nullable=field.nullable)


def _field(scope: Scope, place: int) -> Expr:
    field = scope.fields[place]
    return column(place, field.type, nullable=field.nullable, origin=field.origin)


def _unary(compiler: Compiler, node: ast.Unary, scope: Scope) -> Expr:
    operand = compiler.value(node.operand, scope)
    return arithmetic.negative(operand) if node.operator == "-" else arithmetic.inverted(operand)


def _binary(compiler: Compiler, node: ast.Binary, scope: Scope) -> Expr:
    return arithmetic.binary(node.operator, compiler.value(node.left, scope), compiler.value(node.right, scope))


def _comparison(compiler: Compiler, node: ast.Comparison, scope: Scope) -> Expr:
    return conditions.comparison(node.operator, compiler.value(node.left, scope), compiler.value(node.right, scope))


def _logical(compiler: Compiler, node: ast.Logical, scope: Scope) -> Expr:
    parts = [compiler.condition(operand, scope) for operand in node.operands]
    return conditions.conjunction(parts) if node.operator == "AND" else conditions.disjunction(parts)


def _not(compiler: Compiler, node: ast.Not, scope: Scope) -> Expr:
    return conditions.negation(compiler.condition(node.operand, scope))


def _is_null(compiler: Compiler, node: ast.IsNull, scope: Scope) -> Expr:
    return conditions.is_null(compiler.value(node.operand, scope), negated=node.negated)


def _is_distinct(compiler: Compiler, node: ast.IsDistinct, scope: Scope) -> Expr:
    return conditions.is_distinct(
        compiler.value(node.left, scope), compiler.value(node.right, scope), negated=node.negated
    )


def _like(compiler: Compiler, node: ast.Like, scope: Scope) -> Expr:
    escape = compiler.value(node.escape, scope) if node.escape is not None else None
    return like.like(
        compiler.value(node.operand, scope), compiler.value(node.pattern, scope), escape, negated=node.negated
    )


def _in(compiler: Compiler, node: ast.In, scope: Scope) -> Expr:
    operand = compiler.value(node.operand, scope)
    if node.query is not None:
        return subqueries.in_query(compiler, operand, node.query, scope, negated=node.negated)
    return conditions.in_list(operand, [compiler.value(item, scope) for item in node.items], negated=node.negated)


def _between(compiler: Compiler, node: ast.Between, scope: Scope) -> Expr:
    operand = compiler.value(node.operand, scope)
    low = conditions.comparison(">=", operand, compiler.value(node.low, scope))
    high = conditions.comparison("<=", operand, compiler.value(node.high, scope))
    both = conditions.conjunction([low, high])
    return conditions.negation(both) if node.negated else both


def _case(compiler: Compiler, node: ast.Case, scope: Scope) -> Expr:
    operand = compiler.value(node.operand, scope) if node.operand is not None else None
    whens = [(compiler.expr(when, scope), compiler.value(then, scope)) for when, then in node.whens]
    otherwise = compiler.value(node.otherwise, scope) if node.otherwise is not None else None
    return values.case(operand, whens, otherwise)


def _cast(compiler: Compiler, node: ast.Cast, scope: Scope) -> Expr:
    operand = compiler.value(node.operand, scope)
    target = compiler.type_of(node.type, cast=True)
    if target.name in t.STRINGS and not node.type.collation and operand.type.collation is not None:
        target = t.with_collation(target, operand.type.collation)
    style = compiler.value(node.style, scope) if node.style is not None else None
    return values.conversion(node.form, operand, target, style, try_=node.try_)


def _collate(compiler: Compiler, node: ast.Collate, scope: Scope) -> Expr:
    name = node.collation
    collation = compiler.collation if name.upper() in ("DATABASE_DEFAULT", "CATALOG_DEFAULT") else collation_named(name)
    return values.collated(compiler.value(node.operand, scope), collation)


def _scalar_query(compiler: Compiler, node: ast.ScalarSubquery, scope: Scope) -> Expr:
    return subqueries.scalar(compiler, node.query, scope)


def _exists(compiler: Compiler, node: ast.Exists, scope: Scope) -> Expr:
    return subqueries.exists(compiler, node.query, scope)


def _quantified(compiler: Compiler, node: ast.Quantified, scope: Scope) -> Expr:
    left = compiler.value(node.left, scope)
    return subqueries.quantified(compiler, left, node.operator, node.query, scope, every=node.every)


def _star(_compiler: Compiler, _node: ast.Star, _scope: Scope) -> Expr:
    raise error(102, near="*")


def _method(compiler: Compiler, node: ast.MethodCall, scope: Scope) -> Expr:
    return calls.method(compiler, node, scope)


_DISPATCH: dict[type, Callable[[Compiler, Any, Scope], Expr]] = {
    ast.Literal: _literal,
    ast.Variable: _variable,
    ast.GlobalVariable: calls.global_variable,
    ast.ColumnRef: _column,
    ast.Star: _star,
    ast.Unary: _unary,
    ast.Binary: _binary,
    ast.Comparison: _comparison,
    ast.Logical: _logical,
    ast.Not: _not,
    ast.IsNull: _is_null,
    ast.IsDistinct: _is_distinct,
    ast.Like: _like,
    ast.In: _in,
    ast.Between: _between,
    ast.Case: _case,
    ast.Cast: _cast,
    ast.Collate: _collate,
    ast.AtTimeZone: calls.at_time_zone,
    ast.Function: calls.function,
    ast.MethodCall: _method,
    ast.ScalarSubquery: _scalar_query,
    ast.Exists: _exists,
    ast.Quantified: _quantified,
    ast.NextValueFor: calls.next_value,
}
__all__ = ["EMPTY", "Compiler", "canonical", "constant"]
