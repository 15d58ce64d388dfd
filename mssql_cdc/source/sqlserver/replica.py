"""Whether a connection has reached the primary, or otherwise which of several readable secondaries.

A listener may lead each connection to a different one, and some are further ahead than others. The end of the log that
a session reads bounds the rows of a snapshot's reader only on the same replica, so all of them stay on one. On a
primary nothing is queried.
"""

from __future__ import annotations

from mssql_cdc.errors import StaleReaderError
from mssql_cdc.source.sqlserver.connect import Control

# The replica's id distinguishes those of one server (Azure); it is NULL without an availability group.
NAME = """
SELECT CAST(CONCAT(CAST(SERVERPROPERTY('ServerName') AS nvarchar(128)), ' ',
    (SELECT CAST(d.replica_id AS varchar(36)) FROM sys.databases d WHERE d.name = DB_NAME())) AS varchar(300)) AS [name]
WHERE CAST(DATABASEPROPERTYEX(DB_NAME(), 'Updateability') AS nvarchar(128)) = N'READ_ONLY'"""
ATTEMPTS = 8
"""How many connections are tried to reach the same replica."""


def is_primary(control: Control) -> bool:
    """Whether the connection shows everything that is committed; a readable secondary may lag."""
    return control.value(NAME, doing="asking whether this is a readable secondary") is None


def elsewhere(wanted: str | None, *, doing: str) -> StaleReaderError:
    """The error for a connection that has not reached the replica of the others.

    Args:
        wanted: The readable secondary; None: the primary.
        doing: Completes "while …" in the text of the error.
    """
    replica = "the primary" if wanted is None else f"the readable secondary {wanted.strip()!r}"
    return StaleReaderError(
        f"{ATTEMPTS} connections have not reached {replica}, which the log's end was read on, while {doing}: the name "
        "of the server leads to several. Name one of them in database.hostname if this comes again; the read will be "
        "retried"
    )
