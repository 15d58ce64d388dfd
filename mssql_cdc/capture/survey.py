"""Collects the planner's facts: one look at the lake, then one at the source. No JVM, nothing is written.

The lake is read first and the source's `captured` last, so that nothing that is captured later can be missed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.marks import mark_from
from mssql_cdc.capture.members import Member as LakeMember
from mssql_cdc.capture.members import load_members
from mssql_cdc.capture.requests import asked_snapshots
from mssql_cdc.errors import SourceRestoredError
from mssql_cdc.lake.history import SchemaHistory, load_history
from mssql_cdc.lake.offsets import Offsets, load_offsets
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.plan.facts import Activity, Asked, Cursor, Facts, Instance, Limits, Member
from mssql_cdc.plan.policy import SnapshotPolicy, policy_of
from mssql_cdc.schema import TableId
from mssql_cdc.source.sqlserver.instances import CapturedTable, CaptureInstance
from mssql_cdc.source.sqlserver.log_end import LogMark
from mssql_cdc.source.sqlserver.positions import Standing, Witness
from mssql_cdc.source.sqlserver.source import SqlServerSession

RETENTION_SHARE = 8
DEFAULT_RETENTION = timedelta(days=3)
LEAST_IDLE = timedelta(minutes=1)
"""So long an idle database is not asked for its retention: no cleanup is that fast."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The facts, and what they were made of; a run commits from these states and from no others."""

    facts: Facts
    offsets: Offsets
    history: SchemaHistory
    members: Mapping[TableId, LakeMember]
    standing: Standing

    def instance(self, table: TableId, object_id: int) -> CaptureInstance:
        """The capture instance that a slice names."""
        return next(i for i in self.members[table].captured.instances if i.object_id == object_id)

    def position(self, table: TableId) -> Lsn | None:
        """A table's position."""
        return next((m.position for m in self.facts.members if m.table == table), None)


def survey(
    database: Database,
    *,
    cursor: Cursor | None = None,
    running: Sequence[Activity] = (),
    now: datetime | None = None,
    retry_failed: bool = False,
    quick: bool = False,
) -> Survey:
    """One look at everything; `retry_failed` takes failed tables for streaming ones (an operator's explicit wish).

    A `quick` one leaves the tables' logs alone while `_offsets` says it all; nothing may be committed from it.

    Raises:
        SourceUnavailableError, SourceError, ConfigurationError, StorageError, TamperedTableError.
    """
    now = now or datetime.now(UTC)
    offsets = load_offsets(database.layout, database.storage)
    history = load_history(database.layout, database.storage)
    asked = asked_snapshots(database, offsets)
    with database.session() as session:
        session.database()  # says what is missing when CDC is not enabled
        restored = _restored(session, offsets)
        closed = {name: mark_from(mark) for name, mark in offsets.closed_tables.items()}
        passed = [mark.lsn for mark in set(closed.values()) if session.passed(mark)]
        tables = session.tables()
        minima = session.minima()
        standing = session.standing()
        states = not (quick and _settled(offsets, cursor))
        lake = load_members(database, tables, offsets, history, states=states)
        before = _before(session, tables)
        members = [_member(m, offsets, closed, minima, before, retry_failed=retry_failed) for m in lake.values()]
        scanned = max((lsn for lsn in (standing.captured, standing.settled, *passed) if lsn), default=None)
        idle_for = now - offsets.advanced_at if offsets.advanced_at else timedelta(0)
        facts = Facts(
            now=now,
            members=tuple(members),
            captured=standing.captured,
            scanned=scanned,
            settled=standing.settled,
            cut=_cut(offsets),
            epoch=offsets.epoch,
            idle_for=idle_for,
            restored=restored,
            running=tuple(running),
            asked=tuple(Asked(one.key, one.of([t.table_id for t in tables]), one.signal_id) for one in asked),
            policy=policy(database),
            limits=_limits(database, session.retention() if idle_for >= LEAST_IDLE else None),
            cursor=cursor or Cursor(),
        )
        facts = _bounded(session, database, facts, lake)
    return Survey(facts, offsets, history, lake, standing)


def policy(database: Database) -> SnapshotPolicy:
    """What `snapshot.mode` asks for."""
    settings = database.connector.snapshot
    flags = settings.decisions
    return policy_of(settings.mode, data=flags.data, stream=flags.stream, on_data_error=flags.on_data_error)


def witness_text(witness: Witness | None) -> str | None:
    """A witness as `_offsets` keeps it."""
    if witness is None:
        return None
    return json.dumps([witness.start_lsn.text, witness.tran_id, witness.tran_begin_lsn, witness.tran_end_time])


def _restored(session: SqlServerSession, offsets: Offsets) -> str | None:
    if offsets.witness is None:
        return None
    start, *rest = json.loads(offsets.witness)
    try:
        session.require_witness(Witness(Lsn.parse(start), *rest))
    except SourceRestoredError as error:
        return str(error)
    return None


def _before(session: SqlServerSession, tables: Iterable[CapturedTable]) -> dict[Lsn, Lsn | None]:
    """The newest transaction below each instance's start, where a table may have to switch (rule B14)."""
    starts = {i.start_lsn for table in tables for i in table.instances}
    return dict(session.newest_before(sorted(starts)))


def _member(
    lake: LakeMember,
    offsets: Offsets,
    closed: Mapping[str, LogMark],
    minima: Mapping[str, Lsn | None],
    before: Mapping[Lsn, Lsn | None],
    *,
    retry_failed: bool,
) -> Member:
    name = lake.table.text
    instances = tuple(
        Instance(i.object_id, i.name, i.start_lsn, minima.get(i.name), before.get(i.start_lsn))
        for i in lake.captured.instances
    )
    if lake.entry is None or lake.recreated or lake.entry.epoch < offsets.epoch:
        # Where a table stood in an earlier epoch is no place in this one (rule A7): it begins as a new table does.
        return Member(lake.table, "new", None, instances)
    status = "streaming" if retry_failed and lake.entry.status == "failed" else lake.entry.status
    reached = lake.reached(offsets.epoch)
    mark = closed.get(name)
    return Member(
        lake.table,
        status,
        Lsn.parse(reached.to) if reached else None,
        instances,
        mark.lsn if mark else None,
        offsets.begun_snapshots.get(name),
    )


def _settled(offsets: Offsets, cursor: Cursor | None) -> bool:
    """Whether the range that was asked for last is a complete cut: then no table's log knows more than `_offsets`."""
    key = cursor.pending_key if cursor is not None else None
    return key is not None and offsets.has_cut(key)


def _cut(offsets: Offsets) -> Lsn | None:
    cut = offsets.last_cut()
    return Lsn.parse(cut.to) if cut is not None and cut.to and cut.epoch == offsets.epoch else None


def _limits(database: Database, retention: timedelta | None) -> Limits:
    """Bounds and patience; idle tables are taken on well before the server's cleanup reaches them (rule A8)."""
    return Limits(
        max_attempts=database.connector.dagster.max_attempts,
        retry_wait=timedelta(milliseconds=database.connector.streaming.retry_wait_ms),
        idle_advance=(retention or DEFAULT_RETENTION) / RETENTION_SHARE,
    )


def _bounded(session: SqlServerSession, database: Database, facts: Facts, lake: Mapping[TableId, LakeMember]) -> Facts:
    """The facts with the bounds of a range: rows counted first, transactions only when asked for."""
    captured = facts.captured
    behind = [
        m
        for m in facts.members
        if captured is not None and m.status == "streaming" and m.position is not None and m.position < captured
    ]
    if captured is None or not behind:
        return facts
    parts = []
    for member in behind:
        assert member.position is not None  # chosen so above
        instance = member.instance_at(member.position)
        if instance is not None:
            chosen = next(i for i in lake[member.table].captured.instances if i.object_id == instance.object_id)
            parts.append((chosen, LsnRange(member.position, captured, facts.epoch)))
    lowest = min(m.position for m in behind if m.position is not None)
    most = database.connector.streaming.max_transactions
    return replace(
        facts,
        row_bound=session.row_bound(parts, captured),
        transaction_bound=session.nth_transaction(lowest, most, captured) if most else None,
    )
