"""Old procedures for logins, users and roles that many setup scripts still call: each runs one statement [doc]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mssql_sandbox.engine.events import RpcParameter
from mssql_sandbox.errors import call_error
from mssql_sandbox.exec.calls.texts import run_text
from mssql_sandbox.exec.flow import Answer, StepsTo
from mssql_sandbox.exec.session_state import CallProcedure, SessionState


@dataclass(frozen=True, slots=True)
class _Old:
    """The statement of a procedure, made from its parameters; `required` of them are mandatory, names are quoted."""

    parameters: tuple[str, ...]
    statement: str
    required: int = 1
    texts: frozenset[str] = frozenset()
    """Parameters that are text, not names."""
    instead: tuple[tuple[str, str], ...] = ()
    """Parameters whose default is the value of another one."""


_OLD = {
    "sp_addrolemember": _Old(("rolename", "membername"), "ALTER ROLE {rolename} ADD MEMBER {membername}", 2),
    "sp_droprolemember": _Old(("rolename", "membername"), "ALTER ROLE {rolename} DROP MEMBER {membername}", 2),
    "sp_addsrvrolemember": _Old(("loginame", "rolename"), "ALTER SERVER ROLE {rolename} ADD MEMBER {loginame}", 2),
    "sp_dropsrvrolemember": _Old(("loginame", "rolename"), "ALTER SERVER ROLE {rolename} DROP MEMBER {loginame}", 2),
    "sp_addrole": _Old(("rolename", "ownername"), "CREATE ROLE {rolename}"),
    "sp_droprole": _Old(("rolename",), "DROP ROLE {rolename}"),
    "sp_addlogin": _Old(
        ("loginame", "passwd", "defdb", "deflanguage", "sid", "encryptopt"),
        "CREATE LOGIN {loginame} WITH PASSWORD = {passwd}", 2, frozenset({"passwd"}),
    ),
    "sp_droplogin": _Old(("loginame",), "DROP LOGIN {loginame}"),
    "sp_adduser": _Old(
        ("loginame", "name_in_db", "grpname"), "CREATE USER {name_in_db} FOR LOGIN {loginame}",
        instead=(("name_in_db", "loginame"),),
    ),
    "sp_grantdbaccess": _Old(
        ("loginame", "name_in_db"), "CREATE USER {name_in_db} FOR LOGIN {loginame}",
        instead=(("name_in_db", "loginame"),),
    ),
    "sp_dropuser": _Old(("name_in_db",), "DROP USER {name_in_db}"),
    "sp_revokedbaccess": _Old(("name_in_db",), "DROP USER {name_in_db}"),
}  # fmt: skip


def _quoted(text: str) -> str:
    return "[" + text.replace("]", "]]") + "]"


def _text(text: str) -> str:
    return "N'" + text.replace("'", "''") + "'"


def _call(name: str, old: _Old) -> CallProcedure:
    def run(session: SessionState, parameters: Sequence[RpcParameter]) -> StepsTo[Answer]:
        given: dict[str, str] = {}
        for number, parameter in enumerate(parameters):
            place = parameter.name.lstrip("@").lower() if parameter.name else (*old.parameters, "")[number]
            if place not in old.parameters:
                raise call_error(8145, name, parameter=parameter.name or f"#{number + 1}", name=name)
            if parameter.value is not None:
                given[place] = str(parameter.value)
        for place in old.parameters[: old.required]:
            if place not in given:
                raise call_error(201, name, name=name, parameter=f"@{place}")
        for place, other in old.instead:
            given.setdefault(place, given[other])
        words = {key: _text(value) if key in old.texts else _quoted(value) for key, value in given.items()}
        yield from run_text(session, old.statement.format(**words), "", ())
        return 0, []

    return run


OLD_PRINCIPALS: Mapping[str, CallProcedure] = {name: _call(name, old) for name, old in _OLD.items()}
