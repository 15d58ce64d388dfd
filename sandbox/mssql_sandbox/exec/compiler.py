"""The compiler of a statement: the context of a compilation, and access to the tables of the language.

It does not know how each kind of node is compiled; `exec.language` explains why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.collation import Collation, collation_named
from mssql_sandbox.engine.system_types import TYPES
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.expressions import conditions
from mssql_sandbox.exec.expressions.base import NULL, Expr
from mssql_sandbox.exec.expressions.canonical import canonical
from mssql_sandbox.exec.names import Names
from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.variables import VariableScope
from mssql_sandbox.tsql import ast

EMPTY = Scope((), str)
DEFAULT = object()
"""Value of an argument that is the keyword DEFAULT."""


class Compiler:
    """Compiles the expressions and queries of one statement."""

    def __init__(self, session: SessionState, variables: VariableScope | None = None) -> None:
        self.session = session
        self._expressions = session.language.expressions
        self.names = Names(session)
        self.variables = variables or VariableScope()
        self.common_tables: dict[object, Any] = {}
        self.virtual_tables: dict[str, Any] = {}
        self.reads_tables = False
        self.module_depth = 0

    @property
    def collation(self) -> Collation:
        """The collation of literals and of names."""
        return self.names.database.collation

    @property
    def fold(self) -> Callable[[str], object]:
        """Names are equal if their folded forms are."""
        return self.collation.key

    def type_of(self, node: ast.TypeName, *, cast: bool = False, ordinal: int = 1) -> SqlType:
        """The written type; alias types of the database are looked up. 2715 if there is none."""
        collation = collation_named(node.collation) if node.collation else self.collation
        try:
            return t.make_type(node.name[-1], *node.arguments, collation=collation, cast=cast, ordinal=ordinal)
        except SqlError as failure:
            if failure.number != 243:
                raise
        found = self.names.find(node.name)
        if found is not None and found.type_code == "TYPE" and isinstance(found.definition, SqlType):
            return found.definition
        shown = ".".join(node.name)
        if cast:
            raise error(243, name=shown)
        raise SqlError(2715, f"Column, parameter, or variable #{ordinal}: Cannot find data type {shown}.", state=6)

    def table_type(self, node: ast.TypeName) -> Any:
        """The definition of a table type; None if the name is not one."""
        if len(node.name) == 1 and node.name[0].lower() in TYPES:
            return None
        found = self.names.find(node.name)
        return found.definition if found is not None and found.type_code == "TT" else None

    def expr(self, node: ast.Expression, scope: Scope = EMPTY) -> Expr:
        """Compile an expression or condition against the columns in scope."""
        if scope.replacements:
            known = scope.replacements.get(canonical(node, scope))
            if known is not None:
                return known
        compile_ = self._expressions.get(type(node))
        if compile_ is None:
            raise SqlError(
                102, f"Incorrect syntax: {type(node).__name__} cannot stand in an expression here.", severity=15
            )
        return compile_(self, node, scope)

    def value(self, node: ast.Expression, scope: Scope = EMPTY) -> Expr:
        """Compile an expression that must not be a condition."""
        found = self.expr(node, scope)
        if found.predicate:
            raise error(102, near=_near(node))
        return found

    def condition(self, node: ast.Expression, scope: Scope = EMPTY) -> Expr:
        """Compile a search condition."""
        return conditions.require_condition(self.expr(node, scope), _near(node))

    def query(self, query: ast.Query, parent: Scope | None = None) -> Operator:
        """Compile a query; `parent` is the scope whose columns it may refer to."""
        return self.session.language.plan_query(self, query, parent)


def _near(node: ast.Expression) -> str:
    operator = getattr(node, "operator", "")
    return operator if isinstance(operator, str) and operator else ")"


def call_argument(compiler: Compiler, node: ast.Expression, scope: Scope) -> Expr:
    """An argument of a user's function: a value, or DEFAULT (a NULL whose value is the marker above)."""
    if isinstance(node, ast.Literal) and node.kind == "default":
        return replace(NULL, value=DEFAULT)
    return compiler.value(node, scope)


CompileExpression = Callable[[Compiler, Any, Scope], Expr]
PlanQuery = Callable[[Compiler, ast.Query, "Scope | None"], Operator]
