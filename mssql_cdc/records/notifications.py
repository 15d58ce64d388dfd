"""Notifications of the channel `sink` as records (NOT-01 to NOT-05, features §3.7).

They have no position in the source. Each stands behind the last complete cut before it was written; what tells that
rows were read stands behind those rows, at the first cut after it. Debezium writes them among a snapshot's rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mssql_cdc.lake.delta_columns import DELTA_COLUMN
from mssql_cdc.lake.recorded import Cut
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.records.capture_times import microseconds
from mssql_cdc.records.envelope import Envelopes
from mssql_cdc.records.event_schemas import NOTIFICATION_KEY, NOTIFICATION_VALUE
from mssql_cdc.records.record_batch import Record

SINK = "sink"
"""The name of the channel."""
_OF_ROWS = {"TABLE_SCAN_COMPLETED", "COMPLETED"}


@dataclass(frozen=True, slots=True)
class Notice:
    """The notification with this number (from 1), after every change up to `position`; `value` is its payload."""

    position: str
    number: int
    value: Mapping[str, Any]


def notices(rows: Sequence[Mapping[str, Any]], cuts: Iterable[Cut]) -> tuple[Notice, ...]:
    """Return the notifications in order, without those that Debezium does not have.

    Args:
        rows: The rows of `_notifications`, oldest first.
        cuts: The complete cuts, in order.
    """
    known = [(microseconds(cut.at) // 1000, cut_text(cut.epoch, Lsn.parse(cut.to))) for cut in cuts]
    found: list[Notice] = []
    position = ""
    for number, row in enumerate(rows, start=1):
        if row["aggregate_type"] == DELTA_COLUMN:
            continue
        before = [place for at, place in known if at <= row["timestamp_ms"]]
        after = [place for at, place in known if at >= row["timestamp_ms"]]
        place = before[-1] if before else ""
        if row["type"] in _OF_ROWS:
            place = after[0] if after else place
        position = max(position, place)
        value: dict[str, Any] = {
            "id": row["id"],
            "type": row["type"],
            "aggregate_type": row["aggregate_type"],
            "additional_data": dict(row["additional_data"] or ()),
            "timestamp": row["timestamp_ms"],
        }
        found.append(Notice(position, number, value))
    return tuple(found)


def notice_record(notice: Notice, envelopes: Envelopes) -> Record:
    """Build the record; its offset is empty before the first position."""
    topic = envelopes.connector.notifications.sink_topic
    assert topic is not None, "the channel sink has a topic"
    offset = {} if envelopes.newest is None else envelopes.streaming_offset()
    schemas = (NOTIFICATION_KEY, NOTIFICATION_VALUE)
    return envelopes.record(topic, {"id": notice.value["id"]}, dict(notice.value), offset=offset, schemas=schemas)
