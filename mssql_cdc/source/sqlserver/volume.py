"""Counts the change rows of a range, limits the range, and splits it for parallel readers.

A range contains whole transactions, so it is always cut at a commit LSN.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.source.sqlserver.changes import between, change_source
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.sql import MAPPING, lsn
from mssql_cdc.source.values import CaptureInstance


def count_rows(control: Control, parts: Sequence[tuple[CaptureInstance, LsnRange]]) -> dict[str, int]:
    """Change rows per instance name in each one's own range, by one statement; an update counts twice."""
    busy = [(instance, wanted) for instance, wanted in parts if not wanted.is_empty]
    counts: dict[str, int] = {instance.name: 0 for instance, _ in parts}
    if not busy:
        return counts
    selects = [
        f"SELECT {number}, COUNT_BIG(*) FROM {change_source(instance, wanted)} WHERE {between(wanted)}"
        for number, (instance, wanted) in enumerate(busy)
    ]
    for number, rows in control.rows(" UNION ALL ".join(selects), doing="counting change rows"):
        counts[busy[int(number)][0].name] = int(rows)
    return counts


def row_bound(control: Control, parts: Sequence[tuple[CaptureInstance, LsnRange]], limit: int, to: Lsn) -> Lsn | None:
    """Return the largest commit LSN below `to` up to which at most `limit` rows fit; None if all rows fit.

    A transaction is never divided: the first one of the range is always included. A binary search over the mapping
    table, two short statements per step.

    Args:
        control: a connection to the database.
        parts: the instances, each with its own range.
        limit: change rows over all instances; an update counts twice.
        to: the end of the longest range.
    """
    if sum(count_rows(control, parts).values()) <= limit:
        return None
    start = min(wanted.from_ for _, wanted in parts)
    total = control.value(
        f"SELECT COUNT(*) FROM {MAPPING} WHERE start_lsn > {lsn(start)} AND start_lsn <= {lsn(to)}",
        doing="counting commits",
    )
    low, high = 0, int(total) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if _rows_until(control, parts, _nth_commit(control, start, to, middle)) <= limit:
            low = middle
        else:
            high = middle - 1
    bound = _nth_commit(control, start, to, low)
    return bound if bound < to else None


def split(control: Control, instance: CaptureInstance, wanted: LsnRange, parts: int) -> list[LsnRange]:
    """Return adjacent sub-ranges with about as many rows each, cut at commit LSNs.

    Args:
        control: a connection to the database.
        instance: whose rows are counted.
        wanted: the range to split.
        parts: how many sub-ranges at most; fewer where transactions are large.
    """
    if parts <= 1 or wanted.is_empty:
        return [wanted]
    rows = control.rows(
        f"SELECT MAX(l) FROM (SELECT [__$start_lsn] AS l, NTILE({int(parts)}) OVER (ORDER BY [__$start_lsn]) AS part "
        f"FROM {change_source(instance, wanted)} WHERE {between(wanted)}) AS tiles GROUP BY part",
        doing="splitting a range",
    )
    cuts = sorted({Lsn(bytes(row[0])) for row in rows})
    edges = [wanted.from_, *(cut for cut in cuts[:-1] if wanted.from_ < cut < wanted.to), wanted.to]
    return [LsnRange(a, b, wanted.epoch) for a, b in pairwise(edges)]


def _rows_until(control: Control, parts: Sequence[tuple[CaptureInstance, LsnRange]], to: Lsn) -> int:
    cut = [
        (instance, LsnRange(wanted.from_, max(wanted.from_, min(wanted.to, to)), wanted.epoch))
        for instance, wanted in parts
    ]
    return sum(count_rows(control, cut).values())


def _nth_commit(control: Control, start: Lsn, to: Lsn, number: int) -> Lsn:
    found = control.value(
        f"SELECT start_lsn FROM {MAPPING} WHERE start_lsn > {lsn(start)} AND start_lsn <= {lsn(to)} "
        f"ORDER BY start_lsn OFFSET {int(number)} ROWS FETCH NEXT 1 ROWS ONLY",
        doing="looking for a commit",
    )
    return Lsn(bytes(found))
