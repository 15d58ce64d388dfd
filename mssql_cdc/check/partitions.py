"""Splits rows of Delta tables into temporary files by a hash of the key, so that any table fits in memory in parts."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

PART_ROWS = 250_000
"""About how many rows are in memory at once."""
OPEN_FILES = 32
"""How many files are written at a time, far fewer than a process may open; more parts take another pass."""
TOGETHER_ROWS = 4096
TOGETHER_BYTES = 2**20
"""How much of a part is written together, in rows and bytes: batches of a few rows take several times the space."""


@contextmanager
def partitioned(sides: Iterable[tuple[pa.Schema, Iterable[pa.RecordBatch]]], parts: int) -> Generator[list[list[Path]]]:
    """Yield one file per part and side, until the block ends; rows with equal `_key` are in the same part.

    Args:
        sides: the schema and the batches of each side, with a column `_key`.
        parts: how many parts.
    """
    with tempfile.TemporaryDirectory(prefix="mssql_cdc_check_") as folder:
        files = [
            _written(Path(folder) / f"side{number}", schema, batches, range(parts), parts)
            for number, (schema, batches) in enumerate(sides)
        ]
        yield [list(of_part) for of_part in zip(*files, strict=True)]


def load(path: Path) -> pa.Table:
    """The rows of one file in one chunk."""
    with ipc.open_file(path) as reader:
        return reader.read_all().combine_chunks()


class _Part:
    """The file of some parts; rows are buffered until there are enough of them."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._waiting = list[pa.RecordBatch]()
        self._rows = self._bytes = 0
        self._writer = ipc.new_file(path, schema)

    def __enter__(self) -> _Part:
        return self

    def __exit__(self, *_: object) -> None:
        with self._writer:
            self._flush()

    def add(self, batch: pa.RecordBatch) -> None:
        """Add some rows."""
        self._waiting.append(batch)
        self._rows, self._bytes = self._rows + batch.num_rows, self._bytes + batch.nbytes
        if self._rows >= TOGETHER_ROWS or self._bytes >= TOGETHER_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_batch(pa.concat_batches(self._waiting))
        self._waiting.clear()
        self._rows = self._bytes = 0


def _written(
    prefix: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], mine: Sequence[int], parts: int
) -> list[Path]:
    """Write rows that belong to some of the parts, and return the files of these parts in order."""
    width = -(-len(mine) // OPEN_FILES)
    groups = [mine[start : start + width] for start in range(0, len(mine), width)]
    paths = [prefix.with_name(f"{prefix.name}-{group[0]}-{len(group)}.arrow") for group in groups]
    with ExitStack() as stack:
        files = [stack.enter_context(_Part(path, schema)) for path in paths]
        for batch in batches:
            whole = batch.select(schema.names).cast(schema)
            if len(files) == 1:
                files[0].add(whole)
                continue
            owners = (_hashes(whole.column("_key")) % parts - mine[0]) // width
            for number in np.unique(owners):
                files[int(number)].add(whole.filter(pa.array(owners == number)))
    found: list[Path] = []
    for group, path in zip(groups, paths, strict=True):
        found += [path] if len(group) == 1 else _written(prefix, schema, _consumed(path), group, parts)
    return found


def _consumed(path: Path) -> Iterator[pa.RecordBatch]:
    """The rows of a file, which is removed after the last one."""
    with ipc.open_file(path) as reader:
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    path.unlink()


def _hashes(keys: pa.Array) -> np.ndarray:
    return np.array([zlib.crc32((key or "").encode()) for key in keys.to_pylist()], np.int64)
