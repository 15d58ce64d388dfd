"""Finds where a database's stream of records resumes after a source offset, without what the consumer already has.

Debezium reads the transaction of its offset again and leaves out what it had sent. So does this module: the stream
begins with that transaction, whose first records, up to the first one with the offset, are dropped (STR-04).

Several records may share an offset: a delete and its tombstone, the delete and the create that a changed key leads to,
the rows of a chunk of an incremental snapshot. The consumer has the first of these records; whether it has the others
is unknown. The others are sent again, so that none is lost: Debezium resumes after all of them, and loses those that
were not sent. Only heartbeats are not sent again: they say nothing that the offset does not say.

Nor does an offset account for changes before it that came late: those of a table that was read later than others, or of
a repair. What had been written by the first cut with the offset's event counts as sent; everything else is sent,
perhaps again, so that none is lost.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import OffsetRow, Reached
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lsn import Lsn
from mssql_cdc.records.database_view import DatabaseView
from mssql_cdc.records.envelope import Envelopes
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.offset_epoch import batches_with, epoch_of, position_after, position_before
from mssql_cdc.records.pieces import streamed
from mssql_cdc.records.selection import Selection
from mssql_cdc.records.snapshots import BLOCKING, INITIAL, Block
from mssql_cdc.records.source_offsets import INCREMENTAL, SourceOffset
from mssql_cdc.records.state import StreamState
from mssql_cdc.records.stream import Rendered, stream
from mssql_cdc.records.topics import Topics
from mssql_cdc.records.transactions import Transaction

_ALL = Selection()


@dataclass(frozen=True, slots=True)
class Resumed:
    """Where a stream resumes.

    Attributes:
        state: The state after which it resumes; None: at its beginning.
        first: What precedes everything else: the rest of the offset's transaction, as the consumer had begun to get it;
            None: nothing. What was written later follows, wherever its position is.
        dropped: The number of records of `first` that the consumer has.
    """

    state: StreamState | None
    first: DatabaseView | None = None
    dropped: int = 0

    def begin(self, envelopes: Envelopes) -> Iterator[Rendered]:
        """Yield the records of `first` that the consumer lacks; the last state is the one after all of them.

        Args:
            envelopes: Number the events.
        """
        left = self.dropped
        for one in () if self.first is None else stream(self.first, envelopes, self.first.begins):
            left_out = min(left, one.records.num_rows)
            left -= left_out
            state = replace(one.state, records=one.state.records - (self.dropped - left))
            yield Rendered(one.records.slice(left_out), state)


def resume(
    connector: Connector,
    database: str,
    offset: SourceOffset,
    *,
    warehouse: str | None = None,
    selection: Selection = _ALL,
    extensions: Extensions | None = None,
) -> Resumed | None:
    """Return where the stream resumes after an offset; None while the lake has not reached it.

    Args:
        connector: The configuration; its modes shape the records.
        database: One of the connector's databases.
        offset: The offset of the last record that the consumer has.
        warehouse: Overrides `delta.warehouse`.
        selection: The wanted records.
        extensions: The connector's extensions; None: they are loaded.

    Raises:
        ConfigurationError: The lake begins after the offset, or does not show to which history of a restored source the
            offset belongs.
    """
    extensions = extensions or Extensions.of(connector)
    layout = Layout(warehouse or connector.delta.warehouse, connector.topic_prefix, database)
    require_held(load_offsets(layout, Storage(dict(connector.delta.storage))), offset, database)
    unbounded = replace(selection, start=None, end=None)
    view = DatabaseView.load(
        connector, database, warehouse=warehouse, state=None, selection=unbounded, extensions=extensions
    )
    if view is None or not view.bound:
        return None
    if offset.commit is None:
        return Resumed(None)
    epoch = epoch_of(view, offset, offset.commit, database)
    if offset.snapshot == INCREMENTAL:
        found = _after_window(view, offset, epoch, offset.commit)
    elif offset.snapshot is not None:
        found = _behind_snapshot(view, offset, epoch, offset.commit)
    else:
        found = _behind_event(view, offset, epoch, offset.commit, Envelopes(connector, database, extensions))
    end = selection.end_position(view.epoch, list(view.logs.values()))
    if found is None or found.first is None or end is None:
        return found
    return replace(found, first=replace(found.first, bound=min(found.first.bound, end)))


def _behind_event(
    view: DatabaseView, offset: SourceOffset, epoch: int, commit: Lsn, envelopes: Envelopes
) -> Resumed | None:
    """Return where the stream resumes after an event; None while the lake has not reached it."""
    start, after = position_before(epoch, commit), position_after(epoch, commit)
    if after > view.bound:
        return None
    cut = _cut_with(view, offset, epoch, commit)
    opened = Transaction(offset.transaction, offset.events)
    if offset.change_lsn is None and not offset.is_of_row_read:
        return Resumed(replace(_state_behind(view, epoch, commit, cut), transaction=opened))
    state = view.state_at(start, cut)
    if offset.is_of_row_read and offset.transaction != commit.text:  # That transaction is not read again.
        state = replace(state, transaction=opened)
    first = _transaction(view, state, after)
    found = _Found.of(offset, commit, _from(view, first, envelopes), envelopes.extensions.topics)
    beats = [one.at_ms for one in view.beats if start <= one.position <= found.beat]
    state = replace(state, beat_ms=max(beats, default=state.beat_ms))
    return Resumed(state, first.after(state), found.dropped)


def _transaction(view: DatabaseView, state: StreamState, after: str) -> DatabaseView:
    """Return a view of the transaction that follows a state, with the batches that the state knows.

    A snapshot ends the view: its rows are read as a whole, whenever they were written.
    """
    blocks = (one.position for one in view.blocks if one.number not in state.snapshots)
    return view.until(min([after, *blocks]), state.batches).after(state)


def _from(view: DatabaseView, first: DatabaseView, envelopes: Envelopes) -> Iterator[Rendered]:
    """Yield the records of a transaction, and those that follow: heartbeats after it show its offset, too."""
    state = first.begins
    for one in stream(first, envelopes, state):
        state = one.state
        yield one
    yield from stream(view.after(state), envelopes, state)


def _cut_with(view: DatabaseView, offset: SourceOffset, epoch: int, commit: Lsn) -> OffsetRow:
    """Return the first cut from which a consumer can have the event of an offset.

    The consumer has everything before the event that had been written by then, but perhaps not what was written later.
    If the lake does not have the event, return the first cut that is not before it.
    """
    start = position_before(epoch, commit)
    cuts = [_first_cut(view, start, {table: batch}) for table, batch in batches_with(view, offset, epoch, commit)]
    return min(cuts or [_first_cut(view, start)], key=lambda cut: cut.number)


def _first_cut(view: DatabaseView, position: str, batches: Mapping[str, int] | None = None) -> OffsetRow:
    """Return the first cut that is not before a position, and has these batches; the view has reached it."""
    least = Reached(int(position[:4] or "0", 16), Lsn(bytes.fromhex(position[5:25] or "00" * 10)).text)
    folders = {log.table_id.text: log.folder for log in view.logs.values()}
    found = view.offsets.first_cut(least, batches, folders=folders) or view.offsets.last_cut()
    assert found is not None
    return found


def require_held(lake: Offsets, offset: SourceOffset, database: str) -> None:
    """Raise ConfigurationError if the lake begins after an offset, so that it lacks the changes in between.

    Args:
        lake: The offsets of the lake.
        offset: A consumer's offset; that of an initial or blocking snapshot has no change of its own.
        database: The database.
    """
    if offset.commit is None or offset.snapshot not in {None, INCREMENTAL}:
        return
    begins = lake.begins
    if begins is not None and offset.commit < Lsn.parse(begins):
        raise ConfigurationError(
            f"{database}: the offset {offset.commit.text} lies before the beginning of the lake ({begins}), which has "
            "not the changes in between. Begin there in an empty folder (mssql-cdc take-over, or "
            "snapshot.mode=recovery), or leave the offsets out"
        )


def _state_behind(view: DatabaseView, epoch: int, commit: Lsn, cut: OffsetRow) -> StreamState:
    """Return the state after a commit of which the consumer has everything except snapshots.

    In an idle database, several snapshots may share one commit, and nothing shows which of them the consumer has: the
    first one counts as sent if a cut with this commit had it. The lake's own beginning says nothing that is not known
    at the commit.
    """
    start, state = position_before(epoch, commit), view.state_at(position_after(epoch, commit), cut)
    here = [block for block in view.blocks if block.number in state.snapshots and block.position >= start]
    sent = [block for block in here[:1] if block == view.blocks[0] or (block.ended_by or 0) <= cut.number]
    again = {block.number for block in here} - {block.number for block in sent}
    return replace(state, snapshots=tuple(number for number in state.snapshots if number not in again))


def _after_window(view: DatabaseView, offset: SourceOffset, epoch: int, commit: Lsn) -> Resumed | None:
    """Return where the stream resumes at a row of another connector's incremental snapshot; None: not reached yet.

    The row shows the commit that the stream had reached. How much of that transaction the consumer has is unknown, so
    it is sent again, as in Debezium.
    """
    if position_after(epoch, commit) > view.bound:
        return None
    start = position_before(epoch, commit)
    cut = _first_cut(view, start)
    return Resumed(view.state_at(start, cut) if offset.reads_again else _state_behind(view, epoch, commit, cut))


def _behind_snapshot(view: DatabaseView, offset: SourceOffset, epoch: int, commit: Lsn) -> Resumed | None:
    """Return where the stream resumes: after a snapshot, or before one that was not finished."""
    start, after = position_before(epoch, commit), position_after(epoch, commit)
    block = _block_of(view, offset, epoch, commit)
    if offset.begins_again and (block is None or block == view.blocks[0]):
        return Resumed(None)
    if block is not None and not offset.is_unfinished_snapshot:
        state = view.state_at(block.position, _first_cut(view, block.position))
        return Resumed(replace(state, snapshots=(*state.snapshots, block.number)))
    if block is None and after > view.bound:
        return None
    if not offset.is_unfinished_snapshot:
        return Resumed(_state_behind(view, epoch, commit, _first_cut(view, start)))
    # The consumer has the event whose position a blocking snapshot shows, and everything before it.
    end = after if block is None else block.position
    state = view.state_at(start, _first_cut(view, end))
    if offset.snapshot == BLOCKING:
        begun = [one.number for one in view.blocks[:1] if start <= one.position < after]
        state = replace(state, snapshots=(*begun, *state.snapshots))
    return Resumed(state, _transaction(view, state, end), sys.maxsize)


def _block_of(view: DatabaseView, offset: SourceOffset, epoch: int, commit: Lsn) -> Block | None:
    """Return the snapshot that an offset belongs to; None: it is not in this lake.

    An initial snapshot has a position of its own. A blocking one shows the position of the event before it: it is the
    next one after that event, with no other event in between. A lake that begins there has no such event.
    """
    start, after = position_before(epoch, commit), position_after(epoch, commit)
    later = [block for block in view.blocks if block.position >= start]
    if offset.snapshot != BLOCKING:
        return next((one for one in later if one.kind == INITIAL and one.position.startswith(start)), None)
    begins = view.offsets.begins
    found = next((one for one in later if one.kind == BLOCKING), None)
    if found is None or (begins is not None and Lsn.parse(begins) >= commit):
        return None
    others = any(one.position > after for one in later[: later.index(found)])
    return None if others or _has_events(view, after, found.position) else found


def _has_events(view: DatabaseView, start: str, end: str) -> bool:
    """Whether the stream has events at or after one position and before another."""
    if end <= start:
        return False
    skipped = pa.array(sorted(view.connector.records.skipped), pa.string())
    logs = [log.after([(start, sys.maxsize)]).within(end, log.limits.batch) for log in view.logs.values()]
    operations = (batch.rows.column("op") for window in streamed(logs) for batch in window)
    return any(not pc.all(pc.is_in(found, value_set=skipped)).as_py() for found in operations)


@dataclass(frozen=True, slots=True)
class _Found:
    """The records of a transaction that a consumer has.

    Attributes:
        dropped: Their number, counted from the beginning of the transaction.
        beat: The position of the last heartbeat that shows the offset.
    """

    dropped: int = 0
    beat: str = ""

    @classmethod
    def of(cls, offset: SourceOffset, commit: Lsn, records: Iterator[Rendered], topics: Topics) -> _Found:
        """Find the first record with exactly this offset.

        If there is none, as after another version of the connector, find the first record of the same event; failing
        that, the last one with a smaller position.

        Args:
            offset: What the consumer has committed.
            commit: Its commit.
            records: The stream from the beginning of its transaction on.
            topics: The connector's topics.
        """
        if offset.transaction not in {None, commit.text} and not offset.is_of_row_read:
            return cls()  # The END of the previous transaction, which has the position of the next event.
        exact = same = before = 0
        beats = {True: "", False: ""}
        for count, (topic, text, position) in enumerate(_places(records), 1):
            found: dict[str, Any] = json.loads(text)
            if found.get("commit_lsn") != commit.text or "snapshot" in found:
                break  # A blocking snapshot shows the position of the event before it, and may not have been sent.
            where = _event(found)
            is_of_event = where == (offset.change_lsn or "", offset.serial)
            if topic == topics.heartbeat_topic():
                beats |= {found == offset.values: position} if is_of_event else {}
                continue
            if found == offset.values:
                exact = exact or count
            if is_of_event and (offset.transaction is not None or topic != topics.transaction_topic()):
                same = same or count
            if count == before + 1 and where <= (offset.change_lsn or "", offset.serial):
                before = count
        return cls(exact or same or before, beats[True] if exact else max(beats.values()))


def _places(records: Iterator[Rendered]) -> Iterator[tuple[str, str, str]]:
    """Yield topic, offset and position of each record."""
    for one in records:
        columns = (one.records.column(name).to_pylist() for name in ("topic", "source_offset", "position"))
        yield from zip(*columns, strict=True)


def _event(values: Mapping[str, Any]) -> tuple[str, int]:
    return values.get("change_lsn") or "", int(values.get("event_serial_no") or 0)
