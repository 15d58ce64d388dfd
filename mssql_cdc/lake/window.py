"""Windows over a change log: the files that hold a slice of it, readable on a worker, whole or by key range.

`lake/apply_task.py` processes the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.add_actions import add_actions
from mssql_cdc.lake.delta_schema import arrow_of, file_schema, stored_name
from mssql_cdc.lake.files import DataFile
from mssql_cdc.lake.opened import open_table
from mssql_cdc.lake.read import BatchSlice, file_rows, parquet_file
from mssql_cdc.lake.storage import LOCAL, Storage, file_system

_END = "\U0010ffff"
_SAMPLED_FILES = 16
_SAMPLED_GROUPS = 4


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys from `low` (inclusive) to `high` (exclusive), in byte order; None: no bound."""

    low: str | None = None
    high: str | None = None

    @classmethod
    def of(cls, smallest: str | None, largest: str | None) -> KeyRange:
        """The range of all keys between these two, both included."""
        return cls(smallest, None if largest is None else f"{largest}\0")

    @property
    def is_all(self) -> bool:
        """Whether it contains every key."""
        return self.low is None and self.high is None

    def may_hold(self, smallest: str | None, largest: str | None) -> bool:
        """Whether it may contain a key between these two, both included; None: not known."""
        below = self.low is not None and largest is not None and largest < self.low
        above = self.high is not None and smallest is not None and smallest >= self.high
        return not below and not above

    def common(self, other: KeyRange) -> KeyRange | None:
        """The keys that both contain; None if there are none."""
        low = max((end for end in (self.low, other.low) if end is not None), default=None)
        high = min((end for end in (self.high, other.high) if end is not None), default=None)
        return None if low is not None and high is not None and low >= high else KeyRange(low, high)

    def inside(self, keys: pa.Array) -> pa.Array:
        """Which of the keys it contains."""
        found = pa.repeat(pa.scalar(value=True), len(keys))
        if self.low is not None:
            found = pc.greater_equal(keys, self.low)
        if self.high is not None:
            found = pc.and_(found, pc.less(keys, self.high))
        return found


@dataclass(frozen=True, slots=True)
class WindowFile:
    """A file of a change log; its bounds of `_key`, and its smallest `_pos`, are None when they are not known."""

    path: str
    rows: int
    size: int
    smallest: str | None = None
    largest: str | None = None
    first: str | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """The files of a change log that hold a slice of it, for all keys or a range; picklable, holds no secret.

    `certain`: whether it is known to have rows.
    """

    uri: str
    files: tuple[WindowFile, ...]
    schema_json: str
    batches: BatchSlice
    storage: Storage
    certain: bool = False
    keys: KeyRange = KeyRange()

    @property
    def most_rows(self) -> int:
        """An upper bound on the number of its rows: the number of all rows in its files."""
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        """The size of its files in bytes."""
        return sum(file.size for file in self.files)

    @property
    def first_position(self) -> str | None:
        """A lower bound on the `_pos` of its rows; None: not known."""
        found = [file.first for file in self.files]
        return None if None in found else min((one for one in found if one is not None), default=None)

    def within(self, keys: KeyRange) -> Window:
        """The rows with these keys."""
        files = tuple(file for file in self.files if keys.may_hold(file.smallest, file.largest))
        return replace(self, files=files, keys=keys, certain=self.certain and keys.is_all)

    def has_rows(self) -> bool:
        """Whether the slice has rows; compacted files have to be read to find out."""
        return self.certain or next(self.rows(["_batch"]), None) is not None

    def rows(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These columns of the rows, oldest commit first."""
        all_columns, needed = arrow_of(self.schema_json), ["_batch", *([] if self.keys.is_all else ["_key"])]
        logical = pa.schema([all_columns.field(name) for name in dict.fromkeys([*columns, *needed])])
        physical = file_schema(self.schema_json, logical)
        system = file_system(self.uri, self.storage)
        for file in self.files:
            with system.open_input_file(file.path) as source:
                parquet = parquet_file(source)
                groups = None if self.keys.is_all else self._groups(parquet)
                for batch in file_rows(parquet, physical, logical, self.batches, groups):
                    found = batch if self.keys.is_all else batch.filter(self.keys.inside(batch.column("_key")))
                    if found.num_rows:
                        yield found.select(list(columns))

    def ranges(self, rows: int) -> list[KeyRange]:
        """Ranges that together cover all keys, each with about this many rows.

        Where files do not share keys, like those of a snapshot, a range has whole files: no file is read twice.

        Raises:
            StorageError: a file cannot be read.
        """
        cuts: list[str] = []
        held = 0
        for files in _overlapping(self.files):
            count = sum(file.rows for file in files)
            low = files[0].smallest
            if held and held + count > rows and low is not None:
                cuts.append(low)
                held = 0
            inner = self._sampled_cuts(files, -(-count // rows)) if count > rows else []
            cuts += inner
            held = held + count if not inner else count // (len(inner) + 1)
        return [KeyRange(low, high) for low, high in pairwise([None, *sorted(set(cuts)), None])]

    def divided(self, rows: int) -> list[Window]:
        """Windows that together cover all rows, each about this many; the window itself if it has only one key.

        Raises:
            StorageError: a file cannot be read.
        """
        found = [keys for one in self.ranges(rows) if (keys := self.keys.common(one)) is not None]
        return [self.within(keys) for keys in found]

    def _groups(self, parquet: pq.ParquetFile) -> list[int]:
        """The row groups that may hold keys of the range."""
        stored, found = stored_name(self.schema_json, "_key"), list[int]()
        for group in range(parquet.num_row_groups):
            columns = parquet.metadata.row_group(group)
            numbers = [n for n in range(columns.num_columns) if columns.column(n).path_in_schema == stored]
            facts = columns.column(numbers[0]).statistics if numbers else None
            ends = (facts.min, facts.max) if facts is not None and facts.has_min_max else (None, None)
            if self.keys.may_hold(*ends):
                found.append(group)
        return found

    def _sampled_cuts(self, files: Sequence[WindowFile], parts: int) -> list[str]:
        """Keys that divide the rows of these files into this many parts of about the same size."""
        system, stored = file_system(self.uri, self.storage), stored_name(self.schema_json, "_key")
        sampled: list[pa.ChunkedArray] = []
        step = -(-len(files) // _SAMPLED_FILES)
        try:
            for file in files[::step]:
                with system.open_input_file(file.path) as source:
                    parquet = parquet_file(source)
                    groups = range(parquet.num_row_groups)[:: -(-parquet.num_row_groups // _SAMPLED_GROUPS)]
                    sampled.append(parquet.read_row_groups(list(groups), columns=[stored]).column(0))
        except (OSError, pa.ArrowException) as error:
            kind = type(error).__name__
            raise StorageError(f"{self.uri}: a file of the change log cannot be read ({kind})") from error
        chunks = [chunk for column in sampled for chunk in column.chunks]
        every = 1 + sum(map(len, chunks)) // (1000 * parts)
        # Thinned before they are joined: together they may be too many bytes for an array.
        found = [chunk.take(pa.array(range(0, len(chunk), every))).drop_null() for chunk in chunks]
        keys = pa.concat_arrays(found)
        thinned = keys if self.keys.is_all else keys.filter(self.keys.inside(keys))
        ordered = thinned.take(pc.sort_indices(thinned))
        if not len(ordered):
            return []
        # Nothing lies before the first key, which may have most of the rows.
        first = pc.index(pc.not_equal(ordered, ordered[0]), value=True).as_py()
        places = [max(first, len(ordered) * part // parts) for part in range(1, parts)]
        return [ordered[place].as_py() for place in places] if first >= 0 else []


def window(uri: str, batches: BatchSlice, storage: Storage = LOCAL) -> Window:
    """Find the files of a slice of a change log.

    Args:
        uri: The folder of the change log.
        batches: The slice.
        storage: How to reach the folder.

    Raises:
        StorageError: The table cannot be opened.
    """
    table = open_table(uri, storage)
    actions = add_actions(table)
    names = actions.schema.names
    certain = False
    if "min._batch" in names and "max._batch" in names:
        early = pc.less_equal(actions.column("min._batch"), batches.up_to)
        late = pc.greater(actions.column("max._batch"), batches.after)
        actions = actions.filter(pc.fill_null(pc.and_(early, late), True))
        actions = actions.sort_by("min._batch")
        begun = pc.greater(actions.column("min._batch"), batches.after)
        ended = pc.less_equal(actions.column("max._batch"), batches.up_to)
        certain = bool(pc.any(pc.or_(begun, ended)).as_py())
    wanted = ("path", "num_records", "size_bytes", "min._key", "max._key", "min._pos")
    files = tuple(
        WindowFile(
            row["path"],
            row.get("num_records") or 0,
            row["size_bytes"],
            row.get("min._key"),
            row.get("max._key"),
            row.get("min._pos"),
        )
        for row in actions.select([name for name in wanted if name in names]).to_pylist()
    )
    return Window(uri, files, table.schema().to_json(), batches, storage, certain)


def written_window(
    uri: str, schema_json: str, batches: BatchSlice, files: Sequence[DataFile], storage: Storage
) -> Window:
    """The window over files that this process has committed itself: the log need not be read.

    Args:
        uri: The table's folder.
        schema_json: The table's schema after the newest of these commits.
        batches: The slice that the files hold.
        files: The files in the order of their commits.
        storage: How to reach the folder.
    """
    key, position = (stored_name(schema_json, name) for name in ("_key", "_pos"))

    def in_window(file: DataFile) -> WindowFile:
        facts = json.loads(file.stats)
        low, high = facts["minValues"], facts["maxValues"]
        return WindowFile(file.path, file.rows, file.size, low.get(key), high.get(key), low.get(position))

    return Window(uri, tuple(map(in_window, files)), schema_json, batches, storage, certain=bool(files))


def _overlapping(files: Iterable[WindowFile]) -> list[list[WindowFile]]:
    """The files in the order of their keys, grouped where their keys overlap."""
    found: list[list[WindowFile]] = []
    reach = ""
    for file in sorted(files, key=lambda file: file.smallest or ""):
        unknown = file.smallest is None or file.largest is None
        if found and (unknown or file.smallest is None or file.smallest <= reach):
            found[-1].append(file)
        else:
            found.append([file])
        reach = _END if unknown else max(reach, file.largest or _END)
    return found
