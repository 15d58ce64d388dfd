"""One database's records as a stream with a state: snapshots, schema changes, heartbeats and changes by position.

Each step of the stream is prepared (columns become texts), numbered (in order, against the state of the envelopes) and
finished (texts become records). Only numbering needs the order, and it is cheap; the other two run in threads, which
Arrow's kernels keep busy without holding Python's GIL.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.records.database_view import DatabaseView
from mssql_cdc.records.envelope import Envelopes
from mssql_cdc.records.envelope_texts import EnvelopeTexts
from mssql_cdc.records.failures import Failures
from mssql_cdc.records.heartbeats import Beat, end_record
from mssql_cdc.records.kept_position import kept_position, moved_to
from mssql_cdc.records.notifications import Notice
from mssql_cdc.records.ordered import Mark, Ordered
from mssql_cdc.records.pieces import Batch, streamed
from mssql_cdc.records.record_batch import Part, batch_of_records, in_order
from mssql_cdc.records.rows import Changes, changes_of
from mssql_cdc.records.schema_changes import Announcement
from mssql_cdc.records.snapshot_block import SnapshotRows, block_rows, create_records
from mssql_cdc.records.snapshots import Block
from mssql_cdc.records.state import InSnapshot, StreamState

THREADS = 2
AHEAD = 3
"""The number of steps that are prepared, and finished, before the records of the first one are taken."""
Build = Callable[[], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Rendered:
    """Records, and the state of the stream after them."""

    records: pa.RecordBatch
    state: StreamState


class _Step(Protocol):
    """A part of the stream that is rendered as a whole."""

    def prepare(self, view: DatabaseView) -> list[Changes]:
        """Turn columns into texts."""
        ...

    def number(
        self, changes: list[Changes], view: DatabaseView, envelopes: Envelopes, state: StreamState
    ) -> tuple[Build, StreamState]:
        """Number the changes; return a function that builds their records, and the state after them."""
        ...


def stream(view: DatabaseView, envelopes: Envelopes, state: StreamState) -> Iterator[Rendered]:
    """Yield the records after a state, in order, each batch with the state after it.

    Args:
        view: The database at a cut.
        envelopes: Number the events; they are set to the state first.
        state: Where the stream resumes.
    """
    state.restore(envelopes)
    count = state.records
    steps = iter(_steps(view, state))
    prepared: deque[tuple[_Step, Future[list[Changes]]]] = deque()
    finished: deque[tuple[Future[pa.RecordBatch], StreamState]] = deque()
    with ThreadPoolExecutor(THREADS, "records") as pool:
        while True:
            for step in islice(steps, AHEAD - len(prepared)):
                prepared.append((step, pool.submit(step.prepare, view)))
            if prepared and len(finished) < AHEAD:
                first, changes = prepared.popleft()
                build, state = first.number(changes.result(), view, envelopes, state)
                finished.append((pool.submit(build), state))
                continue
            if not finished:
                return
            built, after = finished.popleft()
            records = built.result()
            if view.selection.is_narrow:
                records = view.filtered(records)
            count += records.num_rows
            yield Rendered(records, replace(after, records=count))


def _steps(view: DatabaseView, state: StreamState) -> Iterator[_Step]:
    marks: list[tuple[str, int, Block | Mark]] = [
        (one.position, 0, one) for one in view.blocks if one.number not in state.snapshots
    ]
    marks += [(one.position, 1, one) for one in view.announcements if one.name not in state.announced]
    # Of those at the same position, the one that is taken first comes last.
    marks += [(one.position, 2, one) for one in reversed(_beats(view, state))]
    marks += [(one.position, 2 + one.number, one) for one in view.notices if one.number > (state.notified or 0)]
    marks = [mark for mark in marks if mark[0] < view.bound]
    marks.sort(key=lambda mark: mark[:2], reverse=True)
    if (within := state.within) is not None:
        # The snapshot that was being written comes first.
        marks.sort(key=lambda mark: isinstance(mark[2], Block) and mark[2].number == within.number)
    for window in streamed(view.streamed_logs, view.shapes.text_bytes):
        batches = _before(window, view.bound)
        while batches:
            last = max(batch.rows.column("_pos")[-1].as_py() for batch in batches)
            due: list[Mark] = []
            block: Block | None = None
            while marks and marks[-1][0] <= last and block is None:
                mark = marks.pop()[2]
                if isinstance(mark, Block):
                    block = mark
                else:
                    due.append(mark)
            if block is None:
                yield _Window(batches, due)
                break
            yield _Window(_before(batches, block.position), due)
            yield from _block_steps(block, view, state)
            batches = _from(batches, block.position)
    due = []
    for _, _, mark in reversed(marks):
        if isinstance(mark, Block):
            yield _Window([], due)
            due = []
            yield from _block_steps(mark, view, state)
        else:
            due.append(mark)
    yield _Window([], due, is_end=True)


def _beats(view: DatabaseView, state: StreamState) -> list[Beat]:
    """Return the heartbeats after the last one; that of a poll may have come shortly before that of a cut."""
    interval = view.connector.streaming.heartbeat_interval_ms
    return [one for one in view.beats if state.beat_ms is None or one.at_ms >= state.beat_ms + interval]


def _block_steps(block: Block, view: DatabaseView, state: StreamState) -> Iterator[_Step]:
    within = state.within if state.within is not None and state.within.number == block.number else None
    if within is None:
        yield _BlockBegin(block)
    for rows in block_rows(block, view.logs, view.shapes.text_bytes, within=within):
        yield _BlockRows(rows)
    yield _BlockEnd(block)


@dataclass(frozen=True, slots=True)
class _BlockBegin:
    block: Block

    def prepare(self, view: DatabaseView) -> list[Changes]:
        del view
        return []

    def number(
        self, changes: list[Changes], view: DatabaseView, envelopes: Envelopes, state: StreamState
    ) -> tuple[Build, StreamState]:
        del changes
        settings, kept = view.connector.records, kept_position(self.block, envelopes.newest)
        records = (
            list(create_records(self.block, view.logs, view.versions, envelopes, view.others, kept=kept))
            if settings.schema_changes
            else []
        )
        within = InSnapshot(self.block.number, kind=self.block.kind, commit_lsn=kept.commit_lsn)
        state = replace(state, within=within).after(envelopes)
        return lambda: batch_of_records(records, self.block.position), state


@dataclass(frozen=True, slots=True)
class _BlockRows:
    rows: SnapshotRows

    def prepare(self, view: DatabaseView) -> list[Changes]:
        failures = Failures.of(view.connector)
        return list(changes_of(self.rows.rows, self.rows.table_id, view.shapes, failures=failures))

    def number(
        self, changes: list[Changes], view: DatabaseView, envelopes: Envelopes, state: StreamState
    ) -> tuple[Build, StreamState]:
        rows, markers = self.rows, self.rows.markers
        texts = EnvelopeTexts(envelopes.connector, envelopes.database, envelopes.extensions)
        kept = kept_position(rows.block, envelopes.newest)
        newest, serial = moved_to(kept, changes[-1]), kept.event_serial_no
        envelopes.newest = envelopes.source_info(newest, -1, markers[-1].as_py(), serial)
        within = InSnapshot(
            rows.block.number,
            rows.log.identity,
            newest.pos[-1].as_py(),
            kind=rows.block.kind,
            commit_lsn=kept.commit_lsn,
            done=rows.done,
        )
        state = replace(state, within=within).after(envelopes)

        def build() -> pa.RecordBatch:
            parts: list[Part] = []
            if rows.table_id not in view.wanted:
                return in_order(parts)
            start = 0
            rendered = [one for one in changes if not one.failed]
            shown = _kept(markers, [not one.failed for one in changes for _ in range(len(one))])
            for one in rendered:
                captured = view.captured(rows.table_id, one.batch)
                last = rows.ends_snapshot and one is rendered[-1]
                mine = shown.slice(start, len(one))
                shown_at = moved_to(kept, one)
                batch = texts.reads(shown_at, mine, captured, kind=rows.block.kind, last=last, serial=serial)
                parts.append((np.arange(start, start + len(one)), batch))
                start += len(one)
            return in_order(parts)

        return build, state


@dataclass(frozen=True, slots=True)
class _BlockEnd:
    block: Block

    def prepare(self, view: DatabaseView) -> list[Changes]:
        del view
        return []

    def number(
        self, changes: list[Changes], view: DatabaseView, envelopes: Envelopes, state: StreamState
    ) -> tuple[Build, StreamState]:
        del changes
        block = self.block
        records = list(end_record(block, envelopes)) if view.connector.streaming.heartbeat_interval_ms else []
        state = replace(state, within=None, snapshots=(*state.snapshots, block.number))
        return lambda: batch_of_records(records, block.position), state


@dataclass(frozen=True, slots=True)
class _Window:
    """Changes of all tables up to a position, and the marks among them; with `is_end`, everything up to the bound."""

    batches: Sequence[Batch]
    marks: Sequence[Mark]
    is_end: bool = False

    def prepare(self, view: DatabaseView) -> list[Changes]:
        settings, shapes = view.connector.records, view.shapes
        failures = Failures.of(view.connector)
        return [
            changes
            for batch in self.batches
            for changes in changes_of(
                batch.rows, batch.log.table_id, shapes, skipped=settings.skipped, failures=failures
            )
        ]

    def number(
        self, changes: list[Changes], view: DatabaseView, envelopes: Envelopes, state: StreamState
    ) -> tuple[Build, StreamState]:
        ordered = Ordered.of(changes)
        numbered, parts = ordered.number(self.marks, view, envelopes)
        texts = EnvelopeTexts(envelopes.connector, envelopes.database, envelopes.extensions)
        state = self._state(view, state).after(envelopes)

        def build() -> pa.RecordBatch:
            # Several tables may share one topic: what is wanted is selected before their records are merged.
            pairs = zip(changes, numbered, strict=True)
            wanted = ((one, own) for one, own in pairs if view.wants(one.shape))
            return in_order([*parts, *(part for one, own in wanted for part in texts.stream(one, own))])

        return build, state

    def _state(self, view: DatabaseView, state: StreamState) -> StreamState:
        ends = [f"{batch.rows.column('_pos')[-1].as_py()}+" for batch in self.batches]
        beats = [mark.at_ms for mark in self.marks if isinstance(mark, Beat)]
        announced = [mark.name for mark in self.marks if isinstance(mark, Announcement)]
        notified = [mark.number for mark in self.marks if isinstance(mark, Notice)]
        if ends or self.is_end:
            state = state.reaching(view.bound if self.is_end else max(ends), view.batches)
        return replace(
            state,
            announced=(*state.announced, *announced),
            beat_ms=max([*beats, state.beat_ms or 0]) if beats else state.beat_ms,
            notified=max(notified, default=state.notified),
        )


def _kept(markers: pa.Array, kept: list[bool]) -> pa.Array:
    """Return the markers of the rows that are left; the last of them gets the marker of the last row."""
    if all(kept) or not any(kept):
        return markers.filter(pa.array(kept, pa.bool_()))
    left = markers.filter(pa.array(kept))
    return pa.concat_arrays([left.slice(0, len(left) - 1), markers.slice(len(markers) - 1)]) if not kept[-1] else left


def _before(batches: Sequence[Batch], end: str) -> list[Batch]:
    """Return the rows before a position."""
    return _nonempty(Batch(one.log, one.rows.slice(0, _count_before(one, end))) for one in batches)


def _from(batches: Sequence[Batch], start: str) -> list[Batch]:
    """Return the rows from a position on."""
    return _nonempty(Batch(one.log, one.rows.slice(_count_before(one, start))) for one in batches)


def _nonempty(batches: Iterator[Batch]) -> list[Batch]:
    return [batch for batch in batches if batch.rows.num_rows]


def _count_before(batch: Batch, position: str) -> int:
    return pc.sum(pc.less(batch.rows.column("_pos"), position)).as_py() or 0
