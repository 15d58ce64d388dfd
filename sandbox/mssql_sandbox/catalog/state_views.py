"""The system views and functions that show state, and the permission that each needs; error 297 without it [doc].

Since 2022 the permissions are `VIEW SERVER PERFORMANCE STATE` and `VIEW DATABASE PERFORMANCE STATE`, which `VIEW SERVER
STATE` and `VIEW DATABASE STATE` include.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.exec.definition_rights import State, require_state
from mssql_sandbox.exec.session import Session

STATE_OF: Mapping[str, State] = MappingProxyType(
    {
        "sys.dm_cdc_errors": "database",
        "sys.dm_cdc_log_scan_sessions": "database",
        "sys.dm_db_log_stats": "server",
        "sys.dm_database_replica_states": "database",
        "sys.dm_exec_connections": "server",
        "sys.dm_hadr_database_replica_states": "server",
        "sys.dm_os_sys_info": "server",
        "sys.dm_server_services": "server",
        "sys.dm_tran_active_snapshot_database_transactions": "server",
        "sys.dm_tran_active_transactions": "server",
        "sys.dm_tran_database_transactions": "server",
        "sys.dm_tran_locks": "server",
        "sys.dm_tran_session_transactions": "server",
    }
)
DATABASE_STATE_IN_AZURE = frozenset({"sys.dm_db_log_stats"})
"""Azure SQL Database has no permissions on the server: there these need the permission on the database [doc]."""


def check(session: Session, database: Database, name: str) -> None:
    """Refuse a state view to sessions without the permission; `name` is lower-case, with its schema.

    Raises:
        SqlError: 297, after a message with the permission's name.
    """
    state = STATE_OF.get(name)
    if name in DATABASE_STATE_IN_AZURE and session.server.version.is_azure:
        state = "database"
    if state is not None:
        require_state(session, database, state)
