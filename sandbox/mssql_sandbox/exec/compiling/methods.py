"""Methods of values: finding the type that a method belongs to."""

from __future__ import annotations

from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.expressions.base import Expr
from mssql_sandbox.exec.methods import hierarchy, xml
from mssql_sandbox.exec.methods.xml_types import xml_types
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.tsql import ast

_NAMES = xml.METHODS | hierarchy.NAMES
_UNKNOWN = "this server has the methods of xml and hierarchyid values only."


def method(compiler: Compiler, node: ast.MethodCall, scope: Scope) -> Expr:
    """Methods of xml and hierarchyid values; those of spatial values are reported as not implemented."""
    if isinstance(node.target, ast.Expression):
        target = compiler.value(node.target, scope)
        if target.type.name == "xml":
            return xml.call(compiler, target, node, scope, xml_types(compiler, node.target, scope))
        if target.type.name == "hierarchyid":
            given = [compiler.value(one, scope) for one in node.arguments]
            return hierarchy.call(compiler, target, node.method, given)
        if node.method == xml.MODIFY:
            raise SqlError(258, f"Cannot call methods on {target.type.name}.", severity=15)
    elif node.target[-1].lower() == "hierarchyid":
        given = [compiler.value(one, scope) for one in node.arguments]
        return hierarchy.static(compiler, node.method, given)
    raise SqlError(6506, f"Could not find method '{node.method}': {_UNKNOWN}", state=10)


def of_column(compiler: Compiler, node: ast.Function, scope: Scope) -> Expr | None:
    """`column.method(…)`, which looks like a function of a schema; None if it is one.

    A qualified column that is not found is reported as such: only a bare one may be the name of a schema.
    """
    column = node.name[:-1]
    if not column or node.name[-1].lower() not in _NAMES or not _has_methods(compiler, column, scope):
        return None
    return method(compiler, ast.MethodCall(ast.ColumnRef(column), node.name[-1], node.arguments), scope)


def _has_methods(compiler: Compiler, parts: ast.Name, scope: Scope) -> bool:
    try:
        found = compiler.value(ast.ColumnRef(parts), scope)
    except SqlError:
        if len(parts) > 1:
            raise
        return False
    return found.type.name in ("xml", "hierarchyid")
