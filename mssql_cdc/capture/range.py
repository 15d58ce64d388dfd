"""Reads a range: one Spark job for all of its tables, one commit per table, and finally one `_offsets` row.

A table that fails keeps its position, is listed in the result and requested again; the others continue. `follow/`
then processes current tables, transactions and signals from the committed rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import prepared, versioned
from mssql_cdc.capture.survey import Survey
from mssql_cdc.capture.write_task import WriteTask, Written, write, write_together
from mssql_cdc.errors import MssqlCdcError, TaskError
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.log import TableState, commit
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry, OffsetRow, Status, range_done, status_changed, witness_text
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.plan.decisions import Range, Slice
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.protocol import SourceSession
from mssql_cdc.source.values import Witness
from mssql_cdc.spark.tasks import TaskResult, described, in_threads, run_tasks

ROWS_PER_TASK = 250_000
MOST_TASKS = 64
LITTLE_ROWS = 100_000
"""A range with at most this many rows is read in this process: a Spark job over fifty tables takes seconds. Memory
holds a page for each of its connections, however many rows there are."""
WIDE_ROW = 5
"""A row with values of unlimited size counts as this many."""


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """The result of a range for one table. With an `error`, the table stays at its old position.

    `batch` is the number of its own commit, after which `state` may have others; None: it has made none.
    """

    slice: Slice
    rows: int = 0
    operations: Mapping[str, int] = field(default_factory=dict[str, int])
    state: TableState | None = None
    first: str | None = None
    last: str | None = None
    schema: int | None = None
    batch: int | None = None
    error: MssqlCdcError | None = None


@dataclass(frozen=True, slots=True)
class RangeResult:
    """The result of a range, with the offsets and the history after it.

    `row` is its `_offsets` row; None if every table failed or there was nothing to do.
    """

    decision: Range
    tables: Mapping[TableId, TableOutcome]
    row: OffsetRow | None
    offsets: Offsets
    history: SchemaHistory

    @property
    def rows(self) -> int:
        """Change-log rows written."""
        return sum(outcome.rows for outcome in self.tables.values())

    @property
    def failed(self) -> dict[TableId, MssqlCdcError]:
        """The tables that failed, with their errors."""
        return {table: outcome.error for table, outcome in self.tables.items() if outcome.error is not None}

    def raise_failure(self) -> None:
        """Raise the first table's error, naming how many others failed."""
        for table, error in self.failed.items():
            more = f" (and {len(self.failed) - 1} more tables)" if len(self.failed) > 1 else ""
            raise type(error)(f"{table}: {error}{more}") from error


def capture_range(database: Database, survey: Survey, decision: Range) -> RangeResult:
    """Read the range into the change logs; failed tables are part of the result.

    Args:
        database: The database.
        survey: The survey on which the decision is based.
        decision: The range to read.

    Raises:
        SourceUnavailableError, SourceError: the source could not be queried at all; nothing was written.
        FencedError: another run has written the offsets of these tables; their commits remain and are found again.
    """
    outcomes: dict[TableId, TableOutcome] = {}
    history = survey.history
    with database.session() as session:
        if decision.slices:
            session.require_visible(decision.range.to)
        # Before the commits, which also store it: if this run dies after them, nothing else shows their history. Also
        # for a range that only opens tables: detect a source that goes back right after its first snapshot.
        witness = survey.witness(session, decision.range.to)
        if decision.slices:
            counts = _counts(session, survey, decision)
            outcomes, history = _read_and_commit(database, session, survey, decision, counts, witness)
            _check_quiet(session, outcomes, counts)
            if witness is not None:
                session.require_witness(witness)
    row = _offset_row(database, survey, decision, outcomes, witness)
    if row is None:
        return RangeResult(decision, outcomes, None, survey.offsets, history)
    # `_offsets` checks again whether all streaming members took part: a snapshot may have ended in the meantime.
    members = survey.identities if row.complete else None
    after = append_offsets(
        database.layout,
        row,
        seen=survey.offsets,
        members=members,
        new=survey.new,
        storage=database.storage,
        known=database.tables,
    )
    return RangeResult(decision, outcomes, after.newest, after, history)


def mark_status(database: Database, survey: Survey, reasons: Mapping[TableId, str], status: Status) -> Offsets:
    """Record the status (lost, failed) of these tables with its redacted reason; positions in this epoch stay.

    Args:
        database: The database.
        survey: The survey on which the decision is based.
        reasons: The reason for each table.
        status: The new status.
    """
    entries: dict[str, Entry] = {}
    redact = database.connector.redact
    for table, reason in reasons.items():
        known = survey.tables.get(table)
        entry = known.new_entry() if known is not None else survey.left[table]
        position = survey.position(table)
        to = position.text if position is not None else entry.to_in(survey.facts.epoch)
        entries[table.text] = replace(entry, status=status, reason=redact(reason), epoch=survey.facts.epoch, to=to)
    row = status_changed(database.stamp(survey.facts.epoch), entries)
    return append_offsets(database.layout, row, seen=survey.offsets, storage=database.storage)


def _counts(session: SourceSession, survey: Survey, decision: Range) -> dict[TableId, int]:
    """Change rows of each slice, without recounting what the survey has counted; tables without any are not read.

    The minimum of such tables is still checked.
    """
    parts = {
        s.table: (
            survey.instance(s.table, s.instance.object_id),
            LsnRange(s.read_from, s.to, decision.range.epoch),
        )
        for s in decision.slices
    }
    known: dict[TableId, int] = {}
    for table, (instance, wanted) in parts.items():
        rows = survey.counted.get((instance.object_id, wanted))
        if rows is not None:
            known[table] = rows
    counted = session.count_rows([part for table, part in parts.items() if table not in known])
    return {table: counted.get(instance.name, 0) for table, (instance, _) in parts.items()} | known


def _read_and_commit(
    database: Database,
    session: SourceSession,
    survey: Survey,
    decision: Range,
    counts: Mapping[TableId, int],
    witness: Witness | None,
) -> tuple[dict[TableId, TableOutcome], SchemaHistory]:
    busy = [s for s in decision.slices if counts[s.table]]
    outcomes = {s.table: TableOutcome(s, state=survey.tables[s.table].state) for s in decision.slices}
    wanted = {
        s.table: survey.tables[s.table].structure(survey.instance(s.table, s.instance.object_id), s.from_) for s in busy
    }
    schemas, history = versioned(database, wanted, survey.history)
    states: dict[TableId, TableState] = {}
    tasks: list[WriteTask] = []
    owners: list[TableId] = []
    wide: set[TableId] = set()
    for part in busy:
        try:
            state = prepared(database, survey.tables[part.table], schemas[part.table])
            made = _tasks(database, session, survey, decision, part, schemas[part.table], state, counts)
            if not all(database.source.shares(task.reader) for task in made):
                wide.add(part.table)
        except MssqlCdcError as error:
            outcomes[part.table] = TableOutcome(part, error=error)
            continue
        states[part.table] = state
        tasks += made
        owners += [part.table] * len(made)
    results: dict[TableId, list[TaskResult]] = {table: [] for table in states}
    if tasks:
        rows = sum(counts.values())
        database.log(f"reading {rows} change rows of {len(states)} tables in {len(tasks)} tasks")
        work = rows + (WIDE_ROW - 1) * sum(counts[table] for table in wide)
        if work <= LITTLE_ROWS:
            done = write_together(database.source, tasks, rows=rows)
        else:
            done = run_tasks(database.spark(), tasks, write, owners=owners)
        for table, result in zip(owners, done, strict=True):
            results[table].append(result)
    commits = {
        part.table: partial(_commit, database, survey, decision, part, states[part.table], results[part.table], witness)
        for part in busy
        if part.table in states
    }
    # Spark commits to tables with widened columns, one after another.
    plain = [table for table in commits if not states[table].needs_spark]
    committed = dict(zip(plain, in_threads([commits[table] for table in plain]), strict=True))
    for table, commit_one in commits.items():
        outcome = committed[table] if table in committed else commit_one()
        outcomes[table] = replace(outcome, schema=schemas[table].version)
    return outcomes, history


def _tasks(
    database: Database,
    session: SourceSession,
    survey: Survey,
    decision: Range,
    part: Slice,
    schema: TableSchema,
    state: TableState,
    counts: Mapping[TableId, int],
) -> list[WriteTask]:
    """Build a table's tasks: adjacent sub-ranges, so that a large table uses several cores."""
    instance = survey.instance(part.table, part.instance.object_id)
    whole = LsnRange(part.read_from, part.to, decision.range.epoch)
    wanted = min(-(-counts[part.table] // ROWS_PER_TASK), MOST_TASKS)
    ranges = session.split(instance, whole, wanted) if wanted > 1 else [whole]
    rows = counts[part.table] if len(ranges) == 1 else None
    return [
        WriteTask(
            database.source.change_reader(database.catalog, instance, sub, visible=decision.range.to, rows=rows),
            schema,
            state.target,
            state.batch + 1,
            database.connector,
        )
        for sub in ranges
    ]


def _commit(
    database: Database,
    survey: Survey,
    decision: Range,
    part: Slice,
    state: TableState,
    results: list[TaskResult],
    witness: Witness | None,
) -> TableOutcome:
    """Commit one table: all files of all of its tasks or none (rule E29)."""
    own = state.batch + 1
    try:
        written = Written.joined(Written.from_value(result.unwrap()) for result in results)
        after = commit(
            state,
            written.files,
            {
                "kind": "range",
                "from": part.from_.text,
                "to": part.to.text,
                "epoch": decision.range.epoch,
                "partition": decision.key,
                "run_id": database.run_id,
                "operations": dict(written.operations),
                "instance": part.instance.identity,
                "shown": survey.tables[part.table].shown,
                "offsets": survey.offsets.number,
                "witness": witness_text(witness),
            },
            spark=database.spark,
        )
        database.states.keep(after)
        if after.batch == own:
            database.current_logs.appended(after, written.files)
        else:
            database.current_logs.forget(after.uri)  # Another writer's commit follows: its files are not known.
    except MssqlCdcError as error:
        return TableOutcome(part, error=error)
    except (OSError, ValueError) as error:
        return TableOutcome(part, error=TaskError(described(error)))
    return TableOutcome(part, written.rows, written.operations, after, written.first, written.last, batch=own)


def _check_quiet(session: SourceSession, outcomes: dict[TableId, TableOutcome], counts: Mapping[TableId, int]) -> None:
    """The after-check of rule A9 for tables that had no rows to read; readers check their own."""
    quiet = [o.slice for o in outcomes.values() if o.error is None and not counts[o.slice.table]]
    minima: Mapping[str, Lsn | None] = session.minima() if quiet else {}
    for part in quiet:
        try:
            session.require_held(part.instance.name, minima.get(part.instance.name), part.read_from)
        except MssqlCdcError as error:
            outcomes[part.table] = TableOutcome(part, error=error)


def _offset_row(
    database: Database,
    survey: Survey,
    decision: Range,
    outcomes: Mapping[TableId, TableOutcome],
    witness: Witness | None,
) -> OffsetRow | None:
    """Build the range's row: finished, idle and failed tables; it is complete if no table is behind."""
    entries: dict[str, Entry] = {}
    to, epoch = decision.range.to, decision.range.epoch
    for table, outcome in outcomes.items():
        if outcome.error is None:
            read: dict[str, Any] = {"instance": outcome.slice.instance.identity}
            if outcome.schema:
                read["schema"] = outcome.schema
            if outcome.batch:
                read["batch"] = outcome.batch
            entries[table.text] = _entry(survey, table, outcome.state, to.text, epoch, outcome.rows, **read)
    for table in decision.idle:
        entries[table.text] = _entry(survey, table, survey.tables[table].state, to.text, epoch, 0)
    failed = any(outcome.error is not None for outcome in outcomes.values())
    complete = decision.complete and not failed
    if complete:
        for member in survey.facts.members:
            if member.status == "streaming" and member.position == to and member.table.text not in entries:
                state = survey.tables[member.table].state
                entries[member.table.text] = _entry(survey, member.table, state, to.text, epoch, 0)
    for table in decision.give_up:
        position = survey.position(table)
        entries[table.text] = survey.tables[table].new_entry(
            status="failed",
            to=position.text if position else None,
            epoch=epoch,
            reason=f"{survey.facts.cursor.attempt} attempts failed",
        )
    if not entries:
        return None
    scanned = survey.facts.scanned
    return range_done(
        database.stamp(epoch),
        entries,
        to=to.text,
        partition=decision.key,
        read=bool(decision.slices),
        complete=complete,
        opens=[table.text for table in decision.opens],
        scanned=scanned.text if scanned else None,
        witness=witness,
    )


def _entry(
    survey: Survey, table: TableId, state: TableState | None, to: str, epoch: int, rows: int, **more: Any
) -> Entry:
    lake = survey.tables[table]
    known: dict[str, Any] = {"instance": lake.instances_at(epoch)[0], "shown": lake.shown}
    if state is not None or lake.loaded:  # Else nothing was written, and the log is checked from its last entry on.
        known["delta_table_id"] = state.table_id if state else None
        known["delta_version"] = state.known_version if state else None
        known["batch"] = state.batch if state else None
    return lake.new_entry(status="streaming", to=to, epoch=epoch, rows=rows, **(known | more))
