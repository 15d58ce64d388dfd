"""Notifications of the channel `sink` as records (NOT-01 to NOT-05, features §3.7).

They have no position in the source. Each is placed after the last complete cut before it was written; one that reports
that rows were read is placed after those rows, at the first cut after it, and waits for that cut. Debezium writes them
among a snapshot's rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.lake.delta_columns import DELTA_COLUMN
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.recorded import Cut
from mssql_cdc.lake.small_tables import ReadAt, SmallTable, small_table
from mssql_cdc.lake.storage import Storage
from mssql_cdc.records.cuts import position_of, recorded_ms
from mssql_cdc.records.envelope import Envelopes
from mssql_cdc.records.event_schemas import NOTIFICATION_KEY, NOTIFICATION_VALUE
from mssql_cdc.records.record_batch import Record

SINK = "sink"
"""The name of the channel."""
_READ_ROWS = 512
"""The least number of rows that are read at once."""
_OF_ROWS = {"TABLE_SCAN_COMPLETED", "COMPLETED"}
_SNAPSHOT = "Initial Snapshot"
"""`aggregate_type` of initial and blocking snapshots."""


@dataclass(frozen=True, slots=True)
class Notice:
    """The notification with this number (from 1), after every change up to `position`; `value` is its payload."""

    position: str
    number: int
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """The notifications as they were last read."""

    rows: pa.Table
    at: ReadAt | None


def told(layout: Layout, storage: Storage, known: KnownTables | None) -> pa.Table:
    """Return the rows of `_notifications`, oldest first; only those that are not known yet are read.

    Args:
        layout: The database's folders.
        storage: How to reach them.
        known: The lake's small tables as they were last read.
    """
    small = small_table(layout, "notifications", storage)
    if known is None:
        return small.table()
    return known.get(small.uri, lambda: _told(small, known.last(small.uri, Told)), storage).rows


def _told(small: SmallTable, before: Told | None) -> Told:
    rows = small.schema.empty_table() if before is None else before.rows
    reading = small.read(
        since=None if before is None else before.at, after=pc.max(rows.column("_batch")).as_py() or 0, least=_READ_ROWS
    )
    kept = [rows] if reading.goes_on else []
    return Told(pa.concat_tables([small.schema.empty_table(), *kept, *reading.tables]), reading.at)


def notices(
    rows: Sequence[Mapping[str, Any]], cuts: Sequence[Cut], *, number: int = 1, awaits_rows: bool = False
) -> tuple[Notice, ...]:
    """Return notifications in order, without those that Debezium does not have.

    One about rows that no cut has yet waits for them, and those after it wait with it.

    Args:
        rows: Rows of `_notifications`, oldest first.
        cuts: The complete cuts, in order.
        number: The number of the first row.
        awaits_rows: Whether a snapshot has begun after the last cut: the next cut has its rows.
    """
    found: list[Notice] = []
    position = ""
    for place, row in enumerate(rows, start=number):
        if row["aggregate_type"] == DELTA_COLUMN:
            continue
        if awaits_rows and _is_of_rows(row, cuts) and row["aggregate_type"] == _SNAPSHOT:
            break
        position = max(position, _position(row, cuts))
        value: dict[str, Any] = {
            "id": row["id"],
            "type": row["type"],
            "aggregate_type": row["aggregate_type"],
            "additional_data": dict(row["additional_data"] or ()),
            "timestamp": row["timestamp_ms"],
        }
        found.append(Notice(position, place, value))
    return tuple(found)


def _is_of_rows(row: Mapping[str, Any], cuts: Sequence[Cut]) -> bool:
    """Whether a notification reports rows that were read since the last cut."""
    return row["type"] in _OF_ROWS and bisect_left(cuts, row["timestamp_ms"], key=recorded_ms) == len(cuts)


def _position(row: Mapping[str, Any], cuts: Sequence[Cut]) -> str:
    """Return the position of the cut after which a notification is placed; empty: there is none."""
    at = row["timestamp_ms"]
    if row["type"] in _OF_ROWS and (after := bisect_left(cuts, at, key=recorded_ms)) < len(cuts):
        return position_of(cuts[after])
    before = bisect_right(cuts, at, key=recorded_ms)
    return position_of(cuts[before - 1]) if before else ""


def notice_record(notice: Notice, envelopes: Envelopes) -> Record:
    """Build the record; its offset is empty before the first position."""
    topic = envelopes.connector.notifications.sink_topic
    assert topic is not None, "the channel sink has a topic"
    offset = {} if envelopes.newest is None else envelopes.streaming_offset()
    schemas = (NOTIFICATION_KEY, NOTIFICATION_VALUE)
    return envelopes.record(topic, {"id": notice.value["id"]}, dict(notice.value), offset=offset, schemas=schemas)
