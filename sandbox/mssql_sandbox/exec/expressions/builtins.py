"""The engine's scalar functions in one table, by upper-case name."""

from __future__ import annotations

from mssql_sandbox.engine.functions import SCALARS
from mssql_sandbox.engine.functions.definition import ScalarFunction

BUILTINS: dict[str, ScalarFunction] = dict(SCALARS)
