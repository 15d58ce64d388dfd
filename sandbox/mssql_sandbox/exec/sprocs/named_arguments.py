"""The form of the executor's own procedures, and their arguments by parameter name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.exec.flow import Answer, StepsTo
from mssql_sandbox.exec.session_state import SessionState

Own = Callable[[SessionState, Database, Sequence[RpcParameter]], StepsTo[Answer]]
"""Runs a procedure: for a session, in a database, with its arguments."""


def named_arguments(names: Sequence[str], parameters: Sequence[RpcParameter]) -> dict[str, Any]:
    """Values by parameter name (lower case, without @)."""
    found: dict[str, Any] = {}
    for number, parameter in enumerate(parameters):
        name = parameter.name.lstrip("@").lower() if parameter.name else names[number]
        value = parameter.value
        if isinstance(value, str) or value is None or isinstance(value, int):
            found[name] = value
        else:
            found[name] = convert(value, parameter.type, t.nvarchar(4000))
    return found
