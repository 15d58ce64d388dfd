"""Running text with parameters, for sp_executesql and prepared statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.exec.calls.arguments import bind
from mssql_sandbox.exec.flow import StepsTo
from mssql_sandbox.exec.interpreter import run_inside
from mssql_sandbox.exec.routine import Frame, Routine
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.tsql.parser import parse_parameters

TextOutputs = dict[int, tuple[str, t.SqlType, Any]]
"""The values of output parameters, by their position among the arguments: name, type, value."""


def run_text(
    session: SessionState, text: str, definitions: str, arguments: Sequence[RpcParameter]
) -> StepsTo[TextOutputs]:
    """Run parameterised text; returns the values of its output parameters by position among the arguments."""
    declared = parse_parameters(definitions)
    routine = session.routine(text, declared, key=definitions)
    frame = Frame(session, routine, in_procedure=True)
    outputs = bind(frame, declared, arguments, query=f"({definitions}){text}")
    outer, session.running_text = session.running_text, text
    try:
        with own_settings(session, routine):
            yield from run_inside(frame)
    finally:
        session.running_text = outer
    values: TextOutputs = {}
    for place, number in outputs.items():
        slot = routine.parameters[number][0]
        assert slot.type is not None
        values[place] = (declared[number].name, slot.type, frame.values[slot.place])
    return values


@contextmanager
def own_settings(session: SessionState, routine: Routine) -> Iterator[None]:
    """A scope (sp_executesql, EXECUTE of a string) that ends its SET statements, isolation level included."""
    if not routine.sets:
        yield
        return
    options = replace(session.options, others=dict(session.options.others))
    isolation = session.transactions.isolation
    try:
        yield
    finally:
        if session.options.compiled_in() != options.compiled_in():
            session.routines.clear()
        session.options = options
        session.transactions.isolation = isolation
        if session.transactions.current is not None:
            session.transactions.current.isolation = isolation
