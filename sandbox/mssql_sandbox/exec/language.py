"""The tables of the language: what compiles an expression, plans a query, runs a statement.

Expressions contain queries, queries contain expressions and users' functions, functions contain statements, and
statements contain all of them. To avoid import circles, code that meets a node of another kind looks it up in the
tables that its session carries. `exec.dialect` builds them once and checks their types: `CompileExpression` and
`PlanQuery` of `compiler`, `RunStatement` of `routine`, `CallProcedure` of `session_state`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Language:
    """The tables by type of syntax node."""

    expressions: Mapping[type, Callable[..., Any]]
    plan_query: Callable[..., Any]
    statements: Mapping[type, Callable[..., Any]]
    descriptions: Mapping[type, Callable[..., Any]]
    """What statements do while SET FMTONLY is ON, if anything."""
    procedures: Mapping[str, Callable[..., Any]]
    """Procedures with a number on the wire, by bare name in lower case."""
