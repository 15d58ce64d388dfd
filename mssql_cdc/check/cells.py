"""A *cell*, the rows of one bucket in one key range: which cells differ, and the lake's rows in them.

Only the server knows in which key range a key is. So the checksums of all rows are compared by bucket, and only the
lake's rows of buckets that differ are placed in ranges by the server: then a difference is known to be in a few rows of
one range, and the source reads no other range again. What does not fit in memory is in temporary files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

from mssql_cdc.check.checksums import Sums, add, row_data, sums_of
from mssql_cdc.check.compared import Compared
from mssql_cdc.check.sides import CurrentRows
from mssql_cdc.lake.pinned import PinnedTable
from mssql_cdc.source.protocol import CheckSession
from mssql_cdc.source.values import Checksum, Chunk

PLACED_TOGETHER = 10_000
"""About how many rows of the lake are held in memory until the server has placed them in ranges."""
Lanes = tuple[int, int, int]
"""The number of rows, and the sums of the two lanes of a checksum without the carry."""
_LANE = 1 << 64
_CELL = "_cell"


@dataclass(frozen=True, slots=True)
class Cell:
    """A key range (by its place), a bucket, and the number of rows that the larger side has there."""

    range: int
    bucket: int
    rows: int


@dataclass(frozen=True, slots=True)
class SourceCells:
    """The source's checksums: those of whole buckets in memory, those of cells in a folder."""

    folder: Path
    buckets: Sums = field(default_factory=dict[int, Checksum])
    rows: list[int] = field(default_factory=list[int])
    """How many rows each range has."""

    def add(self, sums: Mapping[int, Checksum]) -> None:
        """Add the checksums of the next range."""
        add(self.buckets, sums)
        lanes = [(number, *_lanes(one)) for number, one in sums.items()]
        np.save(self._file(len(self.rows)), np.array(lanes, np.uint64).reshape(-1, 4))
        self.rows.append(sum(one.rows for one in sums.values()))

    def of(self, place: int, buckets: Collection[int]) -> dict[int, Lanes]:
        """The number of rows and the lanes of some buckets of a range."""
        lanes = np.load(self._file(place))
        mine = lanes[np.isin(lanes[:, 0], np.array(sorted(buckets), np.uint64))]
        return {number: (rows, low, high) for number, rows, low, high in mine.tolist()}

    def _file(self, place: int) -> Path:
        return self.folder / f"range{place}.npy"


@dataclass(frozen=True, slots=True)
class LakeCells:
    """The lake's rows of some buckets in a file, each row with its cell.

    `sums` has the number of rows and the lanes of each bucket, by range.
    """

    file: Path
    count: int
    sums: Mapping[int, Mapping[int, Lanes]]

    def read(self, cells: Collection[Cell]) -> Iterator[pa.RecordBatch]:
        """The rows of these cells."""
        wanted = np.array([cell.range * self.count + cell.bucket for cell in cells], np.int64)
        with ipc.open_file(self.file) as reader:
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                mine = np.isin(batch.column(_CELL).to_numpy(), wanted)
                if mine.any():
                    yield batch.filter(pa.array(mine))


def stage(
    session: CheckSession,
    compared: Compared,
    rows: CurrentRows,
    pinned: PinnedTable,
    *,
    file: Path,
    buckets: Collection[int],
    count: int,
    ranges: Sequence[Chunk],
) -> LakeCells:
    """Write the lake's rows of some buckets to a file, each row with its cell.

    Args:
        session: Places keys in ranges.
        compared: The columns to compare.
        rows: Reads these columns from the current table.
        pinned: The current table.
        file: Where the rows go.
        buckets: The buckets whose rows to write.
        count: How many buckets there are in all.
        ranges: The key ranges.
    """
    sums: Sums = {}
    schema = pinned.schema.append(pa.field(_CELL, pa.int64()))
    wanted = np.array(sorted(buckets), np.int64)
    batches: list[pa.RecordBatch] = []
    numbers: list[int] = []
    data: list[bytes] = []

    def place(writer: ipc.RecordBatchFileWriter) -> None:
        if not batches:
            return
        batch = pa.concat_batches(batches)
        keys = [compared.key(texts) for texts, _ in rows.texts(batch)]
        places = session.places(compared.schema, keys, ranges)
        cells = [place * count + number for place, number in zip(places, numbers, strict=True)]
        add(sums, sums_of(cells, data))
        writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, pa.array(cells, pa.int64())], schema=schema))
        for kept in (batches, numbers, data):
            kept.clear()

    with ipc.new_file(file, schema) as writer:
        for batch in pinned.read():
            of_rows, bytes_of_rows = row_data(batch, rows, compared, count)
            mine = np.isin(of_rows, wanted)
            if mine.any():
                batches.append(batch.filter(pa.array(mine)))
                numbers += [one for one, kept in zip(of_rows, mine, strict=True) if kept]
                data += [one for one, kept in zip(bytes_of_rows, mine, strict=True) if kept]
            if len(numbers) >= PLACED_TOGETHER:
                place(writer)
        place(writer)
    by_range: dict[int, dict[int, Lanes]] = defaultdict(dict)
    for cell, one in sums.items():
        by_range[cell // count][cell % count] = _lanes(one)
    return LakeCells(file, count, by_range)


def differing(source: SourceCells, lake: LakeCells, buckets: Collection[int]) -> list[Cell]:
    """The cells of these buckets that differ, in the order of their ranges.

    Args:
        source: The checksums of the source.
        lake: Those of the lake.
        buckets: The buckets whose rows `lake` has.
    """
    found: list[Cell] = []
    for place in range(len(source.rows)):
        ours, theirs = source.of(place, buckets), lake.sums.get(place, {})
        for bucket in sorted(ours.keys() | theirs.keys()):
            left, right = ours.get(bucket, (0, 0, 0)), theirs.get(bucket, (0, 0, 0))
            if left != right:
                found.append(Cell(place, bucket, max(left[0], right[0])))
    return found


def _lanes(one: Checksum) -> Lanes:
    return one.rows, one.low % _LANE, one.high % _LANE
