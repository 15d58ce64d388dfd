"""Reading change logs and small tables without a JVM, pruned by `_batch`, in bounded memory.

It reads only append-only tables: one with deletion vectors is rejected because its files contain deleted rows.
`deltalake`'s own `to_pyarrow_table` is not used: its file system aborts the process at exit (deltalake 1.6.6 with
pyarrow 26).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.add_actions import add_actions
from mssql_cdc.lake.delta_schema import arrow_of, cast_values, file_schema
from mssql_cdc.lake.opened import open_table
from mssql_cdc.lake.storage import LOCAL, Storage, file_system, unreachable

_PIECE_ROWS = (65_536, 4_096, 256, 16)
"""How many rows of a large row group are read at once; fewer where a text column of that many rows has 2 GiB."""


@dataclass(frozen=True, slots=True)
class BatchSlice:
    """The rows with `after < _batch <= up_to`."""

    after: int
    up_to: int


@dataclass(frozen=True, slots=True)
class Commits:
    """The rows of a change log with `first <= _commit_ts < end`."""

    first: datetime
    end: datetime


def scan(
    uri: str,
    *,
    batches: BatchSlice | None = None,
    commits: Commits | None = None,
    columns: Sequence[str] | None = None,
    version: int | None = None,
    storage: Storage = LOCAL,
) -> Iterator[pa.RecordBatch]:
    """Yield row groups of the newest version (or of `version`), with logical names and the table's own types.

    Args:
        uri: the table's folder.
        batches: only rows of these commits; files are pruned by their statistics, so little else is read.
        commits: only rows that the source committed in this interval; pruned likewise.
        columns: only these top-level columns.
        version: a Delta version instead of the newest.
        storage: how to reach the folder.
    """
    files = open_files(uri, batches=batches, commits=commits, version=version, storage=storage)
    logical = files.logical
    if columns is not None:
        needed = [*(["_batch"] if batches else []), *(["_commit_ts"] if commits else [])]
        wanted = [*columns, *(name for name in needed if name not in columns)]
        logical = pa.schema([logical.field(name) for name in wanted])
    physical = files.stored(logical)
    for path in files.paths:
        with files.system.open_input_file(path) as source:
            for batch in file_rows(parquet_file(source), physical, logical, batches):
                inside = batch if commits is None else _inside(batch, commits)
                if inside.num_rows:
                    yield inside if columns is None else inside.select(list(columns))


def ordered(
    uri: str,
    *,
    batches: BatchSlice | None = None,
    columns: Sequence[str],
    version: int | None = None,
    least: int = 1,
    storage: Storage = LOCAL,
) -> Iterator[pa.Table]:
    """Yield rows in the order of `_batch`; memory holds what overlaps between files, however they were compacted.

    Args:
        uri: the table's folder.
        batches: only rows of these commits.
        columns: only these top-level columns, `_batch` among them.
        version: a Delta version instead of the newest.
        least: at least this many rows at once, except for the last ones.
        storage: how to reach the folder.
    """
    files = open_files(uri, batches=batches, version=version, storage=storage)
    logical = pa.schema([files.logical.field(name) for name in columns])
    physical, waiting = files.stored(logical), list[pa.RecordBatch]()
    for path, later in zip(files.paths, [*files.firsts, None][1:], strict=True):
        with files.system.open_input_file(path) as source:
            file = parquet_file(source)
            groups = _in_order(file, physical.field(logical.get_field_index("_batch")).name)
            for (_, group), following in zip(groups, [*groups[1:], None], strict=True):
                waiting += file_rows(file, physical, logical, batches, [group])
                ends = [end for end in (following[0] if following else None, later) if end is not None]
                if not waiting or (ends and sum(batch.num_rows for batch in waiting) < least):
                    continue
                rows = pa.Table.from_batches(waiting, logical).combine_chunks()
                if ends:  # What is read later has no `_batch` below its smallest.
                    is_ready = pc.less(rows.column("_batch"), min(ends))
                    if not pc.all(is_ready).as_py():
                        waiting, rows = rows.filter(pc.invert(is_ready)).to_batches(), rows.filter(is_ready)
                    else:
                        waiting = []
                numbers = rows.column("_batch").to_numpy()
                is_sorted = bool((numbers[1:] >= numbers[:-1]).all())
                yield rows if is_sorted else rows.take(pc.sort_indices(rows.column("_batch")))


def _in_order(file: pq.ParquetFile, batch: str) -> list[tuple[int, int]]:
    """The row groups of a file, ordered by their smallest `_batch`, which comes first in each pair."""
    groups = range(file.num_row_groups)
    found = [file.read_row_group(group, columns=[batch], use_threads=False).to_batches() for group in groups]
    return sorted((pc.min(pa.Table.from_batches(one).column(0)).as_py(), group) for group, one in enumerate(found))


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The data files of one version of an append-only table, oldest commit first, and how to read them.

    `firsts` has the smallest `_batch` of each file, 0 where it is not known.
    """

    paths: tuple[str, ...]
    firsts: tuple[int, ...]
    logical: pa.Schema
    system: pa_fs.FileSystem
    _schema_json: str

    def stored(self, logical: pa.Schema) -> pa.Schema:
        """These columns as the files name and type them."""
        return file_schema(self._schema_json, logical)


def open_files(
    uri: str,
    *,
    batches: BatchSlice | None = None,
    commits: Commits | None = None,
    version: int | None = None,
    storage: Storage = LOCAL,
) -> TableFiles:
    """The files of a table; those of other commits are pruned by their statistics.

    Args:
        uri: the table's folder.
        batches: only files that may hold rows of these commits.
        commits: only files that may hold rows that the source committed in this interval.
        version: a Delta version instead of the newest.
        storage: how to reach the folder.

    Raises:
        StorageError: the table has deletion vectors, or cannot be opened.
    """
    table = open_table(uri, storage, version=version)
    schema_json = table.schema().to_json()
    found = _paths(table, batches, commits)
    paths, firsts = tuple(path for path, _ in found), tuple(first for _, first in found)
    return TableFiles(paths, firsts, arrow_of(schema_json), file_system(uri, storage), schema_json)


def exists(uri: str, storage: Storage = LOCAL) -> bool:
    """Whether there is a Delta table.

    Raises:
        StorageError: the store cannot be queried.
    """
    try:
        return DeltaTable.is_deltatable(uri, storage.resolved())
    except OSError as error:
        raise unreachable(uri, error) from error


def query(uri: str, sql: str, storage: Storage = LOCAL) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query on the table; deletion vectors are applied.

    Args:
        uri: The folder of the table.
        sql: The query; the table is named `t`.
        storage: The options of the object store.
    """
    table = open_table(uri, storage)
    for batch in QueryBuilder().register("t", table).execute(sql):
        yield pa.record_batch(batch)


def row_count(uri: str, storage: Storage = LOCAL) -> int | None:
    """The number of rows in the table; None when there is no table.

    Raises:
        StorageError: the table cannot be opened.
    """
    if not exists(uri, storage):
        return None
    try:
        return sum(batch.column(0)[0].as_py() for batch in query(uri, "SELECT COUNT(*) FROM t", storage))
    except DeltaError as error:
        raise StorageError(f"The Delta table {uri} cannot be read: {error}") from error


def read_table(uri: str, *, columns: Sequence[str] | None = None, storage: Storage = LOCAL) -> pa.Table:
    """All rows of a small table.

    Args:
        uri: The folder of the table.
        columns: The columns to read; None: all.
        storage: The options of the object store.
    """
    schema = arrow_of(open_table(uri, storage).schema().to_json())
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    return pa.Table.from_batches(scan(uri, columns=columns, storage=storage), schema)


def _paths(table: DeltaTable, batches: BatchSlice | None, commits: Commits | None) -> list[tuple[str, int]]:
    """The files that may hold rows of the slice and the interval, oldest commit first: path, smallest `_batch`."""
    actions = add_actions(table)
    names = actions.schema.names
    if any(name.startswith("deletion_vector") for name in names):
        vectors = [name for name in names if name.startswith("deletion_vector")]
        if any(actions.column(name).null_count < actions.num_rows for name in vectors):
            raise StorageError(f"{table.table_uri} has deletion vectors: read it with Spark")
    if batches is not None and {"min._batch", "max._batch"} <= set(names):
        low, high = actions.column("min._batch"), actions.column("max._batch")
        inside = pc.and_(pc.less_equal(low, batches.up_to), pc.greater(high, batches.after))
        actions = actions.filter(pc.fill_null(inside, fill_value=True))  # Nothing is known about some files.
    used = ("path", "min._batch", "min._commit_ts", "max._commit_ts")
    rows = actions.select([n for n in used if n in names]).to_pylist()

    def committed(row: dict[str, Any]) -> bool:
        low, high = row.get("min._commit_ts"), row.get("max._commit_ts")
        if commits is None or low is None or high is None:
            return True
        # Statistics may truncate times to milliseconds.
        return _instant(low) < commits.end and _instant(high) + timedelta(milliseconds=1) > commits.first

    found = ((row["path"], row.get("min._batch") or 0) for row in rows if committed(row))
    return sorted(found, key=lambda one: one[1])


def _instant(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _inside(batch: pa.RecordBatch, commits: Commits) -> pa.RecordBatch:
    at = batch.column("_commit_ts")
    first, end = (pa.scalar(bound, at.type) for bound in (commits.first, commits.end))
    return batch.filter(pc.and_(pc.greater_equal(at, first), pc.less(at, end)))


def parquet_file(source: Any) -> pq.ParquetFile:
    """Open a data file, whoever wrote it."""
    # Other writers may store instants as INT96, Spark's default in OPTIMIZE, which overflows in nanoseconds.
    return pq.ParquetFile(source, coerce_int96_timestamp_unit="us")


def file_rows(
    file: pq.ParquetFile,
    physical: pa.Schema,
    logical: pa.Schema,
    batches: BatchSlice | None,
    groups: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file, with the table's names and types.

    Args:
        file: The file.
        physical: The schema of the table's files, in the order of `logical`.
        logical: The columns to read, by the table's names; with `_batch` if `batches` is given.
        batches: Only rows of these commits.
        groups: Only these row groups; None: all.
    """
    present = set(file.schema_arrow.names)
    names = [name for name in physical.names if name in present]
    for group in range(file.num_row_groups) if groups is None else groups:
        for found in _stored_batches(file, group, names):
            batch = lift(found, physical, logical)
            if batches is not None:
                number = batch.column("_batch")
                inside = pc.and_(pc.greater(number, batches.after), pc.less_equal(number, batches.up_to))
                batch = batch.filter(inside)
            if batch.num_rows:
                yield batch


def _stored_batches(file: pq.ParquetFile, group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a row group as they are stored."""
    try:
        yield from file.read_row_group(group, columns=names, use_threads=False).to_batches()
    except NotImplementedError:
        # pyarrow 26 cannot read 2 GiB of a text column within a struct at once. Our own row groups have less; in files
        # that others have compacted, 600,000 equal texts of 4,000 characters are a row group of 5 MB, and 15,000 of
        # 150,000 characters one of 300 KB.
        yield from _pieces(file, group, names)


def _pieces(file: pq.ParquetFile, group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    iter_batches, done = cast("Any", file).iter_batches, 0
    for rows in _PIECE_ROWS:
        start = 0
        try:
            for batch in iter_batches(batch_size=rows, row_groups=[group], columns=list(names), use_threads=False):
                known = min(done - start, batch.num_rows)
                start += batch.num_rows
                if known < batch.num_rows:
                    done = start
                    yield batch.slice(known)
        except NotImplementedError:
            if rows == _PIECE_ROWS[-1]:
                raise
        else:
            return


def lift(batch: pa.RecordBatch, physical: pa.Schema, logical: pa.Schema) -> pa.RecordBatch:
    """Convert a file's batch to the table's schema: columns added later are NULL, widened types are wide.

    Args:
        batch: Rows of one file.
        physical: The schema of the table's files, in the order of `logical`.
        logical: The schema of the table.
    """
    arrays: list[pa.Array] = []
    for stored, field in zip(physical, logical, strict=True):
        index = batch.schema.get_field_index(stored.name)
        if index < 0:
            arrays.append(pa.nulls(batch.num_rows, field.type))
        else:
            arrays.append(_lift_values(batch.column(index), stored.type, field.type, field.name))
    return pa.RecordBatch.from_arrays(arrays, schema=logical)


def _lift_values(values: pa.Array, stored: pa.DataType, wanted: pa.DataType, path: str) -> pa.Array:
    if values.type.equals(wanted):
        return values
    if not (isinstance(values, pa.StructArray) and pa.types.is_struct(stored) and pa.types.is_struct(wanted)):
        return cast_values(values, wanted, path)
    children: list[pa.Array] = []
    for i in range(wanted.num_fields):
        field, index = wanted.field(i), values.type.get_field_index(stored.field(i).name)
        if index < 0:
            children.append(pa.nulls(len(values), field.type))
        else:
            children.append(_lift_values(values.field(index), stored.field(i).type, field.type, f"{path}.{field.name}"))
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=values.is_null())
