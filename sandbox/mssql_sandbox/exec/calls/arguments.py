"""Passing the arguments of a call to the parameters of text and modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.errors import SqlError, call_error, error
from mssql_sandbox.exec.calls import tableparameters
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.tsql.statements import VariableDeclaration


def bind(
    frame: Frame, declared: Sequence[VariableDeclaration], arguments: Sequence[RpcParameter], *, query: str = ""
) -> dict[int, int]:
    """Store arguments in the frame's parameters; returns which argument receives which output parameter.

    `query`: definitions and text, as error 8178 shows them, if the call is not of a module.
    """
    places = {declaration.name.lower(): number for number, declaration in enumerate(declared)}
    given: set[int] = set()
    outputs: dict[int, int] = {}
    for number, argument in enumerate(arguments):
        place = places.get(argument.name.lower(), number if not argument.name else -1)
        if argument.name and place < 0:
            called = frame.routine.name or "sp_executesql"
            raise call_error(8145, called, parameter=argument.name, name=called)
        if place >= len(declared):
            called = frame.routine.name or "sp_executesql"
            raise call_error(8144, called, name=called)
        slot = frame.routine.parameters[place][0]
        if slot.table is not None:
            if not argument.default:
                tableparameters.fill(frame.session, slot, argument)
        elif slot.type is not None and not argument.default:
            value = argument.value
            frame.values[slot.place] = _as(value, argument.type, slot.type, frame.routine.name)
        given.add(place)
        if argument.output:
            outputs[number] = place
    for place, (slot, declaration) in enumerate(frame.routine.parameters):
        if place in given:
            continue
        if slot.table is not None:
            continue  # an omitted table-valued parameter has no rows
        if declaration.default is None:
            if not frame.routine.name:
                raise error(8178, query=query, parameter=declaration.name)
            raise call_error(201, frame.routine.name, name=frame.routine.name, parameter=declaration.name)
        frame.values[slot.place] = frame.evaluate(declaration.default)
    return outputs


def _as(value: Any, source: t.SqlType, target: t.SqlType, called: str) -> Any:
    """The argument in the type of its parameter; for procedures the error is 8114 instead of 245."""
    if value is None or source == target:
        return value
    if source.name == target.name == "int":
        return value
    if source.name == target.name and source.name in ("nvarchar", "varbinary"):
        fits = target.length == t.MAX or len(value) <= target.length
        if fits:
            return value
    try:
        return convert(value, source, target)
    except SqlError as failure:
        if not called or failure.number not in _UNCONVERTED:
            raise
        raise call_error(8114, called, source=source.name, target=target.name) from None


_UNCONVERTED = frozenset({241, 245, 295, 8114, 8169})
"""Errors of text that cannot be converted: for a procedure's parameter all of them are 8114."""
