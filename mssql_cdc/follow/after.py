"""What follows a range, from what was committed: current tables, signals, transactions, notifications.

All of it may be repeated: each thing remembers in its own commit how far it has come (rule A6).
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import Member, load_members
from mssql_cdc.capture.survey import Survey
from mssql_cdc.errors import FencedError, MssqlCdcError
from mssql_cdc.follow.signals import apply_signals
from mssql_cdc.lake.current import CurrentResult, applied_batch, apply
from mssql_cdc.lake.history import SchemaHistory, load_history
from mssql_cdc.lake.offsets import OffsetRow, Offsets, load_offsets
from mssql_cdc.lake.read import BatchSlice, scan
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.schema import TableId
from mssql_cdc.source.sqlserver.catalog import signal_table
from mssql_cdc.spark.tasks import side_by_side


@dataclass(frozen=True, slots=True)
class Merged:
    """What was merged into current tables; `errors` are tables whose merge failed and will be tried again."""

    tables: Mapping[TableId, CurrentResult] = field(default_factory=dict)
    errors: Mapping[TableId, MssqlCdcError] = field(default_factory=dict)


def merge_current(
    database: Database, members: Mapping[TableId, Member], offsets: Offsets, *, due_only: bool = True
) -> Merged:
    """Bring the current tables to the last complete cut; with `due_only` those whose interval is over.

    Tables without a key, with an open snapshot, or not yet in a complete cut are left alone.
    """
    cut = offsets.last_cut()
    if cut is None:
        return Merged()
    history = load_history(database.layout, database.storage)
    due: dict[TableId, int] = {}
    for table, member in members.items():
        up_to = mergeable_batch(table, offsets, cut)
        if up_to is None or not _is_behind(database, member, history, up_to):
            continue
        if not due_only or _is_due(database, member):
            due[table] = up_to
    if not due:
        return Merged()
    done: dict[TableId, CurrentResult] = {}
    errors: dict[TableId, MssqlCdcError] = {}
    merges = [partial(_merge, database, members[table], history, up_to) for table, up_to in due.items()]
    for table, result in zip(due, side_by_side(database.spark(), merges), strict=True):
        if isinstance(result, FencedError):
            continue  # Another run merged the same rows; its result stands.
        if isinstance(result, MssqlCdcError):
            errors[table] = result
            continue
        done[table] = result
    return Merged(done, errors)


def refresh_current(database: Database) -> Merged:
    """Bring every current table to the last complete cut, for a check; starts Spark only when one is behind."""
    offsets = load_offsets(database.layout, database.storage)
    history = load_history(database.layout, database.storage)
    with database.session() as session:
        members = load_members(database, session.tables(), offsets, history)
    return merge_current(database, members, offsets, due_only=False)


def behind_current(database: Database, members: Mapping[TableId, Member], offsets: Offsets) -> list[TableId]:
    """The tables whose current table has not reached the last complete cut; no JVM."""
    cut = offsets.last_cut()
    if cut is None:
        return []
    history = load_history(database.layout, database.storage)
    found = []
    for table, member in members.items():
        up_to = mergeable_batch(table, offsets, cut)
        if up_to is not None and _is_behind(database, member, history, up_to):
            found.append(table)
    return found


def mergeable_batch(table: TableId, offsets: Offsets, cut: OffsetRow) -> int | None:
    """The largest `_batch` of the table that may be merged now; None: nothing may (rule C18)."""
    entry = offsets.entry(table.text)
    if entry is None or entry.status not in {"streaming", "failed"} or table.text in offsets.closed_tables:
        return None
    return offsets.cut_batch(table.text, cut)


def take_signals(database: Database, survey: Survey, offsets: Offsets) -> None:
    """Apply the signals that complete cuts hold; each exactly once."""
    captured = signal_table(database.connector, database.catalog, [m.captured for m in survey.members.values()])
    cut = offsets.last_cut()
    if captured is None or cut is None:
        return
    up_to = offsets.cut_batch(captured.table_id.text, cut)
    if up_to is None:
        return
    try:
        lines = apply_signals(
            database, survey.members[captured.table_id], up_to, position=cut.to or "", tables=list(survey.members)
        )
    except FencedError:
        return  # Another run takes the same signals.
    for line in lines:
        database.log(line)


def count_transactions(database: Database, offsets: Offsets, members: Mapping[TableId, Member]) -> int:
    """Write a row per transaction of complete cuts that has none yet (TXN-04, TXN-07); how many."""
    cut = offsets.last_cut()
    if cut is None or not database.connector.records.transaction_metadata:
        return 0
    table = small_table(database.layout, "transactions", database.storage)
    state = table.state()
    taken: dict[str, int] = dict((state.own or {}).get("taken", {}))
    reached = dict(taken)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    times: dict[str, Any] = {}
    for member in members.values():
        name = member.table.text
        up_to = offsets.cut_batch(name, cut)
        if up_to is None or up_to <= taken.get(name, 0):
            continue
        _tally(database, member, BatchSlice(taken.get(name, 0), up_to), counts, times)
        reached[name] = up_to
    if reached == taken:
        return 0
    rows = [
        {
            "transaction_id": commit,
            "status": "END",
            "commit_lsn": commit,
            "event_count": sum(counts[commit].values()),
            "data_collections": sorted(counts[commit].items()),
            "commit_ts": times[commit],
        }
        for commit in sorted(counts)
    ]
    try:
        table.append(state, rows, {"kind": "transactions", "taken": reached, "run_id": database.run_id})
    except FencedError:
        return 0
    return len(rows)


def _tally(
    database: Database,
    member: Member,
    batches: BatchSlice,
    counts: dict[str, Counter[str]],
    times: dict[str, Any],
) -> None:
    """Events per commit of one table; snapshot rows and skipped operations do not count (TXN-07, rule E28)."""
    skipped = pa.array(sorted({"r", *database.connector.records.skipped}), pa.string())
    columns = ["op", "source", "_commit_ts", "_snapshot"]
    for batch in scan(member.home.changes, batches=batches, columns=columns, storage=database.storage):
        streamed = batch.filter(
            pc.and_(pc.is_null(batch.column("_snapshot")), pc.invert(pc.is_in(batch.column("op"), value_set=skipped)))
        )
        table = pa.table(
            {"commit": pc.struct_field(streamed.column("source"), "commit_lsn"), "at": streamed.column("_commit_ts")}
        )
        for row in table.group_by("commit").aggregate([("at", "max"), ("commit", "count")]).to_pylist():
            counts[row["commit"]][member.table.text] += row["commit_count"]
            times[row["commit"]] = row["at_max"]


def _merge(database: Database, member: Member, history: SchemaHistory, up_to: int) -> CurrentResult:
    result = apply(
        database.spark(),
        member.home,
        history.versions[member.table.text],
        up_to=up_to,
        run_id=database.run_id,
        deletion_vectors="true" if database.connector.delta.deletion_vectors else "false",
        storage=database.storage,
    )
    if result.rows:
        database.log(f"{member.table}: {result.rows} change rows merged into the current table")
    return result


def _is_behind(database: Database, member: Member, history: SchemaHistory, up_to: int) -> bool:
    """Whether the table is missing, or lacks rows; commits without rows start no JVM."""
    versions = history.versions.get(member.table.text, ())
    if not versions or not versions[-1].key_columns:
        return False
    applied = applied_batch(member.home, versions[-1], database.storage)
    if applied is None or applied >= up_to:
        return applied is None
    rows = scan(member.home.changes, batches=BatchSlice(applied, up_to), columns=["_batch"], storage=database.storage)
    return next(rows, None) is not None


def _is_due(database: Database, member: Member) -> bool:
    """Whether `delta.current.interval` has passed since the current table's newest commit."""
    try:
        table = DeltaTable(member.home.current, storage_options=database.storage.resolved())
    except TableNotFoundError:
        return True
    newest = table.history(1)
    at = newest[0].get("timestamp", 0) if newest else 0
    return time.time() - at / 1000 >= database.connector.delta.current_interval_s
