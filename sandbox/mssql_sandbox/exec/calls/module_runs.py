"""Running stored modules: the routine of a procedure or trigger, calls of procedures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.errors import SqlError, call_error, error
from mssql_sandbox.exec.calls.arguments import bind
from mssql_sandbox.exec.flow import MAX_NESTING, Answer, Steps, StepsTo
from mssql_sandbox.exec.impersonation import running_as
from mssql_sandbox.exec.interpreter import run_inside
from mssql_sandbox.exec.routine import Frame, Routine
from mssql_sandbox.exec.security import require
from mssql_sandbox.exec.session_state import SessionState


def module_routine(session: SessionState, found: SchemaObject, virtual: dict[str, Any] | None = None) -> Routine:
    """The routine of a procedure or trigger, kept until the module changes."""
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


def call_procedure(session: SessionState, found: SchemaObject, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """Run a user's procedure: (return status, outputs)."""
    if session.nest_level >= MAX_NESTING:
        raise error(217)
    routine = module_routine(session, found)
    if not found.name.startswith("#"):
        require(session, found.definition.database, "EXECUTE", found.schema.name, found.name)
    frame = Frame(session, routine, in_procedure=True)
    declared = found.definition.node.parameters
    outside, session.current_database = session.current_database, found.definition.database
    wanted = bind(frame, declared, parameters)
    try:
        yield from run_module(session, frame, found)
    finally:
        session.current_database = outside
    outputs = []
    for place, number in wanted.items():
        slot, declaration = routine.parameters[number]
        if declaration.output:
            outputs.append((place, declaration.name, slot.type, frame.values[slot.place]))
    return frame.returned, outputs


def run_module(session: SessionState, frame: Frame, found: SchemaObject) -> Steps:
    """Run a module's statements with its SET options, temporary tables and EXECUTE AS principal. 266."""
    options = replace(session.options, others=dict(session.options.others))
    identity, before_id = session.scope_identity, session.procedure_id
    count = session.transactions.count
    session.procedure_id = found.object_id
    try:
        with session.temporary.scope(), running_as(session, *_executed_as(found)):
            yield from run_inside(frame)
    finally:
        session.options, session.scope_identity, session.procedure_id = options, identity, before_id
    now = session.transactions.count
    if now != count and not session.trigger_stack:
        raise call_error(266, frame.routine.name, previous=count, current=now)
    return None


def _executed_as(found: SchemaObject) -> tuple[str, str]:
    """The principal of the module's EXECUTE AS: (word, CALLER | SELF | OWNER) or (user, name)."""
    for option in found.definition.node.options:
        if option.startswith("EXECUTE AS "):
            who = option.removeprefix("EXECUTE AS ")
            return ("user", who.strip("'")) if who.startswith("'") else ("word", who)
    return "", ""
