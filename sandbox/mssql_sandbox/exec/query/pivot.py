"""PIVOT and UNPIVOT, rewritten to what they mean: a grouping of CASE expressions, an APPLY over VALUES."""

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


def unpivot_query(node: ast.Unpivot, fields: Sequence[Field], fold: Fold) -> ast.Query:
    """SELECT the other columns, value, column name FROM source CROSS APPLY (VALUES …) where the value is not NULL."""
    by_name = {fold(field.name): field for field in fields}
    chosen: list[Field] = []
    for name in node.columns:
        field = by_name.get(fold(name))
        if field is None:
            raise error(207, name=name)
        if chosen and (field.type.name, field.type.length) != (chosen[0].type.name, chosen[0].type.length):
            raise SqlError(
                8167, f'The type of column "{name}" conflicts with the type of other columns specified in the '
                "UNPIVOT list."
            )  # fmt: skip
        chosen.append(field)
    used = {fold(name) for name in node.columns}
    items = [
        ast.SelectItem(_reference(field), field.name)
        for field in fields if not field.hidden and fold(field.name) not in used
    ]  # fmt: skip
    cells = "unpivoted values"
    value, column = ast.ColumnRef((cells, node.value)), ast.ColumnRef((cells, node.column))
    name_type = ast.TypeName(("sysname",))
    rows = tuple(
        (_reference(field), ast.Cast("cast", ast.Literal(field.name, "nstring"), name_type)) for field in chosen
    )
    values = ast.DerivedTable(ast.Query(ast.Values(rows)), cells, (node.value, node.column))
    source = ast.Join("CROSS APPLY", node.source, values)
    items += [ast.SelectItem(value, node.value), ast.SelectItem(column, node.column)]
    return ast.Query(ast.Select(tuple(items), source=source, where=ast.IsNull(value, True)))


def _reference(field: Field) -> ast.ColumnRef:
    return ast.ColumnRef((*field.qualifier, field.name))
