"""`msdb.dbo.agent_datetime`: the numbers in which Agent stores dates and times, as a datetime."""

from __future__ import annotations

from mssql_sandbox.catalog.columns import column_type
from mssql_sandbox.catalog.definitions import Scope, function
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.types import varchar


def _agent_datetime(_scope: Scope, day: int | None, time: int | None) -> object:
    """20240102 and 30405 are 2024-01-02 03:04:05; NULL if either is NULL, 241 if they are no valid date and time."""
    if day is None or time is None:
        return None
    date, clock = f"{day:08d}", f"{time:06d}"
    text = f"{date[:4]}-{date[4:6]}-{date[6:]} {clock[:2]}:{clock[2:4]}:{clock[4:]}"
    return convert(text, varchar(19), column_type("datetime"), style=120)


FUNCTIONS = (function("agent_datetime", "datetime", "int; int", _agent_datetime),)
