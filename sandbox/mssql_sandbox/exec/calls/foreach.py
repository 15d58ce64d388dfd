"""`sp_MSforeachtable` and `sp_MSforeachdb`: commands run once for each table or database, undocumented and widely used.

They are what the published text of the procedures says: a list of names, and each command with `?` replaced by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mssql_sandbox.engine.events import Columns, Done, Order, Rows, RpcParameter
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.calls.texts import run_text
from mssql_sandbox.exec.flow import Answer, StepsTo
from mssql_sandbox.exec.language import CallProcedure
from mssql_sandbox.exec.session_state import SessionState

_TABLES = """SELECT '[' + REPLACE(SCHEMA_NAME(syso.schema_id), N']', N']]') + ']' + '.' + '['
+ REPLACE(OBJECT_NAME(o.id), N']', N']]') + ']' FROM dbo.sysobjects o JOIN sys.all_objects syso ON o.id = syso.object_id
WHERE OBJECTPROPERTY(o.id, N'IsUserTable') = 1 AND o.category & 2 = 0 """
_DATABASES = "SELECT name FROM master.dbo.sysdatabases d WHERE HAS_DBACCESS(d.name) = 1"
_OF_TABLES = ("command1", "replacechar", "command2", "command3", "whereand", "precommand", "postcommand")
_OF_DATABASES = ("command1", "replacechar", "command2", "command3", "precommand", "postcommand")


def _for_each_table(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    given = _given("sp_MSforeachtable", _OF_TABLES, parameters)
    return (yield from _for_each(session, _TABLES + (given.get("whereand") or ""), given))


def _for_each_database(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
    given = _given("sp_MSforeachdb", _OF_DATABASES, parameters)
    return (yield from _for_each(session, _DATABASES, given))


def _given(procedure: str, names: Sequence[str], parameters: Sequence[RpcParameter]) -> dict[str, str | None]:
    """Texts by parameter name; 8145 for a name that is none, 201 without a command."""
    found: dict[str, str | None] = {}
    for number, parameter in enumerate(parameters):
        name = parameter.name.lstrip("@").lower() if parameter.name else names[number]
        if name not in names:
            raise SqlError(8145, f"@{name} is not a parameter for procedure {procedure}.", state=2)
        found[name] = None if parameter.value is None else str(parameter.value)
    if "command1" not in found:
        raise SqlError(201, f"Procedure or function '{procedure}' expects parameter '@command1', which was not "
                       "supplied.", state=4)  # fmt: skip
    return found


def _for_each(session: SessionState, query: str, given: Mapping[str, str | None]) -> StepsTo[Answer]:
    names = yield from _column(session, query)
    mark = given.get("replacechar") or "?"
    yield from _run(session, given.get("precommand"))
    for name in names:
        for command in ("command1", "command2", "command3"):
            text = given.get(command)
            yield from _run(session, None if text is None else text.replace(mark, name))
    yield from _run(session, given.get("postcommand"))
    return 0, []


def _run(session: SessionState, text: str | None) -> StepsTo[None]:
    """EXEC (text): what it says of the database does not last."""
    if not text:
        return
    database = session.current_database
    try:
        yield from run_text(session, text, "", ())
    finally:
        session.current_database = database


def _column(session: SessionState, query: str) -> StepsTo[list[str]]:
    """The first column of a query's rows, which nobody else sees."""
    found: list[str] = []
    steps = run_text(session, query, "", ())
    sent: Any = None
    while True:
        try:
            event = steps.send(sent)
        except StopIteration:
            return found
        sent = None
        if isinstance(event, Rows):
            found.extend(row[0] for row in event.rows)
        elif not isinstance(event, (Columns, Done, Order)):
            sent = yield event


FOREACH_PROCEDURES: Mapping[str, CallProcedure] = {
    "sp_msforeachtable": _for_each_table,
    "sp_msforeachdb": _for_each_database,
}
