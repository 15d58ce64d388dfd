"""Starts a snapshot, or resumes it from its commits (rule A6): plan, status, states."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import SNAPSHOT, LakeTable, prepared, versioned
from mssql_cdc.capture.sealing import Seal, require_sealed
from mssql_cdc.capture.snapshot.chunk_commits import groups_done
from mssql_cdc.capture.snapshot.chunk_plan import SnapshotPlan, TablePlan, low_mark, plan_of_text, plan_text, resumed
from mssql_cdc.capture.snapshot.notes import SnapshotNotes
from mssql_cdc.capture.snapshot.progress import Run, require_held
from mssql_cdc.capture.snapshot.statements import statement_of
from mssql_cdc.capture.snapshot_controls import heard_until
from mssql_cdc.capture.survey import Survey
from mssql_cdc.config.signals import Filter
from mssql_cdc.errors import DataLostError, FencedError, MssqlCdcError
from mssql_cdc.lake.gaps import Gap, record_gaps
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.small_tables import retry_overtaken, small_table
from mssql_cdc.lake.steps import Entry, snapshot_begun, status_changed
from mssql_cdc.lake.storage import storage_warning
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId
from mssql_cdc.source.protocol import SourceSession
from mssql_cdc.source.values import LogMark, Witness

LITTLE_ROWS = 100_000
"""A snapshot of at most this many rows is read in this process, in about a second; Spark takes six to start."""

_FORK_ADVICE = (
    "The login may not see the database's recovery fork: a restore that takes back rows which a snapshot reads before "
    "they are captured cannot be noticed. GRANT VIEW ANY DATABASE to the login (public has it unless it was denied)"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The request: these tables with this partition key; `filters` are SELECT statements that replace some tables.

    `signal` is the id of the signal that requested it, `signals` the newest row of `_signals` that does not concern it.
    Only the run that starts the snapshot uses the request; later runs use the persisted plan.
    """

    id: str
    tables: Collection[TableId]
    chunk_rows: int
    epoch: int = 0
    signal: str | None = None
    filters: Mapping[TableId, Filter] = field(default_factory=dict[TableId, Filter])
    signals: int = 0


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
        raise DataLostError(f"CDC is no longer enabled on {', '.join(missing)}, which snapshot {wanted.id} must read")
    plan, fresh, failed = _plan(database, session, survey, wanted)
    offsets = _give_up(database, survey, failed, wanted.epoch)
    chosen = {t.table: survey.tables[t.table] for t in plan.tables if t.table in wanted.tables}
    # Before the status: a table that disappears while it has one is searched for under the object id of its version.
    structures = {table: t.structure(t.captured.newest, plan.of(table).held) for table, t in chosen.items()}
    schemas, _ = versioned(database, structures, survey.history)
    begins = {table: t for table, t in chosen.items() if not offsets.is_in(wanted.id, table.text)}
    note_unread(database, begins.values(), wanted.epoch)
    if begins:
        mark, captured = marked(database, session), survey.facts.captured
        # What the snapshot reads comes after it (A7).
        witness = survey.witness(session, captured) if captured is not None else None
        offsets = _write_status(database, plan, begins, offsets, wanted, mark, witness)
        chosen = {table: replace(t, entry=offsets.entry(table.text)) for table, t in chosen.items()}
    begun = {table: t for table, t in chosen.items() if table not in begins}
    if begun:
        offsets = _take_over(database, begun, offsets, wanted.epoch)
    states: dict[TableId, TableState] = {}
    for table, member in list(chosen.items()):
        try:
            states[table] = prepared(database, member, schemas[table], SNAPSHOT)
        except MssqlCdcError as error:
            if error.retriable or isinstance(error, FencedError):
                raise
            failed[table] = error
            del chosen[table]
    # Its end may be behind the states that were just loaded; one that takes over later commits before it ends (C18).
    require_held(chosen.values(), offsets, database.offsets())
    notes = SnapshotNotes(database, plan, is_new=fresh)
    if chosen or failed:
        notes.started()
    for table, error in failed.items():
        database.log(f"snapshot of {table} failed: {error}")
        notes.failed(table)
    notes.flush()
    warning = storage_warning(database.layout.warehouse) if fresh and chosen else None
    if warning:
        database.log(warning)
    seal = Seal(database.connector.delta.key_secret)
    done = {table: groups_done(state, wanted.id, seal) for table, state in states.items()}
    before = {table: sum(group.rows for group in groups) for table, groups in done.items()}
    read_at = {table: group.read_at for table, groups in done.items() for group in groups if group.read_at}
    estimated = session.estimated_rows()
    return Run(
        database=database,
        session=session,
        plan=replace(plan, tables=tuple(resumed(t, done[t.table]) for t in plan.tables if t.table in chosen)),
        tables=chosen,
        schemas=schemas,
        states=states,
        done=done,
        epoch=wanted.epoch,
        chunk_rows=wanted.chunk_rows,
        offsets=offsets,
        notes=notes,
        rows=dict(before),
        read_at=read_at,
        failed=failed,
        is_little=is_little(estimated, [t.captured.object_id for t in chosen.values()]),
        expected={table: estimated.get(t.captured.object_id, 0) for table, t in chosen.items()},
        before=before,
        heard=heard_until(offsets, wanted.id),
        witness=_furthest([offsets.witness, *(member.snapshot_witness for member in begun.values())]),
    )


def _furthest(witnesses: Iterable[Witness | None]) -> Witness | None:
    return max((one for one in witnesses if one is not None), key=lambda one: one.start_lsn, default=None)


def is_little(estimated: Mapping[int, int], tables: Iterable[int]) -> bool:
    """Whether tables have so few rows in total that starting a Spark session would take longer than reading them.

    Args:
        estimated: The rows of each table, by object id, as the source estimates them.
        tables: The object ids of the tables.
    """
    return sum(estimated.get(table, LITTLE_ROWS + 1) for table in tables) <= LITTLE_ROWS


def note_unread(database: Database, tables: Iterable[LakeTable], epoch: int) -> None:
    """Record the gaps of tables that another one has replaced: the last changes of the former ones were never read.

    Args:
        database: The database.
        tables: The tables whose snapshot begins.
        epoch: The current epoch.
    """
    gaps: list[Gap] = []
    for member in tables:
        reached = member.reached(epoch) if member.recreated else None
        if reached is not None:
            reason = "another table has replaced it: it was dropped and re-created, or renamed and excluded"
            gaps.append(Gap(member.table.text, epoch, reached.to, None, reason))
    for gap in record_gaps(database.layout, gaps, run_id=database.run_id, storage=database.storage):
        database.log(gap.text)


def marked(database: Database, session: SourceSession) -> LogMark:
    """The log's end before rows are read; a log line says so if the login may not see which history it ends (A7).

    Args:
        database: The database.
        session: A session on the source.
    """
    mark = session.mark()
    if mark.fork is None and session.shows_fork():
        database.log(_FORK_ADVICE)
    return mark


@retry_overtaken
def take_number(database: Database, kind: str, table: TableId, begun: Lsn) -> int:
    """Return a number that no snapshot has, for rows of a table that are read alongside its stream.

    Args:
        database: The database.
        kind: What reads them; part of the id, which is recorded like those of snapshots.
        table: The table.
        begun: What was captured then.
    """
    store = small_table(database.layout, "snapshots", database.storage)
    state = store.state()
    number = state.batch + 1
    plan = SnapshotPlan(f"{kind}-{number}", number, (TablePlan(table, (), begun),))
    store.append(state, [_plan_row(database, plan)], {"kind": "plan", "run_id": database.run_id})
    return number


def _plan_row(database: Database, plan: SnapshotPlan) -> dict[str, str]:
    """The row of a plan, sealed if there is a secret: its filters may contain key values."""
    return {"id": plan.id, "plan": Seal(database.connector.delta.key_secret).closed(plan_text(plan))}


def _give_up(database: Database, survey: Survey, failed: Mapping[TableId, MssqlCdcError], epoch: int) -> Offsets:
    """Record that new tables cannot be read; what was read before keeps its status and its position."""
    redact = database.connector.redact
    entries = {
        table.text: survey.tables[table].new_entry(status="failed", epoch=epoch, reason=redact(str(error)))
        for table, error in failed.items()
        if survey.tables[table].entry is None
    }
    if not entries:
        return survey.offsets
    row = status_changed(database.stamp(epoch), entries)
    return append_offsets(database.layout, row, seen=survey.offsets, storage=database.storage)


def _plan(
    database: Database, session: SourceSession, survey: Survey, wanted: Wanted
) -> tuple[SnapshotPlan, bool, dict[TableId, MssqlCdcError]]:
    """The snapshot's plan, whether it was made now, and the tables that could not be planned.

    The plan is made once and kept; the chunks of a table are planned while they are read. Some tables are planned
    again, as another edition: those whose key has changed since, because the bounds of their chunks belong to another
    key; those whose snapshot has not begun, or no longer counts, since another run may have read them and advanced
    their stream; and those whose change logs another program has changed. A snapshot that was planned but never began
    keeps its id, and may want other tables by then.
    """
    store = small_table(database.layout, "snapshots", database.storage)
    state = store.state()
    found = [row for row in store.rows() if row["id"] == wanted.id]
    seal = Seal(database.connector.delta.key_secret)
    known = plan_of_text(seal.opened(found[-1]["plan"])) if found else None
    edition = state.batch + 1
    kept = known.tables if known is not None else ()
    tables = [one for one in kept if one.table not in wanted.tables or _still_holds(one, survey, wanted.id)]
    planned, failed = {one.table for one in tables}, dict[TableId, MssqlCdcError]()
    for table in survey.tables:
        if table not in wanted.tables or table in planned:
            continue
        try:
            tables.append(_table_plan(database, session, survey, wanted, table, edition=edition))
        except MssqlCdcError as error:
            if error.retriable or isinstance(error, DataLostError):
                raise
            failed[table] = error
    if known is None:
        plan = SnapshotPlan(
            wanted.id,
            edition,
            tuple(tables),
            wanted.signal,
            notice=str(uuid.uuid4()),
            noticed=small_table(database.layout, "notifications", database.storage).state().batch,
        )
    else:
        plan = replace(known, tables=tuple(tables))
    if plan != known and plan.tables:
        store.append(state, [_plan_row(database, plan)], {"kind": "plan", "run_id": database.run_id})
    return plan, known is None, failed


def _still_holds(known: TablePlan, survey: Survey, snapshot: str) -> bool:
    """Whether the plan is that of a table that this snapshot is already reading, by the key that the table has now.

    What another program has done to the change log may have removed rows that count as read (A5).
    """
    member = survey.tables[known.table]
    return survey.offsets.is_in(snapshot, known.table.text) and known.key == _key(member) and not member.tampered


def _table_plan(
    database: Database, session: SourceSession, survey: Survey, wanted: Wanted, table: TableId, *, edition: int
) -> TablePlan:
    """One table's plan, which has no chunks yet. A table that cannot be read fails here."""
    captured = session.captured()
    if captured is None:
        raise DataLostError("No capture instance is left; nothing can be read")
    member = survey.tables[table]
    schema = member.captured.newest.schema
    reached = member.furthest(survey.offsets, wanted.epoch)
    asked, held, seen = wanted.filters.get(table), _held(member, wanted.epoch), survey.member(table)
    assert seen is not None  # verified by `_require_possible`
    select = statement_of(database, member, seen, held, asked)
    whole = not schema.key_columns or not member.captured.newest.streams
    require_sealed(database.connector, schema)
    if not whole and not select:
        session.next_bound(schema, 1, None)
    return TablePlan(
        table,
        (),
        low_mark(captured, member.captured.newest.start_lsn),
        held,
        select,
        whole,
        again=member.entry is not None or (member.state is not None and member.state.batch > 0),
        key=_key(member),
        refused=asked.refused if asked is not None and select is not None else None,
        edition=edition,
        reached=Lsn.parse(reached) if reached else None,
    )


def _key(member: LakeTable) -> str | None:
    return member.captured.newest.schema.key_fingerprint


def _held(member: LakeTable, epoch: int) -> Lsn | None:
    """Return the position of the table's stream (P).

    None for a table that never streamed, whose changes were lost, that was re-created, whose change log another program
    has changed, or whose position belongs to an earlier epoch: streaming cannot continue from there.
    """
    if member.recreated or member.tampered or member.entry is None or member.entry.status == "lost":
        return None
    reached = member.reached(epoch)
    return Lsn.parse(reached.to) if reached else None


def _take_over(database: Database, members: Mapping[TableId, LakeTable], offsets: Offsets, epoch: int) -> Offsets:
    """Record that this run continues the snapshot: the one that read it until now can no longer end it (A3).

    Otherwise a group that is read from now on could be committed after its end (C18). A change log that another program
    has changed counts as it is now: its table was planned again.
    """
    entries = {table.text: seen_now(member, member.entry) for table, member in members.items() if member.entry}
    row = status_changed(database.stamp(epoch), entries)
    return append_offsets(database.layout, row, seen=offsets, storage=database.storage)


def seen_now(member: LakeTable, entry: Entry) -> Entry:
    """Return the entry with the change log as it is now, if another program has changed or removed it.

    Surveys do not check the log of a table that is lost: this may be the reason why it is lost.

    Args:
        member: The table.
        entry: The table's next entry.
    """
    if not member.tampered and (member.entry is None or member.entry.status != "lost"):
        return entry
    state = member.state
    if state is None:
        return replace(entry, delta_table_id=None, delta_version=None, batch=None)
    return replace(entry, delta_table_id=state.table_id, delta_version=state.known_version, batch=state.batch)


def note_tampered(database: Database, tables: Iterable[LakeTable], epoch: int) -> None:
    """Record the gaps of tables whose change log another program has changed: a snapshot repairs rows, not events (A5).

    A survey that finds them records the same. An operator's request for a snapshot may come before the next survey.

    Args:
        database: The database.
        tables: The tables that are to be read.
        epoch: The current epoch.
    """
    redact = database.connector.redact
    gaps = [
        Gap(member.table.text, epoch, reached.to, None, redact(member.tampered))
        for member in tables
        if member.tampered and (reached := member.reached(epoch)) is not None
    ]
    for gap in record_gaps(database.layout, gaps, run_id=database.run_id, storage=database.storage):
        database.log(gap.text)


def _write_status(
    database: Database,
    plan: SnapshotPlan,
    members: Mapping[TableId, LakeTable],
    offsets: Offsets,
    wanted: Wanted,
    mark: LogMark,
    witness: Witness | None,
) -> Offsets:
    epoch = wanted.epoch
    entries: dict[str, Entry] = {}
    for table, member in members.items():
        held = plan.of(table).held
        entries[table.text] = member.new_entry(status="snapshot", to=held.text if held else None, epoch=epoch)
    stamp = database.stamp(epoch)
    begun = snapshot_begun(
        stamp,
        entries,
        snapshot=plan.id,
        number=plan.number,
        signal=plan.signal,
        mark=mark,
        signals=wanted.signals,
        witness=witness,
    )
    return append_offsets(database.layout, begun, seen=offsets, storage=database.storage)
