"""Reads what the sensor or an operator requested: the rest of a range, or everything up to a commit time.

Changes that the requested tables have lost are recorded first, as the stream does (A9): without that, nothing would
be left to read from these tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.errors import FencedError, MssqlCdcError
from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.plan.decisions import Lost, Merge, Range, Wait
from mssql_cdc.plan.planner import lost
from mssql_cdc.plan.requested import requested
from mssql_cdc.run.execute import Done, execute
from mssql_cdc.schema import TableId

Choose = Callable[[Survey], Collection[TableId]]
FENCED_ATTEMPTS = 5
"""How many times in a row a range is surveyed again because another run has also committed what this one has read."""


def read_range(database: Database, key: str, choose: Choose, *, retry_failed: bool) -> list[Done]:
    """Read the unread rest of the range `key`.

    Args:
        database: The database to read from and write to.
        key: The range's key.
        choose: Selects the tables from the survey.
        retry_failed: Treat tables with status `failed` as streaming.

    Returns:
        At least one result; several if a table has lost changes, or switches its capture instance within the range.

    Raises:
        ValueError: `key` is not the key of a range.
        StaleReaderError: The source does not show the end of the range (yet).
        SourceRestoredError: The key belongs to another history of the source.
        FencedError: Another run was faster again and again; what this one committed stays.
    """
    results: list[Done] = []
    fences = _Fences()
    while True:
        seen = survey(database, retry_failed=None if retry_failed else ())
        tables = choose(seen)
        decision = _lost(seen, tables) or requested(seen.facts, key, tables)
        if decision is None:
            break
        done = fences.execute(database, seen, decision)
        if done is None:
            continue
        results.append(done)
        if isinstance(decision, Lost):
            continue
        if done.failed:
            if not fences.met(done.failed):
                break
        elif decision.range.to >= LsnRange.parse(key).to:
            break
    return _with_last(database, results, seen, key)


def read_given_up(database: Database, key: str) -> list[Done]:
    """Read the given-up tables, up to the end of the range `key`, in ranges of the configured size.

    Args:
        database: The database to read from and write to.
        key: The key of a range that the other tables have read.

    Returns:
        One result per range; a table that fails again ends the read, and stays given up.

    Raises:
        FencedError: Another run was faster again and again; what this one committed stays.
    """
    seen = survey(database, retry_failed=None)
    tables = {member.table for member in seen.facts.members if member.revived and member.position is not None}
    return _read_to(database, LsnRange.parse(key).to, lambda _: tables)[0] if tables else []


def read_until(database: Database, until: datetime, choose: Choose) -> list[Done]:
    """Continue reading, in ranges of the configured size, up to the newest change that was committed before `until`.

    Tables with status `failed` are treated as streaming, because an operator requested the read.

    Args:
        database: The database to read from and write to.
        until: The end of the newest window that was requested.
        choose: Selects the tables from the survey.

    Returns:
        At least one result; a failed table ends the read.

    Raises:
        SourceRestoredError: The source went back in time.
        FencedError: Another run was faster again and again; what this one committed stays.
    """
    with database.session() as session:
        end = session.captured_before(until)
    results, seen = _read_to(database, end, choose)
    return _with_last(database, results, seen, f"everything before {until:%Y-%m-%d %H:%M} UTC")


def _read_to(database: Database, end: Lsn | None, choose: Choose) -> tuple[list[Done], Survey]:
    """Read these tables up to a position, including `failed` ones, until one fails; also return the last survey.

    What another run reads at the same time is left to that run.
    """
    results: list[Done] = []
    fences = _Fences()
    while True:
        seen = survey(database, retry_failed=None)
        key, tables = _next_key(seen, end), choose(seen)
        decision = _lost(seen, tables) or (requested(seen.facts, key, tables) if key is not None else None)
        if decision is None:
            return results, seen
        done = fences.execute(database, seen, decision)
        if done is None:
            continue
        results.append(done)
        if done.failed and not fences.met(done.failed):
            return results, seen


@dataclass(slots=True)
class _Fences:
    """Counts how often in a row another run was faster: the survey that follows sees what is left to read."""

    _count: int = 0

    def execute(self, database: Database, seen: Survey, decision: Range | Lost) -> Done | None:
        """Read the range, or record the loss; None: another run has written its offsets meanwhile.

        Raises:
            FencedError: That has happened too often.
        """
        try:
            done = execute(database, seen, decision, chunks=IncrementalSnapshots())
        except FencedError as error:
            self._note(error)
            return None
        if not done.failed:
            self._count = 0
        return done

    def met(self, failed: Mapping[TableId, MssqlCdcError]) -> bool:
        """Whether nothing failed except what another run has committed meanwhile.

        Raises:
            FencedError: That has happened too often.
        """
        if not all(isinstance(error, FencedError) for error in failed.values()):
            return False
        self._note(next(iter(failed.values())))
        return True

    def _note(self, error: MssqlCdcError) -> None:
        self._count += 1
        if self._count >= FENCED_ATTEMPTS:
            raise error


def _lost(seen: Survey, tables: Collection[TableId]) -> Lost | None:
    """Return what these tables have lost, unless the source went back in time: then they have lost more.

    The losses of other tables are left to the stream, which reports them.
    """
    found = lost(seen.facts) if not seen.facts.restored else None
    losses = tuple(loss for loss in found.losses if loss.table in tables) if found is not None else ()
    return replace(found, losses=losses) if found is not None and losses else None


def _next_key(seen: Survey, end: Lsn | None) -> str | None:
    """Return the key of the next range toward `end`, of at most the configured size; None if nothing is captured."""
    facts = seen.facts
    bounds = [one for one in (end, facts.captured, facts.row_bound, facts.transaction_bound) if one is not None]
    if end is None or facts.captured is None:
        return None
    to = min(bounds)
    start = min(facts.cut, to) if facts.cut is not None else to
    return LsnRange(start, to, facts.epoch).partition_key


def _with_last(database: Database, results: list[Done], seen: Survey, what: str) -> list[Done]:
    """Return the results; after a fence or a loss, or if there are none, add that of the last survey: all is read."""
    failed = results[-1].failed if results else {}
    fenced = bool(failed) and all(isinstance(error, FencedError) for error in failed.values())
    ends = bool(results) and not fenced and not isinstance(results[-1].decision, Lost)
    return results if ends else [*results, _nothing(database, seen, what)]


def _nothing(database: Database, seen: Survey, what: str) -> Done:
    """Return the result of a request that has nothing to read; current tables may still be due."""
    reason = f"{what} has nothing left to read"
    wait = Wait(reason).because_of(seen.stalled)
    merge = Merge(seen.facts.due, seen.facts.cut_number, reason) if seen.facts.due else wait
    return execute(database, seen, merge)
