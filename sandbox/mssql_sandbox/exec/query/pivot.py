"""PIVOT, rewritten as a grouping of CASE expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.tsql import ast

Fold = Callable[[str], object]
_FORBIDDEN = frozenset({"count_big", "string_agg", "grouping"})


def pivot_query(node: ast.Pivot, fields: Sequence[Field], fold: Fold) -> ast.Query:
    """SELECT the other columns, aggregate(CASE column WHEN value THEN argument END) for each value, GROUP BY them."""
    aggregate = node.aggregate
    if len(aggregate.arguments) != 1 or not isinstance(aggregate.arguments[0], ast.ColumnRef):
        raise error(102, near=aggregate.name[-1])
    argument = aggregate.arguments[0]
    used = {fold(argument.parts[-1]), fold(node.column[-1])}
    others = [field for field in fields if not field.hidden and fold(field.name) not in used]
    for value in node.values:
        if any(fold(field.name) == fold(value) for field in others):
            raise SqlError(
                265, f'The column name "{value}" specified in the PIVOT operator conflicts with the existing column '
                "name in the PIVOT argument."
            )  # fmt: skip
    items = [ast.SelectItem(_reference(field), field.name) for field in others]
    for value in node.values:
        chosen = ast.Comparison("=", ast.ColumnRef(node.column), ast.Literal(value, "nstring"))
        cell = ast.Case(None, ((chosen, argument),), None)
        items.append(ast.SelectItem(ast.Function(aggregate.name, (cell,), aggregate.distinct), value))
    group = tuple(_reference(field) for field in others)
    return ast.Query(ast.Select(tuple(items), source=node.source, group_by=group))


def _reference(field: Field) -> ast.ColumnRef:
    return ast.ColumnRef((*field.qualifier, field.name))
