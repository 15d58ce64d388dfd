"""Functions on the session's principals and their permissions."""

from __future__ import annotations

from mssql_sandbox.catalog.definitions import Scope, function
from mssql_sandbox.catalog.functions.objects import resolve_object
from mssql_sandbox.catalog.names import split_name
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.exec.definition_rights import may_view_state
from mssql_sandbox.exec.security import (
    is_member,
    is_owner,
    is_server_role_member,
    is_sysadmin,
    may,
    may_select,
    roles_of,
    server_permissions,
    unmasks,
    user_of,
)

_SERVER_ROLES = frozenset(
    {"sysadmin", "securityadmin", "serveradmin", "setupadmin", "processadmin", "diskadmin", "dbcreator", "bulkadmin",
     "public"}
)  # fmt: skip


def _login_name(scope: Scope, sid: bytes | None = None) -> str | None:
    if sid is None:
        return scope.session.login
    return next((login.name for login in scope.server.logins.values() if login.sid == sid), None)


def _login_by_id(scope: Scope, principal_id: int | None = None) -> str | None:
    if principal_id is None:
        return scope.session.login
    return next((login.name for login in scope.server.logins.values() if login.principal_id == principal_id), None)


def _login_id(scope: Scope, name: str | None = None) -> int | None:
    login = scope.server.logins.get(name or scope.session.login)
    return login.principal_id if login is not None else None


def _login_sid(scope: Scope, name: str | None = None) -> bytes | None:
    login = scope.server.logins.get(name or scope.session.login)
    return login.sid if login is not None else None


def _user_name(scope: Scope, principal_id: int | None = None) -> str | None:
    if principal_id is None:
        user = user_of(scope.session, scope.database)
        return user.name if user is not None else "guest"
    found = scope.database.principals.values()
    return next((user.name for user in found if user.principal_id == principal_id), None)


def _user_id(scope: Scope, name: str | None = None) -> int | None:
    principal = scope.database.principals.get(name) if name else user_of(scope.session, scope.database)
    return principal.principal_id if principal is not None else None


def _original_login(scope: Scope) -> str:
    return scope.session.login


def _has_dbaccess(scope: Scope, name: str | None) -> int | None:
    database = scope.server.databases.get(name) if name else None
    return None if database is None else int(user_of(scope.session, database) is not None)


def _is_srvrolemember(scope: Scope, role: str | None, login: str | None = None) -> int | None:
    if role is None or role.casefold() not in _SERVER_ROLES:
        return None
    if login is None:
        return int(is_server_role_member(scope.session, role))
    found = scope.server.logins.get(login)
    if found is None:
        return None
    return int(role.casefold() == "public" or role.casefold() in {name.casefold() for name in found.server_roles})


def _is_member(scope: Scope, role: str | None) -> int | None:
    known = scope.database.principals.get(role) if role else None
    if known is None or known.type_code != "R" or role is None:
        return None
    return int(is_member(scope.session, scope.database, role))


def _is_rolemember(scope: Scope, role: str | None, principal: str | None = None) -> int | None:
    if principal is None:
        return _is_member(scope, role)
    user = scope.database.principals.get(principal)
    if user is None or role is None or role not in scope.database.principals:
        return None
    return int(role.casefold() in roles_of(scope.database, user))


_STATES = frozenset({"VIEW DATABASE STATE", "VIEW DATABASE PERFORMANCE STATE"})


_GRANULAR_UNMASK = 16
"""Since this version UNMASK is a permission on schemas, objects and columns, too [doc]."""


def _has_perms(
    scope: Scope,
    securable: str | None,
    kind: str | None,
    permission: str | None,
    part: str | None = None,
    _part_kind: str | None = None,
) -> int | None:
    """Whether the session has a permission on the server, a database, a schema or an object: roles, grants, denials.

    NULL for a permission that such a securable does not have [doc]. Of the parts of an object only the columns of
    UNMASK are looked at; their names are not quoted [doc].
    """
    if permission is None:
        return None
    session, database = scope.session, scope.database
    granular = scope.server.version.major >= _GRANULAR_UNMASK or scope.server.version.is_azure
    if permission.upper() == "UNMASK" and (kind or "SERVER").casefold() != "database" and not granular:
        return None
    wanted = (kind or "SERVER").casefold()
    if wanted == "server":
        granted = server_permissions(session) | {"CONNECT SQL"}
        return int(is_sysadmin(session) or permission.upper() in granted)
    if is_owner(session, database):
        return 1
    if wanted == "object":
        found = resolve_object(scope, securable)
        if found is None:
            return None
        wanted = "SELECT" if permission.casefold() == "any" else permission.upper()
        if wanted == "UNMASK" and part is not None:
            table = found[0].object_by_id(found[1].object_id)
            if not isinstance(table, Table) or table.column(part) is None:
                return None
            return int(unmasks(session, table, part))
        if wanted == "SELECT":
            return int(may_select(session, found[0], found[1].schema.name, found[1].name))
        return int(may(session, found[0], wanted, found[1].schema.name, found[1].name))
    if wanted == "database":
        named = scope.server.databases.get(split_name(securable)[-1]) if securable else database
        if named is None:
            return None
        if permission.upper() in _STATES:
            return int(may_view_state(session, named, "database"))
        return int(may(session, named, permission.upper(), "", ""))
    if wanted == "schema":
        schema = database.schemas.get(split_name(securable)[-1]) if securable else None
        return None if schema is None else int(may(session, database, permission.upper(), schema.name, ""))
    return 0


def _host_name(scope: Scope) -> str:
    return scope.session.host


def _app_name(scope: Scope) -> str:
    return scope.session.application


FUNCTIONS = (
    function("SUSER_SNAME", "nvarchar(128)", "varbinary(85)", _login_name, optional=1),
    function("SUSER_NAME", "nvarchar(128)", "int", _login_by_id, optional=1),
    function("SUSER_ID", "int", "sysname", _login_id, optional=1),
    function("SUSER_SID", "varbinary(85)", "sysname; int", lambda scope, *a: _login_sid(scope, *a[:1]), optional=2),
    function("ORIGINAL_LOGIN", "nvarchar(128)", "", _original_login),
    function("SYSTEM_USER", "nvarchar(128)", "", _original_login),
    function("USER_NAME", "nvarchar(128)", "int", _user_name, optional=1),
    function("CURRENT_USER", "nvarchar(128)", "", _user_name),
    function("SESSION_USER", "nvarchar(128)", "", _user_name),
    function("USER", "nvarchar(128)", "", _user_name),
    function("USER_ID", "int", "sysname", _user_id, optional=1),
    function("DATABASE_PRINCIPAL_ID", "int", "sysname", _user_id, optional=1),
    function("HAS_DBACCESS", "int", "sysname", _has_dbaccess),
    function("IS_SRVROLEMEMBER", "int", "sysname; sysname", _is_srvrolemember, optional=1),
    function("IS_MEMBER", "int", "sysname", _is_member),
    function("IS_ROLEMEMBER", "int", "sysname; sysname", _is_rolemember, optional=1),
    function(
        "HAS_PERMS_BY_NAME",
        "int",
        "nvarchar(1035); nvarchar(60); sysname; sysname; nvarchar(60)",
        _has_perms,
        optional=2,
    ),
    function("HOST_NAME", "nvarchar(128)", "", _host_name),
    function("APP_NAME", "nvarchar(128)", "", _app_name),
)
