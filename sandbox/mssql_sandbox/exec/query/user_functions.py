"""Users' table-valued functions in FROM: inline ones are planned like views, the others run to fill their table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.versions import newest
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr
from mssql_sandbox.exec.functions import FunctionRunner, arguments_of
from mssql_sandbox.exec.modules import Module, inside
from mssql_sandbox.exec.plans import Operator, Slices
from mssql_sandbox.exec.query.commontables import Renamed, named
from mssql_sandbox.exec.query.operators import Rows
from mssql_sandbox.exec.scope import table_fields
from mssql_sandbox.tsql import ast


class _Parameters:
    """Runs a plan with its own variables: an inline function's parameters."""

    __slots__ = ("_functions", "_plan", "fields", "order")

    def __init__(self, plan: Operator, functions: Sequence[Any]) -> None:
        self._plan = plan
        self._functions = functions
        self.fields = plan.fields
        self.order = plan.order

    def open(self, context: Context) -> Slices:
        """The plan's slices in a separate context."""
        values = [fn((), context) for fn in self._functions]
        return self._plan.open(Context(context.session, values, context.transaction))


def plan_table_function(
    compiler: Compiler, found: SchemaObject, node: ast.FunctionTable, given: list[Expr]
) -> Operator:
    """An inline or multi-statement table-valued function."""
    own = inside(compiler, found)
    arguments = arguments_of(found, own, node, given)
    functions = [argument.fn for argument in arguments]
    module: Module = found.definition
    if module.node.query is not None:
        plan = own.query(module.node.query)
        return _Parameters(Renamed(plan, named(plan.fields, (), found.name, found.name)), functions)
    assert module.node.returns_table is not None
    runner = FunctionRunner(compiler.session, found)
    variable = module.node.returns_table[0]
    table = runner.routine.scope.table(variable).table

    def rows(context: Context) -> Iterable[tuple]:
        runner.run(context, [fn((), context) for fn in functions])
        return _rows_of(table)

    return Rows([replace(field, qualifier=()) for field in table_fields(table, ())], rows)


def _rows_of(table: Table) -> list[tuple]:
    return [row for slot in table.heap if (row := newest(slot)) is not None]
