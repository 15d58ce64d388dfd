"""EXECUTE: users' and system procedures, sp_executesql and strings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.errors import SqlError, call_error, error
from mssql_sandbox.exec.calls import tableparameters
from mssql_sandbox.exec.calls.module_runs import call_procedure
from mssql_sandbox.exec.calls.texts import own_settings, run_text
from mssql_sandbox.exec.flow import MAX_NESTING, Answer, Pause, Steps, StepsTo
from mssql_sandbox.exec.impersonation import running_as
from mssql_sandbox.exec.interpreter import run_inside
from mssql_sandbox.exec.names import Names
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.sprocs.own import OWN
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.parser import Parser


@dataclass(frozen=True, slots=True)
class Argument:
    """An evaluated argument; `target` is the slot of the variable that receives the output."""

    parameter: RpcParameter
    target: int = -1


def execute(frame: Frame, node: st.Execute) -> Steps:
    """EXEC [@r =] procedure arguments."""
    session = frame.session
    name = node.procedure
    if isinstance(name, str):
        name = Parser(str(frame.evaluate(ast.Variable(name)))).name()
    arguments = [_argument(frame, argument) for argument in node.arguments]
    parameters = [argument.parameter for argument in arguments]
    steps = call_named(session, name, parameters, line=node.line)
    status, outputs = yield from steps
    for ordinal, _, type_, value in outputs:
        place = arguments[ordinal].target
        if place >= 0:
            slot = next(s for s in frame.routine.scope.slots.values() if s.place == place)
            assert slot.type is not None
            frame.values[place] = None if value is None else convert(value, type_, slot.type)
    if node.result:
        slot = frame.routine.scope.scalar(node.result)
        assert slot.type is not None
        frame.values[slot.place] = convert(status, t.INT, slot.type)
    return None


def _argument(frame: Frame, node: st.Argument) -> Argument:
    if node.value is None:
        return Argument(RpcParameter(node.name, t.INT, None, default=True))
    table = tableparameters.is_table_variable(frame.routine.scope.slots, node.value)
    if table is not None:
        return Argument(tableparameters.argument_of(table, node.name))
    expr = frame.compiled(node, lambda compiler: compiler.value(node.value))  # type: ignore[arg-type]
    value = expr.fn((), frame.context(frame.session.transactions.current))
    target = -1
    if node.output and isinstance(node.value, ast.Variable):
        target = frame.routine.scope.scalar(node.value.name).place
    return Argument(RpcParameter(node.name, expr.type, value, output=node.output), target)


def execute_string(frame: Frame, node: st.ExecuteString) -> Steps:
    """EXEC ('text'): a scope of its own, after which USE is undone."""
    if node.server:
        raise SqlError(
            7202, f"Could not find server '{node.server}' in sys.servers. Verify that the correct server name was "
            "specified. If necessary, execute the stored procedure sp_addlinkedserver to add the server to "
            "sys.servers.",
            severity=11, state=2,
        )  # fmt: skip
    text = frame.evaluate(node.text)
    session = frame.session
    if text is None:
        return None
    database = session.current_database
    outer, session.running_text = session.running_text, str(text)
    try:
        with running_as(session, node.kind, node.name):
            yield from run_scope(session, session.routine(str(text)))
    finally:
        session.current_database = database
        session.running_text = outer
    return None


def run_scope(session: SessionState, routine: Any) -> Steps:
    """Run a routine without parameters inside another."""
    if session.nest_level >= MAX_NESTING:
        raise error(217)
    with own_settings(session, routine):
        yield from run_inside(Frame(session, routine, in_procedure=True))
    return None


def call_named(
    session: SessionState, name: ast.Name, parameters: Sequence[RpcParameter], *, line: int = 0
) -> StepsTo[Answer]:
    """Call a procedure by name: (return status, outputs). 2812 if it does not exist."""
    local = name[-1].lower()
    if local == "sp_executesql":
        return (yield from _execute_sql(session, parameters))
    special = session.language.procedures.get(local)
    if special is not None:
        return (yield from special(session, parameters))
    names = Names(session)
    own = OWN.get(local)
    found = None
    if own is None:
        found = names.find(name)
    if found is not None and found.type_code == "P":
        return (yield from call_procedure(session, found, parameters))
    place = names.place(name)
    if own is not None:
        return (yield from own(session, place.database, parameters))
    catalog = session.server.catalog
    bound = None if catalog is None else catalog.procedure(place.database, place.schema, place.name)
    if bound is None:
        failure = error(2812, name=".".join(name))
        failure.line = line
        raise failure
    return (yield from _system(session, bound, parameters))


def call_by_text(session: SessionState, name: str, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """Call a procedure by its name as written."""
    return (yield from call_named(session, Parser(name).name(), parameters))


def _execute_sql(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """EXEC sp_executesql statement, definitions such as N'@a int, @b int OUTPUT', values."""
    if not parameters:
        raise error(201, name="sp_executesql", parameter="@statement")
    texts = [parameter.value for parameter in parameters[:2]]
    if texts[0] is not None and parameters[0].type.name not in t.NATIONAL:
        raise error(214, name="@statement", type="ntext/nchar/nvarchar")
    definitions = str(texts[1]) if len(texts) > 1 and texts[1] is not None else ""
    if session.nest_level >= MAX_NESTING:
        raise error(217)
    database = session.current_database
    try:
        outputs = yield from run_text(session, str(texts[0] or ""), definitions, parameters[2:])
    finally:
        session.current_database = database
    return 0, [(place + 2, name, type_, value) for place, (name, type_, value) in outputs.items()]


def _system(session: SessionState, bound: Any, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """Run a system procedure: its events are awaited one by one."""
    arguments: dict[str, object] = {}
    outputs: list[tuple[int, str, t.SqlType]] = []
    known = {parameter.name.casefold(): parameter for parameter in bound.parameters}
    for number, given in enumerate(parameters):
        key = given.name.lstrip("@").casefold() if given.name else ""
        if not key:
            if number >= len(bound.parameters):
                raise call_error(8144, bound.name, name=bound.name)
            key = bound.parameters[number].name.casefold()
        parameter = known.get(key)
        if parameter is None:
            raise call_error(8145, bound.name, parameter=f"@{key}", name=bound.name)
        if given.output:
            outputs.append((number, parameter.name, parameter.type))
        if not given.default:
            value = given.value
            arguments[key] = None if value is None else convert(value, given.type, parameter.type)
    current = session.transactions.current
    session.nest_level += 1
    try:
        run = bound.start(session, arguments, current)
        events = aiter(run.events())
        while True:
            event = yield Pause(lambda: anext(events, None))
            if event is None:
                break
            yield event
    except SqlError as failure:
        if not failure.procedure:
            failure.procedure = bound.name
        raise
    finally:
        session.nest_level -= 1
    values = run.outputs
    return run.status, [(n, f"@{name}", type_, values.get(name.casefold())) for n, name, type_ in outputs]
