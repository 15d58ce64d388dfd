"""What the language is made of, handed in: which function compiles an expression and plans a query.

Expressions hold queries, queries hold expressions and users' functions, functions hold statements, statements hold
all of them. So that no module has to import what stands above it, whoever meets a node of another kind looks it up in
the tables which its session carries; `exec.dialect` makes them, once, out of all the rooms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mssql_cdc.sandbox.exec.compiler import Compiler
    from mssql_cdc.sandbox.exec.expressions.base import Expr
    from mssql_cdc.sandbox.exec.query.operators import Operator
    from mssql_cdc.sandbox.exec.scope import Scope
    from mssql_cdc.sandbox.tsql import ast

CompileExpression = Callable[["Compiler", Any, "Scope"], "Expr"]
PlanQuery = Callable[["Compiler", "ast.Query", "Scope | None"], "Operator"]


@dataclass(frozen=True, slots=True)
class Language:
    """The tables by type of syntax node."""

    expressions: Mapping[type, CompileExpression]
    plan_query: PlanQuery
