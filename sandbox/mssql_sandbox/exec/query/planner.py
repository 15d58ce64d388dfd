"""Queries to plans: WITH, set operations, ORDER BY, TOP, and the parts of a query specification."""

from __future__ import annotations

from mssql_sandbox.errors import error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.expressions.base import Expr, coerce, column
from mssql_sandbox.exec.expressions.values import unified
from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.query import commontables
from mssql_sandbox.exec.query.combining import Combination
from mssql_sandbox.exec.query.for_json import for_json
from mssql_sandbox.exec.query.limits import limited
from mssql_sandbox.exec.query.masks import concealed
from mssql_sandbox.exec.query.operators import Rows
from mssql_sandbox.exec.query.select import plan_select
from mssql_sandbox.exec.query.sorting import Sort, SortKey, order_key
from mssql_sandbox.exec.scope import Field, Scope
from mssql_sandbox.tsql import ast


def plan_query(compiler: Compiler, query: ast.Query, parent: Scope | None) -> Operator:
    """The plan of a whole query."""
    if not query.ctes:
        return _plan(compiler, query, parent)
    outside = dict(compiler.common_tables)
    try:
        for table in query.ctes:
            commontables.define(compiler, table, parent, query)
        return _plan(compiler, query, parent)
    finally:
        compiler.common_tables = outside


def _plan(compiler: Compiler, query: ast.Query, parent: Scope | None) -> Operator:
    if isinstance(query.body, ast.Select):
        plan = plan_select(compiler, query.body, query, parent)
    else:
        plan = plan_body(compiler, query.body, parent)
        plan = _ordered(compiler, plan, query, parent)
    clause = query.for_clause
    return plan if clause is None or clause.kind == "BROWSE" else for_json(concealed(plan), clause)


def plan_body(compiler: Compiler, body: ast.QueryBody, parent: Scope | None) -> Operator:
    """A query specification, set operation or VALUES without ORDER BY."""
    if isinstance(body, ast.Select):
        return plan_select(compiler, body, None, parent)
    if isinstance(body, ast.Nested):
        return plan_query(compiler, body.query, parent)
    if isinstance(body, ast.Values):
        return plan_values(compiler, body, parent)
    assert isinstance(body, ast.SetOperation)
    return _set_operation(compiler, body, parent)


def _set_operation(compiler: Compiler, node: ast.SetOperation, parent: Scope | None) -> Operator:
    first, steps = node.chain()
    combined = Combination(plan_body(compiler, first, parent))
    for operator, operand in steps:
        combined.add(operator, plan_body(compiler, operand, parent))
    return combined.plan()


def plan_values(compiler: Compiler, node: ast.Values, parent: Scope | None) -> Operator:
    """VALUES (…), (…) as a table; columns have no names."""
    width = len(node.rows[0])
    if any(len(row) != width for row in node.rows):
        raise error(10709)
    scope = Scope((), compiler.fold, parent=parent, level=0 if parent is None else parent.level + 1)
    rows = [[compiler.value(value, scope) for value in row] for row in node.rows]
    fields = []
    for place in range(width):
        parts = [row[place] for row in rows]
        fields.append(Field("", unified(parts), any(part.nullable for part in parts)))
    functions = [[coerce(value, field.type).fn for value, field in zip(row, fields, strict=True)] for row in rows]
    return Rows(fields, lambda context: [tuple([fn((), context) for fn in row]) for row in functions])


def _ordered(compiler: Compiler, plan: Operator, query: ast.Query, parent: Scope | None) -> Operator:
    """ORDER BY and OFFSET over a set operation: items are output columns."""
    scope = Scope(plan.fields, compiler.fold, parent=parent, level=0 if parent is None else parent.level + 1)
    keys: list[SortKey] = []
    for item in query.order:
        expr = _output_item(compiler, item.expression, scope, query.body)
        keys.append((order_key(expr), item.descending))
    if keys:
        plan = Sort(plan, keys)
    return limited(compiler, plan, None, query, keys)


def _output_item(compiler: Compiler, node: ast.Expression, scope: Scope, body: ast.QueryBody) -> Expr:
    if isinstance(node, ast.Literal) and node.kind == "int":
        place = int(str(node.value)) - 1
        if not 0 <= place < len(scope.fields):
            raise error(108, position=place + 1)
        field = scope.fields[place]
        return column(place, field.type, nullable=field.nullable)
    if isinstance(node, ast.ColumnRef) and len(node.parts) > 1:
        # A qualified column may be named as the first SELECT names it.
        wanted = [compiler.fold(part) for part in node.parts]
        for place, item in enumerate(_first_select(body)):
            written = item.expression
            if isinstance(written, ast.ColumnRef) and [compiler.fold(part) for part in written.parts] == wanted:
                field = scope.fields[place]
                return column(place, field.type, nullable=field.nullable)
    return compiler.value(node, scope)


def _first_select(body: ast.QueryBody) -> tuple[ast.SelectItem, ...]:
    """The select list that names the columns of a set operation; none if `*` hides their number."""
    if isinstance(body, ast.SetOperation):
        body, _ = body.chain()
    if not isinstance(body, ast.Select) or any(isinstance(item.expression, ast.Star) for item in body.items):
        return ()
    return body.items
