"""Compacts `_offsets`, to which each step appends a file: alongside the ranges, or else when a step has done its work.

Compaction changes no row. Another run's appends continue meanwhile, and one that it conflicts with is repeated (A3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from mssql_cdc.capture.database import Database
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.lake.offset_commits import COMPACT_ROWS, offsets_table


@dataclass(slots=True)
class Upkeep:
    """When one process compacts the offsets of a database: whenever they have reached a multiple of `COMPACT_ROWS`."""

    _number: int | None = None

    def step(self, database: Database, *, before: int, after: int, slow: SlowWork | None) -> None:
        """Compact if it is due.

        Args:
            database: The database.
            before: The number of the newest row before the step.
            after: The number afterwards.
            slow: Does it alongside the ranges; None: this call waits for it.
        """
        known = before if self._number is None else self._number  # Snapshots write rows between the steps, too.
        self._number = max(known, after)
        if self._number // COMPACT_ROWS == known // COMPACT_ROWS:
            return
        action = partial(compact_offsets, database)
        if slow is None:
            action()
        else:
            slow.aside(action)


def compact_offsets(database: Database) -> None:
    """Compact the small files of `_offsets`; a failure is logged, and the next attempt comes soon.

    Args:
        database: The database.
    """
    try:
        offsets_table(database.layout, database.storage).compact()
    except MssqlCdcError as error:
        database.log(f"{database.catalog}: _offsets could not be compacted: {error}")
