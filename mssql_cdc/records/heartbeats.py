"""Heartbeat records (HB-01, HB-04): one at a poll if `heartbeat.interval.ms` has passed since the last one.

A complete cut is a poll of the source that found something, and the lake knows its time. A poll that found nothing
leaves no trace there: it counts only where records are rendered at that moment (`records --follow`). The end of a
snapshot has a heartbeat whatever the interval (SNP-34); `stream` places it after the last row.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from mssql_cdc.lake.recorded import Cut
from mssql_cdc.lake.steps import OffsetRow
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.records.capture_times import microseconds
from mssql_cdc.records.cuts import commit_of, position_of, recorded_ms
from mssql_cdc.records.envelope import Envelopes
from mssql_cdc.records.event_schemas import HEARTBEAT_KEY, HEARTBEAT_VALUE
from mssql_cdc.records.record_batch import Record
from mssql_cdc.records.snapshots import Block


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat after every change up to `position`; `at_ms` is in milliseconds since 1970."""

    position: str
    at_ms: int


def beats(
    cuts: Sequence[Cut],
    interval_ms: int,
    *,
    ends_ms: Iterable[int] = (),
    last_ms: int | None = None,
    start: str = "",
) -> Iterator[Beat]:
    """Yield the heartbeats at cuts, in order; cuts before a position are ignored.

    Clocks of two hosts may differ: cuts are in the order of their positions, not always of their times.

    Args:
        cuts: The complete cuts, in order.
        interval_ms: The shortest time between two heartbeats; 0 disables heartbeats.
        ends_ms: When snapshots ended; each had a heartbeat then.
        last_ms: When the last known heartbeat was; None: there was none.
        start: The next heartbeat is not before this position. Cuts with its commit are considered: an idle database has
            several with one commit.
    """
    if interval_ms <= 0:
        return
    last, ends = last_ms, deque(sorted(ends_ms))
    for place in range(bisect_left(cuts, commit_of(start), key=position_of), len(cuts)):
        cut = cuts[place]
        now = recorded_ms(cut)
        while ends and ends[0] <= now:
            last = max(ends.popleft(), last or 0)
        if last is None or now - last >= interval_ms:
            last = now
            yield Beat(position_of(cut), now)


def idle_beat(cut: OffsetRow | Cut, polled: datetime, interval_ms: int, *, known_ms: Iterable[int]) -> Iterator[Beat]:
    """Yield the heartbeat at a poll that found nothing after a cut, if it is due.

    Args:
        cut: The newest complete cut.
        polled: When the source was polled.
        interval_ms: The shortest time between two heartbeats; 0 disables heartbeats.
        known_ms: When there were heartbeats.
    """
    now = milliseconds(polled)
    if interval_ms > 0 and cut.to is not None and now - max(known_ms, default=0) >= interval_ms:
        yield Beat(cut_text(cut.epoch, Lsn.parse(cut.to)), now)


def milliseconds(at: datetime) -> int:
    """Return a time in milliseconds since 1970."""
    return microseconds(at) // 1000


def end_record(block: Block, envelopes: Envelopes) -> Iterator[Record]:
    """Yield the heartbeat at the end of a snapshot, or nothing if its time is not known."""
    if block.ended is not None:
        yield from beat_record(Beat(block.position, milliseconds(block.ended)), envelopes)


def beat_record(beat: Beat, envelopes: Envelopes) -> Iterator[Record]:
    """Yield the record, or nothing while there is no position yet."""
    if envelopes.newest is None:
        return
    connector = envelopes.connector
    yield envelopes.record(
        envelopes.extensions.topics.heartbeat_topic(),
        {"serverName": connector.topic_prefix},
        {"ts_ms": beat.at_ms},
        offset=envelopes.streaming_offset(),
        schemas=(HEARTBEAT_KEY, HEARTBEAT_VALUE),
        partition=0,
    )
