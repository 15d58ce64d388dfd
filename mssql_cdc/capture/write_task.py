"""The task that runs on an executor: source -> events -> Parquet files in a table's folder.

It is the same for a slice of a range and for a chunk of a snapshot; only the reader differs. Everything in a task is
picklable; secrets are resolved on the worker. Written files count only once the driver has committed them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from mssql_cdc.config import Connector
from mssql_cdc.errors import DeadlockError, MssqlCdcError
from mssql_cdc.events import Mask, check_batch, mask_of, to_change_log
from mssql_cdc.lake.files import DataFile, FileTarget, write_files
from mssql_cdc.schema import TableSchema
from mssql_cdc.source.protocol import BatchReader, Source
from mssql_cdc.spark.tasks import TaskResult, in_threads, run_here

_CONNECTIONS = 2
"""Threads of one Python process gain little from more."""
_FEW_TABLES, _FEW_ROWS = 3, 1_000
"""So few tables with so few rows in total are read over one connection sooner than a second one can be opened."""


@dataclass(frozen=True, slots=True)
class WriteTask:
    """One reader and the destination table of its rows; `batch` is the `_batch` of their future commit."""

    reader: BatchReader
    schema: TableSchema
    target: FileTarget
    batch: int
    connector: Connector
    snapshot: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a task: files, rows by operation, first and last commit time as ISO texts."""

    files: tuple[DataFile, ...]
    operations: Mapping[str, int]
    first: str | None = None
    last: str | None = None

    @property
    def rows(self) -> int:
        """All rows."""
        return sum(file.rows for file in self.files)

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Written:
        """Build the result from what `write` returned."""
        files = tuple(DataFile.from_json(text) for text in value["files"])
        return cls(files, value["operations"], value["first"], value["last"])

    @classmethod
    def joined(cls, parts: Iterable[Written]) -> Written:
        """Combine the results of several tasks of one table."""
        parts = list(parts)
        operations: Counter[str] = Counter()
        for part in parts:
            operations.update(part.operations)
        times = [time for part in parts for time in (part.first, part.last) if time]
        files = tuple(file for part in parts for file in part.files)
        return cls(files, dict(operations), min(times, default=None), max(times, default=None))


@retry(retry=retry_if_exception_type(DeadlockError), stop=stop_after_attempt(5), reraise=True)
def write(task: WriteTask) -> dict[str, Any]:
    """Run one task; returns JSON-able facts (`Written.from_value`).

    A deadlock victim restarts immediately, as SQL Server recommends; the files written so far are garbage.
    """
    return _written(task, task.reader.read())


def write_together(source: Source, tasks: Sequence[WriteTask], *, rows: int) -> list[TaskResult]:
    """Run small tasks in this process; those that share a connection are read over it together, the others in parallel.

    A task that fails among others runs again by itself.

    Args:
        source: the source of the readers.
        tasks: what to read.
        rows: about how many rows that is.
    """
    shared = [number for number, task in enumerate(tasks) if source.shares(task.reader)]
    most = 1 if len(shared) <= _FEW_TABLES and rows <= _FEW_ROWS else _CONNECTIONS
    groups = [group for start in range(most) if (group := shared[start::most])]
    actions = [partial(_write_group, source, [tasks[number] for number in group]) for group in groups]
    found: dict[int, TaskResult] = {}
    for group, values in zip(groups, in_threads(actions), strict=True):
        found |= {number: TaskResult(value, None) for number, value in zip(group, values, strict=True) if value}
    left = [number for number in range(len(tasks)) if number not in found]
    found |= dict(zip(left, run_here([tasks[number] for number in left], write), strict=True))
    return [found[number] for number in range(len(tasks))]


def _write_group(source: Source, tasks: Sequence[WriteTask]) -> list[dict[str, Any] | None]:
    """The values of these tasks, None for those that failed."""
    values: list[dict[str, Any] | None] = [None] * len(tasks)
    try:
        with source.share([task.reader for task in tasks]) as shared:
            for number, task in enumerate(tasks):
                with suppress(Exception):  # It occurs again, and is classified, when the task runs by itself.
                    values[number] = _written(task, shared.read(task.reader))
            for number in shared.spoiled():
                values[number] = None
    except MssqlCdcError:
        return [None] * len(tasks)  # Without the checks no row counts.
    return values


def _written(task: WriteTask, batches: Iterator[pa.RecordBatch]) -> dict[str, Any]:
    tally = _Tally()
    files = write_files(tally.watch(log_rows(task, batches)), task.target)
    return {
        "files": [file.to_json() for file in files],
        "operations": dict(tally.operations),
        "first": tally.first,
        "last": tally.last,
    }


def log_rows(task: WriteTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a reader yields, as rows of the change log.

    Args:
        task: The task.
        batches: Neutral batches of its reader.
    """
    masks = masks_of(task.connector, task.schema)
    secret = task.connector.delta.key_secret
    key_secret = secret.read().encode() if secret is not None else None
    for batch in batches:
        rows = to_change_log(
            batch,
            table_schema=task.schema,
            batch_number=task.batch,
            masks=masks,
            key_secret=key_secret,
            snapshot=task.snapshot,
        )
        check_batch(rows, keyed=bool(task.schema.key_columns))
        yield rows


def masks_of(connector: Connector, schema: TableSchema) -> dict[str, Mask]:
    """Return the masks of a table's columns by name; this resolves salts, so call it on the worker."""
    table = schema.table_id
    found: dict[str, Mask] = {}
    for column in schema.columns:
        rule = connector.filters.mask_for(table.catalog or "", table.schema, table.name, column.name)
        if rule is not None and rule.applies_to(column.type.name):
            found[column.name] = mask_of(rule)
    return found


class _Tally:
    """Counts rows that pass through."""

    def __init__(self) -> None:
        self.operations: Counter[str] = Counter()
        self.first: str | None = None
        self.last: str | None = None

    def watch(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for count in pc.value_counts(batch.column("op")).to_pylist():
                self.operations[count["values"]] += count["counts"]
            ends = pc.min_max(batch.column("_commit_ts"))
            if ends["min"].is_valid:
                low, high = ends["min"].as_py().isoformat(), ends["max"].as_py().isoformat()
                self.first = min(filter(None, (self.first, low)))
                self.last = max(filter(None, (self.last, high)))
            yield batch
