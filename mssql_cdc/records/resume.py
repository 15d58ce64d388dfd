"""Finds the place in a database's stream of records behind a source offset: what a consumer has, it does not get again.

Debezium reads the transaction of its offset again and leaves out what it had sent. So does this: the stream begins with
that transaction, and its first records, up to the first one with the offset, are dropped (STR-04).

Several records may share an offset: a deletion and its tombstone, a deletion and the insertion that a changed key leads
to, the rows of a chunk of an incremental snapshot. Which of them the consumer has, nobody knows; the first one in any
case. The others come again, so that none is lost: Debezium goes on behind all of them, and loses those that were not
sent. Only heartbeats do not come again: they say nothing that the offset does not say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.offsets import Offsets, load_offsets
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.records.database_view import DatabaseView
from mssql_cdc.records.envelope import Envelopes
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.selection import Selection
from mssql_cdc.records.source_offsets import SourceOffset
from mssql_cdc.records.state import StreamState
from mssql_cdc.records.stream import Rendered, stream
from mssql_cdc.records.topics import Topics
from mssql_cdc.records.transactions import Transaction

_ALL = Selection()


@dataclass(frozen=True, slots=True)
class Resumed:
    """Where a stream goes on: behind a state (None: at its beginning), without its first records."""

    state: StreamState | None
    dropped: int = 0


def resume(
    connector: Connector,
    database: str,
    offset: SourceOffset,
    *,
    warehouse: str | None = None,
    extensions: Extensions | None = None,
) -> Resumed | None:
    """Return where the stream goes on behind an offset; None while the lake has not reached it.

    Args:
        connector: The configuration; its modes shape the records.
        database: One of the connector's databases.
        offset: The offset of the last record that the consumer has.
        warehouse: Overrides `delta.warehouse`.
        extensions: The connector's extensions; None: they are loaded.

    Raises:
        ConfigurationError: The lake begins behind the offset.
    """
    extensions = extensions or Extensions.of(connector)
    layout = Layout(warehouse or connector.delta.warehouse, connector.topic_prefix, database)
    require_held(load_offsets(layout, Storage(dict(connector.delta.storage))), offset, database)
    view = DatabaseView.load(
        connector, database, warehouse=warehouse, state=None, selection=_ALL, extensions=extensions
    )
    if view is None or not view.bound:
        return None
    if offset.commit is None:
        return Resumed(None)
    if offset.snapshot is not None:
        return _behind_snapshot(view, offset, offset.commit, Envelopes(connector, database, extensions))
    start = _position(view, offset.commit)
    behind = f"{cut_text(view.epoch, offset.commit)}+"
    if behind > view.bound:
        return None
    if offset.change_lsn is None:
        return Resumed(view.state_at(behind))
    state = view.state_at(start)
    if offset.is_of_row_read and offset.transaction != offset.commit.text:  # Which is not read again.
        state = replace(state, transaction=Transaction(offset.transaction, offset.events))
    records = stream(view.behind(state), Envelopes(connector, database, extensions), state)
    found = _Found.of(offset, offset.commit, records, extensions.topics)
    beats = [one.at_ms for one in view.beats if start <= one.position <= found.beat]
    return Resumed(replace(state, beat_ms=max(beats, default=state.beat_ms)), found.dropped)


def require_held(lake: Offsets, offset: SourceOffset, database: str) -> None:
    """Raise ConfigurationError if the lake begins behind an offset, so that changes in between are not there.

    Args:
        lake: The offsets of the lake.
        offset: The offset of a consumer; one of a snapshot has no change of its own.
        database: The database.
    """
    if offset.commit is None or offset.snapshot is not None:
        return
    begins = lake.begins
    if begins is not None and offset.commit < Lsn.parse(begins):
        raise ConfigurationError(
            f"{database}: the offset {offset.commit.text} lies before the beginning of the lake ({begins}), which has "
            "not the changes in between. Begin there in an empty folder (mssql-cdc take-over, or "
            "snapshot.mode=recovery), or leave the offsets out"
        )


def without_first(records: Iterator[Rendered], count: int) -> Iterator[Rendered]:
    """Yield the records without the first ones.

    Args:
        records: Records of a database.
        count: The number of records to leave out.
    """
    for one in records:
        left_out = min(count, one.records.num_rows)
        count -= left_out
        if left_out < one.records.num_rows or not left_out:
            yield replace(one, records=one.records.slice(left_out))


def _behind_snapshot(view: DatabaseView, offset: SourceOffset, commit: Lsn, envelopes: Envelopes) -> Resumed | None:
    """Return where the stream goes on behind a snapshot, or before one that was not finished.

    A blocking one shows the position of the event before it: the stream begins with that event's transaction.
    """
    start = _position(view, commit)
    block = next((one for one in view.blocks if one.position >= start), None)
    if block is None:
        # The lake has no snapshot: it was set up at this offset.
        behind = f"{cut_text(view.epoch, commit)}+"
        return None if behind > view.bound else Resumed(view.state_at(behind))
    state = view.state_at(block.position)
    if offset.is_unfinished_snapshot and not state.snapshots:
        return Resumed(None)
    if offset.is_unfinished_snapshot:
        state = view.state_at(start)
        return Resumed(state, _count_before_snapshot(stream(view.behind(state), envelopes, state)))
    return Resumed(replace(state, snapshots=(*state.snapshots, block.number)))


def _position(view: DatabaseView, commit: Lsn) -> str:
    """Return a text that is not greater than any position of a transaction, but than all earlier ones."""
    return f"{view.epoch:04x}-{commit.raw.hex()}"


@dataclass(frozen=True, slots=True)
class _Found:
    """The records of a transaction that a consumer has.

    Attributes:
        dropped: Their number, from the beginning of the transaction on.
        beat: The position of the last heartbeat that shows the offset.
    """

    dropped: int = 0
    beat: str = ""

    @classmethod
    def of(cls, offset: SourceOffset, commit: Lsn, records: Iterator[Rendered], topics: Topics) -> _Found:
        """Look for the first record with this very offset.

        Without one, as after another version of the connector, for the first one of the same event; failing that, for
        the last one of smaller position.

        Args:
            offset: What the consumer has committed.
            commit: Its commit.
            records: The stream from the beginning of its transaction on.
            topics: The connector's.
        """
        if offset.transaction not in {None, commit.text} and not offset.is_of_row_read:
            return cls()  # The END of the transaction before: it has the position of the next event.
        exact = same = before = 0
        beats = {True: "", False: ""}
        for count, (topic, text, position) in enumerate(_places(records), 1):
            found: dict[str, Any] = json.loads(text)
            if found.get("commit_lsn") != commit.text or "snapshot" in found:
                break  # A blocking snapshot shows the position of the event before it, and may not have been sent.
            where = _event(found)
            is_of_event = where == (offset.change_lsn, offset.serial)
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


def _count_before_snapshot(records: Iterator[Rendered]) -> int:
    """Return how many records stand before the first one of a snapshot."""
    count = 0
    for text in (text for one in records for text in one.records.column("source_offset").to_pylist()):
        if "snapshot" in json.loads(text):
            break
        count += 1
    return count


def _event(values: Mapping[str, Any]) -> tuple[str, int]:
    return values.get("change_lsn") or "", int(values.get("event_serial_no") or 0)
