"""Counts the change rows of a range, limits the range, and splits it for parallel readers.

A range contains whole transactions, so it is always cut at a commit LSN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from mssql_cdc.errors import AccessDeniedError, SourceError
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.source.sqlserver.changes import change_source
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.sql import LSN, MAPPING, digits
from mssql_cdc.source.values import CaptureInstance, Volume

FIRST_COMMITS = 4_096
"""The first step of `measure`; a poll is rarely further behind."""
LSN_DIGITS = 20


def count_rows(control: Control, parts: Sequence[tuple[CaptureInstance, LsnRange]]) -> dict[str, int]:
    """Count change rows per instance name, each in its own range, with one statement; an update counts twice.

    The statement's text depends only on the instances: all positions travel in one parameter. (Of the instances that
    are read through their functions, it has only those whose range is not empty; these vary where tables are at
    different positions.) If the login may not read one of the tables, one has gone since they were listed, or a
    function no longer has changes from that far back, the server rejects the whole statement: then halves are counted,
    and an instance that is rejected by itself counts as one row, so that its reader gets the error, which then affects
    that table only.
    """
    try:
        return _count_rows(control, parts)
    except (AccessDeniedError, SourceError):
        if len(parts) == 1:
            instance, wanted = parts[0]
            return {instance.name: 0 if wanted.is_empty else 1}
        half = len(parts) // 2
        return count_rows(control, parts[:half]) | count_rows(control, parts[half:])


def _count_rows(control: Control, parts: Sequence[tuple[CaptureInstance, LsnRange]]) -> dict[str, int]:
    counts: dict[str, int] = {instance.name: 0 for instance, _ in parts}
    if all(wanted.is_empty for _, wanted in parts):
        return counts
    # Empty ranges are included to keep the text the same, except for functions, which reject them.
    streams = [(i, w) for i, w in parts if i.streams and (i.change_table or not w.is_empty)]
    asked = sorted(streams, key=lambda part: part[0].name)
    if not asked:
        return counts
    ranges = "".join(digits(wanted.from_) + digits(wanted.to) for _, wanted in asked)
    selects = [_count(number, instance) for number, (instance, _) in enumerate(asked)]
    statement = f"DECLARE @ranges varchar(max) = ?; {' UNION ALL '.join(selects)}"
    for number, rows in control.rows(statement, ranges, doing="counting change rows"):
        counts[asked[int(number)][0].name] = int(rows)
    return counts


def _count(number: int, instance: CaptureInstance) -> str:
    at = 2 * LSN_DIGITS * number + 1
    from_, to = (f"CONVERT(binary(10), SUBSTRING(@ranges, {n}, {LSN_DIGITS}), 2)" for n in (at, at + LSN_DIGITS))
    return (
        f"SELECT {number}, COUNT_BIG(*) FROM {_sought(instance, from_, to)} "
        f"WHERE [__$start_lsn] > {from_} AND [__$start_lsn] <= {to}"
    )


def _sought(instance: CaptureInstance, from_: str, to: str) -> str:
    """What follows FROM in a statement that needs only the commits of rows in a range.

    The bounds are variables, so the server guesses that a share of all rows is between them, and would rather scan the
    whole index for net changes, which is narrower. Only the clustered index of a change table begins with the commit.

    Args:
        instance: the instance that has the rows.
        from_: T-SQL for the LSN after which the range begins.
        to: T-SQL for its last LSN.
    """
    hint = " WITH (FORCESEEK)" if instance.change_table is not None else ""
    return change_source(instance, from_, to) + hint


def measure(control: Control, parts: Sequence[tuple[CaptureInstance, LsnRange]], limit: int, to: Lsn) -> Volume:
    """Count the change rows at the beginning of the range, up to the last commit with which there are at most `limit`.

    Counting proceeds by commits, in growing steps, and counts no step twice; only the step that exceeds the limit is
    halved until the last commit that fits is found. A transaction is never divided: the first one is always included.

    Args:
        control: a connection to the database.
        parts: the instances, each with its own range.
        limit: change rows over all instances; an update counts twice.
        to: the end of the longest range.
    """
    if not parts:
        return Volume(None, {})
    start = reached = min(wanted.from_ for _, wanted in parts)
    counts: dict[str, int] = {instance.name: 0 for instance, _ in parts}
    commits = FIRST_COMMITS
    while reached < to:
        end = _nth_commit(control, reached, to, commits) or to
        step = _between(control, parts, reached, end)
        if _total(counts) + _total(step) > limit:
            break
        counts, reached, commits = _sum(counts, step), end, 2 * commits
    else:
        return Volume(None, counts)
    # Somewhere in (reached, end] the limit is exceeded.
    commits = _commits(control, reached, end)
    while commits > 1:
        half = commits // 2
        middle = _nth_commit(control, reached, end, half) or end
        part = _between(control, parts, reached, middle)
        if _total(counts) + _total(part) <= limit:
            counts, reached, commits = _sum(counts, part), middle, commits - half
        else:
            step, end, commits = part, middle, half
    if reached > start:
        return Volume(reached, counts)
    return Volume(end, step) if end < to else Volume(None, step)


def split(control: Control, instance: CaptureInstance, wanted: LsnRange, parts: int) -> list[LsnRange]:
    """Return adjacent sub-ranges with about the same number of rows each, cut at commit LSNs.

    Args:
        control: a connection to the database.
        instance: the instance whose rows are counted.
        wanted: the range to split.
        parts: the largest number of sub-ranges; there are fewer if transactions are large.
    """
    if parts <= 1 or wanted.is_empty:
        return [wanted]
    rows = control.rows(
        f"DECLARE @from binary(10) = {LSN}, @to binary(10) = {LSN}; "
        f"SELECT MAX(l) FROM (SELECT [__$start_lsn] AS l, NTILE({int(parts)}) OVER (ORDER BY [__$start_lsn]) AS part "
        f"FROM {_sought(instance, '@from', '@to')} "
        "WHERE [__$start_lsn] > @from AND [__$start_lsn] <= @to) AS tiles GROUP BY part",
        digits(wanted.from_),
        digits(wanted.to),
        doing="splitting a range",
    )
    cuts = sorted({Lsn(bytes(row[0])) for row in rows})
    edges = [wanted.from_, *(cut for cut in cuts[:-1] if wanted.from_ < cut < wanted.to), wanted.to]
    return [LsnRange(a, b, wanted.epoch) for a, b in pairwise(edges)]


def _between(
    control: Control, parts: Sequence[tuple[CaptureInstance, LsnRange]], from_: Lsn, to: Lsn
) -> dict[str, int]:
    """The change rows of each part in `(from_, to]`."""
    cut: list[tuple[CaptureInstance, LsnRange]] = []
    for instance, wanted in parts:
        low, high = max(wanted.from_, from_), min(wanted.to, to)
        cut.append((instance, LsnRange(low, max(low, high), wanted.epoch)))
    return count_rows(control, cut)


def _sum(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {name: rows + second[name] for name, rows in first.items()}


def _total(counts: Mapping[str, int]) -> int:
    return sum(counts.values())


def _nth_commit(control: Control, after: Lsn, to: Lsn, number: int) -> Lsn | None:
    """The `number`-th commit after `after`, up to `to`; None when there are fewer."""
    found = control.value(
        f"SELECT start_lsn FROM {MAPPING} WHERE start_lsn > {LSN} AND start_lsn <= {LSN} "
        "ORDER BY start_lsn OFFSET ? ROWS FETCH NEXT 1 ROWS ONLY",
        digits(after),
        digits(to),
        number - 1,
        doing="looking for a commit",
    )
    return None if found is None else Lsn(bytes(found))


def _commits(control: Control, after: Lsn, to: Lsn) -> int:
    return control.value(
        f"SELECT COUNT_BIG(*) FROM {MAPPING} WHERE start_lsn > {LSN} AND start_lsn <= {LSN}",
        digits(after),
        digits(to),
        doing="counting commits",
    )
