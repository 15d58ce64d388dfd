"""Starts a snapshot, or resumes it from its commits (rule A6): plan, status, states."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import SNAPSHOT, LakeTable, prepared, versioned
from mssql_cdc.capture.notifications import Notifier
from mssql_cdc.capture.snapshot.plan import GroupDone, SnapshotPlan, TablePlan, low_mark, plan_of_text, plan_text
from mssql_cdc.capture.snapshot.run import Run
from mssql_cdc.capture.survey import Survey
from mssql_cdc.errors import DataLostError
from mssql_cdc.lake.log import TableState, facts_of
from mssql_cdc.lake.offsets import Offsets, append_offsets
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import snapshot_begun
from mssql_cdc.lake.storage import storage_warning
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId
from mssql_cdc.source.protocol import SourceSession
from mssql_cdc.source.values import Chunk


@dataclass(frozen=True, slots=True)
class Wanted:
    """The request: these tables with this partition key; `filters` are SELECT statements that replace some tables.

    `signal` is the id of the signal that requested it. Only the run that starts the snapshot uses the request; later
    runs use the persisted plan.
    """

    id: str
    tables: Collection[TableId]
    chunk_rows: int
    epoch: int = 0
    signal: str | None = None
    filters: Mapping[TableId, str] = field(default_factory=dict)


def begin(database: Database, session: SourceSession, survey: Survey, wanted: Wanted) -> Run:
    """Prepare the run: create or load the plan, write the status, prepare the change logs.

    Args:
        database: The database to read from and write to.
        session: A session on the source.
        survey: The survey on which the decision is based; commits start from its states.
        wanted: The request.

    Raises:
        DataLostError: a table is no longer captured.
        FencedError: another run holds one of the tables.
    """
    missing = [table.text for table in wanted.tables if table not in survey.tables]
    if missing:
        raise DataLostError(f"CDC is no longer enabled on {', '.join(missing)}, which snapshot {wanted.id} was to read")
    plan = _load_plan(database, wanted.id)
    fresh = plan is None
    if plan is None:
        plan = _new_plan(database, session, survey, wanted)
    chosen = {t.table: survey.tables[t.table] for t in plan.tables if t.table in wanted.tables}
    offsets = survey.offsets
    begins = {table: t for table, t in chosen.items() if offsets.begun_snapshots.get(table.text) != wanted.id}
    if begins:
        offsets = _write_status(database, plan, begins, offsets, wanted.epoch)
        chosen = {table: replace(t, entry=offsets.entry(table.text)) for table, t in chosen.items()}
    structures = {table: (t.captured.newest, t.incarnation) for table, t in chosen.items()}
    schemas, _ = versioned(database, structures, survey.history)
    states = {t: prepared(database, m, schemas[t], SNAPSHOT) for t, m in chosen.items()}
    notifier = Notifier(database, plan.signal or None, [t.text for t in chosen])
    if fresh:
        notifier.started()
        warning = storage_warning(database.layout.warehouse)
        if warning:
            database.log(warning)
    return Run(
        database=database,
        session=session,
        plan=replace(plan, tables=tuple(t for t in plan.tables if t.table in chosen)),
        tables=chosen,
        schemas=schemas,
        states=states,
        done={t: groups_done(state, wanted.id) for t, state in states.items()},
        epoch=wanted.epoch,
        offsets=offsets,
        notifier=notifier,
        rows=dict.fromkeys(chosen, 0),
        read_at=dict.fromkeys(chosen, session.server_time()),
    )


def _new_plan(database: Database, session: SourceSession, survey: Survey, wanted: Wanted) -> SnapshotPlan:
    """Plan all chunks once and persist them, so that chunk numbers keep their meaning after a restart."""
    captured = session.captured()
    if captured is None:
        raise DataLostError("No capture instance exists any more; nothing can be read")
    settings = database.connector.snapshot
    plans = []
    for table in [t for t in survey.tables if t in wanted.tables]:
        member = survey.tables[table]
        schema = member.captured.newest.schema
        select = wanted.filters.get(table) or settings.statement_for(*table.parts)
        keyless = not schema.key_columns
        chunks = (Chunk(0),) if keyless or select else tuple(session.plan_chunks(schema, wanted.chunk_rows))
        plans.append(
            TablePlan(
                table,
                chunks,
                low_mark(captured, member.captured.newest.start_lsn),
                _held(member, wanted.epoch),
                select,
                keyless,
                again=member.entry is not None,
            )
        )
    store = small_table(database.layout, "snapshots", database.storage)
    state = store.state()
    plan = SnapshotPlan(wanted.id, state.batch + 1, tuple(plans), wanted.signal)
    store.append(state, [{"id": wanted.id, "plan": plan_text(plan)}], {"kind": "plan", "run_id": database.run_id})
    return plan


def _held(member: LakeTable, epoch: int) -> Lsn | None:
    """Return the position of the table's stream (P).

    None for a table that never streamed, whose changes were lost, that was re-created, or whose position belongs to an
    earlier epoch: streaming cannot continue from there.
    """
    if member.recreated or member.entry is None or member.entry.status == "lost":
        return None
    reached = member.reached(epoch)
    return Lsn.parse(reached.to) if reached else None


def _write_status(
    database: Database, plan: SnapshotPlan, members: Mapping[TableId, LakeTable], offsets: Offsets, epoch: int
) -> Offsets:
    entries = {}
    for table, member in members.items():
        held = plan.of(table).held
        entries[table.text] = member.new_entry(status="snapshot", to=held.text if held else None, epoch=epoch)
    begun = snapshot_begun(database.stamp(epoch), entries, snapshot=plan.id, number=plan.number, signal=plan.signal)
    return append_offsets(database.layout, begun, seen=offsets, storage=database.storage)


def _load_plan(database: Database, id_: str) -> SnapshotPlan | None:
    found = [row for row in small_table(database.layout, "snapshots", database.storage).rows() if row["id"] == id_]
    return plan_of_text(found[-1]["plan"]) if found else None


def groups_done(state: TableState, snapshot: str) -> list[GroupDone]:
    """Read a snapshot's progress from a table's commits (rule A6): the cursor is in the same commit as the rows."""
    found = []
    for entry in state.table.history():
        facts = facts_of(entry)
        if facts and facts.get("snapshot") == snapshot and "chunks" in facts:
            found.append(GroupDone(tuple(facts["chunks"]), Lsn.parse(facts["low"])))
    return found
