"""Limits on rows: TOP, OFFSET and FETCH."""

from __future__ import annotations

from collections.abc import Sequence

from mssql_sandbox.engine import types as t
from mssql_sandbox.errors import error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.expressions.base import coerce, hoist
from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.query.sorting import SortKey, Top
from mssql_sandbox.tsql import ast


def refuse_order(query: ast.Query) -> None:
    """ORDER BY within another query needs TOP, OFFSET or FOR XML: 1033."""
    top = getattr(query.body, "top", None)
    if query.order and top is None and query.offset is None and query.for_clause is None:
        raise error(1033)


def limited(
    compiler: Compiler, plan: Operator, top: ast.Top | None, query: ast.Query | None, keys: Sequence[SortKey]
) -> Operator:
    """TOP, or OFFSET and FETCH."""
    if top is not None:
        wanted = t.FLOAT if top.percent else t.BIGINT
        count = hoist(coerce(compiler.value(top.count), wanted))
        if top.ties and not keys:
            raise error(1062)
        return Top(plan, count.fn, percent=top.percent, ties=keys if top.ties else None)
    if query is not None and query.offset is not None:
        skip = hoist(coerce(compiler.value(query.offset), t.BIGINT))
        fetch = None if query.fetch is None else hoist(coerce(compiler.value(query.fetch), t.BIGINT)).fn
        return Top(plan, fetch, skip=skip.fn)
    return plan
