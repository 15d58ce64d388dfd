"""Deciding whether two expressions are equivalent: a hashable form of each, with resolved columns."""

from __future__ import annotations

import dataclasses
from typing import Any

from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.tsql import ast

_CALL_PARTS = ("arguments", "distinct", "star", "over", "within", "ignore_nulls")


def canonical(node: Any, scope: Scope) -> Any:
    """A hashable form of an expression with resolved columns: equivalent expressions compare equal."""
    if isinstance(node, ast.ColumnRef):
        try:
            found, place = scope.base.resolve(node.parts)
        except SqlError:
            return ("?", node.parts)
        return ("column", found.level, place)
    if isinstance(node, ast.Function):
        name = tuple(part.lower() for part in node.name)
        rest = tuple(canonical(getattr(node, f), scope) for f in _CALL_PARTS)
        return ("call", name, rest)
    if isinstance(node, tuple):
        return tuple(canonical(part, scope) for part in node)
    if dataclasses.is_dataclass(node):
        return (type(node).__name__, *(canonical(getattr(node, part), scope) for part in node.__slots__))  # type: ignore[union-attr]
    return (type(node).__name__, node)
