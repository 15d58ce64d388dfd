"""Follows databases in a loop of survey, decision and execution, which the command line and Dagster runs share.

`Follower.step` executes one decision; `catch_up` ends at a defined position, `run_for` after a given time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from mssql_cdc.capture.current_tables import behind_cut, without_key
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.notices import notices
from mssql_cdc.capture.range import mark_status
from mssql_cdc.capture.snapshot.run import Progress
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.errors import DataLostError, FencedError, MssqlCdcError, NotCaughtUpError, SourceUnavailableError
from mssql_cdc.follow.current import merge_now
from mssql_cdc.follow.sweeps import sweep_due
from mssql_cdc.lake.gaps import open_gaps
from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.decisions import Decision, Lost, Range, Snapshot, Wait
from mssql_cdc.plan.facts import Cursor, Outcome, Runs
from mssql_cdc.plan.planner import next_cursor, plan
from mssql_cdc.run.execute import Done, execute
from mssql_cdc.run.heartbeat import beat
from mssql_cdc.run.quiet_look import quiet_look
from mssql_cdc.run.retries import Retries
from mssql_cdc.run.standing import standings
from mssql_cdc.run.start import look, start
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import LogMark

ShowSnapshot = Callable[[Progress], None]
LOOK_AGAIN = timedelta(seconds=60)
"""How often even a quiet database is surveyed, since CDC may have been enabled on another table."""


@dataclass
class Follower:
    """One followed database: the planner's cursor and the result of the last step.

    Attributes:
        snapshots: Take snapshots too; otherwise another run takes them.
        merge: Also update current tables.
        progress: Receives the progress of snapshots.
        failure: The last attempt's error if waiting may end it.
        broken: The last attempt's error if an operator has to act.
        ready: `preflight` has found no fault.
    """

    database: Database
    cursor: Cursor = field(default_factory=Cursor)
    snapshots: bool = True
    merge: bool = True
    progress: ShowSnapshot | None = None
    decision: Decision = field(default_factory=lambda: Wait("not begun"))
    seen: Survey | None = None
    errors: dict[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    failure: MssqlCdcError | None = None
    broken: MssqlCdcError | None = None
    ready: bool = False
    _outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    _revived: bool = False
    _beaten: datetime | None = None
    _known: set[int] = field(default_factory=set[int])
    _retries: Retries | None = None
    _due: float = 0.0
    _alarmed: bool = False

    def attempt(self) -> Done | None:
        """Take a step, unless the last one failed a moment ago; None if none was taken or it failed.

        The first attempt begins with `preflight`. Errors that a retry would meet again propagate, and so does the
        error that exceeds `errors.max.retries`.
        """
        if time.monotonic() < self._due:
            return None
        retries = self._retries = self._retries or Retries(self.database.connector.streaming)
        try:
            if not self.ready:
                look(self.database)
                self.ready = True
            done = self.step()
            if done.error is not None:
                raise done.error
        except FencedError as error:
            self.database.log(f"{error}; surveying again")
            self.failure = error
            return None
        except SourceUnavailableError as error:
            self._due = time.monotonic() + retries.wait_seconds(error, self.database.log)
            self.failure = error
            return None
        retries.succeeded()
        self.failure = self.broken = None
        self._say_alarm()
        return done

    def postpone(self, seconds: float) -> None:
        """Make no attempt for some time; the next one begins with `preflight` again."""
        self._due, self.ready = time.monotonic() + seconds, False

    def _say_alarm(self) -> None:
        """Log once that the source's capture stands still, until it continues."""
        alarm = isinstance(self.decision, Wait) and self.decision.alarm
        if alarm and not self._alarmed:
            self.database.log(f"{self.database.catalog}: {getattr(self.decision, 'reason', '')}")
        self._alarmed = alarm

    def step(self) -> Done:
        """Survey, decide and execute; a quiet source is only asked whether it has captured anything.

        The errors of `survey` and `execute` propagate; the result contains the errors of single tables.
        """
        now = datetime.now(UTC)
        if self.seen is not None and self.seen.offsets.rows:
            self._beaten = beat(self.database, self._beaten, now)
        quiet = self._quiet(now)
        if quiet is not None:
            return quiet
        seen = self.seen = survey(
            self.database, cursor=self.cursor, now=now, retry_failed=not self._revived, currents=self.merge
        )
        self._say_notices(seen)
        facts = replace(seen.facts, runs=Runs(outcomes=self._outcomes))
        decision = plan(facts)
        if isinstance(decision, Snapshot) and not self.snapshots:
            decision = Wait(f"{decision.id} is taken by another run")
        if isinstance(decision, Wait):
            decision = decision.because_of(seen.stalled)
        self.decision = decision
        self.cursor = next_cursor(facts, decision)
        done = execute(self.database, seen, decision, merge=self.merge, progress=self.progress)
        if isinstance(decision, Range | Snapshot):
            self._revived = True
            kept = {table: error for table, error in self.errors.items() if table not in decision.tables}
            self.errors = kept | done.failed
        if isinstance(decision, Snapshot):
            # What fails waits before it is read again; everything else goes on meanwhile.
            failures = decision.attempt if done.failed else 0
            self._outcomes[decision.id] = Outcome(failures, datetime.now(UTC) if failures else None)
        show(self.database, done)
        return done

    def _quiet(self, now: datetime) -> Done | None:
        """Return a wait if the source has captured nothing since the last step decided to wait."""
        seen, waited = self.seen, isinstance(self.decision, Wait) and self.decision.until is None
        if seen is None or not waited or seen.facts.behind or now - seen.facts.now >= LOOK_AGAIN:
            return None
        wait, offsets = quiet_look(self.database)
        if wait is None or offsets != seen.offsets:
            return None
        self.decision = wait
        return Done(wait, seen, offsets)

    def _say_notices(self, seen: Survey) -> None:
        """Log notices once per capture instance because matching every column of every table is slow."""
        for table in seen.tables.values():
            if table.captured.newest.object_id not in self._known:
                self._known.add(table.captured.newest.object_id)
                for line in notices(self.database.connector, table.captured):
                    self.database.log(line)

    @property
    def hopeless(self) -> dict[TableId, MssqlCdcError]:
        """Tables whose last error would occur again on a retry."""
        return {t: e for t, e in self.errors.items() if not (e.retriable or isinstance(e, FencedError))}


def show(database: Database, done: Done) -> None:
    """Log what was done, one line per fact."""
    if done.range is not None:
        names = [f"{table.name} {outcome.rows}" for table, outcome in done.range.tables.items() if outcome.rows]
        complete = done.range.row is not None and done.range.row.complete
        rows = ", ".join(names) if names else "no rows"
        database.log(f"{done.range.decision.key}: {rows}{'' if complete else ' (no cut)'}")
        for table, error in done.range.failed.items():
            database.log(f"{table} failed: {error}")
    if done.snapshot is not None:
        for table, note in done.snapshot.notes.items():
            database.log(f"{table}: {note}")
    for table, error in done.merged.errors.items():
        database.log(f"{table}: the merge into the current table failed and will be retried: {error}")
    if isinstance(done.decision, Lost):
        database.log(done.decision.reason)


def run_for(databases: Sequence[Database], *, seconds: float | None, progress: ShowSnapshot | None = None) -> None:
    """Follow the databases in turn, and retry after retriable errors.

    A database that cannot be followed does not stop the others; it is retried every minute.

    Args:
        databases: The databases.
        seconds: How long; None: until interrupted.
        progress: Receives the progress of snapshots.

    Raises:
        DataLostError: Tables lost changes, or the source no longer shows them.
        NotCaughtUpError: Tables failed too often.
        MssqlCdcError: No database can be followed, or one could not be when the time ran out.
    """
    end = None if seconds is None else time.monotonic() + seconds
    followers = [Follower(database, progress=progress) for database in databases]
    _start(followers, end)
    while end is None or time.monotonic() < end:
        idle = [_follow(follower) for follower in followers]
        broken = [follower.broken for follower in followers if follower.broken is not None]
        if followers and len(broken) == len(followers):
            raise broken[0]
        if all(idle):
            time.sleep(min(follower.database.connector.streaming.poll_seconds for follower in followers))
    for follower in followers:
        error = follower.broken or follower.failure
        if error is not None and not isinstance(error, FencedError):
            raise error
        _raise_findings(follower)


def _start(followers: Sequence[Follower], end: float | None) -> None:
    """Start the connector as soon as its server answers."""
    if not followers:
        return
    database = followers[0].database
    retries = Retries(database.connector.streaming)
    while True:
        try:
            start([follower.database for follower in followers])
        except SourceUnavailableError as error:
            if end is not None and time.monotonic() > end:
                raise
            wait = retries.wait_seconds(error, database.log)
            time.sleep(wait if end is None else max(min(wait, end - time.monotonic()), 0))
        else:
            return


def _follow(follower: Follower) -> bool:
    """Attempt one step of one database; return whether there was nothing to do. The follower keeps its error."""
    try:
        done = follower.attempt()
    except MssqlCdcError as error:
        follower.broken = error
        follower.postpone(LOOK_AGAIN.total_seconds())
        follower.database.log(f"{follower.database.catalog} is left out for a minute: {error}")
        return True
    return done is None or done.idle or bool(done.failed)


def catch_up(databases: Sequence[Database], *, timeout: float, progress: ShowSnapshot | None = None) -> None:
    """Follow each database until everything that is in its log now is in change logs and current tables.

    The goal is what was captured when a log scan had passed E, the end of the log at the time of the call. It is
    reached when every streaming table has reached it and the current tables are at a complete cut that contains it. A
    database that cannot be followed does not stop the others.

    Args:
        databases: The databases.
        timeout: The time limit in seconds.
        progress: Receives the progress of snapshots.

    Raises:
        SourceUnavailableError: The time ran out; the message says what was missing.
        DataLostError: The tables in the message lost changes at the source.
        NotCaughtUpError: Tables failed too often.
        MssqlCdcError: One of the databases could not be followed.
    """
    end = time.monotonic() + timeout
    start(databases)
    errors: list[MssqlCdcError] = []
    for database in databases:
        try:
            _catch_up(database, end, timeout, progress)
        except MssqlCdcError as error:
            errors.append(error)
            if len(databases) > 1:
                database.log(f"{database.catalog}: {error}")
    if errors:
        raise errors[0]


def _catch_up(database: Database, end: float, timeout: float, progress: ShowSnapshot | None) -> None:
    look(database)
    follower = Follower(database, merge=False, progress=progress, ready=True)
    with database.session() as session:
        mark = session.mark()
    goal: Lsn | None = None
    while True:
        if goal is None:
            with suppress(SourceUnavailableError):
                goal = goal_behind(database, mark)
        done = follower.attempt()
        if done and _give_up(follower, done):
            continue
        waits = isinstance(follower.decision, Wait)
        if done and goal and waits and has_reached(done.seen, goal, follower.hopeless) and _current(database, done):
            break
        if isinstance(follower.decision, Wait) and follower.decision.alarm:
            raise SourceUnavailableError(f"Not caught up: {follower.decision.reason}")
        if time.monotonic() > end:
            failed = [f"{table}: {error}" for table, error in follower.errors.items()]
            what = follower.failure or "; ".join(failed) or getattr(follower.decision, "reason", goal or mark.lsn)
            raise SourceUnavailableError(f"Not caught up within {timeout:g} s; still waiting for: {what}")
        if done is None or waits:
            time.sleep(database.connector.streaming.poll_seconds)
    _raise_findings(follower)


def _give_up(follower: Follower, done: Done) -> bool:
    """Let complete cuts go on without the tables that cannot be read; whether there were any.

    The next start tries them again. What was lost at the source is written down as such.
    """
    streaming = {member.table for member in done.seen.facts.members if member.status == "streaming"}
    wanted = {
        table: str(error)
        for table, error in (done.range.failed if done.range is not None else {}).items()
        if table in follower.hopeless and table in streaming and not isinstance(error, DataLostError)
    }
    if wanted:
        mark_status(follower.database, replace(done.seen, offsets=done.offsets), wanted, "failed")
    return bool(wanted)


def goal_behind(database: Database, mark: LogMark) -> Lsn | None:
    """Return the captured position once a log scan has passed the mark; None until then."""
    with database.session() as session:
        return session.captured() if session.passed(mark) else None


def has_reached(seen: Survey, goal: Lsn, hopeless: Collection[TableId]) -> bool:
    """Whether every streaming member has reached the goal and no snapshot is open.

    Args:
        seen: The survey.
        goal: The position to reach.
        hopeless: Tables to ignore because a retry cannot help them.
    """
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


def _current(database: Database, done: Done) -> bool:
    """Merge the current tables up to the last cut and run due sweeps; return whether nothing is left to do."""
    tables, history = done.seen.tables, done.seen.history
    merged = merge_now(database, tables, done.offsets, history)
    merged.raise_failure()
    swept = sweep_due(database, tables, done.offsets, history)
    return swept is done.offsets and not behind_cut(tables.values(), swept, history, storage=database.storage)


def _raise_findings(follower: Follower) -> None:
    """Raise an error if the lake differs from the source although the loop has done everything it can.

    Raises:
        DataLostError: Tables lost changes, or the source no longer shows them.
        NotCaughtUpError: Tables failed too often.
        MssqlCdcError: A table cannot be read.
    """
    database = follower.database
    for gaps in open_gaps(database.layout, database.storage).values():
        for gap in gaps:
            database.log(f"not acknowledged: {gap.text}")
    if follower.seen is None:
        return
    for table in without_key(follower.seen.tables.values(), follower.seen.history):
        database.log(
            f"{table}: it has no usable key any more; its current table stays as it was, its change log goes on"
        )
    stand = standings(follower.seen)
    if stand.missing:
        names = "; ".join(f"{table}: {reason}" for table, reason in stand.missing.items())
        raise DataLostError(f"{names}. A blocking snapshot repairs tables that the source still captures")
    failed = dict(stand.failed) | {table.text: str(error) for table, error in follower.hopeless.items()}
    if failed:
        names = "; ".join(f"{table}: {reason}" for table, reason in failed.items())
        error = next(iter(follower.hopeless.values()), None)
        kind = type(error) if error is not None else NotCaughtUpError
        raise kind(f"Tables failed and will be retried at the next start: {names}") from error
