"""The name arguments of the ODBC catalogue procedures: patterns or plain names, and the check of the qualifier."""

from __future__ import annotations

from collections.abc import Callable

from mssql_sandbox.catalog.definitions import Call
from mssql_sandbox.catalog.names import like_pattern
from mssql_sandbox.errors import SqlError

Test = Callable[[str], bool]


def name_test(pattern: str | None, *, patterns: bool = True) -> Test:
    """Whether a name matches an argument; None matches all, otherwise by LIKE pattern or equality."""
    if pattern is None:
        return lambda _: True
    if not patterns:
        wanted = pattern.rstrip().casefold()
        return lambda name: name.casefold() == wanted
    expression = like_pattern(pattern.rstrip())
    return lambda name: expression.fullmatch(name) is not None


def check_qualifier(call: Call, *names: str) -> None:
    """Error 15250 unless the database named in an argument is the current one."""
    for name in names:
        qualifier = call.text(name)
        if qualifier and qualifier.casefold() != call.scope.database.name.casefold():
            raise SqlError(
                15250,
                "The database name component of the object qualifier must be the name of the current database.",
                procedure="sp_tables",
            )
