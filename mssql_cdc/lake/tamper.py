"""Detects whether another writer has changed a table that only this connector may write (rule A5).

RESTORE succeeds on append-only tables and does not roll back `txn`, so the fence alone would not notice.
"""

from __future__ import annotations

import pyarrow.compute as pc

from mssql_cdc.errors import TamperedTableError
from mssql_cdc.lake.log import TableState, backwards, facts_of
from mssql_cdc.lake.read import scan

_HARMLESS = (
    "OPTIMIZE",
    "VACUUM",
    "ADD COLUMN",
    "CHANGE COLUMN",
    "ALTER",
    "SET TBLPROPERTIES",
    "SET COLUMN METADATA",
    "UPGRADE PROTOCOL",
    "ADD FEATURE",
    "CLUSTER BY",
    "REORG",
    "ADD CONSTRAINT",
    "COMPUTE STATS",
    "DOMAIN METADATA CLEANUP",
    "DROP CONSTRAINT",
    "DROP FEATURE",
    "ROW TRACKING",
    "UNSET TBLPROPERTIES",
    "UPDATE FIELD METADATA",
    "UPDATE TABLE METADATA",
)
"""Operation names that Delta 4.4 and deltalake 1.6 give to commits that leave the rows as they are."""
_OURS = ("WRITE", "MERGE", "CREATE TABLE")


def is_harmless(operation: str) -> bool:
    """Whether commits with this operation leave the rows as they are."""
    return operation.upper().startswith(_HARMLESS)


def verify_untouched(
    state: TableState, *, table_id: str | None, delta_version: int | None, batch: int | None = None
) -> None:
    """Check that every commit since this Delta version is the connector's own or leaves the rows unchanged.

    Args:
        state: The state of the change log.
        table_id: The Delta table id of the last commit; None: not known.
        delta_version: The Delta version of the last commit; None: not known.
        batch: The `_batch` of the last commit; None: not known.

    Raises:
        TamperedTableError: names the version, the operation, and what to do.
    """
    if table_id is not None and table_id != state.table_id:
        raise TamperedTableError(
            f"{state.uri} was replaced: its Delta table id is {state.table_id}, expected {table_id}. "
            "Restore the previous folder, or take a new snapshot of the table"
        )
    if delta_version is not None and state.delta_version < delta_version:
        raise TamperedTableError(
            f"{state.uri} went back from Delta version {delta_version} to {state.delta_version}. "
            "Restore the missing log files, or take a new snapshot of the table"
        )
    # An older copy can reach the version through commits of others, and deltalake counts a commit that a power loss has
    # emptied. Nothing sets the counter back: RESTORE keeps it.
    if batch is not None and state.batch < batch:
        raise TamperedTableError(
            f"{state.uri} lacks its newest commits: it ends with batch {state.batch}, expected {batch}. "
            "Restore the missing log files, or take a new snapshot of the table"
        )
    since = -1 if delta_version is None else delta_version
    if state.delta_version <= since:
        return
    for entry in backwards(state):
        if entry["version"] <= since:
            break
        operation = str(entry.get("operation", "unknown")).upper()
        ours = operation.startswith(_OURS) and (facts_of(entry) is not None or operation == "CREATE TABLE")
        if not ours and not is_harmless(operation):
            raise TamperedTableError(
                f"{state.uri} was changed by {operation} in Delta version {entry.get('version')}: rows of the log "
                "may be missing or duplicated. Take a new snapshot of the table; it corrects them"
            )


def last_streamed_position(state: TableState) -> str | None:
    """Return `max(_pos)` of streamed rows: the table's position if log cleanup removed its userMetadata (rule A5).

    This is safe because a commit contains whole transactions; only an idle section may be reread.
    """
    largest: str | None = None
    for batch in scan(state.uri, columns=["_pos", "op"], storage=state.storage):
        streamed = batch.filter(pc.not_equal(batch.column("op"), "r"))
        found = pc.max(streamed.column("_pos")).as_py() if streamed.num_rows else None
        largest = max(filter(None, (largest, found)), default=None)
    return largest
