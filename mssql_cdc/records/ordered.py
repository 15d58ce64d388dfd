"""Changes of all tables in one order: their serial numbers and transactions, and the single records between them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.records.database_view import DatabaseView
from mssql_cdc.records.emitted import Emitted
from mssql_cdc.records.envelope import SLOTS, Envelopes, SourceInfo, offset_of
from mssql_cdc.records.heartbeats import Beat, beat_record
from mssql_cdc.records.notifications import Notice, notice_record
from mssql_cdc.records.numbered import Numbered
from mssql_cdc.records.record_batch import Part, Record, batch_of_records
from mssql_cdc.records.rows import Changes
from mssql_cdc.records.schema_changes import Announcement, streamed_record
from mssql_cdc.records.transactions import Orders

Numbers = np.ndarray[Any, Any]
Mark = Announcement | Beat | Notice


@dataclass(frozen=True, slots=True)
class _Events:
    """The events of the changes, with transaction metadata; arrays have one element per change, in order.

    `before` counts the events before a change. `first` is the number of its event (of its delete, if it moves a row),
    `create` that of a move's create; -1: none.
    """

    orders: Orders
    before: Numbers
    first: Numbers
    create: Numbers


@dataclass(frozen=True, slots=True)
class Ordered:
    """Changes of several tables; `order` lists them by position, `place` is the place of each in that order."""

    changes: list[Changes]
    starts: Numbers
    positions: pa.Array
    order: Numbers
    place: Numbers

    @classmethod
    def of(cls, changes: list[Changes]) -> Ordered:
        """Sort the changes; each table's are already sorted."""
        sizes = np.array([len(one) for one in changes], np.int64)
        positions = _concatenated([one.pos for one in changes])
        order = np.arange(len(positions))
        if len(changes) > 1:
            order = pc.sort_indices(positions).to_numpy().astype(np.int64)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return cls(changes, np.cumsum(sizes) - sizes, positions.take(pa.array(order)), order, place)

    def number(
        self, marks: Sequence[Mark], view: DatabaseView, envelopes: Envelopes
    ) -> tuple[list[Numbered], list[Part]]:
        """Number the changes, and build the records of marks among them.

        Args:
            marks: In order.
            view: The database.
            envelopes: Count the events; afterwards, the last change is their newest one.

        Returns:
            The numbers of each table's changes, and the records of the marks.
        """
        settings = view.connector.records
        commits = self._ordered_texts([one.commit_lsn for one in self.changes])
        is_read, is_update = (self._ordered([one.is_op(op) for one in self.changes]) for op in ("r", "u"))
        emitted = [Emitted.of(one, settings) for one in self.changes]
        moved = self._ordered([one.moved for one in emitted])
        dropped = self._ordered([one.dropped for one in emitted])
        counted = np.flatnonzero(~is_read)
        where = pa.array(counted)
        changed = self._ordered_texts([one.change_lsn for one in self.changes])
        serial = np.zeros(len(self.order), np.int64)
        serial[counted] = envelopes.serial.next(
            commits.take(where), changed.take(where), np.where(is_update, 2, 1)[counted]
        )
        events = None
        if settings.transaction_metadata:
            has_first = self._ordered([one.first for one in emitted])
            has_create = self._ordered([one.create for one in emitted])
            events = self._events(commits, has_first, has_create, envelopes)
        parts = [self._mark(mark, is_read, serial, events, envelopes) for mark in marks]
        if len(self.order):
            envelopes.newest = self._source(len(self.order) - 1, is_read, serial, envelopes)
        return [self._numbered(at, view, serial, moved, dropped, events) for at in range(len(self.changes))], parts

    def _numbered(
        self,
        at: int,
        view: DatabaseView,
        serial: Numbers,
        moved: Numbers,
        dropped: Numbers,
        events: _Events | None,
    ) -> Numbered:
        one, start = self.changes[at], self.starts[at]
        mine = self.place[start : start + len(one)]
        captured = view.captured(view.shapes.table_of(one.shape), one.batch)
        found = Numbered(mine, serial[mine], captured, moved[mine], dropped[mine])
        if events is None:
            return found
        return found.with_events(events.orders, events.before[mine], events.first[mine], events.create[mine])

    def _events(self, commits: pa.Array, has_first: Numbers, has_create: Numbers, envelopes: Envelopes) -> _Events:
        count = has_first.astype(np.int64) + has_create
        before = np.cumsum(count) - count
        owner = np.repeat(np.arange(len(count)), count)
        sizes = [len(one) for one in self.changes]
        tables = np.repeat(np.arange(len(sizes)), sizes)[self.order][owner]
        names = [one.shape.table_id.text for one in self.changes]
        orders = envelopes.transaction.next(commits.take(pa.array(owner)), tables, names)
        first, create = np.where(has_first, before, -1), np.where(has_create, before + has_first, -1)
        return _Events(orders, before, first, create)

    def _mark(
        self, mark: Mark, is_read: Numbers, serial: Numbers, events: _Events | None, envelopes: Envelopes
    ) -> Part:
        row = pc.sum(pc.less(self.positions, mark.position)).as_py() or 0
        if row:
            envelopes.newest = self._source(row - 1, is_read, serial, envelopes)
        records = _records_of(mark, envelopes)
        if events is not None and envelopes.newest is not None:
            # The envelopes have already counted all events, including those after the mark.
            count = int(events.before[row]) if row < len(events.before) else len(events.orders.begins)
            transaction = json.loads(f"{{{events.orders.offsets(np.array([count]))[0].as_py()[1:]}}}")
            for record in records:
                record["sourceOffset"] = offset_of(envelopes.newest, transaction)
        return np.full(len(records), row * SLOTS - 1), batch_of_records(records, mark.position)

    def _source(self, row: int, is_read: Numbers, serial: Numbers, envelopes: Envelopes) -> SourceInfo:
        at = int(self.order[row])
        which = int(np.searchsorted(self.starts, at, side="right")) - 1
        marker, number = ("incremental", None) if is_read[row] else ("false", int(serial[row]))
        return envelopes.source_info(self.changes[which], at - int(self.starts[which]), marker, number)

    def _ordered(self, columns: Sequence[Numbers]) -> Numbers:
        return np.concatenate([np.zeros(0, bool), *columns])[self.order]

    def _ordered_texts(self, columns: list[pa.Array]) -> pa.Array:
        return _concatenated(columns).take(pa.array(self.order))


def _records_of(mark: Mark, envelopes: Envelopes) -> list[Record]:
    match mark:
        case Beat():
            return list(beat_record(mark, envelopes))
        case Notice():
            return [notice_record(mark, envelopes)]
        case Announcement():
            return [streamed_record(mark, envelopes)]


def _concatenated(columns: list[pa.Array]) -> pa.Array:
    return pa.concat_arrays(columns) if columns else pa.array([], pa.string())
