"""The connector without Dagster: decide, carry out, again; for the command line and for Dagster's loop mode.

`step` is one decision carried out. `catch_up` ends at a defined point; `run_for` after a time.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.range import RangeResult, capture
from mssql_cdc.capture.requests import free_key
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.errors import (
    DataLostError,
    FencedError,
    MssqlCdcError,
    SourceRestoredError,
    SourceUnavailableError,
)
from mssql_cdc.follow.after import Merged, behind_current, merge_current
from mssql_cdc.follow.sweeps import sweep_due
from mssql_cdc.lake.gaps import open_gaps
from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.decisions import Decision, Lost, Range, Restored, Snapshot, Wait
from mssql_cdc.plan.facts import Cursor
from mssql_cdc.plan.planner import next_cursor, plan
from mssql_cdc.run.guardrail import guard
from mssql_cdc.run.heartbeat import beat
from mssql_cdc.run.loss import GO_ON, begin_epoch, write_loss, write_restore
from mssql_cdc.run.starting import snapshot_at_start
from mssql_cdc.run.steps import Asked, follow, take_snapshot
from mssql_cdc.schema import TableId
from mssql_cdc.source.sqlserver.log_end import LogMark

IDLE_SECONDS = 0.5
"""Pause between two looks at a source that has nothing new."""


@dataclass
class Follower:
    """One database being followed: the cursor between two steps, and what the last one decided."""

    database: Database
    cursor: Cursor = field(default_factory=Cursor)
    decision: Decision = field(default_factory=lambda: Wait("not begun"))
    revived: bool = False
    seen: Survey | None = None
    errors: dict[TableId, MssqlCdcError] = field(default_factory=dict)
    beaten: datetime | None = None

    def step(self, *, merge: bool = True) -> Survey:
        """Look, decide, do it; returns what was seen before it was done.

        Raises:
            the errors of `survey`, `stream.capture` and `snapshot.capture`; table errors of a range raise only when
            every table failed.
        """
        seen = self.seen = survey(self.database, cursor=self.cursor, retry_failed=not self.revived)
        if seen.offsets.rows:
            self.beaten = beat(self.database, self.beaten, seen.facts.now)
        self.decision = plan(seen.facts)
        self.cursor = next_cursor(seen.facts, self.decision)
        match self.decision:
            case Range():
                self._range(seen, self.decision, merge=merge)
            case Snapshot():
                self._snapshot(seen, self.decision)
            case Lost():
                self._lost(seen, self.decision)
            case Restored():
                self._restored(seen, self.decision)
            case Wait():
                if merge:
                    _say(self.database, merge_current(self.database, seen.members, seen.offsets))
        return seen

    def _range(self, seen: Survey, decision: Range, *, merge: bool) -> None:
        result = capture(self.database, seen, decision)
        self.revived = True
        self.errors = {t: e for t, e in self.errors.items() if t not in result.tables} | result.failed
        _show(self.database, result)
        _say(self.database, follow(self.database, seen, result.offsets, merge=merge).merged)
        if result.failed and len(result.failed) == len(result.tables):
            result.raise_failure()

    @property
    def hopeless(self) -> dict[TableId, MssqlCdcError]:
        """Tables whose last error a second try would meet again."""
        return {t: e for t, e in self.errors.items() if not (e.retriable or isinstance(e, FencedError))}

    def _snapshot(self, seen: Survey, decision: Snapshot) -> None:
        begun = decision.id in seen.offsets.begun_snapshots.values()
        key = decision.id if begun else free_key(decision.id, seen.offsets)
        done = take_snapshot(self.database, seen, Asked(key, decision.tables, decision.signal))
        for table, note in done.notes.items():
            self.database.log(f"{table}: {note}")
        done.result.raise_failure()

    def _lost(self, seen: Survey, decision: Lost) -> None:
        write_loss(self.database, seen, decision)
        self.database.log(decision.reason)

    def _restored(self, seen: Survey, decision: Restored) -> None:
        if not decision.automatic:
            write_restore(self.database, seen)
            raise SourceRestoredError(f"{decision.reason}. {GO_ON}")
        begin_epoch(self.database, seen, by=None)


def run_for(databases: Sequence[Database], *, seconds: float | None) -> None:
    """Follow the databases in turn for so long (None: until interrupted); retriable errors are waited out."""
    end = None if seconds is None else time.monotonic() + seconds
    followers = [Follower(database) for database in databases]
    _start(databases)
    while end is None or time.monotonic() < end:
        idle = True
        for follower in followers:
            try:
                follower.step()
            except (SourceUnavailableError, FencedError) as error:
                follower.database.log(f"{error}; trying again")
            idle = idle and isinstance(follower.decision, Wait)
        if idle:
            time.sleep(IDLE_SECONDS)
    for follower in followers:
        _raise_lost(follower)


def catch_up(databases: Sequence[Database], *, timeout: float) -> None:
    """Follow each database until everything that is in its log now is in change logs and current tables.

    The point is E, the end of the log at the call, and what was captured when a scan had passed E. It is reached when
    every streaming table has come to it and the current tables stand at a complete cut that holds it.

    Raises:
        SourceUnavailableError: the time is up; the message says what was waited for.
        DataLostError: changes were lost at the source, of the tables that the message names.
    """
    end = time.monotonic() + timeout
    _start(databases)
    for database in databases:
        _catch_up(database, end, timeout)


def _catch_up(database: Database, end: float, timeout: float) -> None:
    follower = Follower(database)
    with database.session() as session:
        mark = session.mark()
    goal: Lsn | None = None
    last: MssqlCdcError | None = None
    while True:
        if goal is None:
            goal = goal_behind(database, mark)
        try:
            seen = follower.step(merge=False)
            last = None
        except (SourceUnavailableError, FencedError) as error:
            last, seen = error, None
        waits = isinstance(follower.decision, Wait)
        if seen and goal and waits and has_reached(seen, goal, follower.hopeless) and _current(database, seen):
            break
        if time.monotonic() > end:
            failed = [f"{table}: {error}" for table, error in follower.errors.items()]
            what = last or "; ".join(failed) or getattr(follower.decision, "reason", goal or mark.lsn)
            raise SourceUnavailableError(f"Not caught up within {timeout:g} s; last waited for: {what}")
        if last is not None or waits:
            time.sleep(IDLE_SECONDS)
    _raise_lost(follower)
    for table, error in follower.hopeless.items():
        raise type(error)(f"{table}: {error}") from error


def goal_behind(database: Database, mark: LogMark) -> Lsn | None:
    """What was captured once a scan had passed the mark; None as long as none has."""
    with database.session() as session:
        if session.passed(mark):
            return session.captured()
        standing = session.standing()
        # Without the right to see scans, a settled mapping row behind the mark proves the same.
        settled = standing.settled is not None and standing.settled >= mark.lsn
        return standing.captured if settled else None


def has_reached(seen: Survey, goal: Lsn, hopeless: Collection[TableId]) -> bool:
    """Whether every streaming member has come to the goal and no snapshot is open; hopeless tables aside."""
    for member in seen.facts.members:
        if member.table in hopeless:
            continue
        if member.status in {"new", "snapshot"} and member.instances:
            return False
        if member.closed_until is not None:
            return False
        behind = member.position is None or member.position < goal
        if member.status == "streaming" and behind and seen.facts.policy.stream:
            return False
    return True


def _current(database: Database, seen: Survey) -> bool:
    """Bring the current tables to the last cut; whether they are there, sweeps included."""
    merged = merge_current(database, seen.members, seen.offsets, due_only=False)
    for table, error in merged.errors.items():
        raise type(error)(f"{table}: {error}") from error
    if sweep_due(database, seen.members, seen.offsets):
        return False
    return not behind_current(database, seen.members, seen.offsets)


def _show(database: Database, result: RangeResult) -> None:
    names = [f"{t.name} {o.rows}" for t, o in result.tables.items() if o.rows]
    shown = ", ".join(names) if names else "no rows"
    database.log(f"{result.decision.key}: {shown}{'' if result.row and result.row.complete else ' (no cut)'}")
    for table, error in result.failed.items():
        database.log(f"{table} failed: {error}")


def _start(databases: Sequence[Database]) -> None:
    """What a connector does when it starts: count its tables, ask for the snapshot of `snapshot.mode=always`."""
    if databases and databases[0].connector.guardrail.max_tables is not None:
        tables = 0
        for database in databases:
            with database.session() as session:
                tables += len(session.tables())
        guard(databases[0].connector, tables, warn=databases[0].log)
    for database in databases:
        snapshot_at_start(database)


def _say(database: Database, merged: Merged) -> None:
    for table, error in merged.errors.items():
        database.log(f"{table}: the current table could not be merged and will be tried again: {error}")


def _raise_lost(follower: Follower) -> None:
    """Tables that lost changes are an error until a snapshot has mended them; their gaps are said till acknowledged."""
    database = follower.database
    for gaps in open_gaps(database.layout, database.storage).values():
        for gap in gaps:
            database.log(f"not acknowledged: {gap.text}")
    members = follower.seen.members.values() if follower.seen else ()
    reasons = {m.entry.reason for m in members if m.entry is not None and m.entry.status == "lost" and m.entry.reason}
    if reasons:
        raise DataLostError("; ".join(sorted(reasons)) + ". A blocking snapshot of the tables mends them")
