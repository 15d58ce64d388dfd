"""Renders the records of a connector's databases, in order, from the lake alone (rules A4, B11, E28)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import attrgetter

from mssql_cdc.config import Connector
from mssql_cdc.lake.history import SchemaHistory, load_history
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offsets import Offsets, load_offsets
from mssql_cdc.lake.read import exists
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import OffsetRow
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.records.capture_times import CaptureTimes
from mssql_cdc.records.envelope import Envelopes, Record
from mssql_cdc.records.heartbeats import Beat, beat_record, beats
from mssql_cdc.records.pieces import ChangeLog, Limits, streamed
from mssql_cdc.records.rows import Row, Shapes, rows_of
from mssql_cdc.records.schema_changes import Announcement, Version, announcements, streamed_record
from mssql_cdc.records.sinks import RecordSink
from mssql_cdc.records.snapshots import Block, block_records, find_snapshots
from mssql_cdc.schema import TableId


def write_records(
    connector: Connector,
    *,
    sink: RecordSink,
    warehouse: str | None = None,
    databases: Sequence[str] | None = None,
) -> int:
    """Write every record up to the last complete cut of each database.

    Args:
        connector: The configuration; its modes shape the records.
        sink: The destination of the records.
        warehouse: Overrides `delta.warehouse`.
        databases: Only these databases of the connector; None: all.

    Returns:
        The number of records.

    Raises:
        ConfigurationError: A property changes the records in a way that is not built.
    """
    connector.require_rendered()
    count = 0
    for database in databases if databases is not None else connector.databases:
        for record in database_records(connector, database, warehouse=warehouse):
            sink.write(record)
            count += 1
    return count


def database_records(connector: Connector, database: str, *, warehouse: str | None = None) -> Iterator[Record]:
    """Yield the records of one database in Debezium's order; none before its first complete cut.

    Args:
        connector: The configuration; its modes shape the records.
        database: One of the connector's databases.
        warehouse: Overrides `delta.warehouse`.
    """
    storage = Storage(dict(connector.delta.storage))
    layout = Layout(warehouse or connector.delta.warehouse, connector.topic_prefix, database)
    offsets = load_offsets(layout, storage)
    cut = offsets.last_cut()
    if cut is None:
        return
    view = _View.of(connector, layout, offsets, cut, storage)
    yield from view.records(Envelopes(connector, database))


@dataclass(frozen=True)
class _View:
    """One database at a cut."""

    logs: Mapping[TableId, ChangeLog]
    versions: Mapping[TableId, Sequence[Version]]
    shapes: Shapes
    times: CaptureTimes
    blocks: Sequence[Block]
    announcements: Sequence[Announcement]
    beats: Sequence[Beat]
    bound: str

    @classmethod
    def of(cls, connector: Connector, layout: Layout, offsets: Offsets, cut: OffsetRow, storage: Storage) -> _View:
        end = cut_text(cut.epoch, Lsn.parse(cut.to or ""))
        versions = _versions(layout, storage)
        order = sorted(versions, key=lambda t: connector.filters.tables.order(t.catalog or "", t.schema, t.name))
        logs = {table: log for table in order if (log := _log(table, layout, offsets, cut, end, storage)) is not None}
        found = find_snapshots(logs, offsets, cut, order)
        snapshotted = {table for block in found.blocks for table in block.tables}
        history = SchemaHistory({t.text: tuple(v.schema for v in own) for t, own in versions.items()})
        changes = (
            announcements(versions, snapshotted, partial(_epoch_at, offsets))
            if connector.records.schema_changes
            else []
        )
        interval = connector.streaming.heartbeat_interval_ms
        heartbeats = tuple(beats(offsets.cuts(), interval)) if interval else ()
        times = CaptureTimes.of(offsets)
        return cls(logs, versions, Shapes(history, connector), times, found.blocks, changes, heartbeats, found.bound)

    def records(self, envelopes: Envelopes) -> Iterator[Record]:
        """Yield snapshots, schema changes, heartbeats and changes, merged by position."""
        marks: list[tuple[str, int, Block | Announcement | Beat]] = [(b.position, 0, b) for b in self.blocks]
        marks += [(a.position, 1, a) for a in self.announcements]
        marks += [(one.position, 2, one) for one in self.beats]
        marks.sort(key=lambda mark: mark[:2], reverse=True)
        for row in self._changes():
            if row.pos >= self.bound:
                break
            while marks and marks[-1][0] <= row.pos:
                yield from self._marked(marks.pop()[2], envelopes)
            yield from envelopes.change(row, self.times.of_batch(row.shape.table_id.text, row.batch))
        while marks and marks[-1][0] < self.bound:
            yield from self._marked(marks.pop()[2], envelopes)

    def _changes(self) -> Iterator[Row]:
        """Yield all streamed changes in position order (B11)."""
        for window in streamed(list(self.logs.values())):
            yield from heapq.merge(
                *(rows_of(batch.rows, batch.log.table_id, self.shapes) for batch in window), key=attrgetter("pos")
            )

    def _marked(self, mark: Block | Announcement | Beat, envelopes: Envelopes) -> Iterator[Record]:
        if isinstance(mark, Beat):
            yield from beat_record(mark, envelopes)
            return
        if isinstance(mark, Announcement):
            yield streamed_record(mark, envelopes)
            return
        yield from block_records(
            mark, logs=self.logs, versions=self.versions, shapes=self.shapes, times=self.times, envelopes=envelopes
        )


def _versions(layout: Layout, storage: Storage) -> dict[TableId, list[Version]]:
    """Return every schema version of every table, in order, keyed by the table's newest name."""
    rows = small_table(layout, "schema_history", storage).rows()
    by_version = {(row["table_id"], row["schema"], row["object_id"]): row for row in rows}
    return {
        own[-1].table_id: [Version.of_row(by_version[s.table_id.text, s.version, s.object_id], s) for s in own]
        for own in load_history(layout, storage).versions.values()
    }


def _log(
    table: TableId, layout: Layout, offsets: Offsets, cut: OffsetRow, end: str, storage: Storage
) -> ChangeLog | None:
    """Return the table's change log up to the cut; None if it had none at the cut."""
    entry, batch = offsets.entry(table.text), offsets.cut_batch(table.text, cut)
    if entry is None or batch is None:
        return None
    uri = layout.home(table, folder=entry.folder).changes
    if not exists(uri, storage):
        return None
    return ChangeLog(table, uri, Limits(end, batch), storage)


def _epoch_at(offsets: Offsets, at: datetime) -> int:
    """Return the epoch of the newest offsets row at that time."""
    return max((row.epoch for row in offsets.rows if row.at <= at), default=0)
