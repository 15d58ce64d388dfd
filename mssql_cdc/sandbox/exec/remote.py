"""Remote procedure calls: sp_executesql, sp_prepare and its family, the catalogue's and users' procedures by name."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.conversion import convert
from mssql_cdc.sandbox.engine.events import OutputParameter, ProcDone, ReturnStatus, RpcParameter
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.flow import Abort, Steps, StepsTo
from mssql_cdc.sandbox.tsql.parser import parse_parameters
from mssql_cdc.sandbox.tsql.statements import VariableDeclaration

if TYPE_CHECKING:
    from mssql_cdc.sandbox.exec.routine import Frame
    from mssql_cdc.sandbox.exec.session import Session

TextOutputs = dict[int, tuple[str, t.SqlType, Any]]
"""What output parameters got, by their place among the arguments: name, type, value."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement behind a handle."""

    text: str
    definitions: str


@dataclass(slots=True)
class PreparedStatements:
    """Handles of a session."""

    known: dict[int, Prepared] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def add(self, prepared: Prepared) -> int:
        """A new handle."""
        handle = next(self._numbers)
        self.known[handle] = prepared
        return handle

    def find(self, handle: object) -> Prepared:
        """The statement of a handle; 8179 for an unknown one."""
        found = self.known.get(handle) if isinstance(handle, int) else None
        if found is None:
            raise error(8179, handle=handle)
        return found

    def drop(self, handle: object) -> None:
        """Forget a handle; 8179 for an unknown one."""
        self.find(handle)
        del self.known[handle]  # type: ignore[arg-type]


def call(session: Session, name: str, parameters: list[RpcParameter]) -> Steps:
    """Run one call: result sets, return status, output parameters, end."""
    from mssql_cdc.sandbox.exec.interpreter import end_of_batch, message_of

    special = _SPECIAL.get(name.lower().replace("[", "").replace("]", "").removeprefix("sys."))
    failed = False
    try:
        if special is not None:
            yield from special(session, parameters)
        else:
            yield from _named(session, name, parameters)
    except SqlError as failure:
        session.last_error = failure.number
        failed = True
        yield message_of(failure)
    except Abort:
        failed = True
    yield from end_of_batch(session)
    yield ProcDone(session.transactions.current is not None, failed)
    return None


def _text(parameter: RpcParameter) -> str:
    value = parameter.value
    if not isinstance(value, str):
        raise error(214, name="@statement", type="ntext/nchar/nvarchar")
    return value


def _execute_sql(session: Session, parameters: Sequence[RpcParameter]) -> Steps:
    if not parameters:
        raise error(201, name="sp_executesql", parameter="@statement")
    definitions = "" if len(parameters) < 2 or parameters[1].value is None else _text(parameters[1])
    outputs = yield from run_text(session, _text(parameters[0]), definitions, parameters[2:])
    yield ReturnStatus(0)
    yield from _outputs(outputs, parameters, 2)
    return None


def _prepare(session: Session, parameters: Sequence[RpcParameter]) -> Steps:
    """sp_prepare @handle OUT, @params, @stmt [, options]: the statement's columns are not described."""
    definitions = "" if parameters[1].value is None else _text(parameters[1])
    text = _text(parameters[2])
    session.routine(text, parse_parameters(definitions), key=definitions)
    handle = session.prepared.add(Prepared(text, definitions))
    yield ReturnStatus(0)
    yield OutputParameter(parameters[0].name, 0, t.INT, handle)
    return None


def _prepare_execute(session: Session, parameters: Sequence[RpcParameter]) -> Steps:
    """sp_prepexec @handle OUT, @params, @stmt, values…: an incoming handle is released."""
    old = parameters[0].value
    if old is not None and old in session.prepared.known:
        session.prepared.drop(old)
    definitions = "" if parameters[1].value is None else _text(parameters[1])
    text = _text(parameters[2])
    session.routine(text, parse_parameters(definitions), key=definitions)
    handle = session.prepared.add(Prepared(text, definitions))
    try:
        outputs = yield from run_text(session, text, definitions, parameters[3:])
    except Abort:
        yield OutputParameter(parameters[0].name, 0, t.INT, handle)
        raise
    yield ReturnStatus(0)
    yield OutputParameter(parameters[0].name, 0, t.INT, handle)
    yield from _outputs(outputs, parameters, 3)
    return None


def _execute(session: Session, parameters: Sequence[RpcParameter]) -> Steps:
    prepared = session.prepared.find(parameters[0].value)
    outputs = yield from run_text(session, prepared.text, prepared.definitions, parameters[1:])
    yield ReturnStatus(0)
    yield from _outputs(outputs, parameters, 1)
    return None


def _unprepare(session: Session, parameters: Sequence[RpcParameter]) -> Steps:
    session.prepared.drop(parameters[0].value)
    yield ReturnStatus(0)
    return None


def _outputs(values: TextOutputs, parameters: Sequence[RpcParameter], first: int) -> Steps:
    for ordinal, (name, type_, value) in values.items():
        yield OutputParameter(parameters[first + ordinal].name or name, first + ordinal, type_, value)
    return None


def run_text(session: Session, text: str, definitions: str, arguments: Sequence[RpcParameter]) -> StepsTo[TextOutputs]:
    """Run parameterised text; the values of its output parameters by their place among the arguments."""
    from mssql_cdc.sandbox.exec.interpreter import run_list
    from mssql_cdc.sandbox.exec.routine import Frame

    declared = parse_parameters(definitions)
    routine = session.routine(text, declared, key=definitions)
    frame = Frame(session, routine, in_procedure=True)
    outputs = bind(frame, declared, arguments)
    routine.active = True
    session.nest_level += 1
    outer, session.running_text = session.running_text, text
    try:
        yield from run_list(frame, routine.statements)
    except Abort as abort:
        if not abort.scope:
            raise
    finally:
        routine.active = False
        session.nest_level -= 1
        session.running_text = outer
    values: TextOutputs = {}
    for place, number in outputs.items():
        slot = routine.parameters[number][0]
        assert slot.type is not None
        values[place] = (declared[number].name, slot.type, frame.values[slot.place])
    return values


def bind(frame: Frame, declared: Sequence[VariableDeclaration], arguments: Sequence[RpcParameter]) -> dict[int, int]:
    """Put arguments into the frame's parameters; which argument wants which parameter back."""
    places = {declaration.name.lower(): number for number, declaration in enumerate(declared)}
    given: set[int] = set()
    outputs: dict[int, int] = {}
    for number, argument in enumerate(arguments):
        place = places.get(argument.name.lower(), number if not argument.name else -1)
        if argument.name and place < 0:
            called = frame.routine.name or "sp_executesql"
            raise SqlError(8145, f"{argument.name} is not a parameter for procedure {called}.", state=2)
        if place >= len(declared):
            raise error(8144, name=frame.routine.name or "sp_executesql")
        slot = frame.routine.parameters[place][0]
        if slot.type is not None and not argument.default:
            value = argument.value
            frame.values[slot.place] = _as(value, argument.type, slot.type)
        given.add(place)
        if argument.output:
            outputs[number] = place
    for place, (slot, declaration) in enumerate(frame.routine.parameters):
        if place in given:
            continue
        if declaration.default is None:
            if not frame.routine.name:
                name = declaration.name
                raise SqlError(
                    8178, f"The parameterized query '(){name}' expects the parameter '{name}', which was not supplied."
                )
            raise error(201, name=frame.routine.name, parameter=declaration.name)
        frame.values[slot.place] = frame.evaluate(declaration.default)
    return outputs


def _as(value: Any, source: t.SqlType, target: t.SqlType) -> Any:
    if value is None or source == target:
        return value
    if source.name == target.name == "int":
        return value
    if source.name == target.name and source.name in ("nvarchar", "varbinary"):
        fits = target.length == t.MAX or len(value) <= target.length
        if fits:
            return value
    return convert(value, source, target)


def _named(session: Session, name: str, parameters: Sequence[RpcParameter]) -> Steps:
    """A procedure called by its name."""
    from mssql_cdc.sandbox.exec.procedures import call_named
    from mssql_cdc.sandbox.tsql.parser import Parser

    parts = Parser(name).name()
    status, outputs = yield from call_named(session, parts, parameters)
    yield ReturnStatus(status)
    for ordinal, out_name, type_, value in outputs:
        yield OutputParameter(out_name, ordinal, type_, value)
    return None


_SPECIAL = {
    "sp_executesql": _execute_sql,
    "sp_prepare": _prepare,
    "sp_prepexec": _prepare_execute,
    "sp_execute": _execute,
    "sp_unprepare": _unprepare,
}
