"""Follows one database: survey, decide, execute; keeps the planner's memory between steps, and retries."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from mssql_cdc.capture.current_tables import behind_cut
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.notices import notices
from mssql_cdc.capture.snapshot.progress import Progress
from mssql_cdc.capture.snapshot.unread_requests import answer_unread_requests
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.errors import FencedError, MssqlCdcError, SourceError, SourceUnavailableError
from mssql_cdc.follow.current import Merged
from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.follow.incremental_thread import GroupThread
from mssql_cdc.follow.polled_signals import PolledSignals
from mssql_cdc.follow.signal_actions import run_actions
from mssql_cdc.follow.signals import Looked, record_signals
from mssql_cdc.follow.slow_work import END_SECONDS, SlowWork
from mssql_cdc.follow.sweeps import Applied, Found, due_sweeps
from mssql_cdc.follow.upkeep import Upkeep
from mssql_cdc.lake.current import CurrentResult
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.plan.decisions import Decision, Lost, Range, Snapshot, Wait
from mssql_cdc.plan.facts import Cursor, Facts, Outcome, Runs
from mssql_cdc.plan.planner import next_cursor, plan
from mssql_cdc.run.execute import Done, execute, take_own_signals
from mssql_cdc.run.heartbeat import beat
from mssql_cdc.run.interrupts import require_uninterrupted
from mssql_cdc.run.quiet_look import quiet_look
from mssql_cdc.run.retries import Retries
from mssql_cdc.run.snapshots import SnapshotThread, Taken
from mssql_cdc.run.start import look, start_database
from mssql_cdc.schema import TableId
from mssql_cdc.spark.lazy import running
from mssql_cdc.spark.session import cancel_jobs

ShowSnapshot = Callable[[Progress], None]
LOOK_AGAIN = timedelta(seconds=60)
"""How often even a quiet database is surveyed, since CDC may have been enabled on another table; and how often the
change logs of quiet tables are checked, since another program may have changed them (A5)."""
MOST_FENCED = 3
"""How many ranges in a row may be planned again immediately because another run was faster."""


@dataclass
class Follower:
    """One followed database: the planner's cursor and the result of the last step.

    Attributes:
        snapshots: Take snapshots too; otherwise another run takes them.
        merge: Also update current tables.
        progress: Receives the progress of snapshots.
        slow: Does the slow work on current tables (`follow/slow_work`) while ranges continue; by default, a step waits
            for it.
        beside: Takes snapshots in a thread, while the other tables stream; by default, a step completes them.
        chunks: Reads the chunks of incremental snapshots alongside the ranges; None: other runs do.
        signals: The signal channels other than the signal table.
        seen: The last survey.
        offsets: The offsets after the last step.
        errors: The tables that could not be read when last tried.
        unmerged: The tables whose current table could not be updated or swept when last tried.
        failure: The last attempt's error, if waiting may resolve it.
        broken: The last attempt's error, if an operator has to act.
        starts: The connector starts with the next attempt (`start_database`).
        ready: `preflight` has found no fault.
        require_tables: It is a fault if no table is captured.
        persists: Once a survey has succeeded, every error of the source is retried, as Debezium retries every
            SQLException (ERR-02): a server reports many transient errors that `classify` does not know.
        saw: Called with each survey.
        clock: Tells the time: looks recur and retries wait by it.
    """

    database: Database
    cursor: Cursor = field(default_factory=Cursor)
    snapshots: bool = True
    merge: bool = True
    progress: ShowSnapshot | None = None
    slow: SlowWork | None = None
    beside: SnapshotThread | None = None
    chunks: IncrementalSnapshots | None = field(default_factory=IncrementalSnapshots)
    signals: PolledSignals = field(default_factory=PolledSignals)
    decision: Decision = field(default_factory=lambda: Wait("not begun"))
    seen: Survey | None = None
    offsets: Offsets | None = None
    errors: dict[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    unmerged: dict[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    failure: MssqlCdcError | None = None
    broken: MssqlCdcError | None = None
    starts: bool = False
    ready: bool = False
    require_tables: bool = True
    persists: bool = False
    saw: Callable[[Survey], None] | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    _last_range: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    _fenced: int = 0
    _owes_signals: bool = True
    _given_up: set[TableId] | None = None
    _beaten: datetime | None = None
    _checked: datetime | None = None
    _known: set[int] = field(default_factory=set[int])
    _retries: Retries | None = None
    _due: float = 0.0
    _alarmed: bool = False
    _upkeep: Upkeep = field(default_factory=Upkeep)

    def attempt(self) -> Done | None:
        """Take a step, unless the last one failed a moment ago; return None if none was taken or it failed.

        The first attempt begins with the start and with `preflight`, which the attempt after a retried `SourceError`
        repeats. Other errors that a retry would hit again propagate, and so does the error that exceeds
        `errors.max.retries`.
        """
        require_uninterrupted()
        if time.monotonic() < self._due:
            return None
        retries = self._retries = self._retries or Retries(self.database.connector.streaming)
        try:
            if self.starts:
                start_database(self.database)
                self.starts = False
            if not self.ready:
                look(self.database, require_tables=self.require_tables)
                self.ready = True
            done = self.step()
            if done.error is not None:
                raise done.error
        except FencedError as error:
            self.database.log(f"{error}; surveying again")
            self.failure = error
            return None
        except (SourceUnavailableError, SourceError) as error:
            if isinstance(error, SourceError):
                if not self.persists or self.seen is None:
                    raise
                self.ready = False  # `preflight` reports what an operator has to fix.
            self._due = time.monotonic() + retries.wait_seconds(error, self.database.log)
            self.failure = error
            return None
        retries.succeeded()
        self.failure = self.broken = None
        self._say_alarm()
        return done

    @property
    def idle_seconds(self) -> float:
        """The pause before the next step when there is nothing to do: no longer than until signals are polled."""
        settings, pause = self.database.connector.signals, self.database.connector.streaming.poll_seconds
        return min(pause, settings.poll_interval_ms / 1000) if settings.polled else pause

    @property
    def reads_chunks(self) -> bool:
        """Whether chunks of an incremental snapshot are being read alongside the ranges."""
        thread = self._group_thread
        return thread is not None and thread.reads

    def pause(self, seconds: float) -> None:
        """Wait before the next step, but no longer than until chunks of an incremental snapshot have been read."""
        thread = self._group_thread
        if thread is not None and thread.reads:
            thread.wait(seconds)
        else:
            time.sleep(seconds)

    @property
    def _group_thread(self) -> GroupThread | None:
        return self.chunks.thread if self.chunks is not None else None

    def postpone(self, seconds: float) -> None:
        """Make no attempt for some time; the next one begins with `preflight` again."""
        self._due, self.ready = time.monotonic() + seconds, False

    def _say_alarm(self) -> None:
        """Log that the source's capture has stalled, once until it continues."""
        alarm = isinstance(self.decision, Wait) and self.decision.alarm
        if alarm and not self._alarmed:
            self.database.log(f"{self.database.catalog}: {getattr(self.decision, 'reason', '')}")
        self._alarmed = alarm

    def step(self) -> Done:
        """Survey, decide and execute; for a quiet source, only check whether it has captured anything.

        The errors of `survey` and `execute` propagate; the result contains the errors of individual tables.
        """
        now = self.clock()
        if self.seen is not None and self.seen.offsets.number:
            self._beaten = beat(self.database, self._beaten, now)
        looked, taken = self.signals.look(self.database), self._take()
        quiet = self._quiet(now) if looked is None and taken is None else None
        if quiet is not None:
            return quiet
        seen = self._signalled(now, looked)
        for line in run_actions(self.database):
            self.database.log(line)
        self._say_notices(seen)
        facts = self._facts(seen)
        decision = plan(facts, snapshots=self.snapshots)
        if not isinstance(decision, Range) and not seen.is_whole:
            seen = self._survey(now, whole=True)
            facts = self._facts(seen)
            decision = plan(facts, snapshots=self.snapshots)
        if isinstance(decision, Snapshot) and self.beside is not None:
            self.beside.begin(decision)
            self._tried(decision.tables)
            self.cursor = next_cursor(facts, decision)
            facts = replace(facts, runs=self._runs, cursor=self.cursor)
            decision = plan(facts, snapshots=self.snapshots)
        if isinstance(decision, Wait):
            decision = decision.because_of(seen.stalled)
        self.decision = decision
        self.cursor = next_cursor(facts, decision)
        # A step that dies after its range leaves the signals to the next one, which may find nothing to read.
        self._owes_signals = isinstance(decision, Range)
        try:
            done = execute(
                self.database,
                seen,
                decision,
                merge=self.merge,
                progress=self.progress,
                slow=self.slow,
                chunks=self.chunks,
            )
        except FencedError as error:
            if isinstance(decision, Range):
                self._note_range(decision, dict.fromkeys(decision.tables, error))
            raise
        self.offsets, self._owes_signals = done.offsets, False
        done = self._with_slow(done)
        self._note_merged(done.merged, seen)
        self._upkeep.step(self.database, before=seen.offsets.number, after=done.offsets.number, slow=self.slow)
        if isinstance(decision, Range):
            self._tried([m.table for m in facts.members] if decision.complete else [*decision.tables, *decision.idle])
            # A table that a complete range neither reads nor gives up was read by another run, or has no changes.
            streams = {member.table for member in facts.members if member.status == "streaming"}
            reached = streams.difference(decision.give_up) if decision.complete else set[TableId]()
            self._note({*decision.tables, *reached}, done.failed)
            self._note_range(decision, done.failed)
        if isinstance(decision, Snapshot):
            self._tried(decision.tables)
            self._note_snapshot(decision, done.failed)
        if taken is not None and taken.done is not None:
            done = replace(done, snapshot=taken.done.snapshot)
        show(self.database, done)
        return done

    def _signalled(self, now: datetime, looked: Looked | None) -> Survey:
        """Survey with what signals request: those of the channels, and those left by a step that died."""
        seen = self._survey(now)
        lines = record_signals(self.database, looked, seen.tables, seen.offsets) if looked is not None else []
        if self._owes_signals:
            lines += take_own_signals(self.database, seen, seen.offsets)
            self._owes_signals = False
        for line in lines:
            self.database.log(line)
        seen = self._survey(now) if lines else seen
        return self._survey(now) if answer_unread_requests(self.database, seen) else seen

    def _facts(self, seen: Survey) -> Facts:
        due = [table for table in seen.facts.due if not self._left_alone(table)]
        return replace(seen.facts, runs=self._runs, due=tuple(due))

    @property
    def _runs(self) -> Runs:
        return Runs(self.beside.active if self.beside is not None else (), self._outcomes | self._last_range)

    def _take(self) -> Taken | None:
        """Take the result of the snapshot that has ended alongside the stream."""
        taken = self.beside.take() if self.beside is not None else None
        if taken is None:
            return None
        if taken.error is not None:
            self.database.log(f"{taken.decision.id} will be retried: {taken.error}")
        self._note_snapshot(taken.decision, taken.failed)
        return taken

    def _note(self, tables: Collection[TableId], failed: Mapping[TableId, MssqlCdcError]) -> None:
        kept = {table: error for table, error in self.errors.items() if table not in tables}
        self.errors = kept | dict(failed)

    def _note_merged(self, merged: Merged, seen: Survey) -> None:
        """Remember what failed for current tables until it has been done; a failed sweep does not stop updates."""
        done = set(merged.tables) & self.unmerged.keys()
        done -= self._sweeps(seen) if done else set()
        kept = {table: error for table, error in self.unmerged.items() if table not in done}
        self.unmerged = kept | without_fences(merged.errors)

    def _sweeps(self, seen: Survey) -> set[TableId]:
        identities = {table: lake.captured.object_id for table, lake in seen.tables.items()}
        return {due.table for due in due_sweeps(identities, self.offsets or seen.offsets)}

    def _note_range(self, decision: Range, failed: Mapping[TableId, MssqlCdcError]) -> None:
        """Tell the planner whether the range is finished; if not, its tables wait for a retry.

        Tables that another run has advanced, or has begun to snapshot, are planned again at once, but not endlessly.
        """
        fenced = all(isinstance(error, FencedError) for error in failed.values())
        self._fenced = self._fenced + 1 if failed and fenced else 0
        self._last_range = {decision.key: Outcome(succeeded=fenced and self._fenced <= MOST_FENCED)}

    def _note_snapshot(self, decision: Snapshot, failed: Mapping[TableId, MssqlCdcError]) -> None:
        """Note the result: what failed waits before it is read again; everything else continues meanwhile."""
        self._note(decision.tables, failed)
        failures = decision.attempt if failed else 0
        self._outcomes[decision.id] = Outcome(failures, self.clock() if failures else None)

    def _tried(self, tables: Collection[TableId]) -> None:
        """Each table that was given up before this run is tried again once."""
        self._given_up = (self._given_up or set()).difference(tables)

    def _survey(self, now: datetime, *, whole: bool = False) -> Survey:
        """Survey the database; while it has changes, the logs of quiet tables are checked only once in a while."""
        seen = self.seen = survey(
            self.database,
            cursor=self.cursor,
            now=now,
            retry_failed=self._given_up,
            sparing=not whole and self._checked is not None and abs(now - self._checked) < LOOK_AGAIN,
            currents=self.merge,
        )
        self.offsets = seen.offsets
        if seen.is_whole:
            self._checked = now
        if self._given_up is None:
            self._given_up = {member.table for member in seen.facts.members if member.revived}
        if self.saw is not None:
            self.saw(seen)
        return seen

    def _quiet(self, now: datetime) -> Done | None:
        """Return a wait if the source has captured nothing since the last step decided to wait."""
        seen, waited = self.seen, isinstance(self.decision, Wait) and self.decision.until is None
        if seen is None or not waited or abs(now - seen.facts.now) >= LOOK_AGAIN:
            return None
        if not all(self.slow is not None and self.slow.merges.waits(table) for table in seen.facts.behind):
            return None
        if (self.slow is not None and self.slow.ended) or (self.beside is not None and self.beside.ended):
            return None
        wait, offsets = quiet_look(self.database)
        if wait is None or offsets != seen.offsets:
            return None
        self.decision = wait
        return Done(wait, seen, offsets)

    def _left_alone(self, table: TableId) -> bool:
        """Whether the current table is being updated in the background, or its update failed a moment ago."""
        return self.slow is not None and (table in self.slow.tables or self.slow.merges.waits(table))

    def _with_slow(self, done: Done) -> Done:
        """Add the merges that have ended in the meantime."""
        if self.slow is None:
            return done
        tables, errors = self.slow.take(CurrentResult)
        self.slow.merges.note(done=tables, failed=errors)
        merged = Merged({**done.merged.tables, **tables}, {**done.merged.errors, **errors})
        return replace(done, merged=merged)

    def close(self, *, patience: float = END_SECONDS) -> None:
        """End the background work, by force after `patience` seconds; the next run repeats it."""
        end = time.monotonic() + patience
        if self.slow is not None and self.seen is not None:  # What fails from now on may fail because it is ended.
            done, errors = self.slow.take(CurrentResult)
            for kind in (Found, Applied):
                errors |= self.slow.take(kind)[1]
            self._note_merged(Merged(done, errors), self.seen)
        for work in (self.beside, self.slow):
            if work is not None:
                left = max(end - time.monotonic(), 0.0)
                work.close(self._cancel_jobs, patience=left)
        if self._group_thread is not None:
            self._group_thread.wait(max(end - time.monotonic(), 0.0))

    def _cancel_jobs(self) -> None:
        """Cancel the session's jobs, if there is one; one that does not answer runs no job worth waiting for."""
        with suppress(Exception):
            session = running(self.database.spark)
            if session is not None:
                cancel_jobs(session)

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
        return {table: error for table, error in without_fences(self.errors).items() if not error.retriable}

    @property
    def failing(self) -> dict[TableId, MssqlCdcError]:
        """Captured tables that could not be read when last tried, whether a retry may help or not."""
        seen = self.seen
        known = {member.table for member in seen.facts.members} if seen is not None else set[TableId]()
        return {table: error for table, error in without_fences(self.errors).items() if table in known}

    @property
    def outdated(self) -> dict[TableId, MssqlCdcError]:
        """Tables whose current table still lacks what could not be done when last tried."""
        seen, offsets = self.seen, self.offsets
        if not self.unmerged or seen is None or offsets is None:
            return {}
        lacking = self._sweeps(seen) | behind_cut(self.database, seen.tables.values(), offsets, seen.history).keys()
        return {table: error for table, error in self.unmerged.items() if table in lacking}


def without_fences(errors: Mapping[TableId, MssqlCdcError]) -> dict[TableId, MssqlCdcError]:
    """Return the errors, except those of tables on which another run was faster."""
    return {table: error for table, error in errors.items() if not isinstance(error, FencedError)}


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
