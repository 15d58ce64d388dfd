"""How arguments of a call reach the parameters of text and of modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.conversion import convert
from mssql_cdc.sandbox.engine.events import RpcParameter
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec import tableparameters
from mssql_cdc.sandbox.exec.routine import Frame
from mssql_cdc.sandbox.tsql.statements import VariableDeclaration


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
