"""What the lake holds for one database at a complete cut, ready to be rendered (rules A4, B11, E28)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

import pyarrow as pa

from mssql_cdc.config import Connector
from mssql_cdc.lake.history import SchemaHistory, load_history
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import exists
from mssql_cdc.lake.recorded import Cut
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import Entry, OffsetRow
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lake.structures import load_structures
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.records.cuts import Cuts
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.heartbeats import Beat, beats, idle_beat, milliseconds
from mssql_cdc.records.known_snapshots import begun_later
from mssql_cdc.records.notifications import SINK, Notice, notices, told
from mssql_cdc.records.pieces import ChangeLog, Limits
from mssql_cdc.records.rows import Numbers
from mssql_cdc.records.schema_changes import Announcement, Described, Version, announcements, as_first_seen
from mssql_cdc.records.selection import Selection
from mssql_cdc.records.shapes import Shapes, TableShape
from mssql_cdc.records.snapshots import BLOCKING, Block, find_snapshots, with_marks
from mssql_cdc.records.state import StreamState
from mssql_cdc.records.tables import Tables
from mssql_cdc.schema import TableId


@dataclass(frozen=True)
class DatabaseView:
    """One database at a cut; nothing at or after `bound` is rendered.

    Tables are identified as in `Tables`. `wanted` are the selected tables, `others` those that are not captured.
    `idle` are the heartbeats of polls that found nothing, `told` the rows of `_notifications` if they become records.
    """

    connector: Connector
    logs: Mapping[TableId, ChangeLog]
    versions: Mapping[TableId, Sequence[Version]]
    shapes: Shapes
    blocks: Sequence[Block]
    announcements: Sequence[Announcement]
    cuts: Sequence[Cut]
    bound: str
    offsets: Offsets
    selection: Selection
    wanted: frozenset[TableId]
    begins: StreamState
    others: Sequence[Described] = ()
    idle: Sequence[Beat] = ()
    told: pa.Table | None = None

    @cached_property
    def beats(self) -> Sequence[Beat]:
        """The heartbeats after the last one that was written, from the beginning of the view."""
        ends = [milliseconds(block.ended) for block in self.blocks if block.ended is not None]
        interval = self.connector.streaming.heartbeat_interval_ms
        last, start = self.begins.beat_ms, self.begins.position
        return (*beats(self.cuts, interval, ends_ms=ends, last_ms=last, start=start), *self.idle)

    @cached_property
    def notices(self) -> Sequence[Notice]:
        """The notifications after those that were written before the view begins."""
        written, newest = self.begins.notified or 0, self.offsets.last_cut()
        if self.told is None or newest is None:
            return ()
        rows, awaits_rows = self.told.slice(written).to_pylist(), bool(begun_later(self.offsets, newest))
        return notices(rows, self.cuts, number=written + 1, awaits_rows=awaits_rows)

    @property
    def streamed_logs(self) -> list[ChangeLog]:
        """The change logs whose changes are streamed.

        The numbers of a table's changes do not depend on other tables, but their places in transactions do, and so
        does the position that a blocking snapshot shows: that of the newest event.
        """
        waits = any(one.kind == BLOCKING and one.number not in self.begins.snapshots for one in self.blocks)
        needs_all = self.connector.records.transaction_metadata or waits
        return [log for table, log in self.logs.items() if needs_all or table in self.wanted]

    @property
    def epoch(self) -> int:
        """The epoch of the cut."""
        return int(self.bound.partition("-")[0] or "0", 16)

    def captured(self, table: TableId, batches: Numbers) -> pa.Array:
        """Return when batches of a table were captured, in microseconds since 1970."""
        log = self.logs[table]
        return self.offsets.recorded.times(log.folder or table.text, batches)

    def wants(self, shape: TableShape) -> bool:
        """Whether the table that has, or had, a shape is wanted."""
        return not self.selection.tables or self.shapes.table_of(shape) in self.wanted

    def filtered(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return the wanted records among those of wanted tables."""
        own = [(table, version.schema) for table in self.wanted for version in self.versions[table]]
        topics = {self.shapes.extensions.topics.data_change_topic(schema.table_id) for _, schema in own}
        java = self.connector.records.writes_string_keys and self.selection.key is not None
        shapes = [self.shapes.of(table, schema.version) for table, schema in own] if java else []
        return self.selection.filtered(records, topics, [one.string_key for one in shapes if one.string_key])

    @property
    def batches(self) -> dict[str, int]:
        """The newest batch of each change log at the cut, by `ChangeLog.identity`."""
        return {log.identity: log.limits.batch for log in self.logs.values()}

    @classmethod
    def load(
        cls,
        connector: Connector,
        database: str,
        *,
        warehouse: str | None,
        state: StreamState | None,
        selection: Selection,
        extensions: Extensions,
        polled: datetime | None = None,
        known: KnownTables | None = None,
    ) -> DatabaseView | None:
        """Return the view at a database's last complete cut; None before its first one.

        Args:
            connector: The configuration; its modes shape the records.
            database: One of the connector's databases.
            warehouse: Overrides `delta.warehouse`.
            state: What was rendered before; None: begin at the start of the selection.
            selection: The wanted records.
            extensions: The connector's extensions.
            polled: When the source was just polled and had nothing beyond the cut; None: it was not polled.
            known: The lake's small tables as they were last read.
        """
        storage = Storage(dict(connector.delta.storage))
        layout = Layout(warehouse or connector.delta.warehouse, connector.topic_prefix, database)
        offsets, history = load_offsets(layout, storage, known=known), load_history(layout, storage, known=known)
        cut = offsets.last_cut()
        if cut is None:
            return None
        cut = with_marks(cut, offsets)
        view = cls._at(connector, layout, offsets, history, cut, selection, extensions=extensions, known=known)
        logs = list(view.logs.values())
        end = selection.end_position(cut.epoch, logs)
        if end is not None:
            view = replace(view, bound=min(view.bound, end))
        if state is None:
            start = selection.start_position(cut.epoch, logs)
            # A late change from before the start is not wanted either.
            state = StreamState() if start is None else view.state_at(min(start, view.bound), cut)
        return view.after(state) if polled is None else view.after(state).idle_since(cut, polled)

    def batches_at(self, cut: OffsetRow) -> dict[str, int]:
        """Return the newest batch of each change log at a cut."""
        logs = self.logs.values()
        found = {log: self.offsets.batch_at(log.table_id.text, cut.number, folder=log.folder) for log in logs}
        return {log.identity: batch for log, batch in found.items() if batch is not None}

    def state_at(self, position: str, cut: OffsetRow) -> StreamState:
        """Return the state of a stream that begins at a position: what precedes it at a cut counts as written.

        Args:
            position: The position.
            cut: The cut; what was written after it is rendered, whatever its position.
        """
        beats = [beat.at_ms for beat in self.beats if beat.position < position]
        known = [one for one in self.announcements if one.position < position and one.version.at <= cut.at]
        return StreamState(
            position,
            batches=self.batches_at(cut),
            snapshots=tuple(block.number for block in self.blocks if block.position < position),
            announced=tuple(one.name for one in known),
            beat_ms=max(beats, default=None),
            notified=self._noticed(position),
        )

    def idle_since(self, cut: OffsetRow, polled: datetime) -> DatabaseView:
        """Return the view with the heartbeat of a poll that found nothing after the cut, if it is due."""
        ends = (milliseconds(block.ended) for block in self.blocks if block.ended is not None)
        known = (*(beat.at_ms for beat in self.beats), *ends, self.begins.beat_ms or 0)
        interval = self.connector.streaming.heartbeat_interval_ms
        return replace(self, idle=(*self.idle, *idle_beat(cut, polled, interval, known_ms=known)))

    def _noticed(self, position: str) -> int:
        """Return the number of the last notification before a position; 0: there is none."""
        place = bisect_left(self.notices, position, key=lambda notice: notice.position)
        return self.notices[place - 1].number if place else self.begins.notified or 0

    def until(self, bound: str, batches: Mapping[str, int]) -> DatabaseView:
        """Return the view without the changes from a position on, and without those of later batches.

        Args:
            bound: The position.
            batches: The last batch of each change log, by `ChangeLog.identity`; other logs have none.
        """
        logs = {table: log.within(bound, batches.get(log.identity, 0)) for table, log in self.logs.items()}
        return replace(self, logs=logs, bound=min(self.bound, bound))

    def after(self, state: StreamState) -> DatabaseView:
        """Return the view without the changes before a state."""
        logs = {table: log.after(state.written(log.identity)) for table, log in self.logs.items()}
        if SINK in self.connector.notifications.channels and state.notified is None:
            state = replace(state, notified=self._noticed(state.position))
        return replace(self, logs=logs, begins=state)

    @classmethod
    def _at(
        cls,
        connector: Connector,
        layout: Layout,
        offsets: Offsets,
        history: SchemaHistory,
        cut: OffsetRow,
        selection: Selection,
        *,
        extensions: Extensions,
        known: KnownTables | None,
    ) -> DatabaseView:
        storage = Storage(dict(connector.delta.storage))
        tables = Tables.of(history, offsets)
        versions = _versions(tables, layout, storage)
        shown = SchemaHistory({t.text: tuple(v.schema for v in own) for t, own in versions.items()})
        ordered = _ordered(connector, {table: table for table in tables.entries})
        # In the order of their first names, so that a later rename does not move records of a snapshot.
        of_snapshots = _ordered(connector, {table: own[0].table_id for table, own in versions.items()})
        found_logs = [_log(table, tables.entries[table], layout, offsets, cut, storage, known) for table in ordered]
        logs = {log.table_id: log for log in found_logs if log is not None}
        found = find_snapshots(logs, offsets, cut, of_snapshots, tables=tables)
        changes = announcements(versions, found.creates, offsets.epoch_at) if connector.records.schema_changes else []
        return cls(
            connector,
            logs,
            versions,
            Shapes(shown, connector, extensions),
            found.blocks,
            changes,
            Cuts(offsets.recorded),
            found.bound,
            offsets,
            selection,
            selection.wanted({table: [one.schema.table_id for one in own] for table, own in versions.items()}),
            StreamState(),
            _others(connector, layout, storage) if connector.records.schema_changes else (),
            told=told(layout, storage, known) if SINK in connector.notifications.channels else None,
        )


def _versions(tables: Tables, layout: Layout, storage: Storage) -> dict[TableId, list[Version]]:
    """Return every schema version of every table, in order."""
    rows = small_table(layout, "schema_history", storage).rows()
    by_version = {(row["table_id"], row["schema"], row["object_id"]): row for row in rows}
    return {
        table: [Version.of_row(by_version[s.table_id.text, s.version, s.object_id], s) for s in as_first_seen(own)]
        for table, own in tables.versions.items()
    }


def _ordered(connector: Connector, named: Mapping[TableId, TableId]) -> list[TableId]:
    """Return tables in the order in which the configuration puts the names that they are mapped to."""

    def place(table: TableId) -> tuple[int, int, str]:
        name = named[table]
        return connector.filters.tables.order(name.catalog or "", name.schema, name.name)

    return sorted(named, key=place)


def _others(connector: Connector, layout: Layout, storage: Storage) -> list[Described]:
    """Return the tables that were not captured when the initial snapshot began."""
    seen = (one for one in load_structures(layout, storage) if connector.describes(*one.structure.table_id.parts))
    return [one for one in map(Described.of_seen, seen) if one is not None]


def _log(
    table: TableId,
    entry: Entry,
    layout: Layout,
    offsets: Offsets,
    cut: OffsetRow,
    storage: Storage,
    known: KnownTables | None,
) -> ChangeLog | None:
    """Return the table's change log up to the cut; None if it had none at the cut."""
    batch = offsets.batch_at(table.text, cut.number, folder=entry.folder)
    if batch is None:
        return None
    home = layout.home(table, folder=entry.folder)
    if not exists(home.changes, storage):
        return None
    end = cut_text(cut.epoch, Lsn.parse(cut.to or ""))
    return ChangeLog(table, home, Limits(end, batch), storage, folder=entry.folder, known=known)
