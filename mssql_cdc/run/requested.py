"""Reads what the sensor or an operator requested: the rest of a range, or everything up to a commit time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.plan.decisions import Merge, Wait
from mssql_cdc.plan.requested import requested
from mssql_cdc.run.execute import Done, execute
from mssql_cdc.schema import TableId

Choose = Callable[[Survey], Collection[TableId]]


def read_range(database: Database, key: str, choose: Choose, *, retry_failed: bool) -> list[Done]:
    """Read the unread rest of the range `key`.

    Args:
        database: The database to read from and write to.
        key: The range's key.
        choose: Selects the tables from the survey.
        retry_failed: Treat tables with status `failed` as streaming.

    Returns:
        At least one result; several if a table switches its capture instance within the range.

    Raises:
        ValueError: `key` is not the key of a range.
        StaleReaderError: The source does not show the end of the range (yet).
        SourceRestoredError: The key belongs to another history of the source.
    """
    results: list[Done] = []
    while True:
        seen = survey(database, retry_failed=None if retry_failed else ())
        decision = requested(seen.facts, key, choose(seen))
        if decision is None:
            break
        results.append(execute(database, seen, decision, chunks=IncrementalSnapshots()))
        read = results[-1].range
        if (read is not None and read.failed) or decision.range.to >= LsnRange.parse(key).to:
            break
    return results or [_nothing(database, seen, key)]


def read_given_up(database: Database, key: str) -> list[Done]:
    """Read the tables that were given up to the end of the range `key`, in ranges of the configured size.

    Args:
        database: The database to read from and write to.
        key: The key of a range that the other tables have read.

    Returns:
        One result per range; a table that fails again ends the read, and stays given up.

    Raises:
        FencedError: Another run has read meanwhile; what this one committed stays.
    """
    seen = survey(database, retry_failed=None)
    tables = {member.table for member in seen.facts.members if member.revived and member.position is not None}
    return _read_to(database, LsnRange.parse(key).to, lambda _: tables)[0] if tables else []


def read_until(database: Database, until: datetime, choose: Choose) -> list[Done]:
    """Read on, in ranges of the configured size, to the newest change that was committed before `until`.

    Tables with status `failed` are treated as streaming, because an operator asks.

    Args:
        database: The database to read from and write to.
        until: The end of the newest window that was requested.
        choose: Selects the tables from the survey.

    Returns:
        At least one result; a failed table ends the read.

    Raises:
        SourceRestoredError: The source went back in time.
        FencedError: Another run has read meanwhile; what this one committed stays.
    """
    with database.session() as session:
        end = session.captured_before(until)
    results, seen = _read_to(database, end, choose)
    return results or [_nothing(database, seen, f"everything before {until:%Y-%m-%d %H:%M} UTC")]


def _read_to(database: Database, end: Lsn | None, choose: Choose) -> tuple[list[Done], Survey]:
    """Read these tables to a position, those with status `failed` like the others, until one fails; the last survey."""
    results: list[Done] = []
    while True:
        seen = survey(database, retry_failed=None)
        key = _next_key(seen, end)
        decision = requested(seen.facts, key, choose(seen)) if key is not None else None
        if decision is None:
            return results, seen
        results.append(execute(database, seen, decision, chunks=IncrementalSnapshots()))
        if results[-1].failed:
            return results, seen


def _next_key(seen: Survey, end: Lsn | None) -> str | None:
    """Return the key of the next range to `end` of at most the configured size; None if nothing is captured."""
    facts = seen.facts
    bounds = [one for one in (end, facts.captured, facts.row_bound, facts.transaction_bound) if one is not None]
    if end is None or facts.captured is None:
        return None
    to = min(bounds)
    start = min(facts.cut, to) if facts.cut is not None else to
    return LsnRange(start, to, facts.epoch).partition_key


def _nothing(database: Database, seen: Survey, what: str) -> Done:
    """Return the result of a request that has nothing to read; current tables may still be due."""
    reason = f"{what} has nothing left to read"
    wait = Wait(reason).because_of(seen.stalled)
    merge = Merge(seen.facts.due, seen.facts.cut_number, reason) if seen.facts.due else wait
    return execute(database, seen, merge)
