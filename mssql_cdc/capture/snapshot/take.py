"""Takes a snapshot (case B of correctness C): groups of chunks, each one Spark job and a commit per table.

An interrupted snapshot resumes from its commits (A6). While it runs, its tables have the status `snapshot` in
`_offsets`; all others keep streaming (C22). A table without a key, or one that is not captured, is read whole (C21).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import versioned
from mssql_cdc.capture.notifications import Notifier
from mssql_cdc.capture.requests import batch_of, id_of
from mssql_cdc.capture.snapshot.begin import Wanted, begin, note_tampered, note_unread, seen_now
from mssql_cdc.capture.snapshot.chunk_groups import fail_refused, locked_if_exclusive, read_groups, read_locked_tables
from mssql_cdc.capture.snapshot.chunk_plan import low_mark
from mssql_cdc.capture.snapshot.delays import wait_to_read
from mssql_cdc.capture.snapshot.finish import give_back, obey, tell_paused
from mssql_cdc.capture.snapshot.progress import Progress, Run, progress_of
from mssql_cdc.capture.snapshot.structures import keep_structures
from mssql_cdc.capture.snapshot_extensions import chosen_query
from mssql_cdc.capture.survey import Survey
from mssql_cdc.config.signals import Filter
from mssql_cdc.errors import ConfigurationError, FencedError, MssqlCdcError, SourceRestoredError
from mssql_cdc.lake.gaps import bound_gaps
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry, positions_taken, signal_answered
from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.decisions import RESTORED_ADVICE, Snapshot
from mssql_cdc.plan.facts import Member
from mssql_cdc.schema import TableId

CHUNK_ROWS = 200_000
GROUP_CHUNKS = 8
NOT_CAPTURED = "the source no longer captures it; run `mssql-cdc discover` and reload the code location"


@dataclass(frozen=True, slots=True)
class SnapshotResult:
    """The result of a snapshot.

    `rows` are those of each table that this run read, including what earlier runs have read of it; `failed` tables keep
    the status `snapshot`; `notes` contain the reasons why tables were not read. `stopped` tables were given up, with
    the id of the signal; `paused` ones wait.
    """

    id: str
    rows: Mapping[TableId, int] = field(default_factory=dict[TableId, int])
    failed: Mapping[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    notes: Mapping[TableId, str] = field(default_factory=dict[TableId, str])
    stopped: Mapping[TableId, str] = field(default_factory=dict[TableId, str])
    paused: tuple[TableId, ...] = ()

    @property
    def completed(self) -> bool:
        """Whether every table that was not stopped was read; not if all of them were stopped."""
        return not (self.failed or self.paused or (self.stopped and not self.rows))

    def raise_failure(self) -> None:
        """Raise the first table's error."""
        for table, error in self.failed.items():
            raise type(error)(f"snapshot of {table}: {error}") from error


def capture_snapshot(
    database: Database,
    survey: Survey,
    decision: Snapshot,
    *,
    progress: Callable[[Progress], None] | None = None,
) -> SnapshotResult:
    """Begin the snapshot, or resume it, until every table is read or has failed.

    Tables whose rows `snapshot.mode` excludes only get their positions.

    Args:
        database: where to read and to write.
        survey: The survey on which the decision is based.
        decision: The tables, and who requested the snapshot.
        progress: Called before the first read, after every group, and when tables end.

    Raises:
        ConfigurationError: the source no longer captures one of the tables.
        SourceRestoredError: the source went back in time; its rows belong to another epoch.
        SourceUnavailableError, SourceError: the source could not be queried; what was committed stays.
        FencedError: another run holds these tables.
    """
    _require_possible(survey, decision)
    for table, reason in _unseen(survey, decision).items():
        database.log(f"{table}: left out of this snapshot, so ask for it again: {reason}")
    with database.session() as session:
        if survey.facts.policy.schema:
            keep_structures(database, session, survey.offsets)
    notes = {table: note for table in decision.tables if (note := _not_read(database, survey, decision, table))}
    begun = [table for table in notes if _begins(survey, decision, table)]
    _take_positions(database, survey, decision, begun)
    stopped = _stopped_before(database, survey, decision)
    tables = [table for table in decision.tables if table not in notes and table not in stopped]
    if not tables:
        if begun and decision.signal is None and _furthest(survey.offsets, survey.facts.epoch) is None:
            _notify_of_positions(database)
        _answer_signal(database, survey, decision)
        return SnapshotResult(decision.id, notes=notes, stopped=stopped)
    database.log(f"{decision.id}: {', '.join(table.text for table in tables)}")
    if not all(survey.offsets.is_in(decision.id, table.text) for table in tables):
        wait_to_read(database.connector)
    note_tampered(database, (survey.tables[table] for table in tables), survey.facts.epoch)
    filters = _filters(database, survey, decision)
    heard = batch_of(decision.signal) if decision.signal is not None else survey.controls.newest
    wanted = Wanted(decision.id, tables, CHUNK_ROWS, survey.facts.epoch, decision.signal, filters, heard)
    with database.session() as session:
        run = begin(database, session, survey, wanted)
        try:
            show = partial(_show, run, progress)
            show()
            obey(run)
            if not run.paused:
                run.notes.resumed()
            fail_refused(run)
            read_locked_tables(run, show, most=CHUNK_ROWS)
            with locked_if_exclusive(run):
                read_groups(run, GROUP_CHUNKS, show)
            if read_locked_tables(run, show):
                with locked_if_exclusive(run):
                    read_groups(run, GROUP_CHUNKS, show)  # They end there.
            give_back(run)
            tell_paused(run)
            if any(not isinstance(error, FencedError) for error in run.failed.values()):
                run.notes.aborted()
        except FencedError:
            raise  # Another run continues it.
        except MssqlCdcError:
            run.notes.aborted()
            raise
        finally:
            run.notes.flush()
    paused = tuple(table for table in run.tables if table not in run.failed) if run.paused else ()
    read = {table: rows for table, rows in run.rows.items() if table not in run.stopped and table not in paused}
    return SnapshotResult(decision.id, read, run.failed, notes, {**stopped, **run.stopped}, paused)


def _stopped_before(database: Database, survey: Survey, decision: Snapshot) -> Mapping[TableId, str]:
    """The tables of a signal's request that were stopped before it began, with the ids of the signals that did so."""
    request = next((one for one in survey.requests if one.signal_id == decision.signal), None)
    if request is None:
        return {}
    stopped = survey.controls.stopped(request.of(survey.tables), request.batch)
    if stopped:
        notifier = Notifier(database, id_of(request.signal_id))
        for table, signal in stopped.items():
            database.log(f"{table}: its snapshot was stopped by signal {signal} before it began")
            notifier.add("ABORTED", data_collections=table.text)
        notifier.flush()
    return stopped


def _show(run: Run, progress: Callable[[Progress], None] | None) -> None:
    if progress is not None:
        progress(progress_of(run))


def _notify_of_positions(database: Database) -> None:
    """Notify of a snapshot that reads no rows: as in Debezium, it begins and is complete (NOT-03)."""
    notifier = Notifier(database, None)
    notifier.add("STARTED")
    notifier.add("COMPLETED")
    notifier.flush()


def _require_possible(survey: Survey, decision: Snapshot) -> None:
    if survey.facts.restored:
        raise SourceRestoredError(
            f"{decision.id} cannot be taken: the source was restored or failed over: {survey.facts.restored}. "
            f"{RESTORED_ADVICE}"
        )
    gone = [table for table in decision.tables if survey.member(table) is None]
    if gone:
        known = {absent.table: absent.reason for absent in survey.facts.absent if absent.former is None}
        reasons = [f"{table}: {known.get(table, NOT_CAPTURED)}" for table in sorted(gone)]
        raise ConfigurationError(f"No snapshot can be taken of {'; '.join(reasons)}")


def _unseen(survey: Survey, decision: Snapshot) -> dict[TableId, str]:
    """The requested tables that this survey cannot read, with the reason: the others answer the signal without them."""
    asked = {
        table for one in survey.facts.asked if one.signal and one.signal == decision.signal for table in one.tables
    }
    return {one.table: one.reason for one in survey.facts.absent if one.table in asked and one.former is None}


def _not_read(database: Database, survey: Survey, decision: Snapshot, table: TableId) -> str | None:
    """Return why this snapshot reads no rows of the table; None if it does."""
    settings, policy = database.connector.snapshot, survey.facts.policy
    if database.connector.filters.tables.is_signal_table(*table.parts):
        return "the signal table is streamed, never snapshotted"
    if _begins(survey, decision, table):
        if policy.data and settings.collections.matches(*table.parts):
            return _left_out(database, survey, table)
        return f"snapshot.mode={policy.mode} records only the table's position"
    rows = [row for row in survey.offsets.snapshot_rows if row.partition == decision.id]
    entries = [row.tables[table.text] for row in rows if table.text in row.tables]
    if entries and entries[-1].status == "streaming":
        return "this snapshot is complete; materialize the table's partition in `snapshots` for a new one"
    if _is_planned(decision) and _has_another(survey, decision, table):
        return "another snapshot has begun on it since this one was planned"
    return None if entries else _left_out(database, survey, table)


def _has_another(survey: Survey, decision: Snapshot, table: TableId) -> bool:
    """Whether another snapshot is reading the table, or has read it; none has read one that was given up."""
    begun = _member(survey, table).status in {"snapshot", "streaming"}
    return begun and not survey.offsets.is_in(decision.id, table.text)


def _is_planned(decision: Snapshot) -> bool:
    """Whether nobody requested it: the planner found tables that need a snapshot, which another run may see, too."""
    return decision.signal is None and not decision.by_hand


def _left_out(database: Database, survey: Survey, table: TableId) -> str | None:
    """Why the snapshot query reads no rows of the table; if it is faulty, the plan of the table reports that."""
    with suppress(ConfigurationError):
        return chosen_query(database, survey.tables[table].captured.newest.schema).skipped
    return None


def _begins(survey: Survey, decision: Snapshot, table: TableId) -> bool:
    """Whether `snapshot.mode` decides about the table's rows: it is new, or is read again without a request."""
    member = _member(survey, table)
    repaired = member.rekeyed or member.streams_on or (member.status == "lost" and survey.facts.policy.on_data_error)
    return member.status == "new" or (repaired and _is_planned(decision))


def _take_positions(database: Database, survey: Survey, decision: Snapshot, tables: Collection[TableId]) -> None:
    """Let these tables stream from now on without reading their rows (SNP-05).

    A table on which CDC was enabled after everything that was read streams from its capture instance's start, as in
    Debezium: no later change of another table has been published yet, so its first changes still have their place.
    """
    if not tables:
        return
    epoch, captured = survey.facts.epoch, survey.facts.captured
    streamed = _furthest(survey.offsets, epoch)
    found = {table: survey.tables[table] for table in tables}
    note_unread(database, found.values(), epoch)
    rekeyed = {table for table in tables if _member(survey, table).rekeyed}
    structures = {
        table: known.structure(known.captured.newest, survey.position(table) if table in rekeyed else None)
        for table, known in found.items()
    }
    schemas, _ = versioned(database, structures, survey.history)
    entries: dict[str, Entry] = {}
    for table, known in found.items():
        number = schemas[table].version
        entry = seen_now(known, known.new_entry(status="streaming", epoch=epoch, schema=number, filled=number))
        if table not in rekeyed:  # A rekeyed table continues to stream from its position.
            start = known.captured.newest.start_lsn
            begun_since = streamed is not None and start >= streamed
            to = low_mark(captured, start) if captured and not begun_since else start
            entry = replace(entry, to=to.text, instance=known.captured.newest.identity, shown=known.shown)
            bound_gaps(
                database.layout,
                survey.offsets.names_of(table.text, known.captured.object_id),
                epoch=epoch,
                streamed=known.furthest(survey.offsets, epoch),
                to=to.text,
                run_id=database.run_id,
                is_own=partial(known.has_gap, offsets=survey.offsets),
                storage=database.storage,
            )
        entries[table.text] = entry
    furthest = max((Lsn.parse(entry.to) for entry in entries.values() if entry.to), default=None)
    with database.session() as session:
        witness = survey.witness(session, furthest) if furthest is not None else None
    row = positions_taken(database.stamp(epoch), entries, snapshot=decision.id, witness=witness)
    append_offsets(database.layout, row, seen=survey.offsets, storage=database.storage)


def _furthest(offsets: Offsets, epoch: int) -> Lsn | None:
    """The largest position of a table or a cut in this epoch; None: nothing streams yet."""
    cut = offsets.last_cut()
    reached = [entry.to_in(epoch) for entry in offsets.entries.values() if entry.status == "streaming"]
    reached += [cut.to] if cut is not None and cut.epoch == epoch else []
    return max((Lsn.parse(to) for to in reached if to), default=None)


def _filters(database: Database, survey: Survey, decision: Snapshot) -> Mapping[TableId, Filter]:
    """The SELECT statements of the signal's `additional-conditions` (BLK-04).

    A refused filter does not fail a new table, since that is read in full even without a signal.
    """
    request = next((one for one in survey.requests if one.signal_id == decision.signal), None)
    found = request.filters(decision.tables) if request is not None else {}
    refused = {table: one.refused for table, one in found.items() if _member(survey, table).status == "new"}
    for table, reason in refused.items():
        if reason:
            database.log(f"{table}: read in full without the signal's filter because {reason}")
    return {table: one for table, one in found.items() if not refused.get(table)}


def _answer_signal(database: Database, survey: Survey, decision: Snapshot) -> None:
    """Answer a signal even if it leads to no read; otherwise it would be executed again."""
    if decision.signal is not None:
        row = signal_answered(database.stamp(survey.facts.epoch), snapshot=decision.id, signal=decision.signal)
        append_offsets(database.layout, row, seen=survey.offsets, storage=database.storage)


def _member(survey: Survey, table: TableId) -> Member:
    member = survey.member(table)
    assert member is not None  # verified by `_require_possible`
    return member
