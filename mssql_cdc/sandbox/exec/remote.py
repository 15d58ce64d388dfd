"""Remote procedure calls: special ones (prepared.py, apicursors), the catalogue's and users' procedures by name.

Also how parameterised text runs, and how arguments reach the parameters of text and of modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.conversion import convert
from mssql_cdc.sandbox.engine.events import OutputParameter, ProcDone, ReturnStatus, RpcParameter
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec import tableparameters
from mssql_cdc.sandbox.exec.flow import Abort, Steps, StepsTo
from mssql_cdc.sandbox.exec.options import own_settings
from mssql_cdc.sandbox.tsql.parser import Parser, parse_parameters
from mssql_cdc.sandbox.tsql.statements import VariableDeclaration

if TYPE_CHECKING:
    from mssql_cdc.sandbox.exec.procedures import Answer
    from mssql_cdc.sandbox.exec.routine import Frame
    from mssql_cdc.sandbox.exec.session import Session

TextOutputs = dict[int, tuple[str, t.SqlType, Any]]
"""What output parameters got, by their place among the arguments: name, type, value."""
Special = Callable[["Session", Sequence[RpcParameter]], StepsTo["Answer"]]


def special_procedure(name: str) -> Special | None:
    """One of the procedures that have a number of their own on the wire, by its bare name in lower case."""
    from mssql_cdc.sandbox.exec.apicursors.procedures import CURSOR_PROCEDURES
    from mssql_cdc.sandbox.exec.prepared import PREPARED_PROCEDURES

    return PREPARED_PROCEDURES.get(name) or CURSOR_PROCEDURES.get(name)


def call(session: Session, name: str, parameters: list[RpcParameter]) -> Steps:
    """Run one call: result sets, return status, output parameters, end."""
    from mssql_cdc.sandbox.exec.interpreter import end_of_batch, message_of

    special = special_procedure(name.lower().replace("[", "").replace("]", "").removeprefix("sys."))
    failed = False
    try:
        if special is not None:
            status, outputs = yield from special(session, parameters)
        else:
            status, outputs = yield from call_procedure(session, name, parameters)
        yield ReturnStatus(status)
        for ordinal, out_name, type_, value in outputs:
            yield OutputParameter(out_name, ordinal, type_, value)
    except SqlError as failure:
        session.last_error = failure.number
        failed = True
        yield message_of(failure)
    except Abort:
        failed = True
    yield from end_of_batch(session)
    yield ProcDone(session.transactions.current is not None, failed)
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
        with own_settings(session, routine):
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
        if slot.table is not None:
            if not argument.default:
                tableparameters.fill(frame.session, slot, argument)
        elif slot.type is not None and not argument.default:
            value = argument.value
            frame.values[slot.place] = _as(value, argument.type, slot.type)
        given.add(place)
        if argument.output:
            outputs[number] = place
    for place, (slot, declaration) in enumerate(frame.routine.parameters):
        if place in given:
            continue
        if slot.table is not None:
            continue  # a table-valued parameter that is left out has no rows
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


def call_procedure(session: Session, name: str, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """A procedure called by its name."""
    from mssql_cdc.sandbox.exec.procedures import call_named

    return (yield from call_named(session, Parser(name).name(), parameters))
