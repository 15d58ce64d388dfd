"""Rows of a comparison, kept in temporary files instead of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc

from mssql_cdc.source.values import Texts

Row = tuple[Texts, Texts, int]
"""Key, columns, and how often the row counts: 1, or -1 for one that cancels another."""
_TEXTS = pa.list_(pa.binary())
SCHEMA = pa.schema([("_key", pa.string()), ("key", _TEXTS), ("values", _TEXTS), ("count", pa.int64())])
"""How rows are stored; equal `_key` keeps rows together (`partitions`)."""
_TOGETHER = 4096


def write(file: Path, rows: Iterable[Row]) -> None:
    """Write rows to a file as they come.

    Args:
        file: The file.
        rows: The rows.
    """
    with ipc.new_file(file, SCHEMA) as writer:
        for batch in batches(rows, lambda _: ""):
            writer.write_batch(batch)


def read(file: Path) -> Iterator[Row]:
    """The rows of a file, a few at a time.

    Args:
        file: The file.
    """
    with ipc.open_file(file) as reader:
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            columns = (batch.column(name).to_pylist() for name in ("key", "values", "count"))
            for key, values, count in zip(*columns, strict=True):
                yield _texts(key), _texts(values), count


def batches(rows: Iterable[Row], together: Callable[[Row], str]) -> Iterator[pa.RecordBatch]:
    """The rows as they are stored.

    Args:
        rows: The rows.
        together: The `_key` of a row.
    """
    waiting = iter(rows)
    while some := list(islice(waiting, _TOGETHER)):
        arrays = [
            pa.array([together(row) for row in some], pa.string()),
            pa.array([_bytes(key) for key, _, _ in some], _TEXTS),
            pa.array([_bytes(values) for _, values, _ in some], _TEXTS),
            pa.array([count for _, _, count in some], pa.int64()),
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _bytes(texts: Texts) -> list[bytes | None]:
    return [None if text is None else text.encode("utf-8", "surrogatepass") for text in texts]


def _texts(data: Iterable[bytes | None]) -> Texts:
    return tuple(None if one is None else one.decode("utf-8", "surrogatepass") for one in data)
