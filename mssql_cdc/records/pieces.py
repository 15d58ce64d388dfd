"""The change logs of a database as one ordered stream of bounded batches (rules A4, B11).

A *piece* is one row group of a change log's file. Each file is written in position order, but several tasks write
concurrently and OPTIMIZE merges files, so no order between files is assumed: pieces know the bounds of their positions.
Pieces are read in order of their first positions, and windows of complete rows are cut from what was read. `rows.py`
interprets the rows.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.read import Commits, file_rows, parquet_file, scan
from mssql_cdc.lake.storage import Storage
from mssql_cdc.records.log_files import LOWEST, LogFiles, Piece
from mssql_cdc.schema import TableId

WINDOW_ROWS = 15_000
"""The number of rows, across all tables, that are rendered at once. Records of more rows do not fit in the memory that
is already in use: the kernel takes as long to clear new memory as it takes to make the records."""
TABLE_ROWS, MOST_ROWS = 500, 50_000
"""With many tables, windows are larger, so that each table has about TABLE_ROWS rows in one."""
WINDOW_BYTES = 64 * 1024 * 1024
"""The size of a window's values; large values make windows of fewer rows, and are not read until there is room for
them."""
ROW_TEXT = 5_000
"""The bytes in a row's records that do not depend on its values (schemas and names), on average in a full window. With
schemas, a table with 20 columns has this many, one with 450 has 73,000, or 216,000 with propagated types: 15,000 such
records exceed the 2 GiB of an Arrow array. With 60 columns, windows of 67 MiB instead of 151 took half the memory and
no more time."""
SWEEP = "sweep:"
TextBytes = Callable[[TableId, pa.RecordBatch], int]
"""Returns how many of these bytes the records of a table's rows have."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The rows of a change log to read: `_pos <= cut` and `_batch <= batch` (rule A4).

    Rows that were read before are excluded: for any pair in `done`, those with `_pos` less than the first and `_batch`
    not greater than the second. A later batch can have an earlier position if it is from a repair, or from a table that
    was read late.
    """

    cut: str
    batch: int
    done: tuple[tuple[str, int], ...] = ()


class ChangeLog:
    """The current change log of one table; it reads only file footers until rows are requested.

    `identity` and `folder` (as in `_offsets`) stay the same when the table is renamed.
    """

    def __init__(
        self,
        table_id: TableId,
        home: TableHome,
        limits: Limits,
        storage: Storage,
        *,
        folder: str | None = None,
        known: KnownTables | None = None,
    ) -> None:
        self.table_id, self.folder = table_id, folder
        self.identity = home.app_id
        self.limits = limits
        self._files = LogFiles.load(home.changes, storage, known)
        self.pieces = tuple(piece for piece in self._files.pieces if piece.first <= limits.cut)

    def after(self, done: Iterable[tuple[str, int]] = ()) -> ChangeLog:
        """Return the same log without the rows that were read before (see `Limits`)."""
        found = copy.copy(self)
        found.limits = replace(self.limits, done=tuple(done))
        return found

    def within(self, last: str, batch: int) -> ChangeLog:
        """Return the same log without rows that lie after a position or were written by a later batch."""
        found = copy.copy(self)
        limits = self.limits
        found.limits = replace(limits, cut=min(limits.cut, last), batch=min(limits.batch, batch))
        found.pieces = tuple(piece for piece in self.pieces if piece.first <= found.limits.cut)
        return found

    def first_position(self, time: datetime) -> str | None:
        """Return the smallest position of the rows that were committed at or after a time; None if there are none.

        Rows of sweeps do not count: they have the time when a snapshot ended, at the position where it began.
        """
        commits, columns = Commits(time, datetime.max.replace(tzinfo=UTC)), ["_pos", "_snapshot"]
        found = (
            pc.min(rows.column("_pos").filter(pc.invert(_is_swept(rows.column("_snapshot"))))).as_py()
            for rows in scan(self._files.uri, commits=commits, columns=columns, storage=self._files.storage)
        )
        return min((pos for pos in found if pos is not None and pos <= self.limits.cut), default=None)

    def unread(self) -> tuple[Piece, ...]:
        """Return the pieces that can contain rows within the limits."""
        done = self.limits.done
        return tuple(
            piece
            for piece in self.pieces
            if all(piece.last >= position or piece.newest_batch > batch for position, batch in done)
        )

    def read(self, piece: Piece) -> list[pa.RecordBatch]:
        """Return the piece's rows within the limits, in batches that are each in position order."""
        with self._files.system.open_input_file(piece.path) as source:
            file = parquet_file(source)
            found = list(file_rows(file, self._files.physical, self._files.logical, None, [piece.group]))
        return [_sorted(rows) for rows in map(self._within_limits, found) if rows.num_rows]

    def _within_limits(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        pos, number, limits = rows.column("_pos"), rows.column("_batch"), self.limits
        wanted = pc.and_(pc.less_equal(pos, limits.cut), pc.less_equal(number, limits.batch))
        for position, batch in limits.done:
            wanted = pc.and_(wanted, pc.or_(pc.greater_equal(pos, position), pc.greater(number, batch)))
        return rows if pc.all(wanted).as_py() else rows.filter(wanted)


@dataclass(frozen=True, slots=True)
class Batch:
    """Change-log rows of one table in position order, with the table's logical column names."""

    log: ChangeLog
    rows: pa.RecordBatch


Parts = dict[TableId, list[Batch]]
"""Rows of tables, in batches that are each in position order."""


def streamed(
    logs: Sequence[ChangeLog], text_bytes: TextBytes | None = None, *, window_rows: int | None = None
) -> Iterator[list[Batch]]:
    """Yield windows of changes in position order, each with one batch per table that has rows in it.

    Rows of snapshots are omitted except those of incremental snapshots, which belong to the stream; rows of sweeps,
    which Debezium does not have, are omitted too (rule C19).

    Args:
        logs: The change logs.
        text_bytes: Bounds the text that their records repeat; None: they are not rendered.
        window_rows: The number of rows in a window; None: a number that is fast with this many tables.
    """
    bounds = _Bounds(window_rows or min(max(WINDOW_ROWS, TABLE_ROWS * len(logs)), MOST_ROWS), text_bytes)
    wanted = [(log, piece) for log in logs for piece in log.unread()]
    yield from _windows(wanted, bounds, lambda rows: _is_streamed(rows.column("_snapshot")))


def snapshot_rows(
    log: ChangeLog,
    number: str,
    text_bytes: TextBytes | None = None,
    *,
    low: str = LOWEST,
    window_rows: int = WINDOW_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one snapshot of one table, in position order.

    Args:
        log: The table's change log.
        number: The snapshot's number, as in `_snapshot`.
        text_bytes: Bounds the text that their records repeat; None: they are not rendered.
        low: The first position.
        window_rows: The number of rows in a batch.
    """

    def is_wanted(rows: pa.RecordBatch) -> pa.Array:
        mine = pc.fill_null(pc.equal(rows.column("_snapshot"), number), fill_value=False)
        return pc.and_(mine, pc.greater_equal(rows.column("_pos"), low))

    whole = log.after()  # A snapshot is rendered as a whole.
    wanted = [(whole, piece) for piece in log.pieces if number in piece.snapshots and piece.last >= low]
    for window in _windows(wanted, _Bounds(window_rows, text_bytes), is_wanted):
        yield from (batch.rows for batch in window)


def first_row(log: ChangeLog, number: str, *, low: str = LOWEST) -> pa.RecordBatch | None:
    """Return the first row of one snapshot of one table; None if there is none.

    Args:
        log: The table's change log.
        number: The snapshot's number.
        low: The first position.
    """
    return next(snapshot_rows(log, number, low=low, window_rows=1), None)


def snapshot_numbers(log: ChangeLog) -> set[str]:
    """Return the snapshots that wrote rows of the table, excluding incremental snapshots and sweeps."""
    return {number for piece in log.pieces for number in piece.snapshots if number.isdigit()}


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The limits of a window: its rows, the bytes of their values, and the bytes of text that their records repeat."""

    rows: int
    text_bytes: TextBytes | None

    def rows_of(self, parts: Parts) -> int:
        """Return how many rows of their average size a window may have."""
        count = _count(parts)
        found = min(self.rows, count * WINDOW_BYTES // max(_size(parts), 1))
        if self.text_bytes is not None:
            texts = sum(self.text_bytes(table, batch.rows) for table, own in parts.items() for batch in own)
            found = min(found, count * ROW_TEXT * max(self.rows, WINDOW_ROWS) // max(texts, 1))
        return max(found, 1)


def _windows(
    pieces: Sequence[tuple[ChangeLog, Piece]],
    bounds: _Bounds,
    is_wanted: Callable[[pa.RecordBatch], pa.Array],
) -> Iterator[list[Batch]]:
    """Read each piece once, in order of first positions; rows before all remaining pieces are complete."""
    waiting: Parts = {log.table_id: [] for log, _ in pieces}
    count, size = 0, 0
    enough, most = bounds.rows, WINDOW_BYTES
    for log, piece in sorted(pieces, key=lambda one: one[1].first):
        if count >= enough or size >= most:
            # Both rows of a split key change (operations 3 and 4) stay in one window.
            complete, waiting = _split(waiting, piece.first[:-1])
            yield from _cut(complete, bounds)
            count, size = _count(waiting), _size(waiting)
            enough, most = max(bounds.rows, 2 * count), size + WINDOW_BYTES
        for rows in log.read(piece):
            wanted = is_wanted(rows)
            found = rows if pc.all(wanted).as_py() else rows.filter(wanted)
            if found.num_rows:
                waiting[log.table_id].append(Batch(log, found))
                count, size = count + found.num_rows, size + found.nbytes
    yield from _cut(waiting, bounds)


def _split(parts: Parts, frontier: str) -> tuple[Parts, Parts]:
    """Divide the rows into those before `frontier` and the others; nothing is copied."""
    before: Parts = {table: [] for table in parts}
    rest: Parts = {table: [] for table in parts}
    for table, own in parts.items():
        for batch in own:
            end = bisect_left(batch.rows.column("_pos"), frontier, key=lambda pos: pos.as_py())
            if end:
                before[table].append(Batch(batch.log, batch.rows.slice(0, end)))
            if end < batch.rows.num_rows:
                rest[table].append(Batch(batch.log, batch.rows.slice(end)))
    return before, rest


def _cut(complete: Parts, bounds: _Bounds) -> Iterator[list[Batch]]:
    """Cut complete rows of all tables into windows of bounded size, by position.

    Only the rows of one window are copied together: an Arrow array holds at most 2 GiB of text.
    """
    rows, step = _count(complete), bounds.rows_of(complete)
    if step < rows:
        # Windows are sized for rows of average size; one with larger rows is cut again, into halves or smaller parts.
        step = min(step, (rows + 1) // 2)
        positions = _ordered([batch.rows.column("_pos") for own in complete.values() for batch in own])
        for at in range(step - 1, rows - 1, step):
            inside, complete = _split(complete, f"{positions[at].as_py()[:-1]}g")
            if _count(inside) < rows:
                yield from _cut(inside, bounds)
            else:
                yield _joined(inside)  # The rows of one change.
        if _count(complete):
            yield from _cut(complete, bounds)
    elif rows:
        yield _joined(complete)


def _joined(parts: Parts) -> list[Batch]:
    """Return one sorted batch per table."""
    return [
        own[0] if len(own) == 1 else Batch(own[0].log, _sorted(pa.concat_batches([batch.rows for batch in own])))
        for own in parts.values()
        if own
    ]


def _count(parts: Parts) -> int:
    return sum(batch.rows.num_rows for own in parts.values() for batch in own)


def _size(parts: Parts) -> int:
    return sum(batch.rows.nbytes for own in parts.values() for batch in own)


def _sorted(rows: pa.RecordBatch) -> pa.RecordBatch:
    pos = rows.column("_pos")
    return rows if _is_sorted(pos) else rows.take(pc.sort_indices(pos))


def _ordered(positions: list[pa.Array]) -> pa.Array:
    every = pa.concat_arrays(positions) if len(positions) > 1 else positions[0]
    return every if _is_sorted(every) else every.take(pc.sort_indices(every))


def _is_sorted(pos: pa.Array) -> bool:
    return len(pos) < 2 or pc.all(pc.less_equal(pos.slice(0, len(pos) - 1), pos.slice(1))).as_py()


def _is_streamed(snapshots: pa.Array) -> pa.Array:
    names = pc.unique(snapshots).to_pylist()
    streamed_ones = [name for name in names if name is None or not (name.isdigit() or name.startswith(SWEEP))]
    return pc.is_in(snapshots, value_set=pa.array(streamed_ones, pa.string()))


def _is_swept(snapshots: pa.Array) -> pa.Array:
    return pc.fill_null(pc.starts_with(snapshots, SWEEP), fill_value=False)
