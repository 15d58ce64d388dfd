"""INSTEAD OF triggers: the trigger gets the rows that a statement would change, and nothing else happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Fn
from mssql_sandbox.exec.query.operators import gather
from mssql_sandbox.exec.query.sources import SourcePlanner
from mssql_sandbox.exec.query.views import plan_view
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.exec.security import require
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.statements.targets import Target
from mssql_sandbox.tsql import ast

_SHAPE = "shape of the view"


def triggers_of(item: Any) -> list[SchemaObject]:
    """Triggers of a table or view."""
    return item.triggers if isinstance(item, Table) else item.properties.setdefault("triggers", [])


def instead_of(session: SessionState, item: Any, action: str) -> SchemaObject | None:
    """The INSTEAD OF trigger for `action`; it does not fire for its own statements."""
    for trigger in triggers_of(item):
        module = trigger.definition
        if module.node.timing == "instead of" and action in module.events and not module.disabled:
            running = any(level.trigger is trigger for level in session.trigger_stack)
            return None if running else trigger
    return None


def check_new(item: Any, events: Sequence[str], name: str, timing: str) -> None:
    """Invalid triggers: 2111 a second INSTEAD OF for an event, 8197 AFTER on a view."""
    if timing == "after":
        if not isinstance(item, Table):
            raise SqlError(8197, f"The object '{item.name}' does not exist or is invalid for this operation.", state=4)
        return
    kind = "table" if isinstance(item, Table) else "view"
    if isinstance(item, Table) and item.history is not None:
        raise SqlError(13542, "INSTEAD OF triggers are not allowed on system-versioned temporal tables.")
    for trigger in triggers_of(item):
        module = trigger.definition
        for event in events:
            if module.node.timing == "instead of" and event in module.events and trigger.name.lower() != name.lower():
                raise SqlError(
                    2111, f"Cannot create trigger '{name}' on {kind} '{item.name}' because an INSTEAD OF {event} "
                    "trigger already exists on this object."
                )  # fmt: skip


def view_of(compiler: Compiler, name: ast.Name, action: str) -> Any:
    """The view whose INSTEAD OF trigger handles this statement; None if there is none."""
    if name[0].startswith("@") or (len(name) == 1 and compiler.fold(name[0]) in compiler.common_tables):
        return None
    found = compiler.names.find(name)
    if found is None or found.type_code != "V" or instead_of(compiler.session, found, action) is None:
        return None
    if not compiler.module_depth:
        require(compiler.session, compiler.names.place(name).database, action, found.schema.name, found.name)
    return found


def shape_of(compiler: Compiler, view: Any) -> Table:
    """A table with the columns of a view, for `inserted` and `deleted`; kept until the view changes."""
    known = view.properties.get(_SHAPE)
    if known is not None and known[0] is view.definition:
        return known[1]
    columns = [Column(field.name, field.type, nullable=True) for field in plan_view(compiler, view).fields]
    shape = compiler.session.server.database("tempdb").make_table("dbo", view.name, columns, kind="variable")
    view.properties[_SHAPE] = (view.definition, shape)
    return shape


def view_target(compiler: Compiler, view: Any, where: ast.Expression | None) -> Target:
    """The rows of a view that an UPDATE or DELETE concerns, numbered; no locks are taken."""
    shape = shape_of(compiler, view)
    plan = plan_view(compiler, view)
    qualifier = (view.definition.database.name, view.schema.name, view.name)
    fields = [Field(field.name, field.type, True, qualifier) for field in plan.fields]
    scope = SourcePlanner(compiler, None).scope(fields)
    checks: list[Fn] = [] if where is None else [compiler.condition(where, scope).fn]

    def entries(context: Context) -> list[tuple[int, tuple, tuple]]:
        rows = gather(plan.open(context))
        return [(n, row, row) for n, row in enumerate(rows) if all(check(row, context) is True for check in checks)]

    return Target(shape, entries, scope, owner=view)
