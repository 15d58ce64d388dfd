"""The statement that replaces a table in a snapshot: a signal's filter, or one in the configuration (SNP-13, BLK-04).

Such a statement reads a part of the table, and no sweep can distinguish what it leaves out from what is gone. So it may
replace a table whose stream continues, and one that never streamed; every other one is read in full.
"""

from __future__ import annotations

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.capture.snapshot_extensions import chosen_query
from mssql_cdc.config.signals import Filter
from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.facts import Member


def statement_of(
    database: Database, known: LakeTable, member: Member, held: Lsn | None, asked: Filter | None
) -> str | None:
    """Return the statement that reads the table; None: its chunks are read.

    Args:
        database: The database.
        known: The table in the lake.
        member: The table in the survey.
        held: Where its stream continues (P); None: it does not, or never began.
        asked: The signal's filter.

    Raises:
        ConfigurationError: The snapshot query of the configuration is faulty.
    """
    found = asked.text if asked is not None else chosen_query(database, known.captured.newest.schema).statement
    why = _must_be_whole(known, member, held) if found is not None else None
    if why is None:
        return found
    whose = "the signal's filter" if asked is not None else "the configuration's statement for it"
    database.log(f"{known.table}: read in full without {whose} because {why}")
    return None


def _must_be_whole(known: LakeTable, member: Member, held: Lsn | None) -> str | None:
    """Why reading a part of the table would leave the lake wrong; None if it would not."""
    if member.status == "lost":
        return "changes were lost"
    if member.rekeyed:
        return "its key definition changed"
    if known.entry is None or known.entry.filled is None:
        return None  # It never streamed: it was neither read whole nor begun without rows.
    if held is None:
        return "its stream does not continue from what the lake has of it"
    if not known.captured.newest.schema.key_columns:
        return "it has no key, so that its rows cannot be told from those that the lake has already (C21)"
    return None
