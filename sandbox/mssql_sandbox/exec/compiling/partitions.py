"""$PARTITION.function(value): the number of the partition of a value."""

from __future__ import annotations

from mssql_sandbox.engine import types as t
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, coerce
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.exec.tables.partitions import functions
from mssql_sandbox.tsql import ast


def partition_number(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr:
    """$PARTITION.function(value)."""
    function = functions(compiler.names.database).get(node.name[-1].lower())
    if function is None or len(node.arguments) != 1:
        raise SqlError(7715, f'The specified partition function "{node.name[-1]}" does not exist.')
    value = coerce(compiler.value(node.arguments[0], scope), function.type).fn

    def fn(row: tuple, context: Context) -> int:
        return function.number(value(row, context))

    return Expr(t.INT, fn, False)
