"""SELECT as a statement: rows to the client, values to variables, rows into a new table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from mssql_sandbox.engine.events import Columns, Order, Rows
from mssql_sandbox.engine.lock_requests import MustWait
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.types import ResultColumn
from mssql_sandbox.errors import error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import change
from mssql_sandbox.exec.flow import Steps, StepsTo, lock_pause
from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.query.masks import concealed
from mssql_sandbox.exec.query.operators import Projection, gather
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.exec.statements.select_into import into_of, select_into
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st


@dataclass(frozen=True, slots=True)
class SelectPlan:
    """A compiled SELECT: its plan, its result columns, and the variables it sets (slot, conversion, operator)."""

    plan: Operator
    columns: tuple[ResultColumn, ...]
    assigns: tuple[tuple[int, Callable[[Any], Any] | None], ...]
    reads: bool
    ordered: bool


def result_columns(plan: Operator) -> tuple[ResultColumn, ...]:
    """The description of a plan's rows for the client."""
    return result_columns_of(plan.fields)


def result_columns_of(fields: Iterable[Field]) -> tuple[ResultColumn, ...]:
    """The description of rows with these fields."""
    found = []
    for field in fields:
        origin = field.origin
        if origin is None:
            found.append(ResultColumn(field.name, field.type, nullable=field.nullable))
        elif origin.name == field.name and origin.type == field.type:
            found.append(origin)
        else:
            found.append(
                ResultColumn(
                    field.name,
                    field.type,
                    nullable=field.nullable,
                    identity=origin.identity,
                    computed=origin.computed,
                    table=origin.table,
                )
            )
    return tuple(found)


def gives_rows(query: ast.Query) -> bool:
    """Whether a query returns rows to the client: it neither creates a table nor sets variables."""
    body = query.body
    sets = isinstance(body, ast.Select) and any(item.assign for item in body.items)
    return not sets and not into_of(body)


def compile_select(compiler: Compiler, query: ast.Query) -> SelectPlan:
    """Compile a query; 141 if it both sets variables and returns rows."""
    body = query.body
    assigns: list[tuple[int, Callable[[Any], Any] | None]] = []
    if isinstance(body, ast.Select) and any(item.assign for item in body.items):
        if not all(item.assign for item in body.items):
            raise error(141)
        query = _assigning(query, body)
    plan = concealed(compiler.query(query))
    if isinstance(body, ast.Select) and body.items[0].assign:
        for item, field in zip(body.items, plan.fields, strict=True):
            slot = compiler.variables.scalar(item.assign)
            assert slot.type is not None
            source = slot.type if field.special == "null" else field.type
            assigns.append((slot.place, change(source, slot.type)))
    return SelectPlan(plan, result_columns(plan), tuple(assigns), compiler.reads_tables, bool(query.order))


def _assigning(query: ast.Query, body: ast.Select) -> ast.Query:
    """`SELECT @v += x` as `SELECT @v + x`."""
    items = tuple(
        ast.SelectItem(
            item.expression if item.operator == "="
            else ast.Binary(item.operator[:-1], ast.Variable(item.assign), item.expression)
        )
        for item in body.items
    )  # fmt: skip
    return replace(query, body=replace(body, items=items))


def select(frame: Frame, node: st.SelectStatement) -> Steps:
    """Run a query for the client."""
    if into_of(node.query.body):
        return (yield from select_into(frame, node))
    compiled = frame.compiled(node, lambda compiler: compile_select(compiler, node.query))
    if compiled.assigns:
        return (yield from _assign(frame, compiled))
    session = frame.session
    if compiled.reads:
        yield from session.transactions.implicit_begin()
    transaction, own = session.transactions.enter()
    context = frame.context(transaction)
    transaction.begin_statement()
    try:
        count = yield from _stream(frame, compiled, context)
    except BaseException:
        if transaction.state == "active":
            transaction.end_statement()  # nothing to undo, and under MARS other requests have changed rows since
            if own:
                transaction.rollback()
        raise
    transaction.end_statement()
    if own:
        transaction.commit()
    session.row_count = count
    yield session.done(frame, count, "select")
    return None


def describe(frame: Frame, node: st.SelectStatement) -> Steps:
    """The columns of a query without its rows."""
    compiled = frame.compiled(node, lambda compiler: compile_select(compiler, node.query))
    if not compiled.assigns:
        yield Columns(compiled.columns)
    yield frame.session.done(frame, 0, "select")
    return None


def _stream(frame: Frame, compiled: SelectPlan, context: Context) -> StepsTo[int]:
    """Slices to the client as they come; waits in place for locks."""
    session = frame.session
    slices = compiled.plan.open(context)
    started = False
    count = 0
    limit = session.options.row_limit
    while True:
        try:
            rows = next(slices, None)
        except MustWait as wait:
            yield lock_pause(wait.request, session.options.lock_timeout)
            continue
        if not started:
            started = True
            yield Columns(compiled.columns)
            order = compiled.plan.order
            if order and compiled.ordered:
                yield Order(tuple(place + 1 for place, _ in order))
        if rows is None:
            return count
        if rows:
            if limit and count + len(rows) > limit:
                rows = rows[: limit - count]
            count += len(rows)
            yield Rows(rows)
            if limit and count >= limit:
                return count


def _assign(frame: Frame, compiled: SelectPlan) -> Steps:
    """SELECT @v = …: every row assigns, the last value stays; without rows the variables are unchanged."""
    session = frame.session

    def work(transaction: Transaction) -> int:
        context = frame.context(transaction)
        values = frame.values
        return _assign_rows(compiled, context, values)

    session.row_count = yield from session.transactions.run(work)
    return None


def _assign_rows(compiled: SelectPlan, context: Context, values: list[Any]) -> int:
    count = 0
    for rows in one_by_one(compiled.plan, context):
        count += 1
        for (place, converted), value in zip(compiled.assigns, rows, strict=True):
            values[place] = value if converted is None else converted(value)
    return count


def one_by_one(plan: Operator, context: Context) -> Any:
    """Rows of a plan; each is projected after the previous one was used."""
    if isinstance(plan, Projection):
        yield from plan.lazily(context)
        return
    yield from gather(plan.open(context))
