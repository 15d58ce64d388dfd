"""Calls of users' scalar functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.exec.compiler import Compiler, call_argument
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, derived
from mssql_sandbox.exec.functions import FunctionRunner, arguments_of
from mssql_sandbox.exec.modules import Module, inside
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st


def scalar_function(compiler: Compiler, found: SchemaObject, node: ast.Function, scope: Scope) -> Expr:
    """A call of a user's scalar function."""
    own = inside(compiler, found)
    given = [call_argument(compiler, argument, scope) for argument in node.arguments]
    arguments = arguments_of(found, own, node, given)
    module: Module = found.definition
    assert module.node.returns is not None
    type_ = own.type_of(module.node.returns)
    functions = [argument.fn for argument in arguments]
    state: dict[str, FunctionRunner] = {}
    returns = module.node.returns

    def fn(row: tuple, context: Context) -> Any:
        runner = state.get("runner")
        if runner is None or runner.session is not context.session:
            runner = state["runner"] = FunctionRunner(context.session, _typed(found, returns))
        return runner.run(context, [f(row, context) for f in functions])

    compiler.reads_tables = True
    made = derived(type_, fn, *arguments, nullable=True)
    return replace(made, varying=True)


def _typed(found: SchemaObject, _returns: ast.TypeName) -> SchemaObject:
    """The function with its RETURN values cast to the declared type."""
    module: Module = found.definition
    body = tuple(_cast_returns(node, _returns) for node in module.node.body)
    typed = replace(module.node, body=body)
    copy = type(found)(found.name, found.object_id, found.schema, found.type_code)
    copy.definition = Module(typed, module.database)
    return copy


def _cast_returns(node: Any, type_: ast.TypeName) -> Any:
    if isinstance(node, st.Return) and node.value is not None:
        return replace(node, value=ast.Cast("cast", node.value, type_))
    if isinstance(node, st.Block):
        return replace(node, body=tuple(_cast_returns(part, type_) for part in node.body))
    if isinstance(node, st.If):
        otherwise = _cast_returns(node.otherwise, type_) if node.otherwise is not None else None
        return replace(node, then=_cast_returns(node.then, type_), otherwise=otherwise)
    if isinstance(node, st.While):
        return replace(node, body=_cast_returns(node.body, type_))
    return node
