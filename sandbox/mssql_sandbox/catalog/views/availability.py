"""Availability groups: the state of each database on its replicas, as far as the secondary of `engine.replica` has one.

The other views of availability groups are not here.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from decimal import Decimal

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.engine.log import lsn_number
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.server import Server

_NAMESPACE = uuid.UUID("8e6f2d0b-3c58-4c0e-bb0e-6a1c4d6f7e21")
_LSN = "numeric(25,0)? = NULL"
_SYNCHRONIZING, _SYNCHRONIZED, _HEALTHY = (1, "SYNCHRONIZING"), (2, "SYNCHRONIZED"), (2, "HEALTHY")


def _name(server: Server, what: object) -> uuid.UUID:
    return uuid.uuid5(_NAMESPACE, f"{server.instance_id}/{what}")


def membership(scope: Scope, database: Database) -> tuple[uuid.UUID | None, uuid.UUID | None]:
    """The ids of the local replica and of the database in its group; NULL outside of one [doc]."""
    server = scope.server
    if not server.replica.active or database.is_system:
        return None, None
    local = "secondary" if server.replica.serves(scope.session.spid) else "primary"
    return _name(server, local), _name(server, database.id)


def _database_replicas(scope: Scope) -> Iterator[tuple]:
    """A secondary shows its own databases, the primary those of both [doc]."""
    server = scope.server
    replica = server.replica
    if not replica.active:
        return
    on_secondary = replica.serves(scope.session.spid)

    for database in server.databases.values():
        if database.is_system:
            continue
        for is_primary in (0,) if on_secondary else (1, 0):
            yield (
                database.id,
                _name(server, "group"),
                _name(server, "primary" if is_primary else "secondary"),
                _name(server, database.id),
                int(is_primary or on_secondary),
                is_primary,
                *(_SYNCHRONIZED if is_primary else _SYNCHRONIZING),
                is_primary,
                *_HEALTHY,
                # NULL for the primary, whose secondary commits asynchronously [doc].
                None if is_primary else Decimal(lsn_number(replica.hardened_lsn(database.log))),
                # Null for the primary; a secondary does not know how far ahead the primary is [?].
                None if is_primary or on_secondary else replica.behind_seconds,
            )


_COLUMNS = (
    "database_id int, group_id uniqueidentifier, replica_id uniqueidentifier, group_database_id uniqueidentifier, "
    "is_local bit, is_primary_replica bit?, synchronization_state tinyint?, "
    "synchronization_state_desc nvarchar(60)?, is_commit_participant bit?, synchronization_health tinyint?, "
    "synchronization_health_desc nvarchar(60)?, database_state tinyint? = 0, "
    "database_state_desc nvarchar(60)? = 'ONLINE', is_suspended bit? = 0, suspend_reason tinyint? = NULL, "
    f"suspend_reason_desc nvarchar(60)? = NULL, recovery_lsn {_LSN}, truncation_lsn {_LSN}, "
    f"last_sent_lsn {_LSN}, last_sent_time datetime? = NULL, last_received_lsn {_LSN}, "
    f"last_received_time datetime? = NULL, last_hardened_lsn numeric(25,0)?, last_hardened_time datetime? = NULL, "
    f"last_redone_lsn {_LSN}, last_redone_time datetime? = NULL, log_send_queue_size bigint? = NULL, "
    "log_send_rate bigint? = NULL, redo_queue_size bigint? = NULL, redo_rate bigint? = NULL, "
    f"filestream_send_rate bigint? = NULL, end_of_log_lsn {_LSN}, last_commit_lsn {_LSN}, "
    "last_commit_time datetime? = NULL, low_water_mark_for_ghosts bigint? = NULL, secondary_lag_seconds bigint?, "
    f"quorum_commit_lsn {_LSN}, quorum_commit_time datetime? = NULL"
)
VIEWS = (
    view("sys.dm_hadr_database_replica_states", _COLUMNS, _database_replicas),
    view("sys.dm_database_replica_states", _COLUMNS, _database_replicas),  # In Azure SQL Database.
)
