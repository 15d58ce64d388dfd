"""CREATE, ALTER and DROP DATABASE: options, states, and ending the sessions that use the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.cdc_messages import cdc_error
from mssql_sandbox.engine.collation import collation_named
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.errors import SqlError, after, error
from mssql_sandbox.exec.definition_rights import require_database, require_new_database
from mssql_sandbox.exec.detached import attach
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame, forget_plans
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.statements import places
from mssql_sandbox.tsql import statements as st


def _refuse_in_transaction(session: SessionState, statement: str) -> None:
    """Database statements refuse an explicit transaction (226); an implicit, empty one is allowed."""
    current = session.transactions.current
    if current is not None and not (current.name == "implicit_transaction" and not current.undo):
        raise error(226, statement=statement)


def _create_database(frame: Frame, node: st.CreateDatabase) -> Steps:
    session = frame.session
    require_new_database(session)
    _refuse_in_transaction(session, "CREATE DATABASE")
    if node.attached:
        attach(session, node.name, node.attached)
        yield session.done(frame, None, "create database")
        return None
    for name, value in node.options:
        _refuse_option(session, None, name, value)
    collation = collation_named(node.collation) if node.collation else None
    database = session.server.create_database(node.name, collation=collation)
    places.filegroups(database).extend(node.filegroups)
    for name, value in node.options:
        _set_option(database, name, value)
    yield session.done(frame, None, "create database")
    return None


def _alter_database(frame: Frame, node: st.AlterDatabase) -> Steps:
    session = frame.session
    if node.name and node.name not in session.server.databases:
        raise after(error(5011, name=node.name), error(5069))
    database = session.server.database(node.name) if node.name else session.current_database
    require_database(session, database)
    _refuse_in_transaction(session, "ALTER DATABASE")
    if node.collation:
        database.recollate(collation_named(node.collation))
    action, filegroup = node.filegroup
    if filegroup:
        places.change_filegroup(database, action, filegroup)
    if node.new_name:
        session.server.rename_database(database, node.new_name)
    options, state = dict(node.options), database.options.state
    for name, value in node.options:
        _refuse_option(session, database, name, value)
        if name in ("SINGLE_USER", "RESTRICTED_USER", "OFFLINE") or name == "READ_COMMITTED_SNAPSHOT":
            _leave_others(session, database, kill="ROLLBACK IMMEDIATE" in options, option=name)
        _set_option(database, name, value)
    if database.options.state != state:
        forget_plans(frame)
    yield session.done(frame, None, "alter database")
    return None


def _leave_others(session: SessionState, database: Database, *, kill: bool, option: str) -> None:
    """Other sessions' transactions in the database: rolled back with ROLLBACK IMMEDIATE, else kept."""
    if not kill:
        return
    for other in list(session.server.sessions.values()):
        if other is not session and option != "READ_COMMITTED_SNAPSHOT" and _uses(other, database):
            other.kill()


def _uses(session: SessionState, database: Database) -> bool:
    """Whether it is the session's database, or its open transaction has written to it or holds locks in it."""
    current = session.transactions.current
    return session.current_database is database or (
        current is not None
        and (database.id in current.parts or any(held.database_id == database.id for held in current.locks))
    )


_OPTIMIZED_LOCKING_SINCE = 2025
_FLAGS = {
    "READ_COMMITTED_SNAPSHOT": "read_committed_snapshot", "ALLOW_SNAPSHOT_ISOLATION": "allow_snapshot_isolation",
    "ANSI_NULL_DEFAULT": "ansi_null_default", "RECURSIVE_TRIGGERS": "recursive_triggers",
}  # fmt: skip


def _refuse_option(session: SessionState, database: Database | None, name: str, value: str) -> None:
    """Options that conflict with change data capture or with the server's configuration (22892, 12838, 12824)."""
    if name == "OPTIMIZED_LOCKING" and session.server.version.year < _OPTIMIZED_LOCKING_SINCE:
        raise SqlError(102, f"Incorrect syntax near '{name}'.", severity=15)
    captured = database is not None and database.options.cdc_enabled
    if name == "DELAYED_DURABILITY" and value != "DISABLED" and captured:
        raise cdc_error(22892, "Change Data Capture", procedure="")
    if name == "CONTAINMENT" and value != "NONE":
        if not session.server.config["contained database authentication"]:
            raise error(12824, action="create" if database is None else "alter")
        if captured:
            assert database is not None
            raise error(12838, name=database.name)


def _set_option(database: Database, name: str, value: str) -> None:
    options = database.options
    if name in _FLAGS:
        setattr(options, _FLAGS[name], value == "ON")
    elif name in ("SINGLE_USER", "MULTI_USER", "RESTRICTED_USER"):
        options.user_access = name
    elif name in ("ONLINE", "OFFLINE", "EMERGENCY"):
        options.state = name
    elif name in ("READ_ONLY", "READ_WRITE"):
        options.read_only = name == "READ_ONLY"
    elif name == "RECOVERY":
        options.recovery_model = value
    elif name == "COMPATIBILITY_LEVEL":
        options.compatibility_level = int(value)
    elif name != "ROLLBACK IMMEDIATE":
        database.properties[name.lower()] = value


def drop_database(session: SessionState, name: str, *, if_exists: bool) -> None:
    """DROP DATABASE of one name; errors 226, 3701, 3702, 3708."""
    _refuse_in_transaction(session, "DROP DATABASE")
    database = session.server.databases.get(name)
    if database is None and if_exists:
        return
    others = [other for other in session.server.sessions.values() if not other.killed]
    if database is not None and any(other.current_database is database for other in others):
        raise SqlError(3702, f'Cannot drop database "{database.name}" because it is currently in use.', state=3)
    session.server.drop_database(name)
    catalog = session.server.catalog
    if database is not None and hasattr(getattr(catalog, "cdc", None), "database_dropped"):
        catalog.cdc.database_dropped(database)


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {
    st.CreateDatabase: _create_database,
    st.AlterDatabase: _alter_database,
}
