"""Logins, users, roles, permissions, KILL, EXECUTE AS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.objects import Principal
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.definition_rights import (
    require_principals,
    require_sysadmin,
)
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.impersonation import login_of
from mssql_sandbox.exec.routine import Frame, forget_plans
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.statements import databases
from mssql_sandbox.tsql import statements as st


def drop_principal(frame: Frame, node: st.Drop) -> Steps:
    """DROP DATABASE, LOGIN, USER, ROLE."""
    session = frame.session
    for name in node.names:
        local = name[-1]
        if node.kind == "database":
            databases.drop_database(session, local, if_exists=node.if_exists)
            continue
        names: Any = session.server.logins if node.kind == "login" else session.current_database.principals
        if local not in names:
            if node.if_exists:
                continue
            raise error(15151, action="drop", kind=node.kind, name=local)
        if node.kind != "login":
            _require_unused(session.current_database, local, node.kind)
        del names[local]
    yield session.done(frame, None, "drop")
    return None


def _require_unused(database: Database, name: str, kind: str) -> None:
    """Errors 15138 and 15144: a principal that owns schemas and a role with members cannot be dropped."""
    folded = name.casefold()
    if any(schema.owner.casefold() == folded for schema in database.schemas.values()):
        raise error(15138, kind="schema")
    members = (role.casefold() for other in database.principals.values() for role in other.member_of)
    if kind == "role" and folded in members:
        raise error(15144)


def _principal(frame: Frame, node: st.Principal) -> Steps:
    session = frame.session
    options = dict(node.options)
    if node.kind in ("login", "server role"):
        require_sysadmin(session)
    else:
        require_principals(session, session.current_database)
    if node.kind == "login":
        _login(session, node, options)
    elif node.kind == "server role":
        login = session.server.logins.get(next((v for k, v in node.options if k.endswith("MEMBER")), ""))
        if login is not None:
            change = login.server_roles.add if "ADD MEMBER" in options else login.server_roles.discard
            change(node.name.lower())
    else:
        _database_principal(session.current_database, node, options, session)
    forget_plans(frame)
    yield session.done(frame, None, f"{node.action} {node.kind}")
    return None


def _login(session: SessionState, node: st.Principal, options: dict[str, str]) -> None:
    logins = session.server.logins
    if node.action == "create":
        login = session.server.add_login(node.name, options.get("PASSWORD", ""))
        login.default_database = options.get("DEFAULT_DATABASE", login.default_database)
        login.must_change = "MUST_CHANGE" in options
        return
    found = logins.get(node.name)
    if found is None:
        raise error(15151, action="alter", kind="login", name=node.name)
    if options.get("OLD_PASSWORD", found.password) != found.password:
        raise error(15151, action="alter", kind="login", name=node.name)
    found.password = options.get("PASSWORD", found.password)
    found.must_change = "MUST_CHANGE" in options or (found.must_change and "PASSWORD" not in options)
    found.default_database = options.get("DEFAULT_DATABASE", found.default_database)
    found.disabled = "DISABLE" in options or (found.disabled and "ENABLE" not in options)


def _database_principal(database: Database, node: st.Principal, options: dict[str, str], session: SessionState) -> None:
    principals = database.principals
    if node.action == "create":
        if node.name in principals:
            raise SqlError(15023, f"User, group, or role '{node.name}' already exists in the current database.")
        role = node.kind == "role"
        login = None if role or "WITHOUT LOGIN" in options else options.get("LOGIN", node.name)
        if login is not None and "PASSWORD" not in options and login not in session.server.logins:
            raise SqlError(15007, f"'{login}' is not a valid login or you do not have permission.")
        principals[node.name] = Principal(
            node.name, database.next_principal_id(), "R" if role else "S",
            None if role else options.get("DEFAULT_SCHEMA", "dbo"), login,
            create_date=database.server.clock.local_datetime(),
        )  # fmt: skip
        return
    found = principals.get(node.name)
    if found is None:
        raise error(15151, action="alter", kind=node.kind, name=node.name)
    for option, value in node.options:
        if option.endswith("MEMBER"):
            member = principals.get(value)
            if member is None:
                raise error(15151, action="add", kind="principal", name=value)
            change = member.member_of.add if option == "ADD MEMBER" else member.member_of.discard
            change(found.name)
        elif option == "DEFAULT_SCHEMA":
            found.default_schema = value
        elif option == "LOGIN":
            found.login = value
        elif option == "NAME":
            principals.pop(node.name)
            found.name = value
            principals[value] = found


def _permission(frame: Frame, node: st.Permission) -> Steps:
    session = frame.session
    database = session.current_database
    require_principals(session, database)
    for name in node.principals:
        principal = database.principals.get(name)
        if principal is None:
            login = session.server.logins.get(name)
            if login is None:
                raise error(15151, action="find", kind="user", name=name)
            for permission in node.permissions:
                (login.permissions.discard if node.action != "grant" else login.permissions.add)(permission)
            continue
        for permission in node.permissions:
            for securable in _securables(session, node):
                entry = (permission, *securable)
                principal.permissions[:] = [known for known in principal.permissions if known[1:] != entry]
                if node.action != "revoke":
                    principal.permissions.append((node.action.upper(), *entry))
    forget_plans(frame)
    yield session.done(frame, None, node.action)
    return None


def _securables(session: SessionState, node: st.Permission) -> list[tuple[str, str]]:
    """The securable of a permission, or its columns.

    Raises:
        SqlError: 1020 for columns of a permission which has none [doc].
    """
    kind, target = _securable(session, node)
    if not node.columns:
        return [(kind, target)]
    if kind != "OBJECT":
        raise _entity_level()
    if not _ON_COLUMNS.issuperset(node.permissions):
        raise _entity_level()
    return [("COLUMN", f"{target}.{column}") for column in node.columns]


_ON_COLUMNS = frozenset({"SELECT", "UPDATE", "REFERENCES", "UNMASK"})


def _entity_level() -> SqlError:
    return SqlError(
        1020, "Sub-entity lists (such as column or security expressions) cannot be specified for entity-level "
        "permissions.", severity=15,
    )  # fmt: skip


def _securable(session: SessionState, node: st.Permission) -> tuple[str, str]:
    if not node.securable:
        return ("DATABASE", "")
    local = node.securable[-1]
    if node.securable_class == "SCHEMA":
        return ("SCHEMA", local)
    database = session.current_database
    schema = node.securable[-2] if len(node.securable) > 1 else session.default_schema(database)
    if schema.lower() not in ("sys", "information_schema") and database.find(schema, local) is None:
        raise error(15151, action="find", kind=node.securable_class.lower() or "object", name=local)
    return ("OBJECT", f"{schema}.{local}")


def _kill(frame: Frame, node: st.Kill) -> Steps:
    session = frame.session
    spid = int(frame.evaluate(node.session))
    other = session.server.sessions.get(spid)
    if other is session:
        raise SqlError(6104, "Cannot use KILL to kill your own process.")
    if other is None:
        raise SqlError(6106, f"Process ID {spid} is not an active process ID.", state=2)
    other.kill()
    yield session.done(frame, None, "kill")
    return None


def _execute_as(frame: Frame, node: st.ExecuteAs) -> Steps:
    session = frame.session
    if node.kind == "revert":
        if session.users:
            session.login = session.users.pop()
        forget_plans(frame)
        return None
    if node.name is not None:
        login = login_of(session, node.kind, str(frame.evaluate(node.name)))
        session.users.append(session.login)
        session.login = login
    forget_plans(frame)
    return None
    yield


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {
    **databases.HANDLERS,
    st.Principal: _principal,
    st.Permission: _permission,
    st.Kill: _kill,
    st.ExecuteAs: _execute_as,
}
