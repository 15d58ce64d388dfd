"""Rows of Delta tables in temporary files by a hash of their key, so that any table fits in memory part by part."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

PART_ROWS = 250_000
"""About so many rows are in memory at once."""


@contextmanager
def partitioned(sides: Iterable[tuple[pa.Schema, Iterable[pa.RecordBatch]]], parts: int) -> Generator[list[list[Path]]]:
    """Per part one file of each side; rows with equal `_key` are in the same part. Gone when the block ends.

    Args:
        sides: the schema and the batches of each side, with a column `_key`.
        parts: how many parts.
    """
    with tempfile.TemporaryDirectory(prefix="mssql_cdc_check_") as folder:
        files = [
            _written(Path(folder), f"side{number}", schema, batches, parts)
            for number, (schema, batches) in enumerate(sides)
        ]
        yield [list(of_part) for of_part in zip(*files, strict=True)]


def load(path: Path) -> pa.Table:
    """The rows of one file in one chunk."""
    with ipc.open_file(path) as reader:
        return reader.read_all().combine_chunks()


def _written(folder: Path, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], parts: int) -> list[Path]:
    paths = [folder / f"{name}-{number}.arrow" for number in range(parts)]
    with ExitStack() as stack:
        writers = [stack.enter_context(ipc.new_file(path, schema)) for path in paths]
        for batch in batches:
            whole = batch.select(schema.names).cast(schema)
            if parts == 1:
                writers[0].write_batch(whole)
                continue
            owners = _hashes(whole.column("_key")) % parts
            for number in np.unique(owners):
                writers[int(number)].write_batch(whole.filter(pa.array(owners == number)))
    return paths


def _hashes(keys: pa.Array) -> np.ndarray:
    return np.array([zlib.crc32((key or "").encode()) for key in keys.to_pylist()], np.int64)
