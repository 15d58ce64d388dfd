"""sp_executesql, sp_prepare, sp_prepexec, sp_execute, sp_unprepare: text with parameters, and handles for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.events import OutputParameter, RpcParameter
from mssql_sandbox.errors import error
from mssql_sandbox.exec.calls.procedures import call_by_text
from mssql_sandbox.exec.calls.texts import TextOutputs, run_text
from mssql_sandbox.exec.flow import Abort, Answer, Outputs, StepsTo
from mssql_sandbox.exec.handles import Prepared
from mssql_sandbox.exec.session_state import CallProcedure, SessionState
from mssql_sandbox.tsql.parser import parse_parameters


def text_of(parameter: RpcParameter) -> str:
    """The statement or the definitions in a parameter; 214 if it is not national text."""
    value = parameter.value
    if not isinstance(value, str):
        raise error(214, name="@statement", type="ntext/nchar/nvarchar")
    return value


def definitions_of(parameter: RpcParameter) -> str:
    """Parameter definitions; NULL means none."""
    return "" if parameter.value is None else text_of(parameter)


def _require(procedure: str, parameters: Sequence[RpcParameter], names: Sequence[str]) -> None:
    """Refuse a call with too few parameters: 201."""
    if len(parameters) < len(names):
        raise error(201, name=procedure, parameter=names[len(parameters)])


def _execute_sql(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    _require("sp_executesql", parameters, ("@statement",))
    definitions = definitions_of(parameters[1]) if len(parameters) > 1 else ""
    outputs = yield from run_text(session, text_of(parameters[0]), definitions, parameters[2:])
    return 0, _outputs(outputs, parameters, 2)


def _prepare(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_prepare @handle OUT, @params, @stmt [, options]: the statement's columns are not described."""
    _require("sp_prepare", parameters, ("@handle", "@params", "@stmt"))
    handle = prepare(session, text_of(parameters[2]), definitions_of(parameters[1]))
    return 0, [(0, parameters[0].name, t.INT, handle)]
    yield


def prepare(session: SessionState, text: str, definitions: str) -> int:
    """Compile and store a text; returns its handle."""
    session.routine(text, parse_parameters(definitions), key=definitions)
    return session.prepared.add(Prepared(text, definitions))


def _prepare_execute(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_prepexec @handle OUT, @params, @stmt, values…: an incoming handle is released."""
    _require("sp_prepexec", parameters, ("@handle", "@params", "@stmt"))
    old = parameters[0].value
    if old is not None and old in session.prepared.known:
        session.prepared.drop(old)
    text, definitions = text_of(parameters[2]), definitions_of(parameters[1])
    handle = prepare(session, text, definitions)
    try:
        outputs = yield from run_text(session, text, definitions, parameters[3:])
    except Abort:
        yield OutputParameter(parameters[0].name, 0, t.INT, handle)
        raise
    return 0, [(0, parameters[0].name, t.INT, handle), *_outputs(outputs, parameters, 3)]


def _execute(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    _require("sp_execute", parameters, ("@handle",))
    prepared = session.prepared.find(parameters[0].value)
    if prepared.procedure:
        status, found = yield from call_by_text(session, prepared.text, parameters[1:])
        return status, [(place + 1, name, type_, value) for place, name, type_, value in found]
    outputs = yield from run_text(session, prepared.text, prepared.definitions, parameters[1:])
    return 0, _outputs(outputs, parameters, 1)


def _prepare_execute_call(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    """sp_prepexecrpc @handle OUT, @procedure, values…: a procedure behind a handle, called at once."""
    _require("sp_prepexecrpc", parameters, ("@handle", "@rpcname"))
    old = parameters[0].value
    if old is not None and old in session.prepared.known:
        session.prepared.drop(old)
    name = text_of(parameters[1])
    handle = session.prepared.add(Prepared(name, "", procedure=True))
    status, found = yield from call_by_text(session, name, parameters[2:])
    outputs = [(place + 2, own, type_, value) for place, own, type_, value in found]
    return status, [(0, parameters[0].name, t.INT, handle), *outputs]


def _unprepare(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    _require("sp_unprepare", parameters, ("@handle",))
    session.prepared.drop(parameters[0].value)
    return 0, []
    yield


def _outputs(values: TextOutputs, parameters: Sequence[RpcParameter], first: int) -> Outputs:
    return [
        (first + ordinal, parameters[first + ordinal].name or name, type_, value)
        for ordinal, (name, type_, value) in values.items()
    ]


PREPARED_PROCEDURES: Mapping[str, CallProcedure] = {
    "sp_executesql": _execute_sql,
    "sp_prepare": _prepare,
    "sp_prepexec": _prepare_execute,
    "sp_prepexecrpc": _prepare_execute_call,
    "sp_execute": _execute,
    "sp_unprepare": _unprepare,
}
