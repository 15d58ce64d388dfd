"""The change logs of a database as one ordered stream of bounded batches (rules A4, B11).

A *piece* is one row group of a change log's file. Each file is written in position order, but several tasks write
concurrently and OPTIMIZE merges files, so no order between files is assumed: pieces know the bounds of their
positions. They are read by their first positions, and windows of complete rows are cut from what was read. `rows.py`
interprets the rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.read import Commits, lift, scan
from mssql_cdc.lake.storage import Storage
from mssql_cdc.records.log_files import HIGHEST, LOWEST, LogFiles, Piece
from mssql_cdc.schema import TableId

WINDOW_ROWS = 15_000
"""The number of rows, over all tables, that are rendered at once. Records of more rows do not fit the memory that is in
use already: the kernel takes as long to clear new memory as the records take to be made."""
TABLE_ROWS, MOST_ROWS = 500, 50_000
"""With many tables windows are larger, so that each table has about so many rows in one."""
WINDOW_BYTES = 64 * 1024 * 1024
"""The approximate size of their values; large values make windows of fewer rows."""
SWEEP = "sweep:"


@dataclass(frozen=True, slots=True)
class Limits:
    """The rows of a change log to read: `_pos <= cut` and `_batch <= batch` (rule A4).

    Except those that were read before: for any pair of `done`, `_pos` less than the first and `_batch` not greater than
    the second. A later batch can have an earlier position: that of a repair, or of a table that was read late.
    """

    cut: str
    batch: int
    done: tuple[tuple[str, int], ...] = ()


class ChangeLog:
    """The current change log of one table; it reads only file footers until rows are requested.

    `identity` and `folder`, as `_offsets` has it, stay the same when the table is renamed.
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

    def behind(self, done: Iterable[tuple[str, int]] = ()) -> ChangeLog:
        """Return the same log without what was read before (`Limits`)."""
        found = copy.copy(self)
        found.limits = replace(self.limits, done=tuple(done))
        return found

    def within(self, last: str, batch: int) -> ChangeLog:
        """Return the same log without what lies behind a position, or was written by a later batch."""
        found = copy.copy(self)
        limits = self.limits
        found.limits = replace(limits, cut=min(limits.cut, last), batch=min(limits.batch, batch))
        found.pieces = tuple(piece for piece in self.pieces if piece.first <= found.limits.cut)
        return found

    def first_position(self, time: datetime) -> str | None:
        """Return the smallest position of the rows that were committed at or after a time; None without any.

        Rows of sweeps were not: they have the time of a snapshot's end where it began.
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

    def read(self, piece: Piece) -> pa.RecordBatch:
        """Return the piece's rows within the limits, in position order."""
        physical, logical = self._files.physical, self._files.logical
        with self._files.system.open_input_file(piece.path) as source:
            file = pq.ParquetFile(source)
            present = set(file.schema_arrow.names)
            table = file.read_row_group(
                piece.group, columns=[n for n in physical.names if n in present], use_threads=False
            )
        batches = [lift(batch, physical, logical) for batch in table.combine_chunks().to_batches()]
        if not batches:
            return pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in logical], schema=logical)
        rows = pa.concat_batches(batches) if len(batches) > 1 else batches[0]
        pos, number, limits = rows.column("_pos"), rows.column("_batch"), self.limits
        wanted = pc.and_(pc.less_equal(pos, limits.cut), pc.less_equal(number, limits.batch))
        for position, batch in limits.done:
            wanted = pc.and_(wanted, pc.or_(pc.greater_equal(pos, position), pc.greater(number, batch)))
        return _sorted(rows if pc.all(wanted).as_py() else rows.filter(wanted))


@dataclass(frozen=True, slots=True)
class Batch:
    """Change-log rows of one table in position order, with the table's logical column names."""

    log: ChangeLog
    rows: pa.RecordBatch


def streamed(logs: Sequence[ChangeLog], *, window_rows: int | None = None) -> Iterator[list[Batch]]:
    """Yield windows of changes in position order, each with one batch per table that has rows in it.

    Rows of snapshots are omitted except those of incremental snapshots, which belong to the stream; rows of sweeps,
    which Debezium does not have, are omitted too (rule C19).

    Args:
        logs: The change logs.
        window_rows: The number of rows of a window; None: what the number of tables makes fast.
    """
    window_rows = window_rows or min(max(WINDOW_ROWS, TABLE_ROWS * len(logs)), MOST_ROWS)
    wanted = [(log, piece) for log in logs for piece in log.unread()]
    yield from _windows(wanted, window_rows, lambda rows: _is_streamed(rows.column("_snapshot")))


def snapshot_rows(
    log: ChangeLog, number: str, *, low: str = LOWEST, window_rows: int = WINDOW_ROWS
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one snapshot of one table, in position order.

    Args:
        log: The table's change log.
        number: The snapshot's number, as in `_snapshot`.
        low: The first position.
        window_rows: The number of rows of a batch.
    """

    def is_wanted(rows: pa.RecordBatch) -> pa.Array:
        mine = pc.fill_null(pc.equal(rows.column("_snapshot"), number), fill_value=False)
        return pc.and_(mine, pc.greater_equal(rows.column("_pos"), low))

    whole = log.behind()  # A snapshot is rendered as a whole.
    wanted = [(whole, piece) for piece in log.pieces if number in piece.snapshots and piece.last >= low]
    for window in _windows(wanted, window_rows, is_wanted):
        yield from (batch.rows for batch in window)


def snapshot_numbers(log: ChangeLog) -> set[str]:
    """Return the snapshots that wrote rows of the table, excluding incremental snapshots and sweeps."""
    return {number for piece in log.pieces for number in piece.snapshots if number.isdigit()}


def _windows(
    pieces: Sequence[tuple[ChangeLog, Piece]],
    window_rows: int,
    is_wanted: Callable[[pa.RecordBatch], pa.Array],
) -> Iterator[list[Batch]]:
    """Read each piece once, by first positions; rows before all pieces that are left are complete."""
    waiting: dict[TableId, list[Batch]] = {log.table_id: [] for log, _ in pieces}
    count, enough = 0, window_rows
    for log, piece in sorted(pieces, key=lambda one: one[1].first):
        if count >= enough:
            # Both rows of a split key change (operations 3 and 4) stay in one window.
            complete, waiting = _split(waiting, piece.first[:-1])
            yield from _cut(complete, window_rows)
            count = sum(batch.rows.num_rows for own in waiting.values() for batch in own)
            enough = max(window_rows, 2 * count)
        rows = log.read(piece)
        wanted = is_wanted(rows)
        rows = rows if pc.all(wanted).as_py() else rows.filter(wanted)
        if rows.num_rows:
            waiting[log.table_id].append(Batch(log, rows))
            count += rows.num_rows
    complete, _ = _split(waiting, HIGHEST)
    yield from _cut(complete, window_rows)


def _split(waiting: Mapping[TableId, list[Batch]], frontier: str) -> tuple[list[Batch], dict[TableId, list[Batch]]]:
    """Divide the rows into those before `frontier`, one sorted batch per table, and the others."""
    complete: list[Batch] = []
    rest: dict[TableId, list[Batch]] = {}
    for table, own in waiting.items():
        rest[table] = []
        if not own:
            continue
        rows = own[0].rows if len(own) == 1 else _sorted(pa.concat_batches([batch.rows for batch in own]))
        before = _rows_before(rows, frontier)
        if before:
            complete.append(Batch(own[0].log, rows.slice(0, before)))
        if before < rows.num_rows:
            rest[table] = [Batch(own[0].log, rows.slice(before))]
    return complete, rest


def _cut(complete: list[Batch], window_rows: int) -> Iterator[list[Batch]]:
    """Cut complete rows of all tables into windows of bounded size, by position."""
    rows, size = sum(batch.rows.num_rows for batch in complete), sum(batch.rows.nbytes for batch in complete)
    step = max(1, min(window_rows, rows * WINDOW_BYTES // max(size, 1)))
    if rows > step:
        positions = pc.sort_indices(every := pa.concat_arrays([batch.rows.column("_pos") for batch in complete]))
        ends = [every[positions[at].as_py()].as_py() for at in range(step - 1, rows - 1, step)]
        for end in ends:
            inside, others = _split({batch.log.table_id: [batch] for batch in complete}, f"{end[:-1]}g")
            complete = [batch for own in others.values() for batch in own]
            if inside:
                yield inside
    if complete:
        yield complete


def _rows_before(rows: pa.RecordBatch, frontier: str) -> int:
    return pc.sum(pc.less(rows.column("_pos"), frontier)).as_py() or 0


def _sorted(rows: pa.RecordBatch) -> pa.RecordBatch:
    pos = rows.column("_pos")
    if len(pos) < 2 or pc.all(pc.less_equal(pos.slice(0, len(pos) - 1), pos.slice(1))).as_py():
        return rows
    return rows.take(pc.sort_indices(pos))


def _is_streamed(snapshots: pa.Array) -> pa.Array:
    names = pc.unique(snapshots).to_pylist()
    streamed_ones = [name for name in names if name is None or not (name.isdigit() or name.startswith(SWEEP))]
    return pc.is_in(snapshots, value_set=pa.array(streamed_ones, pa.string()))


def _is_swept(snapshots: pa.Array) -> pa.Array:
    return pc.fill_null(pc.starts_with(snapshots, SWEEP), fill_value=False)
