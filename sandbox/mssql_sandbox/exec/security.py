"""Permission checks for statements, system procedures and views: server roles, database roles, grants.

Checks only; storage keeps logins, users and grants, and the executor changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.objects import Principal, SchemaObject
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import error
from mssql_sandbox.exec.session_state import SessionState


def is_server_role_member(session: SessionState, role: str) -> bool:
    """Whether the session's login is in a server role; every login is in `public`."""
    if role.casefold() == "public":
        return True
    login = session.server.logins.get(session.login)
    return login is not None and role.casefold() in {name.casefold() for name in login.server_roles}


def is_sysadmin(session: SessionState) -> bool:
    """Whether the session may do everything."""
    return is_server_role_member(session, "sysadmin")


def user_of(session: SessionState, database: Database) -> Principal | None:
    """The session's user in a database: `dbo` for sysadmins and the owner, else the user of its login, else `guest`."""
    if is_sysadmin(session) or database.owner.casefold() == session.login.casefold():
        return database.principals.get("dbo")
    for principal in database.principals.values():
        if (principal.login or stand_in(principal)).casefold() == session.login.casefold():
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


def is_member(session: SessionState, database: Database, role: str) -> bool:
    """Whether the session's user is in a database role; `dbo` is in every fixed role but the denying ones."""
    user = user_of(session, database)
    if user is None:
        return False
    name = role.casefold()
    if name == "public" or (user.name == "dbo" and name == "db_owner"):
        return True
    return name in roles_of(database, user)


def stand_in(user: Principal) -> str:
    """The session as a user without login: its security identifier represents the login's name [doc]."""
    return f"S-1-9-3-{user.principal_id}"


def is_owner(session: SessionState, database: Database) -> bool:
    """Whether the session has the rights of `db_owner`."""
    return is_sysadmin(session) or is_member(session, database, "db_owner")


_READING, _WRITING = ("db_datareader", "db_denydatareader"), ("db_datawriter", "db_denydatawriter")
_DEFINING = ("db_ddladmin", "")
_ROLES = {"SELECT": _READING, "INSERT": _WRITING, "UPDATE": _WRITING, "DELETE": _WRITING, "ALTER": _DEFINING}
"""The fixed roles that grant and that deny a permission on all objects of a database."""


def may_select(session: SessionState, database: Database, schema: str, name: str) -> bool:
    """Whether the session may SELECT every column of an object."""
    return may(session, database, "SELECT", schema, name) and not denied_columns(session, database, schema, name)


def require(session: SessionState, database: Database, permission: str, schema: str, name: str) -> None:
    """Error 229 without the permission; in procedures and triggers the owner's permissions count (ownership chain)."""
    if not _chained(session) and not may(session, database, permission, schema, name):
        raise error(229, permission=permission, name=name, database=database.name, schema=schema)


def may(session: SessionState, database: Database, permission: str, schema: str, name: str) -> bool:
    """Whether the session has a permission on an object, or on the database if `schema` is empty."""
    if is_sysadmin(session) or database.name == "tempdb":
        return True
    user = user_of(session, database)
    if user is None:
        return False
    if user.name == "dbo":
        return True
    holders, roles = _holders(database, user)
    gives, denies = _ROLES.get(permission, ("", ""))
    if denies in roles:
        return False
    wanted = (permission, "CONTROL", "ALL")
    targets = ("", schema.casefold(), f"{schema}.{name}".casefold())
    states = {
        state
        for holder in holders
        for state, granted, kind, target in holder.permissions
        if kind != "COLUMN" and granted.upper() in wanted and target.casefold() in targets
    }
    return "DENY" not in states and ("GRANT" in states or bool(roles & {"db_owner", gives}))


def _holders(database: Database, user: Principal) -> tuple[list[Principal], set[str]]:
    """A user with all roles that give it permissions, and the names of the roles."""
    roles = roles_of(database, user) | {"public"}
    return [user, *(found for role in roles if (found := database.principals.get(role)) is not None)], roles


_ON_OBJECTS = frozenset({
    "ALL", "ALTER", "CONTROL", "DELETE", "EXECUTE", "INSERT", "REFERENCES", "SELECT", "TAKE OWNERSHIP", "UPDATE",
    "VIEW CHANGE TRACKING", "VIEW DEFINITION",
})  # fmt: skip
_ON_TYPES = frozenset({"CONTROL", "EXECUTE", "REFERENCES", "TAKE OWNERSHIP", "VIEW DEFINITION"})
_SEEING = frozenset({"db_datareader", "db_datawriter", "db_ddladmin", "db_owner"})
_SEEING_TYPES = frozenset({"db_ddladmin", "db_owner"})
_SEEING_SERVER = frozenset({"CONTROL SERVER", "VIEW ANY DEFINITION"})


def server_permissions(session: SessionState) -> set[str]:
    """Names of the server permissions of the session's login, in upper case."""
    login = session.server.logins.get(session.login)
    return set() if login is None else {name.upper() for name in login.permissions}


def sees_everything(session: SessionState, database: Database) -> bool:
    """Whether no object of the database is hidden from the session."""
    if database.is_system or is_owner(session, database):
        return True
    return bool(_SEEING_SERVER & server_permissions(session))


def sees_object(session: SessionState, database: Database, item: SchemaObject) -> bool:
    """Whether the catalogue shows an object: some permission on it, on its schema or on the database [doc].

    A security policy is shown to those with VIEW DEFINITION on it, and with ALTER ANY SECURITY POLICY [doc]. Neither
    SELECT nor what the roles of readers and writers have is a permission on a type [doc].
    """
    if sees_everything(session, database):
        return True
    if item.type_code == "SP":
        defined = may(session, database, "VIEW DEFINITION", item.schema.name, item.name)
        return defined or may(session, database, "ALTER ANY SECURITY POLICY", "", "")
    user = user_of(session, database)
    if user is None:
        return False
    holders, roles = _holders(database, user)
    schema, full = item.schema.name.casefold(), f"{item.schema.name}.{item.name}".casefold()
    is_type = item.type_code in ("TYPE", "TT")
    seeing, permissions = (_SEEING_TYPES, _ON_TYPES) if is_type else (_SEEING, _ON_OBJECTS)
    return bool(roles & seeing) or any(
        state == "GRANT"
        and granted.upper() in permissions
        and (target.casefold() in ("", schema, full) or (kind == "COLUMN" and target.casefold().startswith(full + ".")))
        for holder in holders
        for state, granted, kind, target in holder.permissions
    )


def column_rules(
    session: SessionState, database: Database, schema: str, name: str, permission: str = "SELECT"
) -> dict[str, set[str]]:
    """Grants and denials to the session on single columns of a table: states by column name, case-folded."""
    user = user_of(session, database)
    if user is None or user.name == "dbo" or is_sysadmin(session):
        return {}
    prefix = f"{schema}.{name}.".casefold()
    rules: dict[str, set[str]] = {}
    for holder in _holders(database, user)[0]:
        for state, granted, kind, target in holder.permissions:
            if kind == "COLUMN" and granted == permission and target.casefold().startswith(prefix):
                rules.setdefault(target.casefold()[len(prefix) :], set()).add(state)
    return rules


def denied_columns(session: SessionState, database: Database, schema: str, name: str) -> set[str]:
    """The columns, case-folded, that a DENY on the column keeps from a session that may SELECT the table [doc]."""
    rules = column_rules(session, database, schema, name)
    return {column for column, states in rules.items() if "DENY" in states}


def permitted_columns(session: SessionState, table: Table, permission: str = "SELECT") -> Callable[[str], bool]:
    """The columns of a table on which the session has a permission: grants on columns count without one on the table.

    Raises:
        SqlError: 229, none at all.
    """
    database, schema, name = table.database, table.schema.name, table.name
    rules = {} if _chained(session) else column_rules(session, database, schema, name, permission)
    granted = {column for column, states in rules.items() if states == {"GRANT"}}
    if not granted:
        require(session, database, permission, schema, name)
    elif not may(session, database, permission, schema, name):
        return lambda column: column.casefold() in granted
    denied = {column for column, states in rules.items() if "DENY" in states}
    return lambda column: column.casefold() not in denied


def require_columns(session: SessionState, table: Table, permission: str, columns: Sequence[str]) -> None:
    """Error 230 for the first column on which the session lacks a permission, 229 if it has none at all."""
    permitted = permitted_columns(session, table, permission)
    for name in columns:
        if not permitted(name):
            raise error(
                230, permission=permission, column=name, name=table.name, database=table.database.name,
                schema=table.schema.name,
            )  # fmt: skip


def masked_columns(session: SessionState, table: Table) -> dict[str, str]:
    """The masks that the session sees instead of values, by column: without UNMASK [doc].

    An ownership chain does not unmask; the session's own temporary tables are not masked [pub].
    """
    masks = {column.name: column.masking for column in table.columns if column.masking}
    if not masks or table.private:
        return {}
    return {name: mask for name, mask in masks.items() if not unmasks(session, table, name)}


def unmasks(session: SessionState, table: Table, column: str) -> bool:
    """Whether the session has UNMASK on a column: on itself, or on its table, schema or database [doc]."""
    if is_owner(session, table.database):
        return True
    place = (table.database, table.schema.name, table.name)
    states = column_rules(session, *place, "UNMASK").get(column.casefold(), set())
    return "DENY" not in states and ("GRANT" in states or may(session, table.database, "UNMASK", *place[1:]))


def _chained(session: SessionState) -> bool:
    return bool(session.procedure_id or session.trigger_stack)
