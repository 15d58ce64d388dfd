"""FOR SYSTEM_TIME in queries: the current and the former rows of a system-versioned table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import coerce, column
from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.query.leaves import computed_values
from mssql_sandbox.exec.query.masks import masked_fields
from mssql_sandbox.exec.query.operators import Concatenation, Filter, Projection
from mssql_sandbox.exec.query.scans import Access, TableScan
from mssql_sandbox.exec.scope import table_fields
from mssql_sandbox.tsql import ast

_Test = Callable[[int, int, Sequence[int]], bool]
_TESTS: dict[str, _Test] = {
    "ALL": lambda _start, _end, _given: True,
    "AS OF": lambda start, end, given: start <= given[0] < end,
    "FROM": lambda start, end, given: start < given[1] and end > given[0],
    "BETWEEN": lambda start, end, given: start <= given[1] and end > given[0],
    "CONTAINED IN": lambda start, end, given: start >= given[0] and end <= given[1],
}
"""The condition on (start, end) of a period, from the moments that the query names."""


def plan_history(compiler: Compiler, table: Table, source: ast.NamedTable, qualifier: tuple[str, ...]) -> Operator:
    """Current and former rows together; rows whose period is empty are not shown."""
    history, period = table.history, table.period_at
    if history is None or period is None:
        raise SqlError(
            13544, f"Temporal FOR SYSTEM_TIME clause can only be used with system-versioned tables. "
            f"'{table.long_name}' is not a system-versioned table."
        )  # fmt: skip
    assert source.system_time is not None
    kind, given = source.system_time
    test, type_ = _TESTS[kind], table.columns[period[0]].type
    moments = [coerce(compiler.value(node), type_).fn for node in given]
    start, end = period

    def holds(row: tuple, context: Context) -> bool:
        values = [moment((), context) for moment in moments]
        return None not in values and row[start] < row[end] and test(row[start], row[end], values)

    fields = masked_fields(compiler.session, table, table_fields(table, qualifier))
    hints = frozenset(hint.lower() for hint in source.hints)
    current = TableScan(table, fields, hints=hints, access=Access(), order=(), computed=computed_values(table))
    kept = table_fields(history, qualifier)
    former: Operator = TableScan(history, kept, hints=hints, access=Access(), order=())
    by_name = {field.name: place for place, field in enumerate(kept)}
    former = _reordered(former, [by_name[field.name] for field in fields], fields)
    return Filter(Concatenation([current, former], fields), holds)


def _reordered(plan: Operator, places: Sequence[int], fields: Sequence[Any]) -> Operator:
    exprs = [column(place, plan.fields[place].type, nullable=plan.fields[place].nullable) for place in places]
    return Projection(plan, exprs, fields)
