"""A range requested by its partition key: by the sensor, an operator in the UI, or a backfill.

The key's `from` is only a label: each table reads from its own position to the key's `to`, and nothing that it has
already read (rules A1, F30). `plan/planner.py` decides what to do without a request.
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
    """Return the unread rest of the range `key` for these tables; None if there is none (rule F30).

    A result without slices only records that a cut is complete: positions reached in parts, or tables that open after
    their snapshot. The result ends before the key if a table must switch its capture instance (rule B14); call again
    for the rest.

    Args:
        facts: The facts.
        key: The partition key.
        tables: The tables to read.

    Raises:
        ValueError: `key` is not the key of a range.
        StaleReaderError: The source does not show the end of the range (yet).
        SourceRestoredError: The key belongs to another history of the source, or the source went back in time.
    """
    wanted = LsnRange.parse(key)
    if facts.restored:
        raise SourceRestoredError(f"{key} cannot be read: the source was restored or failed over: {facts.restored}")
    if wanted.epoch > facts.epoch:
        raise SourceRestoredError(f"{key} belongs to epoch {wanted.epoch}; the lake is at epoch {facts.epoch}")
    if wanted.epoch < facts.epoch:
        return None  # From before the restore: its captured rows stay, but it can never be completed.
    found = plan_partition(facts, wanted, tables)
    if found.slices or found.idle:
        return found
    new_cut = facts.cut is None or facts.cut < found.range.to
    return found if found.complete and (found.opens or new_cut) else None
