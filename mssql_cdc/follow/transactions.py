"""Transaction metadata: the rows of `_transactions`, BEGIN and END of every transaction of complete cuts (TXN-04).

Counts are those of the rendered records (`records/event_counts.py`). Debezium learns that a transaction has ended from
the next one; a complete cut has whole transactions, so that both rows are written together.

A table that joins the cuts late, after failures, has its events in a separate transaction with the same id, as in the
records. If `event.processing.failure.handling.mode` is `fail`, records stop at a change that cannot be rendered; that
change counts here, unless it is an update whose values had to be examined.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.errors import ConfigurationError, FencedError
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import BatchSlice, exists, scan
from mssql_cdc.lake.small_tables import SmallTable, small_table
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.records.event_counts import COLUMNS, EventCounts, counting_extensions, merged_counts, transaction_of
from mssql_cdc.records.extending import Extensions
from mssql_cdc.schema.arrow import INSTANT

Numbers = np.ndarray[Any, Any]
_HIGHEST = "g"


@dataclass(frozen=True, slots=True)
class Counted:
    """The transactions that were written: how many, their events, the first and the last commit LSN.

    `as_of` is the newest commit time.
    """

    transactions: int = 0
    events: int = 0
    first: str | None = None
    last: str | None = None
    as_of: datetime | None = None

    def __add__(self, later: Counted) -> Counted:
        times = [at for at in (self.as_of, later.as_of) if at is not None]
        return Counted(
            self.transactions + later.transactions,
            self.events + later.events,
            self.first or later.first,
            later.last or self.last,
            max(times, default=None),
        )


@dataclass(frozen=True, slots=True)
class _Taken:
    """What was counted: the rows up to `position`, of each change log up to a `_batch`, of the others up to `unknown`.

    All rows of `batches` were counted. A table can be ahead of the cut: of its rows up to the batch in `ahead`, those
    after the position were not.
    """

    position: str = ""
    batches: Mapping[str, int] = field(default_factory=dict[str, int])
    ahead: Mapping[str, int] = field(default_factory=dict[str, int])
    unknown: int = 0

    @classmethod
    def of(cls, table: SmallTable, state: TableState) -> _Taken:
        """Return what the newest commit says; if log cleanup has removed it (A5), what the rows say."""
        if state.own is not None:
            return cls(state.own["position"], state.own["batches"], state.own["ahead"])
        last = pc.max(table.table().column("_pos")).as_py() if state.own_batch else None
        return cls() if last is None else cls(f"{transaction_of(last)}{_HIGHEST}", unknown=sys.maxsize)

    def is_new(self, rows: pa.RecordBatch, log: str) -> pa.Array:
        """Return which rows of a change log were not counted."""
        counted = self.ahead.get(log, self.batches.get(log, self.unknown))
        return pc.or_(pc.greater(rows.column("_pos"), self.position), pc.greater(rows.column("_batch"), counted))


def count_transactions(
    database: Database, offsets: Offsets, tables: Iterable[LakeTable], history: SchemaHistory
) -> Counted:
    """Write the rows of each transaction of complete cuts that has none yet, and return what was written.

    Args:
        database: The database.
        offsets: The cuts.
        tables: The tables whose changes are counted.
        history: The schema versions of their rows.
    """
    cut = offsets.last_cut()
    if cut is None or not database.connector.records.transaction_metadata:
        return Counted()
    table = small_table(database.layout, "transactions", database.storage)
    state = table.state()
    taken = _Taken.of(table, state)
    position = cut_text(cut.epoch, Lsn.parse(cut.to or ""))
    batches, ahead = dict(taken.batches), dict(taken.ahead)
    found: list[pa.Table] = []
    for member in tables:
        log, up_to = member.home.app_id, offsets.batch_at(member.table.text, cut.number, folder=member.folder)
        if up_to is None or up_to <= taken.batches.get(log, 0):
            continue
        if not exists(member.home.changes, database.storage):
            continue  # The folder was moved away, and the table is about to be read again.
        reader = _Reader(database, member, BatchSlice(taken.batches.get(log, 0), up_to), position, taken)
        found.append(reader.counts(history))
        batches[log] = reader.whole
        ahead.pop(log, None)
        if reader.whole < up_to:
            ahead[log] = up_to
    rows, counted = _rows(merged_counts(found))
    if batches == taken.batches and not counted.transactions:
        return counted
    facts = {
        "kind": "transactions", "position": max(position, taken.position), "batches": batches, "ahead": ahead,
        "run_id": database.run_id,
    }  # fmt: skip
    try:
        table.append_columns(state, rows, facts)
    except FencedError:
        return Counted()  # Another run has counted them.
    return counted


@dataclass
class _Reader:
    """Reads the rows of one change log that were not counted, up to the cut; `whole` is the last batch without others.

    Rows of snapshots and sweeps are not events.
    """

    database: Database
    member: LakeTable
    batches: BatchSlice
    position: str
    taken: _Taken

    def __post_init__(self) -> None:
        self.whole = self.batches.up_to

    def counts(self, history: SchemaHistory) -> pa.Table:
        """Return the counts of the table's events, as `event_counts.COUNTED`."""
        made = EventCounts(self.member.table, history, self.database.connector, _extensions(self.database))
        for rows in self._rows(COLUMNS):
            made.add(rows)
        if made.needs_values:
            for rows in self._rows(None):
                made.add_values(rows)
        return made.counts()

    def _rows(self, columns: Iterable[str] | None) -> Iterator[pa.RecordBatch]:
        names = None if columns is None else list(columns)
        home, storage = self.member.home, self.database.storage
        for rows in scan(home.changes, batches=self.batches, columns=names, storage=storage):
            beyond = pc.greater(rows.column("_pos"), self.position)
            first = pc.min(rows.filter(beyond).column("_batch")).as_py()
            self.whole = self.whole if first is None else min(self.whole, first - 1)
            streamed = pc.and_(pc.is_null(rows.column("_snapshot")), pc.invert(beyond))
            wanted = rows.filter(pc.and_(streamed, self.taken.is_new(rows, home.app_id)))
            if wanted.num_rows:
                yield wanted


def _extensions(database: Database) -> Extensions | None:
    """Return the extensions of records; None if records cannot be rendered, which is no problem for capture."""

    def load() -> Extensions | None:
        try:
            return counting_extensions(database.connector)
        except ConfigurationError as error:
            database.log(f"_transactions counts each row of a change log as an event, as far as it is known: {error}")
            return None

    return None if database.connector.unrendered else database.extensions.once("counting events", load)


def _rows(counts: pa.Table) -> tuple[pa.RecordBatch, Counted]:
    """Return the rows of transactions, BEGIN before END, from `event_counts.COUNTED` in order."""
    aggregates: list[Any] = [("commit_lsn", "min"), ("first", "min"), ("last", "max"), ("at", "max"), ("events", "sum")]
    # The order of groups is not guaranteed.
    groups: pa.Table = counts.group_by("transaction").aggregate([*aggregates, ([], "count_all")]).sort_by("transaction")
    count = groups.num_rows
    sizes: Numbers = groups.column("count_all").to_numpy()
    ends = np.cumsum(sizes)
    twice, is_end = pa.array(np.repeat(np.arange(count), 2)), np.tile([False, True], count)
    begin_or_end = pa.array(is_end, pa.bool_())

    def both(name: str) -> pa.Array:
        return _flat(groups.column(name)).take(twice)

    commits = both("commit_lsn_min")
    starts = np.append(np.repeat(ends - sizes, 2), len(counts))
    offsets = pa.array(starts, pa.int32(), mask=np.append(~is_end, np.zeros(1, bool)))
    columns = {
        "_pos": pc.if_else(begin_or_end, both("last_max"), both("first_min")),
        "transaction_id": commits,
        "status": pc.if_else(begin_or_end, "END", "BEGIN"),
        "event_count": pc.if_else(begin_or_end, both("events_sum"), pa.scalar(None, pa.int64())),
        "data_collections": pa.MapArray.from_arrays(
            offsets, _flat(counts.column("collection")), _flat(counts.column("events"))
        ),
        "commit_lsn": commits,
        "commit_ts": both("at_max").cast(INSTANT),
    }
    rows = pa.RecordBatch.from_pydict(columns)
    if not count:
        return rows, Counted()
    events, newest = pc.sum(counts.column("events")).as_py(), pc.max(columns["commit_ts"]).as_py()
    return rows, Counted(count, events, commits[0].as_py(), commits[-1].as_py(), newest)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
