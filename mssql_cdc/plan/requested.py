"""A range that somebody asked for by its partition key: the sensor, an operator in the UI, a backfill.

The key's `from` is a label: each table reads from its own position to the key's `to`, and nothing where it has already
been (rules A1, F30). What to do when nobody asks is decided in `plan/planner.py`.
"""

from __future__ import annotations

from collections.abc import Collection

from mssql_cdc.errors import SourceRestoredError
from mssql_cdc.lsn import LsnRange
from mssql_cdc.plan.decisions import Range
from mssql_cdc.plan.facts import Facts
from mssql_cdc.plan.planner import plan_partition
from mssql_cdc.schema import TableId


def requested(facts: Facts, key: str, tables: Collection[TableId]) -> Range | None:
    """What is left of the range `key` for these tables; None when nothing is (rule F30).

    Without slices it is a row that only says that a cut is complete: positions reached in parts, or tables that open
    after their snapshot. It may end before the key does, where a table has to change its capture instance (rule B14);
    what then is left is asked for in the same way.

    Raises:
        ValueError: `key` is not the key of a range.
        StaleReaderError: the source does not show the end of the range (yet).
        SourceRestoredError: the key belongs to another history of the source, or the source went back in time.
    """
    wanted = LsnRange.parse(key)
    if facts.restored:
        raise SourceRestoredError(f"{key} cannot be read: the source was restored or failed over: {facts.restored}")
    if wanted.epoch > facts.epoch:
        raise SourceRestoredError(f"{key} is of epoch {wanted.epoch}; this lake has reached epoch {facts.epoch}")
    if wanted.epoch < facts.epoch:
        return None  # Before the restore: what was captured of it stays, more of it cannot be had.
    found = plan_partition(facts, wanted, tables)
    if found.slices or found.idle:
        return found
    new_cut = facts.cut is None or facts.cut < found.range.to
    return found if found.complete and (found.opens or new_cut) else None
