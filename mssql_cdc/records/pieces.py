"""The change logs of a database as one ordered stream of bounded batches (rules A4, B11).

A *piece* is one row group of a change log's file. Each file is written in position order, but several tasks write
concurrently and OPTIMIZE merges files, so no order between files is assumed: pieces know the bounds of their
positions, and windows over those bounds are read, sorted and merged one after another. `rows.py` interprets the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mssql_cdc.lake.read import lift, open_files
from mssql_cdc.lake.storage import Storage
from mssql_cdc.schema import TableId

WINDOW_ROWS = 100_000
"""The approximate number of rows, over all tables, that are held in memory at once."""
SWEEP = "sweep:"
_LOWEST, _HIGHEST = "", "g"  # Every position consists of hexadecimal digits.


@dataclass(frozen=True, slots=True)
class Piece:
    """One row group: its file, its index in the file, its row count, its smallest and largest `_pos`, its snapshots."""

    path: str
    group: int
    rows: int
    first: str
    last: str
    snapshots: frozenset[str]


@dataclass(frozen=True, slots=True)
class Limits:
    """The rows of a change log to read: `_pos <= cut` and `_batch <= batch` (rule A4)."""

    cut: str
    batch: int


class ChangeLog:
    """The current change log of one table; it reads only file footers until rows are requested."""

    def __init__(self, table_id: TableId, uri: str, limits: Limits, storage: Storage) -> None:
        self.table_id = table_id
        self.limits = limits
        files = open_files(uri, storage=storage)
        self._logical = files.logical
        self._physical = files.stored(files.logical)
        self._system = files.system
        self.pieces = tuple(
            piece for path in sorted(files.paths) for piece in self._pieces(path) if piece.first <= limits.cut
        )

    def read(self, pieces: Iterable[Piece], low: str, high: str) -> pa.RecordBatch:
        """Return the rows with `low < _pos <= high` and within the limits, in position order.

        Args:
            pieces: All pieces of the log that can contain such rows.
            low: A position text, exclusive.
            high: A position text, inclusive.
        """
        high = min(high, self.limits.cut)
        found = [self._rows(piece, low, high) for piece in pieces]
        found = [batch for batch in found if batch.num_rows]
        if not found:
            return pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in self._logical], schema=self._logical)
        rows = found[0] if len(found) == 1 else pa.concat_batches(found)
        return rows.take(pc.sort_indices(rows, sort_keys=[("_pos", "ascending")]))

    def _rows(self, piece: Piece, low: str, high: str) -> pa.RecordBatch:
        with self._system.open_input_file(piece.path) as source:
            file = pq.ParquetFile(source)
            present = set(file.schema_arrow.names)
            table = file.read_row_group(
                piece.group, columns=[n for n in self._physical.names if n in present], use_threads=False
            )
        batches = [lift(batch, self._physical, self._logical) for batch in table.combine_chunks().to_batches()]
        rows = pa.concat_batches(batches) if len(batches) != 1 else batches[0]
        pos = rows.column("_pos")
        wanted = pc.and_(pc.greater(pos, low), pc.less_equal(pos, high))
        return rows.filter(pc.and_(wanted, pc.less_equal(rows.column("_batch"), self.limits.batch)))

    def _pieces(self, path: str) -> Iterator[Piece]:
        pos, snapshot = (self._physical.field(self._logical.get_field_index(n)).name for n in ("_pos", "_snapshot"))
        with self._system.open_input_file(path) as source:
            file = pq.ParquetFile(source)
            places = {file.metadata.schema.column(i).path: i for i in range(len(file.metadata.schema))}
            for group in range(file.num_row_groups):
                facts = file.metadata.row_group(group)
                bounds = facts.column(places[pos]).statistics
                first, last = _bounds(bounds)
                marks = facts.column(places[snapshot]).statistics
                names: frozenset[str] = frozenset()
                if marks is None or not marks.has_null_count or marks.null_count < facts.num_rows:
                    column = file.read_row_group(group, columns=[snapshot], use_threads=False).column(0)
                    names = frozenset(name for name in pc.unique(column).to_pylist() if name is not None)
                yield Piece(path, group, facts.num_rows, first, last, names)


def _bounds(statistics: Any) -> tuple[str, str]:
    if statistics is None or not statistics.has_min_max:
        return _LOWEST, _HIGHEST
    return str(statistics.min), str(statistics.max)


@dataclass(frozen=True, slots=True)
class Batch:
    """Change-log rows of one table in position order, with the table's logical column names."""

    log: ChangeLog
    rows: pa.RecordBatch


def streamed(logs: Sequence[ChangeLog], *, window_rows: int = WINDOW_ROWS) -> Iterator[list[Batch]]:
    """Yield windows of changes in position order, each with one batch per table that has rows in it.

    Rows of snapshots are omitted except those of incremental snapshots, which belong to the stream; rows of sweeps,
    which Debezium does not have, are omitted too (rule C19).
    """
    pieces = [(log, piece) for log in logs for piece in log.pieces]
    low = _LOWEST
    for high in window_ends([piece for _, piece in pieces], window_rows):
        batches: list[Batch] = []
        for log in logs:
            inside = [p for p in log.pieces if p.last > low and p.first <= high]
            rows = log.read(inside, low, high) if inside else None
            if rows is not None:
                rows = rows.filter(_is_streamed(rows.column("_snapshot")))
                if rows.num_rows:
                    batches.append(Batch(log, rows))
        if batches:
            yield batches
        low = high


def snapshot_rows(log: ChangeLog, number: str, *, window_rows: int = WINDOW_ROWS) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one snapshot of one table, in position order.

    Args:
        log: The table's change log.
        number: The snapshot's number, as in `_snapshot`.
        window_rows: The approximate number of log rows from which a batch is taken.
    """
    pieces = [piece for piece in log.pieces if number in piece.snapshots]
    low = _LOWEST
    for high in window_ends(pieces, window_rows):
        rows = log.read([p for p in pieces if p.last > low and p.first <= high], low, high)
        rows = rows.filter(pc.fill_null(pc.equal(rows.column("_snapshot"), number), fill_value=False))
        if rows.num_rows:
            yield rows
        low = high


def snapshot_numbers(log: ChangeLog) -> set[str]:
    """Return the snapshots that wrote rows of the table, excluding incremental snapshots and sweeps."""
    return {number for piece in log.pieces for number in piece.snapshots if number.isdigit()}


def window_ends(pieces: Iterable[Piece], window_rows: int) -> list[str]:
    """Return ascending positions that cut the pieces into windows of about `window_rows` rows, the last beyond all."""
    ends: list[str] = []
    rows = 0
    for piece in sorted(pieces, key=lambda piece: piece.last):
        rows += piece.rows
        if rows >= window_rows:
            # Both rows of a split key change (operations 3 and 4) stay in one window.
            end = f"{piece.last[:-1]}f"
            if not ends or end > ends[-1]:
                ends.append(end)
            rows = 0
    return [*ends, _HIGHEST]


def _is_streamed(snapshots: pa.Array) -> pa.Array:
    names = pc.unique(snapshots).to_pylist()
    streamed_ones = [name for name in names if name is None or not (name.isdigit() or name.startswith(SWEEP))]
    return pc.is_in(snapshots, value_set=pa.array(streamed_ones, pa.string()))
