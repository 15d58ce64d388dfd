"""The table of expressions: the function that compiles each kind of node. Function calls are in `calls`."""

from __future__ import annotations

from collections.abc import Mapping

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.collation import collation_named
from mssql_sandbox.errors import error
from mssql_sandbox.exec.compiler import CompileExpression, Compiler
from mssql_sandbox.exec.compiling import calls, methods, subqueries
from mssql_sandbox.exec.expressions import arithmetic, conditions, lenient, like, values
from mssql_sandbox.exec.expressions.base import Expr, column, outer_column
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.tsql import ast


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


_EQUALITY = {"=": True, "<>": False, "!=": False}
"""Operators that match NULL under ANSI_NULLS OFF, and whether they mean equality."""


def _unary(compiler: Compiler, node: ast.Unary, scope: Scope) -> Expr:
    operand = compiler.value(node.operand, scope)
    return arithmetic.negative(operand) if node.operator == "-" else arithmetic.inverted(operand)


def _binary(compiler: Compiler, node: ast.Binary, scope: Scope) -> Expr:
    left, right, options = compiler.value(node.left, scope), compiler.value(node.right, scope), compiler.session.options
    whole = arithmetic.binary(node.operator, left, right)
    return lenient.forgiven(lenient.joined(whole, left, right, options), options)


def _comparison(compiler: Compiler, node: ast.Comparison, scope: Scope) -> Expr:
    left, right = compiler.value(node.left, scope), compiler.value(node.right, scope)
    finds_null = not compiler.session.options.ansi_nulls and node.operator in _EQUALITY
    if finds_null and (left.null or right.null or ast.Variable in (type(node.left), type(node.right))):
        return conditions.is_distinct(left, right, negated=_EQUALITY[node.operator])
    return conditions.comparison(node.operator, left, right)


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


def _full_text(_compiler: Compiler, _node: ast.FullText, _scope: Scope) -> Expr:
    raise error(7609)


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
    made = values.conversion(operand, target, style, try_=node.try_)
    return lenient.forgiven(made, compiler.session.options)


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


EXPRESSIONS: Mapping[type, CompileExpression] = {
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
    ast.MethodCall: methods.method,
    ast.FullText: _full_text,
    ast.ScalarSubquery: _scalar_query,
    ast.Exists: _exists,
    ast.Quantified: _quantified,
    ast.NextValueFor: calls.next_value,
}
