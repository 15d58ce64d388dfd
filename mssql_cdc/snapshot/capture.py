"""Carries a snapshot out (case B of correctness C): groups of chunks, each one Spark job and a commit per table.

A snapshot that was interrupted goes on where its commits say (rule A6). While it runs its tables have the status
`snapshot` in `_offsets`; all others stream on (rule C22). A table without a key is read whole under a lock (C21).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa

from mssql_cdc.capture.context import Database
from mssql_cdc.capture.marks import mark_to
from mssql_cdc.capture.tables import SNAPSHOT, Member, load_members, prepared, versioned
from mssql_cdc.capture.tasks import WriteTask, Written, write
from mssql_cdc.errors import DataLostError, MssqlCdcError, SourceError
from mssql_cdc.lake.history import load_history
from mssql_cdc.lake.log import TableState, commit, facts_of
from mssql_cdc.lake.offsets import Entry, OffsetRow, Offsets, append_offsets, load_offsets
from mssql_cdc.lake.small_tables import SmallTable
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.snapshot.notify import Notifier
from mssql_cdc.snapshot.plan import (
    Chunk,
    Ended,
    GroupDone,
    Reread,
    SnapshotPlan,
    TablePlan,
    conclude,
    low_mark,
    next_group,
    remaining,
)
from mssql_cdc.source.sqlserver.log_end import LogMark
from mssql_cdc.source.sqlserver.positions import require_minimum
from mssql_cdc.source.sqlserver.snapshot_reader import locked
from mssql_cdc.source.sqlserver.source import SqlServerSession
from mssql_cdc.spark.tasks import run_tasks

CHUNK_ROWS = 200_000
GROUP_CHUNKS = 8
_PLANS = pa.schema([pa.field("_batch", pa.int64()), pa.field("id", pa.string()), pa.field("plan", pa.string())])


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a snapshot has come; `stop` asks the caller's function whether to end after this group."""

    chunks_done: int
    chunks: int
    rows: int


@dataclass(frozen=True, slots=True)
class SnapshotResult:
    """What a snapshot did: rows per table, and the tables that failed with their errors (they keep the status)."""

    id: str
    rows: Mapping[TableId, int]
    failed: Mapping[TableId, MssqlCdcError]

    def raise_failure(self) -> None:
        """Raise the first table's error."""
        for table, error in self.failed.items():
            raise type(error)(f"snapshot of {table}: {error}") from error


@dataclass
class _Run:
    """One run at a snapshot: what was loaded, and what has been done so far."""

    database: Database
    session: SqlServerSession
    plan: SnapshotPlan
    members: dict[TableId, Member]
    schemas: dict[TableId, TableSchema]
    states: dict[TableId, TableState]
    done: dict[TableId, list[GroupDone]]
    epoch: int
    offsets: Offsets
    notifier: Notifier
    rows: dict[TableId, int]
    failed: dict[TableId, MssqlCdcError]
    read_at: dict[TableId, datetime]


def take_positions(database: Database, tables: Collection[TableId], *, id_: str, epoch: int = 0) -> Offsets:
    """Let these tables stream from now on without reading their rows (snapshot modes without data, SNP-05)."""
    with database.session() as session:
        captured = session.captured()
        members, offsets = _members(database, session)
    entries = {}
    for table in tables:
        member = members[table]
        start = member.captured.newest.start_lsn
        to = low_mark(captured, start) if captured else start
        entries[table.text] = member.new_entry(status="streaming", to=to.text, epoch=epoch)
    row = OffsetRow(
        kind="snapshot",
        at=datetime.now(UTC),
        tables=entries,
        epoch=epoch,
        partition=id_,
        run_id=database.run_id,
        facts=json.dumps({"snapshot": id_, "data": False}),
    )
    after = append_offsets(database.layout, row, seen=offsets, storage=database.storage)
    versioned(database, {t: (members[t].captured.newest, members[t].incarnation) for t in tables})
    return after


def capture(
    database: Database,
    tables: Collection[TableId],
    *,
    id_: str,
    epoch: int = 0,
    signal: str | None = None,
    chunk_rows: int | None = None,
    group_chunks: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> SnapshotResult:
    """Begin the snapshot, or go on with it, until every table is read or has failed.

    Raises:
        SourceUnavailableError, SourceError: the source could not be asked; what was committed stays.
        FencedError: another run holds these tables.
    """
    with database.session() as session:
        run = _begin(database, session, tables, id_, epoch, signal, chunk_rows or CHUNK_ROWS)
        try:
            _read_locked_tables(run)
            _read_groups(run, group_chunks or GROUP_CHUNKS, progress)
        finally:
            run.notifier.flush()
    return SnapshotResult(id_, run.rows, run.failed)


# -- Begin or resume -------------------------------------------------------------------------------------------


def _begin(
    database: Database,
    session: SqlServerSession,
    tables: Collection[TableId],
    id_: str,
    epoch: int,
    signal: str | None,
    chunk_rows: int,
) -> _Run:
    members, offsets = _members(database, session)
    missing = [table.text for table in tables if table not in members]
    if missing:
        raise DataLostError(f"CDC is no longer enabled on {', '.join(missing)}, which snapshot {id_} was to read")
    plan = _load_plan(database, id_)
    fresh = plan is None
    if plan is None:
        plan = _new_plan(database, session, tables, members, id_, signal, chunk_rows)
    chosen = {t.table: members[t.table] for t in plan.tables if t.table in tables}
    open_ = {table: m for table, m in chosen.items() if not _holds(m.entry, offsets, id_)}
    if open_:
        offsets = _write_status(database, plan, open_, offsets, epoch)
        members, offsets = _members(database, session)
        chosen = {table: members[table] for table in chosen}
    schemas = versioned(database, {t: (m.captured.newest, m.incarnation) for t, m in chosen.items()})
    states = {t: prepared(database, m, schemas[t], SNAPSHOT) for t, m in chosen.items()}
    notifier = Notifier(database, plan.signal or None, [t.text for t in chosen])
    if fresh:
        notifier.started()
    now = session.server_time()
    return _Run(
        database,
        session,
        replace(plan, tables=tuple(t for t in plan.tables if t.table in chosen)),
        chosen,
        schemas,
        states,
        {t: groups_done(state, id_) for t, state in states.items()},
        epoch,
        offsets,
        notifier,
        dict.fromkeys(chosen, 0),
        {},
        dict.fromkeys(chosen, now),
    )


def _members(database: Database, session: SqlServerSession) -> tuple[dict[TableId, Member], Offsets]:
    offsets = load_offsets(database.layout, database.storage)
    history = load_history(database.layout, database.storage)
    return load_members(database, session.tables(), offsets, history), offsets


def _new_plan(
    database: Database,
    session: SqlServerSession,
    tables: Collection[TableId],
    members: Mapping[TableId, Member],
    id_: str,
    signal: str | None,
    chunk_rows: int,
) -> SnapshotPlan:
    """Plan all chunks once and keep them, so that a chunk's number means the same after a restart."""
    captured = session.captured()
    if captured is None:
        raise DataLostError("No capture instance exists any more; nothing can be read")
    settings = database.connector.snapshot
    plans = []
    for table in [t for t in members if t in tables]:
        member = members[table]
        schema = member.captured.newest.schema
        select = settings.statement_for(table.catalog or "", table.schema, table.name)
        keyless = not schema.key_columns
        chunks = (Chunk(0),) if keyless or select else tuple(session.plan_chunks(schema, chunk_rows))
        plans.append(
            TablePlan(
                table,
                chunks,
                low_mark(captured, member.captured.newest.start_lsn),
                None if member.recreated else _held(member),
                select,
                keyless,
                again=member.entry is not None,
            )
        )
    store = _plan_store(database)
    state = store.state()
    plan = SnapshotPlan(id_, state.batch + 1, tuple(plans), signal)
    store.append(state, [{"id": id_, "plan": plan.to_json()}], {"kind": "plan", "run_id": database.run_id})
    return plan


def _held(member: Member) -> Lsn | None:
    """Where the table's stream stands (P); None for a table that never streamed, or whose changes were lost."""
    if member.entry is None or member.entry.status == "lost":
        return None
    reached = max(filter(None, (member.own(), member.entry.reached)), default=None)
    return Lsn.parse(reached.to) if reached else None


def _holds(entry: Entry | None, offsets: Offsets, id_: str) -> bool:
    """Whether the table already is in this very snapshot."""
    if entry is None or entry.status != "snapshot":
        return False
    rows = [row for row in offsets.rows if row.kind == "snapshot" and entry in row.tables.values()]
    return bool(rows) and rows[-1].partition == id_


def _write_status(
    database: Database, plan: SnapshotPlan, members: Mapping[TableId, Member], offsets: Offsets, epoch: int
) -> Offsets:
    entries = {}
    for table, member in members.items():
        held = plan.of(table).held
        entries[table.text] = member.new_entry(status="snapshot", to=held.text if held else None, epoch=epoch)
    row = OffsetRow(
        kind="snapshot",
        at=datetime.now(UTC),
        tables=entries,
        epoch=epoch,
        partition=plan.id,
        run_id=database.run_id,
        facts=json.dumps({"snapshot": plan.id, "number": plan.number, "signal": plan.signal}),
    )
    return append_offsets(database.layout, row, seen=offsets, storage=database.storage)


def _plan_store(database: Database) -> SmallTable:
    layout = database.layout
    return SmallTable(layout.own("snapshots"), layout.own_app_id("snapshots"), _PLANS, database.storage)


def _load_plan(database: Database, id_: str) -> SnapshotPlan | None:
    found = [row for row in _plan_store(database).rows() if row["id"] == id_]
    return SnapshotPlan.from_json(found[-1]["plan"]) if found else None


def groups_done(state: TableState, snapshot: str) -> list[GroupDone]:
    """What a table's commits say about a snapshot (rule A6): the cursor is in the same commit as the rows."""
    found = []
    for entry in state.table.history():
        facts = facts_of(entry)
        if facts and facts.get("snapshot") == snapshot and "chunks" in facts:
            found.append(GroupDone(tuple(facts["chunks"]), Lsn.parse(facts["low"])))
    return found


# -- Reading ---------------------------------------------------------------------------------------------------


def _read_groups(run: _Run, group_chunks: int, progress: Callable[[Progress], None] | None) -> None:
    """Group after group until every table has ended or failed."""
    while True:
        minima = run.session.minima()
        left = {}
        for table_plan in run.plan.tables:
            table = table_plan.table
            if table in run.failed or table not in run.members:
                continue
            instance = run.members[table].captured.newest.name
            try:
                minimum = require_minimum(instance, minima.get(instance))
            except SourceError as error:
                # Without it every chunk would count as cleaned up, and be read again for ever.
                _fail(run, table, error)
                continue
            unread = remaining(table_plan, run.done[table], minimum)
            if not unread:
                _end_table(run, table_plan, minimum)
            else:
                left[table] = unread
        group = [(t, c) for t, c in next_group(run.plan, left, group_chunks) if not run.plan.of(t).locked]
        if not group:
            return
        captured = run.session.captured()
        assert captured is not None  # a capture instance exists
        _read_group(run, group, captured)
        if progress is not None:
            progress(_progress(run))


def _read_group(run: _Run, group: list[tuple[TableId, Chunk]], captured: Lsn) -> None:
    """Read the chunks in one job and make one commit per table; L was taken before (rule C18, case B)."""
    lows = {t: low_mark(captured, run.members[t].captured.newest.start_lsn) for t, _ in group}
    tasks = [_task(run, table, chunk, position=lows[table], captured=lows[table]) for table, chunk in group]
    results = run_tasks(run.database.spark(), tasks, write)
    for table in dict.fromkeys(t for t, _ in group):
        own = [(c, r) for (t, c), r in zip(group, results, strict=True) if t == table]
        try:
            written = Written.joined(Written.from_value(result.unwrap()) for _, result in own)
            _commit(run, table, [chunk.number for chunk, _ in own], lows[table], written)
        except MssqlCdcError as error:
            _fail(run, table, error)


def _read_locked_tables(run: _Run) -> None:
    """Tables without a key, each whole and under a shared lock: its rows are exact at the log's end E."""
    for table_plan in run.plan.tables:
        if not table_plan.locked or run.done[table_plan.table]:
            continue
        table, schema = table_plan.table, run.schemas[table_plan.table]
        settings = run.database.connector
        spark = run.database.spark()  # Before the lock: writers would wait for Spark to start.
        try:
            with ExitStack() as stack:
                holder = stack.enter_context(
                    locked(settings.connection, run.database.catalog, [schema], settings.snapshot.lock_timeout_ms)
                )
                end = run.session.mark().lsn
                task = _task(run, table, Chunk(0), position=end, captured=None)
                result = run_tasks(spark, [task], write)[0]
                # A lost connection is a lost lock: what was read without it must not be committed.
                holder.value("SELECT @@TRANCOUNT", doing=f"making sure that {table} is still locked")
            _commit(run, table, [0], end, Written.from_value(result.unwrap()))
        except MssqlCdcError as error:
            _fail(run, table, error)


def _task(run: _Run, table: TableId, chunk: Chunk, *, position: Lsn, captured: Lsn | None) -> WriteTask:
    state, schema = run.states[table], run.schemas[table]
    reader = run.database.source.chunk_reader(
        run.database.catalog,
        schema,
        chunk,
        snapshot_number=run.plan.number,
        epoch=run.epoch,
        position=position,
        captured=captured,
        commit_lsn=run.plan.of(table).begun,
        read_at=run.read_at[table],
        under_lock=captured is None,
    )
    return WriteTask(reader, schema, state.target, state.batch + 1, run.database.connector, str(run.plan.number))


def _commit(run: _Run, table: TableId, chunks: list[int], low: Lsn, written: Written) -> None:
    run.states[table] = commit(
        run.states[table],
        written.files,
        {
            "kind": "snapshot",
            "snapshot": run.plan.id,
            "number": run.plan.number,
            "chunks": chunks,
            "low": low.text,
            "epoch": run.epoch,
            "partition": run.plan.id,
            "run_id": run.database.run_id,
            "operations": dict(written.operations),
        },
        spark=run.database.spark,
    )
    run.done[table].append(GroupDone(tuple(chunks), low))
    run.rows[table] += written.rows
    run.notifier.in_progress(table.text)
    total = len(run.plan.of(table).chunks)
    read = len({number for group in run.done[table] for number in group.chunks})
    run.database.log(f"snapshot of {table}: {run.rows[table]} rows, {read} of {total} chunks")


def _fail(run: _Run, table: TableId, error: MssqlCdcError) -> None:
    run.failed[table] = error
    run.notifier.scanned(table.text, None)
    run.database.log(f"snapshot of {table} failed: {error}")


def _progress(run: _Run) -> Progress:
    done = sum(len({n for group in groups for n in group.chunks}) for groups in run.done.values())
    return Progress(done, sum(len(t.chunks) for t in run.plan.tables), sum(run.rows.values()))


# -- The end of a table ----------------------------------------------------------------------------------------


def _end_table(run: _Run, table_plan: TablePlan, minimum: Lsn | None) -> None:
    """Take E, then let the table stream from min(P, all L); its current table stays closed until E is passed."""
    table = table_plan.table
    outcome = conclude(table_plan, run.done[table], minimum)
    if isinstance(outcome, Reread):
        return
    mark = run.session.mark()
    run.offsets = _write_end(run, table, outcome, mark)
    run.notifier.scanned(table.text, run.rows[table])
    del run.members[table]
    if not run.members:
        run.notifier.completed()


def _write_end(run: _Run, table: TableId, ended: Ended, mark: LogMark) -> Offsets:
    member, state = run.members[table], run.states[table]
    entry = member.new_entry(
        status="streaming",
        to=ended.position.text,
        epoch=run.epoch,
        rows=run.rows[table],
        delta_table_id=state.table_id,
        delta_version=state.delta_version,
        batch=state.batch,
    )
    table_plan = run.plan.of(table)
    sweep = {"low": table_plan.begun.text, "number": run.plan.number}
    wanted = table_plan.again and not table_plan.select and not table_plan.locked
    facts = {
        "snapshot": run.plan.id,
        "number": run.plan.number,
        "signal": run.plan.signal,
        "closed": {table.text: mark_to(mark)},
        "sweep": {table.text: sweep} if wanted else {},
        "gap": ended.gap,
    }
    row = OffsetRow(
        kind="snapshot",
        at=datetime.now(UTC),
        tables={table.text: entry},
        epoch=run.epoch,
        partition=run.plan.id,
        run_id=run.database.run_id,
        facts=json.dumps(facts),
    )
    # Written against the newest offsets: only this table's own entry must be as this run left it.
    return append_offsets(run.database.layout, row, seen=run.offsets, storage=run.database.storage)
