"""Collects the planner's facts: reads the lake once, then the source once. It starts no JVM and writes nothing.

The lake is read first and the source's `captured` last, so that nothing captured later can be missed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from mssql_cdc.capture.absent_tables import absent_tables, apart, unfit_tables
from mssql_cdc.capture.current_tables import behind_cut, is_due
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable, load_tables, require_newest, with_state
from mssql_cdc.capture.requests import Request, open_requests
from mssql_cdc.capture.snapshot_controls import Controls, load_controls, paused_snapshots
from mssql_cdc.capture.snapshot_extensions import policy
from mssql_cdc.capture.source_history import restore_after_commits, restore_since, witness_of
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.gaps import load_gaps
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.plan.facts import Absent, Asked, Cursor, Facts, Instance, Limits, Member
from mssql_cdc.plan.planner import lost
from mssql_cdc.schema import TableId
from mssql_cdc.source.protocol import SourceSession
from mssql_cdc.source.values import CapturedTable, CaptureInstance, Standing, Witness

RETENTION_SHARE = 8
DEFAULT_RETENTION = timedelta(days=3)
LEAST_IDLE = timedelta(minutes=1)
"""The retention of a database that was idle for less is not queried: no cleanup is that fast."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The facts and their inputs; a step commits from these states only.

    `requests` are the snapshots that were requested and have not begun, `controls` what signals say about snapshots,
    `left` the entries of tables that the source does not show. `stalled` says what is wrong with the source's capture;
    it is queried only if there is nothing to read. `counted` holds the counted change rows by the instance's object id
    and range.
    """

    facts: Facts
    offsets: Offsets
    history: SchemaHistory
    tables: Mapping[TableId, LakeTable]
    requests: Sequence[Request] = ()
    controls: Controls = field(default_factory=Controls)
    left: Mapping[TableId, Entry] = field(default_factory=dict[TableId, Entry])
    stalled: str | None = None
    counted: Mapping[tuple[int, LsnRange], int] = field(default_factory=dict[tuple[int, LsnRange], int])

    def limited_to(self, tables: Collection[TableId]) -> Survey:
        """The survey with the states of these tables only."""
        return replace(self, tables={table: state for table, state in self.tables.items() if table in tables})

    def instance(self, table: TableId, object_id: int) -> CaptureInstance:
        """The capture instance that a slice names."""
        return next(i for i in self.tables[table].captured.instances if i.object_id == object_id)

    @property
    def is_whole(self) -> bool:
        """Whether the logs of all tables were loaded."""
        return all(lake.loaded for lake in self.tables.values())

    @property
    def new(self) -> frozenset[str]:
        """The tables (`TableId.text`) that have to begin, or to begin again."""
        return frozenset(member.table.text for member in self.facts.members if member.status == "new")

    @property
    def identities(self) -> Mapping[str, int | None]:
        """The object ids of the captured tables, by their names (`TableId.text`); None: the table was not loaded."""
        loaded = {table: lake.captured.object_id for table, lake in self.tables.items()}
        return {member.table.text: loaded.get(member.table) for member in self.facts.members}

    def member(self, table: TableId) -> Member | None:
        """How the planner sees the table."""
        return next((m for m in self.facts.members if m.table == table), None)

    def position(self, table: TableId) -> Lsn | None:
        """A table's position."""
        member = self.member(table)
        return member.position if member is not None else None

    def witness(self, session: SourceSession, to: Lsn) -> Witness | None:
        """The witness to store with a position, of the surveyed history; see `witness_of` for what it raises."""
        return witness_of(session, self.offsets, self.facts, self.tables.values(), to=to)


def survey(
    database: Database,
    *,
    cursor: Cursor | None = None,
    now: datetime | None = None,
    retry_failed: Collection[TableId] | None = (),
    quick: bool = False,
    sparing: bool = False,
    currents: bool = True,
) -> Survey:
    """Collect everything that a decision depends on.

    Args:
        database: The database to inspect.
        cursor: The planner's memory.
        now: The time of the decision; by default the current time.
        retry_failed: The failed tables to treat as streaming, or as new ones if nothing of them was read; None: all.
        quick: Do not read the tables' logs if `_offsets` is sufficient; nothing may be committed from such a survey.
        sparing: Read only the logs of the tables with changes, if `_offsets` is sufficient for the others; nothing but
            a range may be committed from such a survey (`Survey.is_whole`).
        currents: Also find current tables that are behind.

    Raises:
        SourceUnavailableError, SourceError, ConfigurationError, StorageError, TamperedTableError.
    """
    now, cursor = now or datetime.now(UTC), cursor or Cursor()
    found = None
    if sparing:
        found = _survey(database, cursor, now, retry_failed, logs="of changed tables", currents=currents)
    if found is None:
        found = _survey(database, cursor, now, retry_failed, logs="if needed" if quick else "all", currents=currents)
    assert found is not None  # only a sparing survey finds that it has to be taken again
    return found


def _survey(
    database: Database,
    cursor: Cursor,
    now: datetime,
    retry_failed: Collection[TableId] | None,
    *,
    logs: Literal["all", "if needed", "of changed tables"],
    currents: bool,
) -> Survey | None:
    """Take a survey that reads these logs; None if the logs of changed tables show that all have to be read."""
    offsets = database.offsets()
    if logs == "all":
        load_gaps(database.layout, database.storage)  # If the ledger was rolled back, nobody knows what is lost.
    requests, controls = open_requests(database, offsets), load_controls(database)
    # The clock of the host that wrote the row may be far ahead: tables would not advance until ours catches up.
    idle_for = abs(now - offsets.advanced_at) if offsets.advanced_at else timedelta(0)
    cut = offsets.last_cut()
    with database.session() as session:
        name = session.require_ready()
        if not offsets.number:
            _require_real_name(database, name)
        source = _source(session, offsets, idle_for)
        states = logs == "all" or not _settled(offsets, cursor)
        history, loaded = _loaded(database, source, offsets, states=states)
        members = _seen_as(database, loaded, source, offsets, history, retry_failed)
        spared = not states and logs == "of changed tables"
        begins = bool(requests) or any(member.status == "new" for member in members)
        if spared and (source.restored is not None or begins or not _unread(source.standing.captured, members)):
            # Then the decision is unlikely to be a range.
            loaded, spared = {table: with_state(database, lake) for table, lake in loaded.items()}, False
            members = _seen_as(database, loaded, source, offsets, history, retry_failed)
        restored = restore_after_commits(session, offsets, loaded.values()) if source.restored is None else None
        if restored is not None:
            source, spared = replace(source, restored=restored), False
            history, loaded = _loaded(database, source, offsets, states=True)
            members = _seen_as(database, loaded, source, offsets, history, retry_failed)
        require_newest(database, offsets, loaded.values())
        tables = {table: lake for table, lake in loaded.items() if lake.problem is None}
        problems = {table: lake.problem for table, lake in loaded.items() if lake.problem} | dict(source.unreadable)
        absent = [*absent_tables(session, database, offsets, history, loaded, problems)]
        left = {found.table: entry for found, entry in absent if found.former is None}
        # A full survey also finds what a user has restored or removed since the newest cut was merged.
        merged = None if logs == "all" else cursor.merged
        behind: Mapping[TableId, bool] = {}
        if currents:
            behind = _behind(database, offsets, history, tables, merged=merged)
        facts = Facts(
            now=now,
            members=tuple(member for member in members if member.table in tables),
            captured=source.standing.captured,
            absent=(*(found for found, _ in absent), *unfit_tables(offsets, problems), *source.alike),
            scanned=source.scanned,
            settled=source.standing.settled,
            cut=_cut(offsets),
            cut_number=cut.number if cut is not None else 0,
            epoch=offsets.epoch,
            idle_for=idle_for,
            restored=source.restored,
            held_back=session.held_back(),
            asked=tuple(_asked(one, source.tables, controls) for one in requests),
            paused=paused_snapshots(offsets, controls, tables),
            snapshots=frozenset(row.partition for row in offsets.snapshot_rows if row.partition),
            behind=tuple(behind),
            due=tuple(table for table, is_due in behind.items() if is_due),
            policy=policy(database, offsets),
            limits=_limits(database, source.retention),
            cursor=cursor,
        )
        unread = _unread(facts.captured, facts.members)
        if not unread:
            return Survey(facts, offsets, history, tables, requests, controls, left, stalled=session.stalled())
        facts, counted = _bounded(session, database, facts, unread, tables)
    seen = Survey(facts, offsets, history, tables, requests, controls, left, counted=counted)
    return _with_changed(database, seen, unread) if spared else seen


def _with_changed(database: Database, seen: Survey, unread: Sequence[tuple[Member, Lsn]]) -> Survey | None:
    """The survey with the logs of the tables that have changes, loaded before these changes are read (A3).

    None if one of them is not as `_offsets` says; or if the range has a bound, which must not lie below what any table
    has read (A4).
    """
    if seen.facts.row_bound is not None or seen.facts.transaction_bound is not None:
        return None
    quiet = {object_id for (object_id, _), rows in seen.counted.items() if not rows}
    changed = [m.table for m, at in unread if (i := m.instance_at(at)) is None or i.object_id not in quiet]
    found = {table: with_state(database, seen.tables[table]) for table in changed}
    if not all(lake.is_as_recorded for lake in found.values()):
        return None
    return replace(seen, tables={**seen.tables, **found})


@dataclass(frozen=True, slots=True)
class _Source:
    """The source's answers; `scanned` is the newest position that capture is known to have scanned."""

    restored: str | None
    standing: Standing
    scanned: Lsn | None
    tables: Sequence[CapturedTable]
    alike: Sequence[Absent]
    unreadable: Mapping[TableId, str]
    minima: Mapping[str, Lsn | None]
    before: Mapping[Lsn, Lsn | None]
    retention: timedelta | None


def _require_real_name(database: Database, name: str) -> None:
    """Positions, folders and records use the server's name: another spelling would begin a separate lake."""
    if name != database.catalog:
        raise ConfigurationError(
            f"database.names has {database.catalog!r}, and the server's database is {name!r}: write the name as the "
            "server has it; if Dagster runs the connector, run mssql-cdc discover and reload the code location"
        )


def _source(session: SourceSession, offsets: Offsets, idle_for: timedelta) -> _Source:
    restored = restore_since(session, offsets)
    marks = offsets.unwitnessed_marks.union(offsets.closed_tables.values())
    passed = session.newest_passed(marks)
    # Before the schemas: a row that is already captured was never written under a newer schema.
    standing = session.standing()
    tables, alike = apart(session.tables(), offsets)
    return _Source(
        restored=restored,
        standing=standing,
        scanned=max((lsn for lsn in (standing.captured, standing.settled, passed) if lsn), default=None),
        tables=tables,
        alike=tuple(alike),
        unreadable=session.unreadable(),
        minima=session.catalog_minima(),
        before=_before(session, tables),
        retention=session.retention() if idle_for >= LEAST_IDLE else None,
    )


def _asked(request: Request, tables: Sequence[CapturedTable], controls: Controls) -> Asked:
    wanted = request.of([table.table_id for table in tables])
    stopped = controls.stopped(wanted, request.batch)
    left = tuple(table for table in wanted if table not in stopped)
    # A request of which nothing is left is still processed, so that it is answered.
    return Asked(request.key, left or wanted, request.signal_id, bool(left) and controls.paused(request.batch))


def _behind(
    database: Database,
    offsets: Offsets,
    history: SchemaHistory,
    tables: Mapping[TableId, LakeTable],
    *,
    merged: int | None,
) -> Mapping[TableId, bool]:
    """Return the tables whose current table lacks rows of the newest cut, and whether its interval has passed.

    None of them does if `merged` is the number of that cut.
    """
    cut = offsets.last_cut()
    if cut is None or cut.number == merged:
        return {}
    found = behind_cut(database, tables.values(), offsets, history)
    return {table: is_due(database, tables[table]) for table in found}


def _loaded(
    database: Database, source: _Source, offsets: Offsets, *, states: bool
) -> tuple[SchemaHistory, Mapping[TableId, LakeTable]]:
    """The structures of the captured tables, under their present names, and these tables as the lake has them."""
    present = {table.table_id: table.object_id for table in source.tables}
    met = offsets.met(present) if source.restored is None else offsets.named_as(present)
    history = database.history().identified(present, met)
    return history, load_tables(database, source.tables, offsets, history, states=states)


def _before(session: SourceSession, tables: Iterable[CapturedTable]) -> dict[Lsn, Lsn | None]:
    """Return the newest transaction below each instance's start if a table may have to switch (rule B14)."""
    starts = {i.start_lsn for table in tables if len(table.instances) > 1 for i in table.instances}
    return dict(session.newest_before(sorted(starts)))


def _seen_as(
    database: Database,
    tables: Mapping[TableId, LakeTable],
    source: _Source,
    offsets: Offsets,
    history: SchemaHistory,
    retry_failed: Collection[TableId] | None,
) -> tuple[Member, ...]:
    """The tables as the planner sees them."""
    is_signal_table = database.connector.filters.tables.is_signal_table
    found: list[Member] = []
    for table, lake in tables.items():
        member = _member(lake, source, offsets, retries=retry_failed is None or table in retry_failed)
        found.append(replace(_rekeyed(member, lake, history), signals=is_signal_table(*table.parts)))
    return tuple(found)


def _member(lake: LakeTable, source: _Source, offsets: Offsets, *, retries: bool) -> Member:
    name = lake.table.text
    instances = tuple(
        Instance(
            i.object_id, i.name, i.start_lsn, source.minima.get(i.name), source.before.get(i.start_lsn), i.identity
        )
        for i in lake.captured.instances
    )
    known = lake.entry is not None and lake.entry.status != "excluded" and lake.entry.epoch == offsets.epoch
    if lake.entry is None or lake.recreated or not known:
        # A position of an earlier epoch is meaningless in this one (A7): the table starts like a new one.
        return Member(lake.table, "new", None, instances)
    status = lake.entry.status
    begun = offsets.begun_snapshots.get(name)
    if status == "snapshot" and begun is None:
        status = "new"  # It was renamed meanwhile, and the snapshot goes by the name.
    revived = retries and status == "failed"
    if revived:
        status = "streaming" if lake.entry.to else "new"
    reached = lake.reached(offsets.epoch)
    read, shown = lake.instances_at(offsets.epoch)
    mark = offsets.closed_until(name, lake.entry)
    return Member(
        lake.table,
        status,
        Lsn.parse(reached.to) if reached else None,
        instances,
        mark.lsn if mark else None,
        begun,
        read,
        shown,
        tampered=lake.tampered,
        revived=revived,
    )


def _rekeyed(member: Member, lake: LakeTable, history: SchemaHistory) -> Member:
    """The member, marked if the key of what it reads next is not the one under which its rows were read (B15)."""
    instance = member.instance_at(member.position) if member.position is not None else None
    if member.status != "streaming" or instance is None or lake.entry is None:
        return member
    schema = next(i.schema for i in lake.captured.instances if i.object_id == instance.object_id)
    rekeyed = bool(schema.key_columns) and not history.is_filled(schema, lake.entry.filled)
    return replace(member, rekeyed=True) if rekeyed else member


def _settled(offsets: Offsets, cursor: Cursor | None) -> bool:
    """Whether the last requested range is a complete cut: then no table's log contains more than `_offsets`."""
    key = cursor.pending_key if cursor is not None else None
    return key is not None and offsets.has_cut(key)


def _cut(offsets: Offsets) -> Lsn | None:
    cut = offsets.last_cut()
    return Lsn.parse(cut.to) if cut is not None and cut.to and cut.epoch == offsets.epoch else None


def _limits(database: Database, retention: timedelta | None) -> Limits:
    """Return bounds and wait times; idle tables advance well before the server's cleanup reaches them (rule A8)."""
    return Limits(
        max_attempts=database.connector.dagster.max_attempts,
        retry_wait=timedelta(milliseconds=database.connector.streaming.retry_wait_ms),
        idle_advance=(retention or DEFAULT_RETENTION) / RETENTION_SHARE,
    )


def _unread(captured: Lsn | None, members: Iterable[Member]) -> list[tuple[Member, Lsn]]:
    """The streaming tables with changes to read, each with its position."""
    if captured is None:
        return []
    streaming = ((m, m.position) for m in members if m.status == "streaming" and m.position is not None)
    return [(member, position) for member, position in streaming if position < captured]


def _bounded(
    session: SourceSession,
    database: Database,
    facts: Facts,
    unread: Sequence[tuple[Member, Lsn]],
    lake: Mapping[TableId, LakeTable],
) -> tuple[Facts, Mapping[tuple[int, LsnRange], int]]:
    """The facts with the bounds of a range (rows are counted first, transactions only if configured), and the counts.

    Tables that lost changes are not counted: nothing is read from them, and a CDC function refuses what is gone.
    """
    captured = facts.captured
    assert captured is not None  # there are changes to read
    losses = lost(facts)
    stopped = losses.stopped if losses is not None else ()
    parts: list[tuple[CaptureInstance, LsnRange]] = []
    for member, position in unread:
        instance = member.instance_at(position)
        if instance is not None and member.table not in stopped:
            chosen = next(i for i in lake[member.table].captured.instances if i.object_id == instance.object_id)
            begin = min(member.reads_from(instance, position), captured)
            parts.append((chosen, LsnRange(begin, captured, facts.epoch)))
    lowest = min(position for _, position in unread)
    most = database.connector.streaming.max_transactions
    volume = session.measure(parts, captured)
    transactions = session.nth_transaction(lowest, most, captured) if most else None
    row_bound, transaction_bound = (_reaching(session, facts, bound) for bound in (volume.bound, transactions))
    facts = replace(facts, row_bound=row_bound, transaction_bound=transaction_bound)
    end = row_bound or captured
    counted = {
        (instance.object_id, LsnRange(wanted.from_, end, wanted.epoch)): volume.rows[instance.name]
        for instance, wanted in parts
        if wanted.from_ < end and row_bound == volume.bound
    }
    return facts, counted


def _reaching(session: SourceSession, facts: Facts, bound: Lsn | None) -> Lsn | None:
    """The bound, or the first transaction at or after what one table has read, if that is further (A4).

    A range ends at a transaction, which its readers check for (A2); a table that was read whole is at the log's end.
    """
    streaming = [m.position for m in facts.members if m.status == "streaming" and m.position is not None]
    furthest = max((at for at in streaming if facts.captured is not None and at <= facts.captured), default=None)
    if bound is None or furthest is None or bound >= furthest or facts.captured is None:
        return bound
    return session.nth_transaction(furthest.decrement(), 1, facts.captured)
