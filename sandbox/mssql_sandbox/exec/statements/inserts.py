"""INSERT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, Fn, coerce
from mssql_sandbox.exec.expressions.values import unified
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.query.commontables import with_common_tables
from mssql_sandbox.exec.query.masks import concealed, masked_value
from mssql_sandbox.exec.query.operators import gather
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.statements import triggers
from mssql_sandbox.exec.statements.changes import RowLimit, row_limit
from mssql_sandbox.exec.statements.insert_execute import insert_execute
from mssql_sandbox.exec.statements.instead import instead_of, shape_of, view_of
from mssql_sandbox.exec.statements.literal_rows import literal_rows
from mssql_sandbox.exec.statements.output import OutputPlan, compile_output, finish
from mssql_sandbox.exec.statements.targets import target_table
from mssql_sandbox.exec.statements.view_columns import check_rows, insert_target
from mssql_sandbox.exec.tables.cells import (
    complete,
    insert_columns,
    row_builder,
    stored,
)
from mssql_sandbox.exec.tables.rows import insert_rows
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.parser import parse_rows


@dataclass(frozen=True, slots=True)
class InsertPlan:
    """A compiled INSERT. `rows` makes complete rows."""

    table: Table
    rows: Callable[[Context], list[tuple]]
    identity: int
    explicit_identity: bool
    output: OutputPlan | None
    top: RowLimit | None
    checks: tuple[Fn, ...] = ()
    owner: Any = None


def compile_insert(compiler: Compiler, node: st.Insert) -> InsertPlan:
    """Compile INSERT … VALUES, SELECT or DEFAULT VALUES."""
    with with_common_tables(compiler, node.ctes):
        return _compile(compiler, node)


def _compile(compiler: Compiler, node: st.Insert) -> InsertPlan:
    session = compiler.session
    names, checks, owner = node.columns, (), view_of(compiler, node.target, "INSERT")
    through = None if owner is not None else insert_target(compiler, node.target, names)
    if owner is not None:
        table = shape_of(compiler, owner)
    elif through is not None:
        table, names, checks = through
    else:
        table = target_table(compiler, node.target, "INSERT")
    on = session.identity_insert is table
    places = insert_columns(table, names, implicit=node.source is not None)
    identity = next((place for place, col in enumerate(table.columns) if col.identity is not None), -1)
    explicit = identity in places
    if explicit and not on:
        raise error(544, table=table.name)
    if on and not names and identity >= 0:
        raise SqlError(8101, f"An explicit value for the identity column in table '{table.name}' can only be "
                       "specified when a column list is used and IDENTITY_INSERT is ON.")  # fmt: skip
    if on and not explicit and identity >= 0:
        raise error(545, table=table.name)
    output = compile_output(compiler, node.output, table, inserted=True, deleted=False) if node.output else None
    top = row_limit(compiler, node.top)
    source = node.source
    if isinstance(source, ast.Query) and isinstance(source.body, ast.Values) and not source.order:
        rows = _values(compiler, table, places, source.body, named=bool(names))
    elif isinstance(source, ast.LiteralRows):
        rows = literal_rows(compiler, table, places, source)
        if rows is None:
            rows = _values(compiler, table, places, parse_rows(source.text), named=bool(names))
    elif source is None:
        rows = _evaluated([complete(table, {})])
    else:
        assert isinstance(source, ast.Query)
        rows = _queried(compiler, table, places, source, named=bool(names))
    return InsertPlan(table, rows, identity, explicit, output, top, checks, owner)


def _queried(
    compiler: Compiler, table: Table, places: Sequence[int], source: ast.Query, *, named: bool
) -> Callable[[Context], list[tuple]]:
    plan = concealed(compiler.query(source))
    cells = row_builder(table, places, plan.fields, named=named)
    return lambda context: [tuple([cell(row, context) for cell in cells]) for row in gather(plan.open(context))]


def _evaluated(rows: Sequence[tuple[Fn, ...]]) -> Callable[[Context], list[tuple]]:
    return lambda context: [tuple([cell((), context) for cell in cells]) for cells in rows]


def _values(
    compiler: Compiler, table: Table, places: Sequence[int], body: ast.Values, *, named: bool
) -> Callable[[Context], list[tuple]]:
    """Rows of VALUES; with several rows, the cells of a column first get a common type, as in UNION ALL."""
    if len({len(row) for row in body.rows}) > 1:
        raise error(10709)
    columns: list[list[Expr | None]] = [[] for _ in places]
    for row in body.rows:
        if len(row) != len(places):
            if not named:
                raise error(213)
            raise error(109 if len(row) < len(places) else 110)
        for column, node in zip(columns, row, strict=True):
            default_word = isinstance(node, ast.Literal) and node.kind == "default"
            column.append(None if default_word else _shown(compiler.value(node)))
    columns = [_of_one_type(column) for column in columns]
    rows = []
    for number in range(len(body.rows)):
        given = {
            place: stored(expr, table, place)
            for place, column in zip(places, columns, strict=True)
            if (expr := column[number]) is not None
        }
        rows.append(complete(table, given))
    return _evaluated(rows)


def _shown(expr: Expr) -> Expr:
    """The value of a subquery over masked columns is masked."""
    return masked_value(expr, expr.masking) if expr.masking else expr


def _of_one_type(column: list[Expr | None]) -> list[Expr | None]:
    if len({expr.type.name for expr in column if expr is not None and not expr.null}) < 2:
        return column
    type_ = unified([expr for expr in column if expr is not None])
    return [expr if expr is None or expr.null else coerce(expr, type_) for expr in column]


def apply_insert(plan: InsertPlan, context: Context, instead: Any = None) -> list[tuple]:
    """Store the rows, or with an INSTEAD OF trigger only make them."""
    assert context.transaction is not None
    rows = plan.rows(context)
    if plan.top is not None:
        rows = plan.top(rows, context)
    if instead is not None:
        return rows if plan.identity < 0 else [_without_identity(row, plan) for row in rows]
    rows = insert_rows(
        context.session, plan.table, context.transaction, rows,
        place=plan.identity, explicit=plan.explicit_identity, wanted=plan.output is not None,
    )  # fmt: skip
    check_rows(plan.checks, rows, context)
    if plan.output is not None:
        plan.output.store(context, "INSERT", rows, None)
    return rows


def insert(frame: Frame, node: st.Insert) -> Steps:
    """Run an INSERT."""
    if isinstance(node.source, st.Statement):
        return (yield from insert_execute(frame, node))
    yield from run_insert(frame, node, lambda compiler: compile_insert(compiler, node))
    return None


def run_insert(frame: Frame, node: st.Statement, build: Callable[[Compiler], InsertPlan]) -> Steps:
    """Run what `build` makes of the statement."""
    session = frame.session
    plan = frame.compiled(node, build)
    if (session.identity_insert is plan.table) is not plan.explicit_identity and plan.identity >= 0:
        frame.routine.plans.pop(id(node), None)
        plan = frame.compiled(node, build)
    table = plan.table
    instead = instead_of(session, table if plan.owner is None else plan.owner, "INSERT")
    triggers.refuse_output(table, "INSERT", plan.output)
    then = triggers.then(frame, table, "INSERT", lambda rows: (rows, []), (), instead)
    rows = yield from session.transactions.run(
        lambda transaction: apply_insert(plan, frame.context(transaction), instead), then
    )
    yield from finish(frame, "insert", len(rows), plan.output, rows, None)
    return None


def _without_identity(row: tuple, plan: InsertPlan) -> tuple:
    """A row as an INSTEAD OF trigger sees it: identity values are not generated yet, it shows 0."""
    if plan.explicit_identity:
        return row
    return (*row[: plan.identity], 0, *row[plan.identity + 1 :])
