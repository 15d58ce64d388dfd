"""`sys.database_recovery_status`."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from mssql_sandbox.catalog.definitions import Scope, view


def lsn_number(lsn: bytes | None) -> Decimal | None:
    """An LSN as `numeric(25,0)` columns show it: VLF, block with ten digits, slot with five [doc]."""
    if lsn is None:
        return None
    vlf, block, slot = (int.from_bytes(part, "big") for part in (lsn[:4], lsn[4:8], lsn[8:]))
    return Decimal(f"{vlf}{block:010}{slot:05}")


def _recovery_status(scope: Scope) -> Iterator[tuple]:
    for database in scope.server.databases.values():
        recovery = database.recovery
        yield (
            database.id,
            recovery.database,
            recovery.family,
            None,
            recovery.fork,
            recovery.first_fork,
            lsn_number(recovery.fork_point),
        )


VIEWS = (
    view(
        "sys.database_recovery_status",
        "database_id int, database_guid uniqueidentifier?, family_guid uniqueidentifier?, "
        "last_log_backup_lsn numeric(25,0)?, recovery_fork_guid uniqueidentifier?, "
        "first_recovery_fork_guid uniqueidentifier?, fork_point_lsn numeric(25,0)?",
        _recovery_status,
    ),
)
