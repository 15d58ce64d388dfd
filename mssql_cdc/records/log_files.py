"""The files of a change log, and the row groups in them, as their footers describe them; `pieces.py` reads the rows.

A file never changes, so its footer is read once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq

from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.read import open_files
from mssql_cdc.lake.storage import Storage
from mssql_cdc.records.rows import READ_COLUMNS

LOWEST, HIGHEST = "", "g"  # Every position begins with a hexadecimal digit.


@dataclass(frozen=True, slots=True)
class Piece:
    """One row group: its file, its index in the file, its row count, its smallest and largest `_pos`.

    `snapshots` are those that it has rows of, each with the smallest `_pos` of these rows: OPTIMIZE puts rows of
    several snapshots, and changes, into one row group. `newest_batch` is its largest `_batch`.
    """

    path: str
    group: int
    rows: int
    first: str
    last: str
    snapshots: Mapping[str, str]
    newest_batch: int


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The files of a change log at one version.

    `logical` are the columns that records are made from, `physical` the same columns as the files name and type them.
    """

    uri: str
    storage: Storage
    system: pa_fs.FileSystem
    logical: pa.Schema
    physical: pa.Schema
    pieces: tuple[Piece, ...]

    @classmethod
    def load(cls, uri: str, storage: Storage, known: KnownTables | None = None) -> LogFiles:
        """Read the footers of a change log's files.

        Args:
            uri: The folder of the change log.
            storage: How to reach it.
            known: The change logs as they were last read; only footers of new files are read.
        """
        if known is None:
            return cls._load(uri, storage, None)
        return known.get(uri, lambda: cls._load(uri, storage, known.last(uri, LogFiles)), storage)

    @classmethod
    def _load(cls, uri: str, storage: Storage, before: LogFiles | None) -> LogFiles:
        files = open_files(uri, storage=storage)
        logical = pa.schema([field for field in files.logical if field.name in READ_COLUMNS])
        physical = files.stored(logical)
        kept: dict[str, list[Piece]] = {}
        for piece in before.pieces if before is not None else ():
            kept.setdefault(piece.path, []).append(piece)
        names = [physical.field(logical.get_field_index(name)).name for name in ("_pos", "_snapshot", "_batch")]
        found = (kept.get(path) or _pieces(files.system, path, *names) for path in sorted(files.paths))
        pieces = tuple(piece for own in found for piece in own)
        return cls(uri, storage, files.system, logical, physical, pieces)


def _pieces(system: pa_fs.FileSystem, path: str, pos: str, snapshot: str, number: str) -> Iterator[Piece]:
    with system.open_input_file(path) as source:
        file = pq.ParquetFile(source)
        places = {file.metadata.schema.column(i).path: i for i in range(len(file.metadata.schema))}
        for group in range(file.num_row_groups):
            facts = file.metadata.row_group(group)
            bounds = facts.column(places[pos]).statistics
            first, last = _bounds(bounds)
            marks = facts.column(places[snapshot]).statistics
            snapshots: dict[str, str] = {}
            if marks is None or not marks.has_null_count or marks.null_count < facts.num_rows:
                rows = file.read_row_group(group, columns=[snapshot, pos], use_threads=False)
                rows = rows.group_by(snapshot).aggregate([(pos, "min")])
                firsts = zip(*(rows.column(name).to_pylist() for name in (snapshot, f"{pos}_min")), strict=True)
                snapshots = {name: low for name, low in firsts if name is not None}
            numbers = facts.column(places[number]).statistics
            newest = int(numbers.max) if numbers is not None and numbers.has_min_max else sys.maxsize
            yield Piece(path, group, facts.num_rows, first, last, snapshots, newest)


def _bounds(statistics: Any) -> tuple[str, str]:
    if statistics is None or not statistics.has_min_max:
        return LOWEST, HIGHEST
    return str(statistics.min), str(statistics.max)
