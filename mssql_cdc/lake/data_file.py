"""One live data file of a current table, read on a worker: its keys, some of its rows, all rows that are not deleted.

Rows are numbered as in deletion vectors. Names and types are the table's, whatever the file has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyroaring import BitMap64

from mssql_cdc.lake.delta_schema import arrow_of, file_schema
from mssql_cdc.lake.live_file import LiveFile
from mssql_cdc.lake.partitions import column_of
from mssql_cdc.lake.read import lift, parquet_file
from mssql_cdc.lake.unknown_columns import ALL_KNOWN, UnknownColumns
from mssql_cdc.lake.vectors import read_vector

Numbers = NDArray[np.int64]


class DataFile:
    """A live file, opened and read only as far as needed. Its rows do not know the `unknown` columns."""

    def __init__(
        self, file: LiveFile, schema_json: str, system: pa_fs.FileSystem, unknown: UnknownColumns = ALL_KNOWN
    ) -> None:
        self.file = file
        self._schema_json = schema_json
        self._system = system
        self._unknown = unknown

    @cached_property
    def dead(self) -> BitMap64:
        """The rows that are deleted."""
        return read_vector(self.file.vector, self._system)

    @cached_property
    def rows(self) -> int:
        """The number of all rows, including deleted ones."""
        known = self.file.facts.get("numRecords")
        return self._parquet.metadata.num_rows if known is None else known

    @property
    def live(self) -> int:
        """The number of rows that are not deleted."""
        return self.rows - (self.file.vector.cardinality if self.file.vector else 0)

    @cached_property
    def partition(self) -> dict[str, str | None]:
        """The partition values of the file, by the columns' names in files; None: NULL."""
        found: dict[str, str | None] = self.file.action.get("partitionValues") or {}
        return {name: value or None for name, value in found.items()}

    def column(self, name: str) -> pa.ChunkedArray:
        """One column of all rows."""
        return self._read(range(self._parquet.num_row_groups), [name]).column(name)

    def take(self, rows: Numbers, columns: Sequence[str]) -> pa.Table:
        """These columns of these rows, which must be in ascending order; only their row groups are read."""
        sizes = [self._parquet.metadata.row_group(group).num_rows for group in range(self._parquet.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        groups = np.searchsorted(starts, rows, side="right") - 1
        parts: list[pa.Table] = []
        for group in np.unique(groups).tolist():
            inside = rows[groups == group] - starts[group]
            parts.append(self._read([group], columns).take(pa.array(inside)))
        return pa.concat_tables(parts) if parts else self._logical(columns).empty_table()

    def remaining(self, deleted: BitMap64) -> Iterator[pa.Table]:
        """All columns of the rows that are not in `deleted`, one row group at a time."""
        gone, start = np.asarray(deleted.to_array(), dtype=np.int64), 0
        for group in range(self._parquet.num_row_groups):
            found = self._read([group], arrow_of(self._schema_json).names)
            inside = gone[(gone >= start) & (gone < start + found.num_rows)] - start
            start += found.num_rows
            if len(inside):
                stays = np.ones(found.num_rows, dtype=bool)
                stays[inside] = False
                found = found.filter(pa.array(stays))
            if found.num_rows:
                yield found

    def close(self) -> None:
        """Close the file if it was opened."""
        if "_parquet" in self.__dict__:
            self._parquet.close()

    @cached_property
    def _parquet(self) -> pq.ParquetFile:
        return parquet_file(self._system.open_input_file(self.file.name))

    def _logical(self, columns: Sequence[str]) -> pa.Schema:
        all_columns = arrow_of(self._schema_json)
        return pa.schema([all_columns.field(name) for name in columns])

    def _read(self, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
        wanted = self._logical(columns)
        stored = file_schema(self._schema_json, wanted).names
        constant = {name: self.partition[at] for name, at in zip(columns, stored, strict=True) if at in self.partition}
        logical = pa.schema([field for field in wanted if field.name not in constant])
        count = sum(self._parquet.metadata.row_group(group).num_rows for group in groups)
        read = self._read_stored(groups, logical, count)
        arrays = [
            column_of(constant[field.name], count, field.type) if field.name in constant else read.column(field.name)
            for field in wanted
        ]
        return self._unknown.marked(pa.table(arrays, schema=wanted))

    def _read_stored(self, groups: Sequence[int], logical: pa.Schema, count: int) -> pa.Table:
        physical = file_schema(self._schema_json, logical)
        present = set(self._parquet.schema_arrow.names)
        names = [name for name in physical.names if name in present]
        if not names:  # All columns are newer than the file: pyarrow would lose its row count.
            return pa.table([pa.nulls(count, field.type) for field in logical], schema=logical)
        found = self._parquet.read_row_groups(list(groups), columns=names, use_threads=False)
        batches = [lift(batch, physical, logical) for batch in found.to_batches()]
        return pa.Table.from_batches(batches, logical)


def bounds(file: LiveFile, stored: str) -> tuple[str | None, str | None]:
    """The smallest and largest value of a text column according to the file's statistics; None: not known.

    Args:
        file: a live file.
        stored: the column's name in files.
    """
    facts = file.facts
    return facts.get("minValues", {}).get(stored), facts.get("maxValues", {}).get(stored)


def is_older(file: LiveFile, stored: str, positions: pa.Array) -> bool:
    """Whether the statistics prove that every `_pos` in the file precedes these positions.

    Args:
        file: The file.
        stored: The name under which `_pos` is stored in it.
        positions: The positions.
    """
    largest = bounds(file, stored)[1]
    return largest is not None and largest < pc.min(positions).as_py()
