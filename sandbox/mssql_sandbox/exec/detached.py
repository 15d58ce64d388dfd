"""Detaching and attaching databases: they are kept in memory under the names of their files.

Change data capture stays enabled, and its jobs stay in msdb, when a database is detached and attached [doc].
"""

from __future__ import annotations

from collections.abc import Sequence

from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.definition_rights import require_new_database
from mssql_sandbox.exec.security import is_owner
from mssql_sandbox.exec.session_state import SessionState

_FOLDER = "/var/opt/mssql/data"


def primary_file(database: Database) -> str:
    """The path of a database's first file, as the catalogue shows it."""
    return f"{_FOLDER}/{database.name}.mdf"


def detach(session: SessionState, name: str) -> None:
    """Detach a database.

    Raises:
        SqlError: 15010 there is none, 7940 it is a system database, 3703 it is in use, 15247 no permission.
    """
    server = session.server
    database = server.databases.get(name)
    if database is None:
        raise SqlError(15010, f"The database '{name}' does not exist. Supply a valid database name. To see available "
                       "databases, use sys.databases.")  # fmt: skip
    if database.is_system:
        raise SqlError(7940, "System databases master, model, msdb, and tempdb cannot be detached.")
    if not is_owner(session, database):
        raise error(15247)
    if any(other.current_database is database for other in server.sessions.values() if not other.killed):
        raise SqlError(3703, f"Cannot detach the database '{database.name}' because it is currently in use.", state=2)
    server.databases.pop(database.name)
    server.detached[primary_file(database).casefold()] = database
    if server.catalog is not None:
        server.catalog.cdc.detached(database)


def attach(session: SessionState, name: str, files: Sequence[str]) -> Database:
    """Attach a database, under this name, by the path of its first file.

    Raises:
        SqlError: 1801 the name is taken, 5120 there is no such file.
    """
    server = session.server
    require_new_database(session)
    if name in server.databases:
        raise error(1801, name=name)
    path = _known(server, files)
    database = server.detached.pop(path)
    database.name = name
    server.databases[name] = database
    if server.catalog is not None:
        server.catalog.cdc.attached(database)
    return database


def _known(server: Server, files: Sequence[str]) -> str:
    for file in files:
        if file.casefold() in server.detached:
            return file.casefold()
    shown = files[0] if files else ""
    raise SqlError(5120, f'Unable to open the physical file "{shown}". Operating system error 2: "2(The system cannot '
                   'find the file specified.)".', state=101)  # fmt: skip
