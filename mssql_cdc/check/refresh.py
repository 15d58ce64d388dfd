"""Merges the current tables that are behind before they are compared, and keeps what could not be merged.

For a key that has changed, the comparison uses the row that the change log adds up to (`settle`). So it does not notice
that a current table permanently lacks a row: a failed merge is a result of its own. So is a repair that was interrupted
after its commit, if its rows cannot be merged before the next complete cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mssql_cdc.capture.current_tables import waiting_repairs
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.survey import survey
from mssql_cdc.errors import MssqlCdcError, NotCaughtUpError
from mssql_cdc.run.execute import refresh_current
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The outcome of merging a database's current tables.

    Attributes:
        errors: The tables that could not be updated, with the reasons.
        error: Why no table could be updated; None: all tables not in `errors` could.
    """

    errors: Mapping[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    error: MssqlCdcError | None = None


def refresh(database: Database) -> Refreshed:
    """Merge every current table of a database up to the last complete cut.

    Args:
        database: The database.

    Raises:
        MssqlCdcError: The source or another run prevented it, and a retry may help.
    """
    try:
        seen = survey(database)
        errors = refresh_current(database, seen).errors
        waiting = waiting_repairs(database, seen.tables.values(), seen.offsets, seen.history)
        return Refreshed({table: _waits(table) for table in waiting} | dict(errors))
    except MssqlCdcError as error:
        if error.retriable:
            raise
        return Refreshed(error=error)


def _waits(table: TableId) -> MssqlCdcError:
    return NotCaughtUpError(
        f"the change log of {table} has rows that a repair read again, and no complete cut has what was read before "
        "them; run mssql-cdc run --until-caught-up"
    )
