"""INSERT … SELECT … FROM (a statement that changes rows, with OUTPUT): the change is a source of rows.

The change takes place when the INSERT reads it, inside the same statement, so that both happen or none.
Evidence: Microsoft's documentation of `INSERT`, "dml_table_source"; errors 334, 354, 355, 356.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.query.commontables import named
from mssql_sandbox.exec.query.operators import Rows
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.exec.statements import triggers
from mssql_sandbox.exec.statements.changes import apply_delete, apply_update, compile_delete, compile_update
from mssql_sandbox.exec.statements.inserts import InsertPlan, apply_insert, compile_insert, run_insert
from mssql_sandbox.exec.statements.merging import apply_merge, compile_merge
from mssql_sandbox.exec.statements.output import OutputPlan
from mssql_sandbox.tsql import statements as st

Changing = Callable[[Context], list[tuple]]


def insert_changed(frame: Frame, node: st.InsertChanged) -> Steps:
    """Run the INSERT; its row count is the statement's."""
    yield from run_insert(frame, node, lambda compiler: _compile(compiler, node))
    return None


def _compile(compiler: Compiler, node: st.InsertChanged) -> InsertPlan:
    output, change = _CHANGES[type(node.change)](compiler, node.change)
    assert output is not None
    made = [Field(column.name, column.type, True) for column in output.columns]
    fields = named(made, node.columns, node.alias, node.alias)

    def source(_qualifier: tuple[str, ...]) -> Rows:
        def rows(context: Context) -> Iterable[tuple]:
            return change(context)

        return Rows(fields, rows)

    compiler.virtual_tables = {**compiler.virtual_tables, st.CHANGED: source}
    plan = compile_insert(compiler, node.insert)
    _check_target(plan)
    return plan


_BEHIND = "when the FROM clause contains a nested INSERT, UPDATE, DELETE, or MERGE statement."


def _check_target(plan: InsertPlan) -> None:
    """What the table of the INSERT may not be: 354 a view, 355 one with triggers, 356 one with foreign keys."""
    table = plan.table
    if plan.owner is not None:
        raise SqlError(354, f"The target '{table.name}' of the INSERT statement cannot be a view or common table "
                       f"expression {_BEHIND}")  # fmt: skip
    if any(not trigger.definition.disabled for trigger in table.triggers):
        raise SqlError(355, f"The target table '{table.full_name}' of the INSERT statement cannot have any enabled "
                       f"triggers {_BEHIND}")  # fmt: skip
    keys = [*table.foreign_keys, *table.referenced_by]
    if keys:
        raise SqlError(
            356, f"The target table '{table.full_name}' of the INSERT statement cannot be on either side of a (primary "
            f"key, foreign key) relationship {_BEHIND} Found reference constraint '{keys[0].name}'."
        )  # fmt: skip


def _checked(table: Table, action: str, output: OutputPlan | None) -> OutputPlan:
    triggers.refuse_output(table, action, output)
    assert output is not None
    return output


def _insert(compiler: Compiler, node: st.Insert) -> tuple[OutputPlan, Changing]:
    plan = compile_insert(compiler, node)
    output = _checked(plan.table, "INSERT", plan.output)

    def change(context: Context) -> list[tuple]:
        return output.rows(context, "INSERT", apply_insert(plan, context), None)

    return output, change


def _update(compiler: Compiler, node: st.Update) -> tuple[OutputPlan, Changing]:
    plan = compile_update(compiler, node)
    output = _checked(plan.target.table, "UPDATE", plan.output)

    def change(context: Context) -> list[tuple]:
        new, old, joined = apply_update(plan, context)
        return output.rows(context, "UPDATE", new, old, joined)

    return output, change


def _delete(compiler: Compiler, node: st.Delete) -> tuple[OutputPlan, Changing]:
    plan = compile_delete(compiler, node)
    output = _checked(plan.target.table, "DELETE", plan.output)

    def change(context: Context) -> list[tuple]:
        gone, joined = apply_delete(plan, context)
        return output.rows(context, "DELETE", None, gone, joined)

    return output, change


def _merge(compiler: Compiler, node: st.Merge) -> tuple[OutputPlan, Changing]:
    plan = compile_merge(compiler, node)
    for clause in plan.clauses:
        _checked(plan.table, clause.action.upper(), plan.output)
    output = plan.output
    assert output is not None

    def change(context: Context) -> list[tuple]:
        done = apply_merge(plan, context)
        return output.rows(context, "", done.new, done.old, done.joined, None, done.actions)

    return output, change


_CHANGES: dict[type, Callable[[Any, Any], tuple[OutputPlan, Changing]]] = {
    st.Insert: _insert,
    st.Update: _update,
    st.Delete: _delete,
    st.Merge: _merge,
}
