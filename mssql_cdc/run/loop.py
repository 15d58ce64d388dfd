"""Follows databases in a loop of survey, decision and execution, which the command line and Dagster runs share.

`Follower.step` executes one decision; `catch_up` ends at a defined position, `run_for` after a given time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from mssql_cdc.capture.current_tables import behind_cut, without_key
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.store import load
from mssql_cdc.capture.range import mark_status
from mssql_cdc.errors import (
    DataLostError,
    FencedError,
    LoginRefusedError,
    MssqlCdcError,
    NotCaughtUpError,
    SourceUnavailableError,
)
from mssql_cdc.follow.current import Merged, merge_now
from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.follow.incremental_thread import GroupThread
from mssql_cdc.follow.slow_work import END_SECONDS, SlowWork
from mssql_cdc.follow.sweeps import sweep_due
from mssql_cdc.lake.gaps import open_gaps
from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.decisions import Range, Wait
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import LOOK_AGAIN, Follower, ShowSnapshot
from mssql_cdc.run.interrupts import require_uninterrupted
from mssql_cdc.run.lineage import Saw, reported
from mssql_cdc.run.patience import Patience, has_reached
from mssql_cdc.run.retries import Retries
from mssql_cdc.run.snapshot_status import snapshot_status
from mssql_cdc.run.snapshots import SnapshotThread
from mssql_cdc.run.standing import loss_text, standings
from mssql_cdc.run.start import guard_tables, look, start_database
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import LogMark
from mssql_cdc.spark.tasks import described

Watch = Callable[[Follower, Done | None], bool]
"""Called after each attempt at a step with its result, None if there is none; returns whether the loop has to end."""


def run_for(
    databases: Sequence[Database],
    *,
    seconds: float | None,
    progress: ShowSnapshot | None = None,
    watch: Watch | None = None,
    merge: bool = True,
    require_tables: bool = True,
    beside: bool = False,
) -> None:
    """Follow the databases in turn; retry after retriable errors, and after any source error once one was surveyed.

    A database that cannot be followed does not stop the others; it is retried every minute. A refused login ends all of
    them: another attempt may lock the account.

    Args:
        databases: The databases.
        seconds: How long; None: until interrupted.
        progress: Receives the progress of snapshots.
        watch: Called after every attempt.
        merge: Update current tables, too.
        require_tables: A database without captured tables cannot be followed; otherwise tables may appear later.
        beside: Take snapshots in threads, while other tables stream (C22); otherwise ranges wait for them, as expected
            by a consumer that gets the records of a snapshot before all others.

    Raises:
        DataLostError: Tables lost changes, or the source no longer shows them.
        NotCaughtUpError: Tables failed too often, or they or their current tables still fail when the time is up.
        MssqlCdcError: No database can be followed, or one could not be followed when the time ran out.
    """
    with reported(databases, currents=merge) as saw:
        followers = _followers(
            databases, saw, progress=progress, merge=merge, require_tables=require_tables, beside=beside
        )
        _run_for(followers, None if seconds is None else time.monotonic() + seconds, watch)


def _followers(
    databases: Sequence[Database],
    saw: Saw,
    *,
    progress: ShowSnapshot | None,
    merge: bool,
    require_tables: bool,
    beside: bool,
) -> list[Follower]:
    return [
        Follower(
            database,
            progress=progress,
            merge=merge,
            slow=SlowWork(),
            chunks=IncrementalSnapshots(thread=GroupThread()),
            beside=SnapshotThread(database, progress) if beside else None,
            starts=True,
            require_tables=require_tables,
            persists=True,
            saw=partial(saw, database),
        )
        for database in databases
    ]


def _run_for(followers: Sequence[Follower], end: float | None, watch: Watch | None) -> None:
    """Take steps until the time is up or `watch` ends them; then raise what differs from the source."""
    ended = False
    try:
        _guard(followers, end)
        while not ended and (end is None or time.monotonic() < end):
            done = [_follow(follower) for follower in followers]
            ends = [watch is not None and watch(*one) for one in zip(followers, done, strict=True)]
            ended = bool(ends) and all(ends)
            idle = [one is None or one.idle or bool(one.failed) for one in done]
            broken = [follower.broken for follower in followers if follower.broken is not None]
            if followers and len(broken) == len(followers):
                raise max(broken, key=lambda error: error.exit_code)
            if all(idle) and not ended:
                _pause(followers)
    except BaseException:
        _close(followers, patience=0)
        raise
    _close(followers, patience=END_SECONDS)
    errors = [error for follower in followers for error in _finding(follower)]
    if errors:
        worst = max(errors, key=lambda error: error.exit_code)
        for error in errors:
            if error is not worst:
                followers[0].database.log(str(error))
        raise worst


def _finding(follower: Follower) -> Iterator[MssqlCdcError]:
    """What keeps the database from being followed, or how its lake differs from the source."""
    error = follower.broken or follower.failure
    if error is not None and not isinstance(error, FencedError):
        yield error
        return
    try:
        _raise_findings(follower, follower.failing, follower.outdated)
    except MssqlCdcError as found:
        yield found


def _pause(followers: Sequence[Follower]) -> None:
    """Wait, but no longer than until the first database that is reading chunks has read them."""
    first = next((one for one in followers if one.reads_chunks), followers[0])
    first.pause(min(follower.idle_seconds for follower in followers))


def _close(followers: Sequence[Follower], *, patience: float) -> None:
    """Close every follower; a failure to close one neither keeps the others open nor hides why the run ends."""
    for follower in followers:
        try:
            follower.close(patience=patience)
        except Exception as error:  # noqa: BLE001 (any: the next run repeats what was not ended)
            database = follower.database
            database.log(f"{database.catalog}: what ran in the background was not ended: {described(error)}")


def _guard(followers: Sequence[Follower], end: float | None) -> None:
    """Count the connector's tables as soon as its server answers; each database starts with its first attempt."""
    if not followers:
        return
    database = followers[0].database
    retries = Retries(database.connector.streaming)
    while True:
        try:
            guard_tables([follower.database for follower in followers])
        except SourceUnavailableError as error:
            if end is not None and time.monotonic() > end:
                raise
            wait = retries.wait_seconds(error, database.log)
            time.sleep(wait if end is None else max(min(wait, end - time.monotonic()), 0))
        else:
            return


def _follow(follower: Follower) -> Done | None:
    """Attempt one step of one database and return its result; the follower keeps its error."""
    try:
        return follower.attempt()
    except LoginRefusedError:
        raise
    except MssqlCdcError as error:
        require_uninterrupted()  # A signal ended a call to the driver: nothing is wrong with the source.
        follower.broken = error
        follower.postpone(LOOK_AGAIN.total_seconds())
        follower.database.log(f"{follower.database.catalog} is left out for a minute: {error}")
        return None


def catch_up(databases: Sequence[Database], *, timeout: float, progress: ShowSnapshot | None = None) -> None:
    """Follow each database until everything that is in its log now is in the change logs and current tables.

    The goal is what was captured when a log scan had passed E, the end of the log at the time of the call. It is
    reached when every streaming table has reached it, no incremental snapshot is due, and the current tables are at a
    complete cut that contains it. A database that cannot be followed does not stop the others; a refused login does.

    Args:
        databases: The databases.
        timeout: How many seconds one database may wait without getting closer to its goal.
        progress: Receives the progress of snapshots.

    Raises:
        SourceUnavailableError: Nothing has moved for that long; the message says what was missing.
        DataLostError: The tables in the message lost changes at the source.
        NotCaughtUpError: Tables failed too often.
        MssqlCdcError: One of the databases could not be followed.
    """
    errors: list[MssqlCdcError] = []
    with reported(databases) as saw:
        guard_tables(databases)
        for database in databases:
            patience = Patience(timeout, show=progress)
            follower = Follower(
                database, merge=False, progress=patience.progress, ready=True, saw=partial(saw, database)
            )
            try:
                start_database(database)
                _catch_up(follower, patience)
            except LoginRefusedError:
                raise
            except MssqlCdcError as error:
                errors.append(error)
                if len(databases) > 1:
                    database.log(f"{database.catalog}: {error}")
        if errors:
            raise max(errors, key=lambda error: error.exit_code)


def _catch_up(follower: Follower, patience: Patience) -> None:
    database = follower.database
    look(database)
    with database.session() as session:
        mark = session.mark()
    goal: Lsn | None = None
    why: str | None = None
    while True:
        if goal is None:
            with suppress(SourceUnavailableError):
                goal, why = goal_or_why(database, mark)
        done = follower.attempt()
        if done and _give_up(follower, done):
            continue
        # A range that begins past the goal is as good as a wait: a busy source gives no reason to wait.
        settled = isinstance(follower.decision, Wait | Range)
        reached = goal if done and goal and settled and has_reached(done.seen, goal, follower.hopeless) else None
        if done:
            patience.look(done, goal, follower.hopeless)
        if done and reached and _is_cut(done, reached) and not load(database).is_due:
            current, swept = _current(database, done)
            if current:
                break
            if swept:
                patience.moved()
        if isinstance(follower.decision, Wait) and follower.decision.alarm:
            raise SourceUnavailableError(f"Not caught up: {follower.decision.reason}")
        if patience.is_over(done):
            failed = [f"{table}: {error}" for table, error in follower.errors.items()]
            waits = _incremental_waits(database) if reached else None
            what = follower.failure or "; ".join(failed) or waits
            what = what or getattr(follower.decision, "reason", goal or mark.lsn)
            if goal is None and why and why not in str(what):
                what = f"capture to pass {mark.lsn}: {why}"
            raise SourceUnavailableError(
                f"Not caught up: no progress within {patience.seconds:g} s; still waiting for: {what}"
            )
        if done is None or done.idle:
            time.sleep(follower.idle_seconds)
    _raise_findings(follower)  # What fails in a range past the goal, and may be retried, is left to the next call.


def _incremental_waits(database: Database) -> str | None:
    """What a due incremental snapshot has not read yet, and why; None: there is nothing."""
    found = snapshot_status(database, database.offsets())
    tables = found.state.tables if load(database).is_due else ()
    settings = database.connector.snapshot.incremental
    limits = {"max.lag.seconds": settings.max_lag_s, "max.rows.per.second": settings.max_rows_per_second}
    held = [f"incremental.snapshot.{name} is {most}" for name, most in limits.items() if most]
    return "; ".join((*(f"{table}: {found.of(table)}" for table in tables), *held)) if tables else None


def _is_cut(done: Done, goal: Lsn) -> bool:
    """Whether a complete cut contains the goal, or there is nothing that a cut could contain."""
    cut = done.offsets.last_cut()
    return isinstance(done.decision, Wait) or (cut is not None and cut.to is not None and Lsn.parse(cut.to) >= goal)


def _give_up(follower: Follower, done: Done) -> bool:
    """Let complete cuts continue without the tables that cannot be read; return whether there were any.

    The next start tries them again. What was lost at the source is recorded as lost.
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
    return goal_or_why(database, mark)[0]


def goal_or_why(database: Database, mark: LogMark) -> tuple[Lsn | None, str | None]:
    """Return `goal_behind`; until then also what may hold capture back, if it is something other than the log."""
    with database.session() as session:
        return (session.captured(), None) if session.passed(mark) else (None, session.held_back())


def _current(database: Database, done: Done) -> tuple[bool, bool]:
    """Merge the current tables up to the last cut and run due sweeps.

    Returns:
        Whether nothing is left to do, and whether there was a sweep.
    """
    tables, history = done.seen.tables, done.seen.history
    merged = merge_now(database, tables, done.offsets, history)
    merged.raise_failure()
    swept = sweep_due(database, tables, done.offsets, history)
    Merged(errors=swept.errors).raise_failure()
    has_swept = swept.offsets is not done.offsets
    return not has_swept and not behind_cut(database, tables.values(), swept.offsets, history), has_swept


def _raise_findings(
    follower: Follower,
    failing: Mapping[TableId, MssqlCdcError] = MappingProxyType({}),
    outdated: Mapping[TableId, MssqlCdcError] = MappingProxyType({}),
) -> None:
    """Raise an error if the lake differs from the source although the loop has done everything it can.

    Args:
        follower: The database.
        failing: The tables that could not be read, besides those for which a retry would not help.
        outdated: Those whose current table could not be updated.

    Raises:
        DataLostError: Tables lost changes, or the source no longer shows them.
        NotCaughtUpError: Tables failed too often, or still fail.
        MssqlCdcError: A table cannot be read.
    """
    database = follower.database
    for gaps in open_gaps(database.layout, database.storage).values():
        for gap in gaps:
            database.log(f"not acknowledged: {gap.text}")
    if follower.seen is None or follower.offsets is None:
        return
    for table in without_key(follower.seen.tables.values(), follower.seen.history):
        database.log(
            f"{table} no longer has a usable key: its current table is no longer updated, its change log still is"
        )
    stand = standings(replace(follower.seen, offsets=follower.offsets))
    if stand.missing:
        raise DataLostError(loss_text(stand.missing, stand.absent))
    last = {table.text: str(error) for table, error in follower.errors.items()}
    failed = {table.text: str(error) for table, error in failing.items()}
    failed |= {name: f"{reason}: {last[name]}" if name in last else reason for name, reason in stand.failed.items()}
    failed |= {table.text: str(error) for table, error in follower.hopeless.items()}
    for table, error in outdated.items():
        failed.setdefault(table.text, f"the current table is not updated: {error}")
    if failed:
        names = "; ".join(f"{table}: {reason}" for table, reason in failed.items())
        error = next(iter(follower.hopeless.values()), None)
        kind = type(error) if error is not None else NotCaughtUpError
        raise kind(f"Tables failed and will be retried at the next start: {names}") from error
