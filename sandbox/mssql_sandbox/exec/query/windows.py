"""Window functions as an operator: partitions and sorts rows, appends values; `window_functions` computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import column
from mssql_sandbox.exec.expressions.canonical import canonical
from mssql_sandbox.exec.plans import Operator, Slice, Slices
from mssql_sandbox.exec.query.aggregation import own_nodes
from mssql_sandbox.exec.query.operators import Whole, gather
from mssql_sandbox.exec.query.sorting import SortKey
from mssql_sandbox.exec.query.window_functions import WindowFunction, window_function
from mssql_sandbox.exec.scope import Field, Scope
from mssql_sandbox.tsql import ast


class Window:
    """Appends the values of window functions to each row; rows come out in the order of the last window."""

    __slots__ = ("_functions", "_source", "fields", "order")

    def __init__(self, source: Operator, functions: Sequence[WindowFunction], fields: Sequence[Field]) -> None:
        self._source = source
        self._functions = functions
        self.fields = fields
        self.order: Sequence[tuple[int, bool]] = ()

    def open(self, context: Context) -> Slices:
        """All rows at the first `next`."""
        return Whole(lambda: self._rows(context))

    def _rows(self, context: Context) -> Slice:
        rows = gather(self._source.open(context))
        columns: list[list[Any]] = []
        sequence = list(range(len(rows)))
        for function in self._functions:
            values: list[Any] = [None] * len(rows)
            parts: dict[Any, list[int]] = {}
            for place in sequence:
                row = rows[place]
                parts.setdefault(tuple([key(row, context) for key in function.partition]), []).append(place)
            sequence = []
            for key in sorted(parts) if function.partition else parts:
                places = parts[key]
                keys = _ordered(places, rows, function.order, context)
                found = function.compute([rows[place] for place in places], keys, context)
                for place, value in zip(places, found, strict=True):
                    values[place] = value
                sequence.extend(places)
            columns.append(values)
        return [rows[place] + tuple([values[place] for values in columns]) for place in sequence]


def _ordered(places: list[int], rows: Slice, order: Sequence[SortKey], context: Context) -> list[Any]:
    """Sort the positions of a partition; returns the sort keys of each, in order."""
    for key, descending in reversed(order):
        places.sort(key=lambda place: key(rows[place], context), reverse=descending)
    return [tuple([key(rows[place], context) for key, _ in order]) for place in places]


def plan_windows(
    compiler: Compiler, node: ast.Select, nodes: Sequence[ast.Expression], plan: Operator, scope: Scope
) -> tuple[Operator, Scope]:
    """The window functions of `nodes`, computed after the columns of a plan."""
    found: dict[Any, ast.Function | ast.NextValueFor] = {}
    for expression in nodes:
        for part in own_nodes(expression):
            if isinstance(part, (ast.Function, ast.NextValueFor)) and part.over is not None:
                found.setdefault(canonical(part, scope), part)
    if not found:
        return plan, scope
    named = {compiler.fold(name): over for name, over in node.windows}
    functions = []
    width = len(plan.fields)
    extended: list[Field] = list(plan.fields)
    for part in found.values():
        assert part.over is not None
        over = _resolved(part.over, named, compiler)
        function = window_function(compiler, replace(part, over=over), scope)
        functions.append(function)
        extended.append(Field("", function.type, function.nullable, hidden=True))
    scope.fields[:] = extended
    for place, (key, function) in enumerate(zip(found, functions, strict=True), width):
        scope.replacements[key] = column(place, function.type, nullable=function.nullable)
    return Window(plan, functions, extended), scope


def _resolved(over: ast.Over, named: dict[object, ast.Over], compiler: Compiler) -> ast.Over:
    """OVER with the parts of the named window filled in."""
    if not over.window:
        return over
    base = named.get(compiler.fold(over.window))
    if base is None:
        raise SqlError(5363, f"Window '{over.window}' is undefined.", severity=15)
    base = _resolved(base, {key: value for key, value in named.items() if value is not base}, compiler)
    return ast.Over(over.partition or base.partition, over.order or base.order, over.frame or base.frame)
