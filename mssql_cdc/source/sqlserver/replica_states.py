"""What an availability group's replicas report about the log: where a secondary's copy ends, what capture waits for.

In an availability group, capture does not process log records that a secondary has not hardened yet: by default it
waits for all secondaries, with trace flag 1448 for the synchronous-commit ones [doc]. The mirror of a database counts
the same way, and so does the log backup where replication is synchronized with it. Whether a scan that finds nothing
else counts as an empty one is not documented, so empty scans alone prove nothing there.
"""

from __future__ import annotations

from mssql_cdc.errors import ConfigurationError, SourceError
from mssql_cdc.lsn import Lsn
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.health import AZURE_SQL_DATABASE

HELD_BACK = (
    "the database is in an availability group (or mirrored, or published together with its backups), where empty scans "
    "do not show how far capture is; it is known with the next captured transaction, or once all secondaries have "
    "hardened the log and two scans found no more"
)
"""Why it takes longer until capture is known to have passed the end of an idle log."""
_MIRRORING_EDITIONS = (2, 3)
"""Standard and Enterprise; the managed ones have neither mirrors nor a view of them."""
# Every user of a database sees it in sys.databases; seeing its mirror may require permission to see all databases.
_MEMBER = "SELECT CASE WHEN d.replica_id IS NOT NULL OR d.is_sync_with_backup = 1 {mirrored}THEN 1 ELSE 0 END"
_OF_MANAGED = f"{_MEMBER.format(mirrored='')} FROM sys.databases d WHERE d.name = DB_NAME()"
_OF_SERVER = (
    f"{_MEMBER.format(mirrored='OR m.database_id IS NULL OR m.mirroring_guid IS NOT NULL ')} FROM sys.databases d "
    "LEFT JOIN sys.database_mirroring m ON m.database_id = d.database_id WHERE d.name = DB_NAME()"
)
_OWN_LOG = """
SELECT last_hardened_lsn, last_redone_lsn, last_commit_lsn FROM {replicas}
WHERE database_id = DB_ID() AND is_local = 1"""
_HARDENED = "SELECT is_local, is_primary_replica, last_hardened_lsn FROM {replicas} WHERE database_id = DB_ID()"


def is_held_back(control: Control, edition: int) -> bool:
    """Whether capture may wait for more than the log itself; True if the database is not visible."""
    statement = _OF_SERVER if edition in _MIRRORING_EDITIONS else _OF_MANAGED
    return control.value(statement, doing="asking whether the database is in an availability group") != 0


def own_log_end(control: Control, edition: int) -> Lsn | None:
    """The end of a secondary's copy of the log, which is past all that it shows; None when it is unknown.

    `last_hardened_lsn` is the start of the block after those on disk, and only those are redone [doc]. The view may be
    out of date [doc], so what has been redone counts, too.
    """
    statement = _OWN_LOG.format(replicas=_replicas(edition))
    rows = control.rows(statement, doing="reading the end of the secondary's log")
    return max((numeric_lsn(int(one)) for row in rows for one in row if one), default=None)


def least_hardened(control: Control, edition: int) -> Lsn | None:
    """The position below which all is on the disks of all secondaries; None on a secondary, or if one does not report.

    None, too, for a login that may not query it.

    A secondary that is down stays in the view. Azure SQL Database does not show the replicas that serve reads as rows
    of their own [doc]: there, the primary's row, which has the least of the synchronous-commit ones, counts as well.
    """
    azure = edition == AZURE_SQL_DATABASE
    statement = _HARDENED.format(replicas=_replicas(edition))
    try:
        rows = control.rows(statement, doing="asking how far the secondaries have hardened the log")
    except (ConfigurationError, SourceError):
        return None
    if not any(row.is_local and row.is_primary_replica for row in rows):
        return None
    told = [row.last_hardened_lsn for row in rows if azure or not row.is_local]
    return min(numeric_lsn(int(one)) for one in told) if told and all(told) else None


def numeric_lsn(value: int) -> Lsn:
    """The LSN of a `numeric(25, 0)`: the log file, then 10 digits for the block, then 5 digits for the slot."""
    rest, slot = divmod(value, 100_000)
    sequence, block = divmod(rest, 10_000_000_000)
    return Lsn(sequence.to_bytes(4, "big") + block.to_bytes(4, "big") + slot.to_bytes(2, "big"))


def _replicas(edition: int) -> str:
    azure = edition == AZURE_SQL_DATABASE
    return "sys.dm_database_replica_states" if azure else "sys.dm_hadr_database_replica_states"
