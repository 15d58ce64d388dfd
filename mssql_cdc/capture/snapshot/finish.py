"""The end of a table's snapshot: where its stream resumes, when its current table opens, what must be swept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mssql_cdc.capture.requests import INITIAL_ADVICE
from mssql_cdc.capture.snapshot.begin import marked
from mssql_cdc.capture.snapshot.chunk_plan import Ended, Reread, TablePlan, conclude
from mssql_cdc.capture.snapshot.progress import Run, require_held
from mssql_cdc.capture.snapshot_controls import load_controls
from mssql_cdc.errors import FencedError
from mssql_cdc.lake.gaps import Gap, bound_gaps, record_gaps
from mssql_cdc.lake.log import commit
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.steps import (
    CHANGES_WENT,
    OffsetRow,
    SnapshotEnded,
    SweepBound,
    signal_answered,
    snapshot_ended,
    status_changed,
    witness_text,
)
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import LogMark


def end_table(run: Run, table_plan: TablePlan, minimum: Lsn, oldest: Lsn) -> None:
    """Take E, then let the table stream from min(P, all L); its current table stays closed until E is passed.

    Args:
        run: The run of the snapshot.
        table_plan: The plan of the table, whose chunks are all read.
        minimum: The minimum LSN of the capture instance under which it was read.
        oldest: The smallest minimum of the table's capture instances.
    """
    table = table_plan.table
    outcome = conclude(table_plan, run.done[table], minimum, oldest)
    if isinstance(outcome, Reread):
        return
    if outcome.gap and table_plan.select is not None:
        # A part of the rows cannot replace changes that were removed: the next survey finds the loss (A9).
        _stop_table(run, table, by=CHANGES_WENT, why="changes that it was to continue from were removed")
        return
    _fence_groups(run, table, {"ended": True})
    mark = marked(run.database, run.session)
    require_history(run)
    _record_gap(run, table_plan, outcome)
    run.notes.scanned(table, run.rows[table])
    if set(run.tables) == {table} and not run.failed:
        run.notes.completed()
    run.notes.flush()  # Before the end: what a run that dies here has not sent, none would send.
    _write_end(run, table, outcome, mark)
    del run.tables[table]


def require_history(run: Run) -> None:
    """Require that the source still has the history that was read: groups of another would stay among the others (A7).

    Args:
        run: The run of the snapshot.

    Raises:
        SourceRestoredError: it was restored, or a failover lost transactions.
    """
    for begun in run.offsets.begun_marks:
        run.session.require_mark(begun)
    if run.witness is not None:
        run.session.require_witness(run.witness)


def obey(run: Run) -> None:
    """Apply control signals: give up the tables that are stopped, and note whether the rest is paused.

    Args:
        run: The run of the snapshot.
    """
    controls = load_controls(run.database)
    for table, signal in controls.stopped([one for one in run.tables if one not in run.failed], run.heard).items():
        plan = run.plan.of(table)
        if plan.held is None:
            _say_refused(run, table, f"signal {signal} does not stop {table}: {INITIAL_ADVICE}")
        elif plan.locked and run.done[table]:
            _say_refused(run, table, f"signal {signal} does not stop {table}: it was read whole already")
        else:
            _stop_table(run, table, by=signal, why=f"stopped by signal {signal}")
            run.stopped[table] = signal
    run.paused = controls.paused(run.heard)


def tell_paused(run: Run) -> None:
    """Report that the run ends because the snapshot is paused; if no table is left, it is complete."""
    left = [table for table in run.tables if table not in run.failed]
    if not run.paused or not left:
        run.paused = False
        return
    run.notes.paused()
    names = ", ".join(table.text for table in left)
    run.database.log(f"{run.plan.id} is paused: {names} wait; it continues after a resume-snapshot")


def _say_refused(run: Run, table: TableId, line: str) -> None:
    if table not in run.refused:
        run.refused.add(table)
        run.database.log(line)


def _stop_table(run: Run, table: TableId, *, by: str, why: str) -> None:
    """Give up a table: it continues to stream from P, as if its snapshot had not begun.

    The rows that were read stay. Each is exact with the changes after its low mark (C18), and P is not after any low
    mark, so the table is closed until the stream has passed E, as after a snapshot that was read to its end. What was
    not read is as the stream left it at P. Nothing is swept, since a row that was not read may exist.
    """
    require_history(run)
    member, groups, plan = run.tables[table], run.done[table], run.plan
    run.notes.stopped(table)
    run.notes.flush()
    _fence_groups(run, table, {"stopped": by})
    state = run.states[table]
    entry = member.new_entry(
        status="streaming",
        rows=run.rows[table],
        delta_table_id=state.table_id,
        delta_version=state.known_version,
        batch=state.batch,
    )
    if groups:
        entry = replace(entry, schema=run.schemas[table].version)
        low = min(group.low for group in groups).text
        ended = SnapshotEnded(
            table=table.text,
            snapshot=plan.id,
            number=plan.number,
            signal=plan.signal,
            mark=marked(run.database, run.session),
            low=low,
            stopped=by,
        )
        row = snapshot_ended(run.database.stamp(run.epoch), entry, ended, witness=run.witness)
    else:
        row = replace(status_changed(run.database.stamp(run.epoch), {table.text: entry}), witness=run.witness)
    _append(run, row)
    run.database.log(f"{table}: the snapshot ends after {run.rows[table]} rows: {why}; the table streams on")
    del run.tables[table]


def _fence_groups(run: Run, table: TableId, facts: Mapping[str, Any]) -> None:
    """Commit that no group follows, before E is taken: one that another run has begun to read would be after it (C18).

    To that run, other chunks may be unread: two runs had planned the same snapshot, or cleanup has continued since.
    """
    plan = run.plan.id
    known = {"kind": "snapshot", "snapshot": plan, "epoch": run.epoch, "partition": plan}
    known |= {"run_id": run.database.run_id, "operations": {}, "witness": witness_text(run.witness), **facts}
    run.states[table] = commit(run.states[table], [], known, spark=run.database.spark)


def give_back(run: Run) -> None:
    """Let tables whose requested snapshot cannot be read, and of which nothing was read, continue to stream (BLK-06).

    Another attempt would fail like this one, and meanwhile their changes would wait; the signal can be sent again. If
    no table could even be planned, no row names the signal, and it is answered here.
    """
    signal = run.plan.signal
    if signal is not None and run.failed and not run.tables and signal not in run.offsets.answered_signals:
        _append(run, signal_answered(run.database.stamp(run.epoch), snapshot=run.plan.id, signal=signal))
        names = ", ".join(sorted(table.text for table in run.failed))
        run.database.log(f"{names}: the requested snapshot is given up; send the signal again once it can be read")
    entries = {
        table.text: member.new_entry(status="streaming")
        for table, error in run.failed.items()
        if (member := run.tables.get(table)) is not None
        and run.plan.signal is not None
        and not error.retriable
        and not isinstance(error, FencedError)
        and run.plan.of(table).held is not None
        and not run.done.get(table)
    }
    if entries:
        for table in run.states.keys() & run.failed.keys():
            if table.text in entries:
                _fence_groups(run, table, {"given_back": True})
        _append(run, status_changed(run.database.stamp(run.epoch), entries))
        run.database.log(f"{', '.join(sorted(entries))}: the requested snapshot is given up, streaming continues")


def _record_gap(run: Run, table_plan: TablePlan, ended: Ended) -> None:
    """Record that changes after P were removed while the snapshot ran: its rows replace them, their history is lost.

    The gaps that were open until now end where the table streams again; a run that died here may have
    given them another end.
    """
    layout, storage, run_id = run.database.layout, run.database.storage, run.database.run_id
    table = table_plan.table.text
    streamed = run.tables[table_plan.table].furthest(run.offsets, run.epoch)
    bound_gaps(
        layout,
        run.offsets.names_of(table, run.tables[table_plan.table].captured.object_id),
        epoch=run.epoch,
        streamed=streamed,
        to=ended.position.text,
        run_id=run_id,
        is_own=lambda gap: run.tables[table_plan.table].has_gap(gap, run.offsets),
        storage=storage,
    )
    if not ended.gap or table_plan.held is None:
        return
    reason = (
        f"changes that {run.plan.id} was to continue from were removed, by CDC cleanup or with their capture instance; "
        "its rows replace them"
    )
    gap = Gap(table, run.epoch, table_plan.held.text, ended.position.text, reason)
    record_gaps(layout, [gap], run_id=run_id, storage=storage)
    run.database.log(gap.text)


def _write_end(run: Run, table: TableId, ended: Ended, mark: LogMark) -> None:
    member, state = run.tables[table], run.states[table]
    # A stream that continues before the snapshot's rows is in the instance from which it was read (B14).
    goes_on = member.entry if ended.position < ended.low else None
    instance = goes_on.instance if goes_on is not None else member.captured.newest.identity
    table_plan, version = run.plan.of(table), run.schemas[table].version
    # A part does not replace the other rows: they are as of the last read of the whole table.
    is_part = table_plan.select is not None and table_plan.held is not None
    filled = member.entry.filled if is_part and member.entry is not None else None
    entry = member.new_entry(
        status="streaming",
        to=ended.position.text,
        epoch=run.epoch,
        rows=run.rows[table],
        delta_table_id=state.table_id,
        delta_version=state.known_version,
        batch=state.batch,
        instance=instance,
        shown=goes_on.shown if goes_on is not None else member.shown,
        schema=version,
        filled=filled or version,
    )
    # Rows that a statement leaves out may exist; all rows of a table that never streamed are from such statements.
    again = table_plan.again or ended.again
    sweeps = again and not table_plan.locked and (table_plan.select is None or table_plan.held is None)
    facts = SnapshotEnded(
        table=table.text,
        snapshot=run.plan.id,
        number=run.plan.number,
        signal=run.plan.signal,
        mark=mark,
        low=ended.low.text,
        sweep=SweepBound(low=ended.low.text, number=run.plan.number) if sweeps else None,
        gap=ended.gap,
        chunk=ended.chunk,
    )
    _append(run, snapshot_ended(run.database.stamp(run.epoch), entry, facts, witness=run.witness))


def _append(run: Run, row: OffsetRow) -> None:
    """Append a row to the newest offsets, in which every table of the run must be as the run left it.

    Raises:
        FencedError: another run has taken over a table of the row, and nothing was written; or one of the run's other
            tables.
    """
    before = run.offsets
    run.offsets = append_offsets(run.database.layout, row, seen=before, storage=run.database.storage)
    require_held((one for table, one in run.tables.items() if table.text not in row.tables), before, run.offsets)
