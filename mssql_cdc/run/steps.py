"""Steps that the command line and Dagster have in common: what a snapshot reads, what follows a range.

Each returns what it did; how that is shown is decided by who called.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import name_of, requests
from mssql_cdc.capture.snapshot.capture import SnapshotResult, take_positions
from mssql_cdc.capture.snapshot.capture import capture as capture_snapshot
from mssql_cdc.capture.snapshot.run import Progress
from mssql_cdc.capture.survey import Survey
from mssql_cdc.errors import ConfigurationError, SourceRestoredError
from mssql_cdc.follow.after import Merged, count_transactions, merge_current, take_signals
from mssql_cdc.follow.sweeps import sweep_due
from mssql_cdc.lake.offsets import OffsetRow, Offsets, append_offsets
from mssql_cdc.plan.facts import Member
from mssql_cdc.run.loss import GO_ON
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class Followed:
    """What came after a range: current tables that were merged, transactions that were counted."""

    merged: Merged = field(default_factory=Merged)
    transactions: int = 0


@dataclass(frozen=True, slots=True)
class SnapshotDone:
    """A snapshot as it was done; `notes` says of tables that were not read why."""

    result: SnapshotResult
    notes: Mapping[TableId, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """Which snapshot to take. `signal` asked for it; `by_hand`: a person did, by naming a partition."""

    key: str
    tables: Collection[TableId]
    signal: str | None = None
    by_hand: bool = False


def follow(
    database: Database,
    seen: Survey,
    offsets: Offsets,
    *,
    ranged: bool = True,
    merge: bool = True,
) -> Followed:
    """What follows a range, from what complete cuts hold, so that it may be repeated.

    Args:
        database: where.
        seen: what was seen before the range.
        offsets: the offsets behind it.
        ranged: a range was read; without one there are no new signals and no new transactions.
        merge: bring current tables whose interval is over to the last cut, and do the sweeps that are due.
    """
    transactions = 0
    if ranged:
        take_signals(database, seen, offsets)
        transactions = count_transactions(database, offsets, seen.members)
    if not merge:
        return Followed(transactions=transactions)
    merged = merge_current(database, seen.members, offsets)
    sweep_due(database, seen.members, offsets)
    return Followed(merged, transactions)


def take_snapshot(
    database: Database, seen: Survey, asked: Asked, progress: Callable[[Progress], None] | None = None
) -> SnapshotDone:
    """Begin the snapshot of these tables, or go on with it; tables without rows to read get their position only.

    Raises:
        ConfigurationError: the source no longer captures one of the tables.
        SourceRestoredError: the source went back in time; its rows belong to another epoch.
        the errors of `snapshot.capture`.
    """
    if seen.facts.restored:
        raise SourceRestoredError(f"{asked.key} cannot be taken in this epoch: {seen.facts.restored}. {GO_ON}")
    members = {member.table: member for member in seen.facts.members}
    gone = [table.text for table in asked.tables if table not in members]
    if gone:
        raise ConfigurationError(
            f"{', '.join(sorted(gone))} cannot be snapshotted: the source no longer captures them. "
            "Run `mssql-cdc discover` and reload the code location"
        )
    notes = {table: note for table in asked.tables if (note := _not_read(database, seen, members[table], asked))}
    bare = [table for table in notes if _begins(seen, members[table], asked)]
    if bare:
        take_positions(database, bare, id_=asked.key, epoch=seen.facts.epoch)
    data = [table for table in asked.tables if table not in notes]
    if not data:
        _note_signal(database, seen, asked)
        return SnapshotDone(SnapshotResult(asked.key, {}, {}), notes)
    database.log(f"{asked.key}: {', '.join(table.text for table in data)}")
    result = capture_snapshot(
        database,
        data,
        id_=asked.key,
        epoch=seen.facts.epoch,
        signal=asked.signal,
        filters=_filters(database, seen, members, asked),
        progress=progress,
    )
    return SnapshotDone(result, notes)


def _not_read(database: Database, seen: Survey, member: Member, asked: Asked) -> str | None:
    """Why this snapshot reads no rows of the table; None when it does."""
    name = name_of(member.table)
    settings, policy = database.connector.snapshot, seen.facts.policy
    if database.connector.filters.tables.is_signal_table(*name):
        return "the signal table is streamed, never snapshotted"
    if _begins(seen, member, asked):
        if policy.data and settings.collections.matches(*name):
            return None
        return f"snapshot.mode={policy.mode} takes the table's position only"
    rows = [row for row in seen.offsets.snapshot_rows if row.partition == asked.key]
    entries = [row.tables[member.table.text] for row in rows if member.table.text in row.tables]
    if entries and entries[-1].status == "streaming":
        return "this snapshot has been taken; add a partition with another time for a new one"
    return None


def _begins(seen: Survey, member: Member, asked: Asked) -> bool:
    """Whether `snapshot.mode` decides about the table's rows: it is new, or its loss is repaired by itself."""
    repaired = member.status == "lost" and seen.facts.policy.on_data_error
    return member.status == "new" or (repaired and asked.signal is None and not asked.by_hand)


def _filters(
    database: Database, seen: Survey, members: Mapping[TableId, Member], asked: Asked
) -> Mapping[TableId, str]:
    """The SELECT statements of the signal's `additional-conditions` (BLK-04).

    A table that lost changes is read whole: what a filter leaves out would stay wrong, and nothing would sweep it.
    """
    if asked.signal is None:
        return {}
    request = next((one for one in requests(database, seen.offsets) if one.signal_id == asked.signal), None)
    found = request.filters(asked.tables) if request is not None else {}
    lost = [table for table in found if members[table].status == "lost"]
    for table in lost:
        database.log(f"{table}: read whole, without the signal's filter, because changes of it were lost")
    return {table: text for table, text in found.items() if table not in lost}


def _note_signal(database: Database, seen: Survey, asked: Asked) -> None:
    """A signal that leads to no read is done all the same: without a row that names it, it would be asked for again."""
    if asked.signal is None:
        return
    row = OffsetRow(
        kind="status",
        at=datetime.now(UTC),
        tables={},
        epoch=seen.facts.epoch,
        run_id=database.run_id,
        facts=json.dumps({"snapshot": asked.key, "signal": asked.signal, "data": False}),
    )
    append_offsets(database.layout, row, seen=seen.offsets, storage=database.storage)
