"""Finds the place in a database's stream of records behind a source offset: what a consumer has, it does not get again.

Debezium reads the transaction of its offset again and leaves out what it had sent. So does this: the stream begins with
that transaction, and its first records, up to the one with the offset, are dropped (STR-04).
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
    records = stream(view.behind(state), Envelopes(connector, database, extensions), state)
    return Resumed(state, _count_up_to(offset, offset.commit, records))


def require_held(lake: Offsets, offset: SourceOffset, database: str) -> None:
    """Raise ConfigurationError if the lake begins behind an offset, so that changes in between are not there.

    Args:
        lake: The offsets of the lake.
        offset: The offset of a consumer; one of a snapshot has no change of its own.
        database: The database.
    """
    if offset.commit is None or offset.snapshot is not None:
        return
    begins = min((one.to for table in lake.entries for one in lake.reached(table)), default=None)
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


def _count_up_to(offset: SourceOffset, commit: Lsn, records: Iterator[Rendered]) -> int:
    """Return how many records, from the beginning of a transaction on, a consumer with this offset has.

    Those up to the last one with this very offset. Without one, as after another version of the connector, those up to
    the last one of the same event; failing that, of smaller position.
    """
    if offset.transaction is not None and offset.transaction != commit.text:
        return 0  # The END of the transaction before: it has the position of the next event.
    exact = same = before = 0
    texts = (text for one in records for text in one.records.column("source_offset").to_pylist())
    for count, text in enumerate(texts, 1):
        found: dict[str, Any] = json.loads(text)
        if found.get("commit_lsn") != commit.text or "snapshot" in found:
            break  # A blocking snapshot shows the position of the event before it, and may not have been sent.
        if found == offset.values:
            exact = count
        where = _event(found)
        if where == (offset.change_lsn, offset.serial):
            same = count
        if count == before + 1 and where <= (offset.change_lsn or "", offset.serial):
            before = count
    return exact or same or before


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
