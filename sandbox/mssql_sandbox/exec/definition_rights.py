"""Permissions to change definitions and to view the server's state, and their errors.

Texts and numbers: "Database engine events and errors" [doc]. Permissions on rows belong to `security`.
"""

from __future__ import annotations

from typing import Literal

from mssql_sandbox.cdc_messages import cdc_error
from mssql_sandbox.engine.events import Message
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.security import (
    is_member,
    is_owner,
    is_server_role_member,
    is_sysadmin,
    may,
    server_permissions,
)
from mssql_sandbox.exec.session_state import SessionState

State = Literal["server", "database"]
SERVER_READERS = frozenset({"##ms_serverstatereader##", "##ms_serverperformancestatereader##"})
"""Server roles of 2022 whose members may view the state of the server."""


def require_alter(session: SessionState, table: Table) -> None:
    """ALTER on a table: 1088 without it.

    Raises:
        SqlError: 1088; 22914 where change data capture is enabled and the permission comes from no fixed role [doc].
    """
    database, schema = table.database, table.schema.name
    if table.private or session.procedure_id or session.trigger_stack:
        return
    if not may(session, database, "ALTER", schema, table.name):
        raise error(1088, name=f"{schema}.{table.name}")
    defining = is_owner(session, database) or is_member(session, database, "db_ddladmin")
    if database.options.cdc_enabled and not defining:
        raise cdc_error(22914, procedure="sp_cdc_ddl_event_internal")


def require_create(session: SessionState, database: Database, kind: str, schema: str) -> None:
    """CREATE TABLE, VIEW, PROCEDURE … in a database, and ALTER on the schema of the new object.

    Raises:
        SqlError: 262 without the first, 2760 without the second.
    """
    if database.is_system or session.procedure_id or session.trigger_stack or is_owner(session, database):
        return
    defining = is_member(session, database, "db_ddladmin")
    if not defining and not may(session, database, f"CREATE {kind}", "", ""):
        raise error(262, permission=f"CREATE {kind}", database=database.name)
    if not defining and not may(session, database, "ALTER", schema, ""):
        raise error(2760, name=schema)


def may_drop(session: SessionState, database: Database, schema: str, name: str) -> bool:
    """Whether the session may drop an object: ALTER on its schema, or CONTROL of it; 3701 is the caller's."""
    if session.procedure_id or session.trigger_stack:
        return True
    return may(session, database, "ALTER", schema, "") or may(session, database, "CONTROL", schema, name)


def require_principals(session: SessionState, database: Database) -> None:
    """Users, roles, members and grants of a database.

    Raises:
        SqlError: 15247.
    """
    allowed = ("db_securityadmin", "db_accessadmin")
    if not is_owner(session, database) and not any(is_member(session, database, role) for role in allowed):
        raise error(15247)


def require_database(session: SessionState, database: Database) -> None:
    """ALTER DATABASE: for the owners.

    Raises:
        SqlError: 5011.
    """
    if not is_owner(session, database):
        raise error(5011, name=database.name)


def require_new_database(session: SessionState) -> None:
    """CREATE DATABASE: sysadmin, dbcreator, or the permission of that name.

    Raises:
        SqlError: 262.
    """
    if not _may_on_server(session, "dbcreator", "CREATE ANY DATABASE"):
        raise error(262, permission="CREATE DATABASE", database="master")


def _may_on_server(session: SessionState, role: str, *permissions: str) -> bool:
    """Whether the login is in sysadmin or in the server role, or has one of the permissions."""
    member = is_sysadmin(session) or is_server_role_member(session, role)
    return member or bool(server_permissions(session) & set(permissions))


def require_sysadmin(session: SessionState) -> None:
    """Actions of members of sysadmin only: logins, server roles, configuration.

    Raises:
        SqlError: 15247.
    """
    if not is_sysadmin(session):
        raise error(15247)


def require_bulk(session: SessionState) -> None:
    """Reading files on the server: sysadmin, bulkadmin, or the permission for it.

    Raises:
        SqlError: 4834.
    """
    if not _may_on_server(session, "bulkadmin", "ADMINISTER BULK OPERATIONS", "CONTROL SERVER"):
        raise SqlError(4834, "You do not have permission to use the bulk load statement.", state=4)


def may_view_state(session: SessionState, database: Database, state: State) -> bool:
    """Whether dynamic management views of the server or of one database show rows to the session."""
    login = session.server.logins.get(session.login)
    if is_sysadmin(session):
        return True
    ending = session.server.version.view_state
    if server_permissions(session) & {"CONTROL SERVER", "VIEW SERVER STATE", f"VIEW SERVER {ending}"}:
        return True
    if login is not None and SERVER_READERS & {role.casefold() for role in login.server_roles}:
        return True
    if state == "server":
        return False
    wanted = ("VIEW DATABASE STATE", f"VIEW DATABASE {ending}")
    return is_owner(session, database) or any(may(session, database, name, "", "") for name in wanted)


def require_state(session: SessionState, database: Database, state: State) -> None:
    """Error 297 unless the session may view such state; the error before it names the missing permission.

    Raises:
        SqlError: 297.
    """
    if may_view_state(session, database, state):
        return
    ending = session.server.version.view_state
    if state == "server":
        first = SqlError(
            300, f"VIEW SERVER {ending} permission was denied on object 'server', database 'master'.", severity=14
        )
    else:
        first = error(262, permission=f"VIEW DATABASE {ending}", database=database.name)
    if not session.try_depth:
        session.pending.append(Message(first.number, first.state, first.severity, first.message, "", 1))
    raise error(297)
