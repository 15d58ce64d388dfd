"""Who may do what, as far as system procedures and views ask: server roles, database roles, grants.

Only questions; logins, users and grants are kept by storage and changed by the executor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mssql_cdc.sandbox.errors import error

if TYPE_CHECKING:
    from mssql_cdc.sandbox.engine.storage.database import Database
    from mssql_cdc.sandbox.engine.storage.objects import Principal
    from mssql_cdc.sandbox.exec.session import Session


def is_server_role_member(session: Session, role: str) -> bool:
    """Whether the session's login is in a server role; everybody is in `public`."""
    if role.casefold() == "public":
        return True
    login = session.server.logins.get(session.login)
    return login is not None and role.casefold() in {name.casefold() for name in login.server_roles}


def is_sysadmin(session: Session) -> bool:
    """Whether the session may do everything."""
    return is_server_role_member(session, "sysadmin")


def user_of(session: Session, database: Database) -> Principal | None:
    """The session's user in a database: `dbo` for sysadmins and the owner, else the user of its login, else `guest`."""
    if is_sysadmin(session) or database.owner.casefold() == session.login.casefold():
        return database.principals.get("dbo")
    for principal in database.principals.values():
        if principal.login is not None and principal.login.casefold() == session.login.casefold():
            return principal
    return database.principals.get("guest") if database.is_system else None


def roles_of(database: Database, principal: Principal) -> set[str]:
    """All roles a principal is in, directly or through other roles, in lower case."""
    found: set[str] = set()
    waiting = {role.casefold() for role in principal.member_of}
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            role = database.principals.get(name)
            waiting |= {other.casefold() for other in role.member_of} if role is not None else set()
    return found


def is_member(session: Session, database: Database, role: str) -> bool:
    """Whether the session's user is in a database role; `dbo` is in every fixed role but the denying ones."""
    user = user_of(session, database)
    if user is None:
        return False
    name = role.casefold()
    if name == "public" or (user.name == "dbo" and name == "db_owner"):
        return True
    return name in roles_of(database, user)


def is_owner(session: Session, database: Database) -> bool:
    """Whether the session has the rights of `db_owner`."""
    return is_sysadmin(session) or is_member(session, database, "db_owner")


_READING, _WRITING = ("db_datareader", "db_denydatareader"), ("db_datawriter", "db_denydatawriter")
_ROLES = {"SELECT": _READING, "INSERT": _WRITING, "UPDATE": _WRITING, "DELETE": _WRITING}
"""The fixed roles that give and that deny a permission on all objects of a database."""


def may_select(session: Session, database: Database, schema: str, name: str) -> bool:
    """Whether the session may SELECT from an object: owners, readers, and those with a grant and no denial."""
    return may(session, database, "SELECT", schema, name)


def require(session: Session, database: Database, permission: str, schema: str, name: str) -> None:
    """Error 229 unless the session may do it; in procedures and triggers the owner's rights count (ownership chain)."""
    if session.procedure_id or session.trigger_stack:
        return
    if not may(session, database, permission, schema, name):
        raise error(229, permission=permission, name=name, database=database.name, schema=schema)


def may(session: Session, database: Database, permission: str, schema: str, name: str) -> bool:
    """Whether the session may SELECT, INSERT, UPDATE or DELETE rows of an object."""
    if is_sysadmin(session) or database.name == "tempdb":
        return True
    user = user_of(session, database)
    if user is None:
        return False
    if user.name == "dbo":
        return True
    roles = roles_of(database, user) | {"public"}
    gives, denies = _ROLES[permission]
    if denies in roles:
        return False
    holders = [user, *(found for role in roles if (found := database.principals.get(role)) is not None)]
    states = {
        state
        for holder in holders
        for state, granted, _, target in holder.permissions
        if granted.upper() in (permission, "CONTROL", "ALL")
        and target.casefold() in ("", schema.casefold(), f"{schema}.{name}".casefold())
    }
    return "DENY" not in states and ("GRANT" in states or bool(roles & {"db_owner", gives}))
