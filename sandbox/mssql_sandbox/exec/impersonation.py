"""Impersonation: EXECUTE AS of modules and of strings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.security import stand_in
from mssql_sandbox.exec.session_state import SessionState

_OWNER = ("OWNER", "SELF")


def login_of(session: SessionState, kind: str, name: str) -> str:
    """The login of a user or login name; 15517 for an unknown user."""
    if kind == "login":
        return name
    principal = session.current_database.principals.get(name)
    if principal is None:
        raise SqlError(
            15517, f'Cannot execute as the database principal because the principal "{name}" does not exist, '
            "this type of principal cannot be impersonated, or you do not have permission."
        )  # fmt: skip
    return session.current_database.owner if principal.name == "dbo" else principal.login or stand_in(principal)


@contextmanager
def running_as(session: SessionState, kind: str, name: str) -> Iterator[None]:
    """In the block, USER_NAME() and permissions are those of the other principal. CALLER changes nothing."""
    if not name or (kind == "word" and name == "CALLER"):
        yield
        return
    who = "dbo" if kind == "word" and name in _OWNER else name
    before, depth = session.login, len(session.users)
    session.users.append(before)
    session.login = login_of(session, "user" if kind == "word" else kind, who)
    session.routines.clear()
    try:
        yield
    finally:
        del session.users[depth:]
        session.login = before
        session.routines.clear()
