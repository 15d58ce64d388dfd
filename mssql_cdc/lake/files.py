"""Writes Arrow batches to Parquet files in a table's folder, with the statistics that the Delta log needs.

It runs on Spark workers and on the driver. A file is garbage until `lake/log.py` commits it.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mssql_cdc.lake.delta_schema import conform, file_schema
from mssql_cdc.lake.statistics import Statistics
from mssql_cdc.lake.storage import LOCAL, Storage, file_system, unwritable

ROW_GROUP_ROWS = 250_000
ROW_GROUP_BYTES = 16 * 1024 * 1024
FILE_BYTES = 256 * 1024 * 1024
DICTIONARY_ROWS = 5_000
"""With fewer rows, a column's dictionary costs more time and space than its values, as it does with few repetitions."""
_SAMPLE = 16
"""One part in this many of the first rows is enough to see whether values repeat."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One written file: path relative to the table, size in bytes, rows, `modified` in ms since 1970, statistics."""

    path: str
    size: int
    rows: int
    modified: int
    stats: str

    def add(self, partition: Mapping[str, str | None] | None = None) -> dict[str, Any]:
        """The `add` action of a commit.

        Args:
            partition: The values of the partition columns, by their names in files; None: there are none.
        """
        return {
            "add": {
                # As deltalake 1.6.6 writes it in removes: it does not find a file if these characters are encoded.
                "path": quote(self.path, safe="/=,@"),
                "partitionValues": dict(partition or {}),
                "size": self.size,
                "modificationTime": self.modified,
                "dataChange": True,
                "stats": self.stats,
            }
        }

    def to_json(self) -> str:
        """Serialize the file for the result of a Spark task."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> DataFile:
        """Restore a file from its `to_json()` text."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class FileTarget:
    """Where files go: the table's URI and its Delta schema text; picklable, contains no secrets.

    Without `schema_json` (a table that does not exist yet), files have the schema of their batches. `folder` is a
    folder inside the table's, for files of a partition. `physical`: files use the table's physical column names;
    otherwise its logical ones, for Spark, which copies their rows.
    """

    uri: str
    schema_json: str | None = None
    stats_columns: tuple[str, ...] = ()
    storage: Storage = LOCAL
    file_bytes: int = FILE_BYTES
    row_group_rows: int = ROW_GROUP_ROWS
    folder: str = ""
    physical: bool = True


def write_files(batches: Iterable[pa.RecordBatch], target: FileTarget) -> list[DataFile]:
    """Write the batches, in order, to as many files as their size requires; without rows, no file is written.

    Memory is bounded by one row group. If the batches raise an error, it propagates, and the files written so far
    remain as garbage for VACUUM.

    Raises:
        StorageError: the folder cannot be written to: it is read-only, the disk is full, a quota is reached.
    """
    try:
        return _write_files(batches, target)
    except OSError as error:
        raise unwritable(target.uri, error) from error


def _write_files(batches: Iterable[pa.RecordBatch], target: FileTarget) -> list[DataFile]:
    files: list[DataFile] = []
    pending = _merged(batches, target.row_group_rows)
    batch = next(pending, None)
    if batch is None:
        return files
    system = file_system(target.uri, target.storage)
    schema = batch.schema
    if target.schema_json:
        schema = file_schema(target.schema_json, schema, physical=target.physical)
    stored = dict(zip(batch.schema.names, schema.names, strict=True))
    if target.folder:
        system.create_dir(target.folder)
    while batch is not None:
        path = f"{target.folder}{'/' if target.folder else ''}part-{uuid.uuid4()}.zstd.parquet"
        statistics = Statistics({name: stored[name] for name in target.stats_columns if name in stored})
        with system.open_output_stream(path) as sink:
            with _writer(sink, schema, batch) as writer:
                full = False
                while batch is not None and not full:
                    writer.write_batch(conform(batch, schema), row_group_size=target.row_group_rows)
                    statistics.add(batch)
                    batch = next(pending, None)
                    full = sink.tell() >= target.file_bytes
            size = sink.tell()
        files.append(DataFile(path, size, statistics.rows, int(time.time() * 1000), statistics.to_json()))
    return files


def _writer(sink: Any, schema: pa.Schema, first: pa.RecordBatch) -> pq.ParquetWriter:
    sample = first.slice(0, first.num_rows // _SAMPLE if first.num_rows >= DICTIONARY_ROWS else 0)
    return pq.ParquetWriter(
        sink,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=list(_repeating(conform(sample, schema).to_struct_array())) if sample.num_rows else False,
        store_schema=False,
    )


def _repeating(values: pa.StructArray) -> Iterator[str]:
    """The paths of the columns with at most half as many distinct values as rows."""
    for place, field in enumerate(values.type):
        inner = values.field(place)
        if isinstance(inner, pa.StructArray):
            yield from (f"{field.name}.{path}" for path in _repeating(inner))
        elif not isinstance(inner, pa.ListArray):
            known = inner.drop_null()
            if len(known) and 2 * len(pc.unique(known)) <= len(known):
                yield field.name


def _merged(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Join batches up to about `rows` rows or `ROW_GROUP_BYTES`: each becomes a row group; small ones read slowly."""
    waiting: list[pa.RecordBatch] = []
    count = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        count, size = count + batch.num_rows, size + batch.nbytes
        if count >= rows or size >= ROW_GROUP_BYTES:
            yield _joined(waiting)
            waiting, count, size = [], 0, 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
