"""Executes the planner's decisions: the single interpreter that the command line, Dagster and the tests use.

There is one function per decision; each returns a `Done`. The caller decides how to show it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.range import RangeResult, capture_range
from mssql_cdc.capture.snapshot.progress import Progress
from mssql_cdc.capture.snapshot.take import SnapshotResult, capture_snapshot
from mssql_cdc.capture.snapshot_extensions import tell_end
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.errors import MssqlCdcError, SourceRestoredError
from mssql_cdc.follow.added_columns import request_added_columns
from mssql_cdc.follow.capture_instances import tell_read_instances
from mssql_cdc.follow.current import Merged, merge_due, merge_now
from mssql_cdc.follow.incremental import Advanced, IncrementalSnapshots
from mssql_cdc.follow.signal_actions import run_actions
from mssql_cdc.follow.signals import take_signals
from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.follow.sweeps import sweep_due
from mssql_cdc.follow.transactions import Counted, count_transactions
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.plan.decisions import RESTORED_ADVICE, Decision, Lost, Merge, Range, Restored, Snapshot, Wait
from mssql_cdc.run.loss import begin_epoch, write_loss, write_restore
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class Done:
    """The result of an executed decision.

    Attributes:
        decision: The decision.
        seen: The survey on which the decision is based.
        offsets: The offsets afterwards.
        range: The result of a range, including the tables that failed.
        snapshot: The result of a snapshot, including the tables that failed.
        merged: The current tables that were updated, and those whose merge failed.
        transactions: The transactions that were written to `_transactions`.
        signals: A line about each signal that took effect.
        gaps: The tables whose loss was recorded in the ledger by this step.
        chunks: What was done for the incremental snapshots; None: this step does not handle them.
        error: The error that the caller must raise after it has shown the rest.
    """

    decision: Decision
    seen: Survey
    offsets: Offsets
    range: RangeResult | None = None
    snapshot: SnapshotResult | None = None
    merged: Merged = field(default_factory=Merged)
    transactions: Counted = field(default_factory=Counted)
    signals: tuple[str, ...] = ()
    gaps: tuple[TableId, ...] = ()
    chunks: Advanced | None = None
    error: MssqlCdcError | None = None

    @property
    def history(self) -> SchemaHistory:
        """The schema history afterwards."""
        return self.range.history if self.range is not None else self.seen.history

    @property
    def idle(self) -> bool:
        """Whether nothing was done, so that the next survey may wait."""
        if self.chunks is not None and self.chunks.moved:
            return False
        return isinstance(self.decision, Wait) or (isinstance(self.decision, Merge) and not self.merged.tables)

    @property
    def failed(self) -> dict[TableId, MssqlCdcError]:
        """The tables that a range or a snapshot could not read, with their errors."""
        found = dict(self.snapshot.failed) if self.snapshot is not None else {}
        return found | (self.range.failed if self.range is not None else {})

    def raise_failure(self) -> None:
        """Raise an error that makes it pointless to continue.

        These are a range that read no table, a failed snapshot, and a restored source.
        """
        if self.error is not None:
            raise self.error
        if self.snapshot is not None:
            self.snapshot.raise_failure()
        if self.range is not None and self.range.failed and len(self.range.failed) == len(self.range.tables):
            self.range.raise_failure()


def execute(
    database: Database,
    seen: Survey,
    decision: Decision,
    *,
    merge: bool = True,
    progress: Callable[[Progress], None] | None = None,
    slow: SlowWork | None = None,
    chunks: IncrementalSnapshots | None = None,
) -> Done:
    """Execute the decision.

    Args:
        database: The database to read from and write to.
        seen: The survey on which the decision is based.
        decision: The decision.
        merge: Update current tables and run due sweeps after a range; otherwise the caller does so later.
        progress: Called with the progress of a snapshot.
        slow: Does the slow work on current tables, such as structure changes and sweeps; by default, this call waits
            for it.
        chunks: The incremental snapshots, which advance alongside ranges; None: they are not advanced here.

    Raises:
        SourceUnavailableError, SourceError: The source could not be queried; everything committed so far stays.
        FencedError: Another run wrote in the meantime; nothing is written twice.
    """
    match decision:
        case Wait():
            done = Done(decision, seen, seen.offsets)
            return _advanced(database, _swept(database, done, slow) if merge and slow is not None else done, chunks)
        case Range():
            return _advanced(database, _range(database, seen, decision, merge=merge, slow=slow), chunks)
        case Snapshot():
            try:
                result = capture_snapshot(database, seen, decision, progress=progress)
            except MssqlCdcError:
                tell_end(database, completed=False)
                raise
            tell_end(database, completed=result.completed)
            return Done(decision, seen, seen.offsets, snapshot=result)
        case Merge():
            return _advanced(database, _merge(database, seen, decision, slow), chunks)
        case Lost():
            return Done(decision, seen, write_loss(database, seen, decision), gaps=decision.tables)
        case Restored():
            return _restored(database, seen, decision)


def take_own_signals(database: Database, seen: Survey, offsets: Offsets) -> list[str]:
    """Run `take_signals` on the captured signal table; if it cannot be captured now, its signals wait.

    Args:
        database: The database.
        seen: The survey.
        offsets: The offsets, which may be newer.
    """
    # If another table has taken the name of an absent one, that other table is the signal table.
    absent = [one.table for one in seen.facts.absent if one.former is None]
    return take_signals(database, seen.tables, offsets, absent=absent)


def refresh_current(database: Database, seen: Survey | None = None) -> Merged:
    """Merge every current table up to the last complete cut, due or not; Spark starts only if one is behind.

    Args:
        database: The database.
        seen: A whole survey of it; None: one is taken now.
    """
    seen = seen or survey(database)
    return execute(database, seen, Merge(seen.facts.behind, seen.facts.cut_number, "a refresh")).merged


def _range(database: Database, seen: Survey, decision: Range, *, merge: bool, slow: SlowWork | None) -> Done:
    """Read the range, then process what complete cuts contain; each step is idempotent (A6)."""
    request_added_columns(database, seen, decision)
    result = capture_range(database, seen, decision)
    signals = take_own_signals(database, seen, result.offsets)
    if signals:
        signals += run_actions(database)
    for line in signals:
        database.log(line)
    tell_read_instances(database, seen.tables, result.offsets)
    transactions = count_transactions(database, result.offsets, seen.tables.values(), result.history)
    done = Done(decision, seen, result.offsets, range=result, transactions=transactions, signals=tuple(signals))
    return _followed(database, done, slow) if merge else done


def _followed(database: Database, done: Done, slow: SlowWork | None) -> Done:
    merged = merge_due(database, done.seen.tables, done.offsets, done.history, slow=slow)
    return _swept(database, replace(done, merged=merged), slow)


def _swept(database: Database, done: Done, slow: SlowWork | None) -> Done:
    swept = sweep_due(database, done.seen.tables, done.offsets, done.history, slow=slow)
    merged = Merged(done.merged.tables, {**done.merged.errors, **swept.errors})
    return replace(done, merged=merged, offsets=swept.offsets)


def _merge(database: Database, seen: Survey, decision: Merge, slow: SlowWork | None) -> Done:
    merged = merge_now(database, seen.tables, seen.offsets, seen.history, only=decision.tables, slow=slow)
    return _swept(database, Done(decision, seen, seen.offsets, merged=merged), slow)


def _advanced(database: Database, done: Done, chunks: IncrementalSnapshots | None) -> Done:
    """Let the incremental snapshots take a step after what was done."""
    if chunks is None:
        return done
    advanced = chunks.advance(database, done.seen, done.offsets, done.history)
    return replace(done, chunks=advanced, offsets=advanced.offsets)


def _restored(database: Database, seen: Survey, decision: Restored) -> Done:
    if decision.automatic:
        offsets = begin_epoch(database, seen, by=None)
        return Done(decision, seen, offsets, gaps=tuple(m.table for m in seen.facts.members if m.position))
    gaps = tuple(write_restore(database, seen))
    error = SourceRestoredError(f"{decision.reason}. {RESTORED_ADVICE}")
    return Done(decision, seen, seen.offsets, gaps=gaps, error=error)
