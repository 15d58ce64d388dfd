"""Views, procedures and triggers as kept in the database, and how each is planned or run; functions stand apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.events import RpcParameter
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.compiler import Compiler
from mssql_cdc.sandbox.exec.flow import Abort, Steps, StepsTo
from mssql_cdc.sandbox.exec.impersonation import running_as
from mssql_cdc.sandbox.exec.query.commontables import Renamed, named
from mssql_cdc.sandbox.exec.query.operators import Operator
from mssql_cdc.sandbox.exec.scope import Field
from mssql_cdc.sandbox.exec.security import require
from mssql_cdc.sandbox.tsql import statements as st

if TYPE_CHECKING:
    from mssql_cdc.sandbox.engine.storage.objects import SchemaObject
    from mssql_cdc.sandbox.engine.storage.table import Table
    from mssql_cdc.sandbox.exec.procedures import Answer
    from mssql_cdc.sandbox.exec.routine import Frame, Routine
    from mssql_cdc.sandbox.exec.session import Session

MAX_NESTING = 32


@dataclass(slots=True)
class Module:
    """What the server keeps of a module: its syntax tree, the database it was made in, switches of triggers."""

    node: st.CreateModule
    database: Any
    events: frozenset[str] = frozenset()
    disabled: bool = False
    parent: Any = None


def inside(compiler: Compiler, found: SchemaObject) -> Compiler:
    """A compiler for a module's own text: in its database, without the variables around."""
    if compiler.module_depth >= MAX_NESTING:
        raise error(217)
    own = Compiler(compiler.session)
    own.names.database = found.definition.database
    own.names.module_schema = found.schema.name
    own.names.dependencies = compiler.names.dependencies
    own.module_depth = compiler.module_depth + 1
    return own


def plan_view(compiler: Compiler, found: SchemaObject) -> Operator:
    """The plan of a view's query."""
    definition: Module = found.definition
    own = inside(compiler, found)
    assert definition.node.query is not None
    plan = own.query(definition.node.query)
    fields = named(plan.fields, definition.node.columns, found.name, found.name)
    return Renamed(plan, fields)


# ---- procedures and triggers ----------------------------------------------------------------------------------


def module_routine(session: Session, found: SchemaObject, virtual: dict[str, Any] | None = None) -> Routine:
    """The routine of a procedure or trigger, kept while the module stays as it is."""
    from mssql_cdc.sandbox.exec.routine import Routine

    key = ("module", id(found))
    known = session.routines.get(key)
    if known is not None and not known.active and known.statements is found.definition.node.body:
        return known
    if found.definition is None:
        place = f"{found.schema.name}.{found.name}"
        raise SqlError(50000, f"{place} belongs to the jobs of change data capture: it cannot be called by others.")
    node = found.definition.node
    outside, session.current_database = session.current_database, found.definition.database
    try:
        routine = Routine(
            session, node.body, node.parameters, name=found.name, object_id=found.object_id, virtual=virtual,
            schema=found.schema.name,
        )  # fmt: skip
    finally:
        session.current_database = outside
    session.routines[key] = routine
    return routine


def call_procedure(session: Session, found: SchemaObject, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """Run a user's procedure: (return status, outputs)."""
    from mssql_cdc.sandbox.exec.remote import bind
    from mssql_cdc.sandbox.exec.routine import Frame

    if session.nest_level >= MAX_NESTING:
        raise error(217)
    routine = module_routine(session, found)
    require(session, found.definition.database, "EXECUTE", found.schema.name, found.name)
    frame = Frame(session, routine, in_procedure=True)
    declared = found.definition.node.parameters
    outside, session.current_database = session.current_database, found.definition.database
    wanted = bind(frame, declared, parameters)
    try:
        yield from _run(session, frame, found)
    finally:
        session.current_database = outside
    outputs = []
    for place, number in wanted.items():
        slot, declaration = routine.parameters[number]
        if declaration.output:
            outputs.append((place, declaration.name, slot.type, frame.values[slot.place]))
    return frame.returned, outputs


def _run(session: Session, frame: Frame, found: SchemaObject) -> Steps:
    from mssql_cdc.sandbox.exec.interpreter import run_list

    options = replace(session.options, others=dict(session.options.others))
    identity, before_id = session.scope_identity, session.procedure_id
    count = session.transactions.count
    session.procedure_id = found.object_id
    session.nest_level += 1
    frame.routine.active = True
    try:
        with session.temporary.scope(), running_as(session, *_executed_as(found)):
            yield from run_list(frame, frame.routine.statements)
    except Abort as abort:
        if not abort.scope:
            raise
    finally:
        frame.routine.active = False
        session.nest_level -= 1
        session.options, session.scope_identity, session.procedure_id = options, identity, before_id
    now = session.transactions.count
    if now != count and not session.trigger_stack:
        raise error(266, previous=count, current=now)
    return None


def _executed_as(found: SchemaObject) -> tuple[str, str]:
    """Whom the module's EXECUTE AS names: (word, CALLER | SELF | OWNER) or (user, name)."""
    for option in found.definition.node.options:
        if option.startswith("EXECUTE AS "):
            who = option.removeprefix("EXECUTE AS ")
            return ("user", who.strip("'")) if who.startswith("'") else ("word", who)
    return "", ""


def run_trigger(frame: Frame, table: Table, trigger: SchemaObject) -> Steps:
    """Run an AFTER trigger's body with `inserted` and `deleted`; an error in it ends the batch."""
    from mssql_cdc.sandbox.exec.routine import Frame as NewFrame
    from mssql_cdc.sandbox.exec.statements.triggers import virtual_tables

    session = frame.session
    routine = module_routine(session, trigger, virtual_tables(table))
    inner = NewFrame(session, routine, in_procedure=True)
    outside, session.current_database = session.current_database, trigger.definition.database
    started = session.transactions.current
    depth, session.try_depth = session.try_depth, session.try_depth + 1
    try:
        yield from _run(session, inner, trigger)
    finally:
        session.try_depth = depth
        session.current_database = outside
    if session.transactions.current is not started:
        raise error(3609)
    return None


__all__ = [
    "Field",
    "Module",
    "call_procedure",
    "plan_view",
    "run_trigger",
    "t",
]
