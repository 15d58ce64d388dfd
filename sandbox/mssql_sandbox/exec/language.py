"""What the language is made of, handed in: what compiles an expression, plans a query, runs a statement.

Expressions hold queries, queries hold expressions and users' functions, functions hold statements, statements hold
all of them. So that no module has to import what stands above it, whoever meets a node of another kind looks it up in
the tables which its session carries; `exec.dialect` makes them, once, out of all the rooms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.tsql import ast

if TYPE_CHECKING:
    from mssql_sandbox.exec.compiler import Compiler
    from mssql_sandbox.exec.expressions.base import Expr
    from mssql_sandbox.exec.flow import Answer, Steps, StepsTo
    from mssql_sandbox.exec.query.operators import Operator
    from mssql_sandbox.exec.routine import Frame
    from mssql_sandbox.exec.scope import Scope
    from mssql_sandbox.exec.session_state import SessionState

CompileExpression = Callable[["Compiler", Any, "Scope"], "Expr"]
PlanQuery = Callable[["Compiler", "ast.Query", "Scope | None"], "Operator"]
CallProcedure = Callable[["SessionState", Sequence[RpcParameter]], "StepsTo[Answer]"]
RunStatement = Callable[["Frame", Any], "Steps"]


@dataclass(frozen=True, slots=True)
class Language:
    """The tables by type of syntax node."""

    expressions: Mapping[type, CompileExpression]
    plan_query: PlanQuery
    statements: Mapping[type, RunStatement]
    descriptions: Mapping[type, RunStatement]
    """What statements do while SET FMTONLY is ON, where they do anything."""
    procedures: Mapping[str, CallProcedure]
    """Procedures with a number of their own on the wire, by bare name in lower case."""
