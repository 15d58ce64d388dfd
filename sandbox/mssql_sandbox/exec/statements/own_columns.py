"""The column that an assignment changes, where the new value uses it: `x += 1`, `x.WRITE(…)`, `x.modify(…)`.

It is the target's column even if another table of FROM has one of the same name.
"""

from __future__ import annotations

from dataclasses import replace

from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.tsql import ast


def of_target(node: ast.Expression, scope: Scope, alias: str, column: ast.Name) -> ast.Expression:
    """A new value whose leading reference to the assigned column is bound to the target (`alias`)."""
    own = _reference(scope, alias, column)
    if isinstance(node, ast.MethodCall) and node.target == ast.ColumnRef(column):
        return replace(node, target=own)
    if isinstance(node, ast.Function) and node.arguments[:1] == (ast.ColumnRef(column),) and node.name == (".WRITE",):
        return replace(node, arguments=(own, *node.arguments[1:]))
    if isinstance(node, ast.Binary) and node.left == ast.ColumnRef(column):
        return replace(node, left=own)
    return node


def _reference(scope: Scope, alias: str, column: ast.Name) -> ast.ColumnRef:
    """The column qualified with the target's name; as written if that does not identify it."""
    fold = scope.fold
    own = [
        field for field in scope.fields
        if field.qualifier and fold(field.qualifier[-1]) == fold(alias) and fold(field.name) == fold(column[-1])
    ]  # fmt: skip
    if len(column) > 1 or len(own) != 1:
        return ast.ColumnRef(column)
    return ast.ColumnRef((*own[0].qualifier, own[0].name))
