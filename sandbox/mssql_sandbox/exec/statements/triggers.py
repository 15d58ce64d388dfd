"""Triggers: fired once per statement, inside its transaction, with `inserted` and `deleted`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import error
from mssql_sandbox.exec.calls.module_runs import module_routine, run_module
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.query.operators import Rows
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.scope import table_fields
from mssql_sandbox.exec.session_state import TriggerLevel
from mssql_sandbox.exec.statements.output import OutputPlan

MAX_LEVEL = 32


def then(
    frame: Frame, table: Table, action: str, rows_of: Callable[[Any], tuple[list[tuple], list[tuple]]],
    columns: Sequence[str], instead: Any,
) -> Callable[[Any], Steps] | None:  # fmt: skip
    """Work after a statement: its INSTEAD OF trigger, else the AFTER triggers."""
    if instead is None:
        return after(frame, table, action, rows_of, columns)

    def fire(result: Any) -> Steps:
        new, old = rows_of(result)
        touched = tuple(column.name for column in table.columns) if action == "INSERT" else tuple(columns)
        yield from _fire(frame, table, instead, new, old, touched)
        return None

    return fire


def after(
    frame: Frame, table: Table, action: str, rows_of: Callable[[Any], tuple[list[tuple], list[tuple]]],
    columns: Sequence[str], *, asleep: bool = False,
) -> Callable[[Any], Steps] | None:  # fmt: skip
    """The enabled triggers of `table` for `action` fire after a change; None if there are none, or `asleep`."""
    if asleep or not table.triggers:
        return None

    def fire(result: Any) -> Steps:
        new, old = rows_of(result)
        touched = tuple(col.name for col in table.columns) if action == "INSERT" else tuple(columns)
        for trigger in list(table.triggers):
            definition = trigger.definition
            if action not in definition.events or definition.disabled or definition.node.timing == "instead of":
                continue
            yield from _fire(frame, table, trigger, new, old, touched)
        return None

    return fire


def _fire(
    frame: Frame, table: Table, trigger: Any, new: list[tuple], old: list[tuple], columns: tuple[str, ...]
) -> Steps:
    session = frame.session
    if session.nest_level >= MAX_LEVEL:
        raise error(217)
    if any(level.trigger is trigger for level in session.trigger_stack):
        return None
    session.trigger_stack.append(TriggerLevel(trigger, new, old, columns))
    row_count = session.row_count
    session.row_count = max(len(new), len(old))
    try:
        yield from _run_trigger(frame, table, trigger)
    finally:
        session.trigger_stack.pop()
        session.row_count = row_count
    return None


def _run_trigger(frame: Frame, table: Table, trigger: SchemaObject) -> Steps:
    """Run an AFTER trigger's body with `inserted` and `deleted`; an error in it ends the batch."""
    session = frame.session
    routine = module_routine(session, trigger, virtual_tables(table))
    inner = Frame(session, routine, in_procedure=True)
    outside, session.current_database = session.current_database, trigger.definition.database
    started = session.transactions.current
    depth, session.try_depth = session.try_depth, session.try_depth + 1
    try:
        yield from run_module(session, inner, trigger)
    finally:
        session.try_depth = depth
        session.current_database = outside
    if session.transactions.current is not started:
        raise error(3609)
    return None


def refuse_output(table: Table, action: str, output: OutputPlan | None) -> None:
    """Error 334: OUTPUT rows go to the client only if no enabled trigger fires for the action."""
    if output is None or not output.columns:
        return
    for trigger in table.triggers:
        if action in trigger.definition.events and not trigger.definition.disabled:
            raise error(334, name=table.full_name)


def virtual_tables(table: Table) -> dict[str, Callable[[tuple[str, ...]], Rows]]:
    """`inserted` and `deleted` as sources of the running trigger's statements."""

    def source(which: str) -> Callable[[tuple[str, ...]], Rows]:
        def plan(qualifier: tuple[str, ...]) -> Rows:
            fields = table_fields(table, qualifier)
            return Rows(fields, lambda context: getattr(context.session.trigger_stack[-1], which))

        return plan

    return {"inserted": source("inserted"), "deleted": source("deleted")}
