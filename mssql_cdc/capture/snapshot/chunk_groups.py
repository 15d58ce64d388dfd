"""Reads a snapshot: groups of chunks, each with one Spark job and one commit per table; some tables whole.

The bounds of a group's chunks are found just before it is read, and kept by its commit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from time import monotonic

from mssql_cdc.capture.sealing import Seal
from mssql_cdc.capture.snapshot.chunk_commits import chunk_facts
from mssql_cdc.capture.snapshot.chunk_plan import GroupDone, low_mark, next_group, remaining
from mssql_cdc.capture.snapshot.delays import wait_to_stream
from mssql_cdc.capture.snapshot.finish import end_table, obey, require_history
from mssql_cdc.capture.snapshot.progress import Run, fail, table_progress
from mssql_cdc.capture.write_task import WriteTask, Written, write
from mssql_cdc.errors import ConfigurationError, MssqlCdcError, SourceError
from mssql_cdc.lake.log import commit
from mssql_cdc.lake.steps import witness_text
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId
from mssql_cdc.source.protocol import ChunkRead
from mssql_cdc.source.values import Chunk
from mssql_cdc.spark.lazy import is_ready
from mssql_cdc.spark.tasks import TaskResult, run_here, run_tasks

FIRST_CHUNKS = 2
"""Chunks in a group that this process reads because Spark is still starting, which takes six seconds."""


def read_groups(run: Run, group_chunks: int, show: Callable[[], None]) -> None:
    """Read group after group until every table has ended, was stopped or has failed, or the snapshot is paused.

    Args:
        run: The run of the snapshot.
        group_chunks: The number of chunks per group.
        show: Shows the progress, after each group and when tables end.
    """
    while True:
        obey(run)
        minima, tables = run.session.minima(), len(run.tables)
        left: dict[TableId, tuple[Chunk, ...]] = {}
        lowest: dict[TableId, Lsn] = {}
        for table_plan in run.plan.tables:
            table = table_plan.table
            if table in run.failed or table not in run.tables:
                continue
            minimum = _minimum(run, table, minima)
            if minimum is None:
                continue
            unread = remaining(table_plan, run.done[table], minimum)
            if not unread and table_plan.is_whole:
                shown = (minima.get(instance.name) for instance in run.tables[table].captured.instances)
                wait_to_stream(run, table)
                end_table(run, table_plan, minimum, min(one for one in (minimum, *shown) if one))
            elif not table_plan.locked:
                left[table], lowest[table] = unread, minimum
        if len(run.tables) < tables:
            show()
        if not left or run.paused:
            return
        here = run.is_little or not is_ready(run.database.spark)
        size = group_chunks if run.is_little or not here else min(FIRST_CHUNKS, group_chunks)
        planned = next_group(run.plan, left, size, expected=run.expected, further=partial(_further, run))
        group = [(table, chunk) for table, chunk in planned if table not in run.failed]
        if not group:
            continue
        captured = _captured(run)
        _read_group(run, group, {t: low_mark(captured, lowest[t]) for t, _ in group}, here=here)
        show()


def _captured(run: Run) -> Lsn:
    """What is captured before rows are read, in the history from which the earlier rows were read (A7)."""
    captured = run.session.captured()
    assert captured is not None  # a capture instance exists
    witness = run.session.witness(captured)
    require_history(run)
    run.witness = witness
    return captured


def _positions(run: Run, seen: Mapping[TableId, Lsn]) -> dict[TableId, Lsn]:
    """L of each table: what was captured before, or the position that its stream had reached, if that is later.

    On an idle log, streams are beyond the newest transaction (A8), and rows of an incremental snapshot or a repair have
    that position: rows that are read now are newer, even if the stream does not continue there. A primary shows what
    was committed below it.

    Args:
        run: The run of the snapshot.
        seen: What was captured before, by table (`low_mark`).
    """
    plans = {table: run.plan.of(table) for table in seen}
    reached = {table: plan.reached or plan.held for table, plan in plans.items()}
    later = {table: at for table, at in reached.items() if at is not None and at > seen[table]}
    return {**seen, **later} if later and run.session.is_primary() else dict(seen)


def fail_refused(run: Run) -> None:
    """Fail the tables whose filter does more than filter, as the server would; the others are read (BLK-06).

    Args:
        run: The run of the snapshot.
    """
    for one in run.plan.tables:
        if one.refused is not None and one.table in run.tables:
            fail(run, one.table, ConfigurationError(one.refused))


def _minimum(run: Run, table: TableId, minima: Mapping[str, Lsn | None]) -> Lsn | None:
    """The smallest LSN that the table's instance holds; None: it shows none, so the table failed.

    Without it, every chunk would count as cleaned up and be reread forever.
    """
    instance = run.tables[table].captured.newest.name
    try:
        return run.session.require_minimum(instance, minima.get(instance))
    except SourceError as error:
        fail(run, table, error)
        return None


def _further(run: Run, table: TableId) -> Chunk | None:
    """Plan the next chunk of a table; None: there is none, or the table has failed."""
    table_plan = run.plan.of(table)
    if table_plan.is_whole or table in run.failed:
        return None
    last = table_plan.chunks[-1].upper if table_plan.chunks else None
    try:
        upper = run.session.next_bound(run.schemas[table], run.chunk_rows, last, under_lock=run.lock is not None)
    except MssqlCdcError as error:
        fail(run, table, error)
        return None
    table_plan = table_plan.further(upper)
    run.plan = run.plan.having(table_plan)
    return table_plan.chunks[-1]


@contextmanager
def locked_if_exclusive(run: Run) -> Generator[None]:
    """Keep writers out of every table that is read in chunks, if `snapshot.isolation.mode=exclusive` requires it.

    Marks and positions are still those of case B, so that a lost lock costs a group but no row.
    """
    wanted = [run.schemas[t.table] for t in run.plan.tables if not t.locked and t.table in run.tables]
    if run.database.connector.snapshot.isolation != "exclusive" or not wanted:
        yield
        return
    if not run.is_little:
        run.database.spark()  # Before the lock: writers would wait for Spark to start.
    with run.database.source.locked(run.database.catalog, wanted) as run.lock:
        yield


def _read_group(run: Run, group: Sequence[tuple[TableId, Chunk]], lows: Mapping[TableId, Lsn], *, here: bool) -> None:
    """Read the chunks, in this process or in one job, and make one commit per table; L was taken before (rule C18)."""
    _begin_tables(run, [table for table, _ in group])
    locked, positions = run.lock is not None, _positions(run, lows)
    tasks = [
        _task(run, table, chunk, position=positions[table], captured=lows[table], under_lock=locked)
        for table, chunk in group
    ]
    results = _results(run, tasks, here=here)
    if run.lock is not None:
        run.lock.require_held("verifying that the snapshot's tables are still locked")
    for table in dict.fromkeys(t for t, _ in group):
        own = [(c, r) for (t, c), r in zip(group, results, strict=True) if t == table]
        try:
            written = Written.joined(Written.from_value(result.unwrap()) for _, result in own)
            _commit(run, table, [chunk for chunk, _ in own], positions[table], written)
        except MssqlCdcError as error:
            fail(run, table, error)


def read_locked_tables(run: Run, show: Callable[[], None], *, most: int | None = None) -> bool:
    """Read the tables without a key, each whole: its rows are exact at the log's end E.

    Tables that are not captured are read in the same way, since no change corrects what another moment shows (SNP-03).

    Args:
        run: The run of the snapshot.
        show: Shows the progress, after each table.
        most: Only tables for which the source estimates at most this many rows: others would wait for a large one.

    Returns:
        Whether there was a table to read.
    """
    minima, found = run.session.minima(), False
    for table_plan in sorted(run.plan.tables, key=lambda one: run.expected.get(one.table, 0)):
        table = table_plan.table
        is_wanted = table_plan.locked and table in run.tables and table not in run.failed
        is_wanted &= most is None or run.expected.get(table, 0) <= most
        minimum = _minimum(run, table, minima) if is_wanted else None
        if minimum is None or not remaining(table_plan, run.done[table], minimum):
            continue
        obey(run)
        if table not in run.tables or (run.paused and not run.done[table]):
            continue
        (chunk,) = table_plan.chunks
        found = True
        _captured(run)
        _begin_tables(run, [table])
        try:
            end, result = _read_whole(run, table, chunk)
            _commit(run, table, [chunk], end, Written.from_value(result.unwrap()))
        except MssqlCdcError as error:
            fail(run, table, error)
        show()
    return found


def _read_whole(run: Run, table: TableId, chunk: Chunk) -> tuple[Lsn, TaskResult]:
    """Read a table as it is at the log's end E.

    A shared lock keeps writers out: until everything is read, or only until a transaction under SNAPSHOT isolation has
    begun, which continues to see this moment (case A of correctness C). Such a transaction belongs to this process,
    which takes E. Nothing has to match the rows of a table that is not captured: under SNAPSHOT isolation, it needs no
    lock at all.
    """
    database, isolated = run.database, run.database.connector.snapshot.isolation == "snapshot"
    if isolated and not run.tables[table].captured.newest.streams:
        end = run.session.mark().lsn
        task = _task(run, table, chunk, position=end, captured=None, under_lock=False)
        return end, _results(run, [task], here=run.is_little)[0]
    if not run.is_little and not isolated:
        database.spark()  # Before the lock; otherwise writers would wait for Spark to start.
    with ExitStack() as stack:
        lock = stack.enter_context(database.source.locked(database.catalog, [run.schemas[table]]))
        end = run.session.mark().lsn

        def unlock() -> None:
            # A lost connection is a lost lock: rows read without it must not be committed.
            lock.require_held(f"verifying that {table} is still locked")
            stack.close()

        begun = unlock if isolated else None
        task = _task(run, table, chunk, position=end, captured=None, under_lock=not isolated, begun=begun)
        (result,) = _results(run, [task], here=run.is_little or isolated)
        if not isolated:
            unlock()
    return end, result


def _begin_tables(run: Run, tables: Iterable[TableId]) -> None:
    """Notify that tables are about to be read, and note the time, which all rows of a table have (SNP-32)."""
    for table in dict.fromkeys(tables):
        run.notes.in_progress(table)
        if table not in run.read_at:
            run.read_at[table] = run.session.server_time()
    run.notes.flush()


def _results(run: Run, tasks: list[WriteTask], *, here: bool) -> list[TaskResult]:
    """Read the chunks, at most `snapshot.max.threads` at a time."""
    most = run.database.connector.snapshot.max_threads
    if here:
        return run_here(tasks, write, most=most)
    owners = [task.schema.table_id for task in tasks]
    return run_tasks(run.database.spark(), tasks, write, most=most, owners=owners)


def _task(
    run: Run,
    table: TableId,
    chunk: Chunk,
    *,
    position: Lsn,
    captured: Lsn | None,
    under_lock: bool,
    begun: Callable[[], None] | None = None,
) -> WriteTask:
    state, schema = run.states[table], run.schemas[table]
    wanted = ChunkRead(
        schema=schema,
        chunks=[chunk],
        snapshot_number=run.plan.number,
        epoch=run.epoch,
        position=position,
        captured=captured,
        commit_lsn=run.plan.of(table).begun,
        read_at=run.read_at[table],
        statement=run.plan.of(table).select,
        under_lock=under_lock,
        hidden=schema.hidden,
        begun=begun,
    )
    reader = run.database.source.chunk_reader(run.database.catalog, wanted)
    return WriteTask(reader, schema, state.target, state.batch + 1, run.database.connector, str(run.plan.number))


def _commit(run: Run, table: TableId, chunks: Sequence[Chunk], low: Lsn, written: Written) -> None:
    numbers, edition = tuple(chunk.number for chunk in chunks), run.plan.of(table).edition
    done = GroupDone(numbers, low, written.rows, run.read_at[table], tuple(chunks), edition)
    run.states[table] = commit(
        run.states[table],
        written.files,
        {
            "kind": "snapshot",
            "snapshot": run.plan.id,
            "number": run.plan.number,
            **chunk_facts(done, Seal(run.database.connector.delta.key_secret)),
            "epoch": run.epoch,
            "partition": run.plan.id,
            "read_at": run.read_at[table].isoformat(),
            "run_id": run.database.run_id,
            "operations": dict(written.operations),
            "witness": witness_text(run.witness),
        },
        spark=run.database.spark,
    )
    run.done[table].append(done)
    run.rows[table] += written.rows
    run.committed[table] = monotonic()
    own = table_progress(run, run.plan.of(table))
    run.database.log(f"snapshot of {table}: {run.rows[table]} rows, {own.chunks_text}")
