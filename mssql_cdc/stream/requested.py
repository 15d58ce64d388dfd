"""A range that somebody asked for by its partition key: the sensor, an operator in the UI, a backfill.

The key's `from` is a label: each table reads from its own position to the key's `to`, and nothing where it has already
been (rules A1, F30). What to do when nobody asks is decided in `stream/plan.py`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

from mssql_cdc.lsn import LsnRange
from mssql_cdc.schema import TableId
from mssql_cdc.stream.decisions import Range
from mssql_cdc.stream.facts import Cursor, Facts, Member
from mssql_cdc.stream.plan import plan


def requested(facts: Facts, key: str, tables: Collection[TableId]) -> Range | None:
    """What is left of the range `key` for these tables; None when they all have passed its end (rule F30).

    A run over some of the tables advances only these, so it is no complete cut unless the others are there too.

    Raises:
        ValueError: `key` is not the key of a range.
    """
    wanted = LsnRange.parse(key)
    # The planner repeats a pending key for whatever it still lacks: exactly what a request for a key means.
    pending = Cursor(key, attempt=0, not_before=facts.now - timedelta(seconds=1))
    # A table that is behind only because it is closed or given up must not be waited for here.
    decision = plan(replace(facts, cursor=pending, running=(), asked=(), members=_streaming(facts)))
    if not isinstance(decision, Range) or decision.range != wanted:
        return None
    slices = tuple(part for part in decision.slices if part.table in tables)
    idle = tuple(table for table in decision.idle if table in tables)
    if not slices and not idle:
        return None
    all_of_it = len(slices) == len(decision.slices) and len(idle) == len(decision.idle)
    complete = decision.complete and all_of_it
    return replace(decision, slices=slices, idle=idle, complete=complete, opens=decision.opens if complete else ())


def _streaming(facts: Facts) -> tuple[Member, ...]:
    """Only streaming members: a request for a range must not turn into a snapshot of a new table."""
    return tuple(member for member in facts.members if member.status == "streaming")
