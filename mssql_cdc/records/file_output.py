"""A file of JSON lines, and beside it `<file>.progress` with how far it is complete.

The file is written and synchronized first, then the progress is replaced, which is atomic. What a killed run wrote
behind the progress is cut off by the next one.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mssql_cdc.errors import BusyOutputError, StorageError
from mssql_cdc.records.outputs import OutputBatch, Progress, write_lines

KEEP_BYTES = 64 * 1024 * 1024
"""The progress is stored at the latest after this many bytes, so a killed run repeats little."""


class JsonLinesFile:
    """One JSON object per line, in UTF-8."""

    remembers = True

    def __init__(self, path: Path, file: BinaryIO, kept: Progress | None, size: int, *, keep_bytes: int) -> None:
        self.kept: Progress | None = kept
        self._path = path
        self._file = file
        self._size = self._kept_size = size
        self._written = kept
        self._keep_bytes = keep_bytes

    def write(self, batch: OutputBatch) -> None:
        """Write one line per record."""
        self._size += write_lines(batch.records, self._file)
        self._written = batch.progress
        if self._size - self._kept_size >= self._keep_bytes:
            self.keep()

    def keep(self) -> None:
        """Synchronize the file, then replace the progress."""
        if self._written is None or self._written == self.kept:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        _store(self._path, self._size, self._written)
        self.kept, self._kept_size = self._written, self._size


@contextmanager
def open_file(target: str, *, keep_bytes: int = KEEP_BYTES) -> Generator[JsonLinesFile]:
    """Open a file behind its last complete record; a new file if it was moved away.

    Args:
        target: The file.
        keep_bytes: Store the progress at the latest after this many bytes.

    Raises:
        StorageError: The file has no progress, is shorter than it was, or another run writes to it.
    """
    path = Path(target)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyOutputError(f"Another run writes records to {path}; wait for it, or name another file") from None
        found = file.tell()
        if found and not _progress_path(path).exists():
            raise StorageError(
                f"{path} has {found} bytes, but no {_progress_path(path).name} says how far its records reach. "
                "Remove it, or name another file"
            )
        size, kept = _stored(path)
        if not found:
            size = 0  # A new file, or the one before was moved away with its records.
            _store(path, size, kept)
        if found < size:
            raise StorageError(
                f"{path} has {found} bytes, but {size} were written. Restore it; or remove it and "
                f"{_progress_path(path).name} to begin again"
            )
        file.truncate(size)
        yield JsonLinesFile(path, file, kept, size, keep_bytes=keep_bytes)


def _stored(path: Path) -> tuple[int, Progress | None]:
    """Return how many bytes of the file are complete, and how far their records reach."""
    if not _progress_path(path).exists():
        return 0, None
    facts = json.loads(_progress_path(path).read_text(encoding="utf-8"))
    kept = facts["progress"]
    return facts["bytes"], None if kept is None else Progress.from_json(json.dumps(kept))


def _store(path: Path, size: int, progress: Progress | None) -> None:
    """Replace the progress as a whole."""
    facts = {"bytes": size, "progress": None if progress is None else json.loads(progress.to_json())}
    target = _progress_path(path)
    partial = target.with_name(f"{target.name}.partial")
    with partial.open("w", encoding="utf-8") as out:
        json.dump(facts, out)
        out.flush()
        os.fsync(out.fileno())
    partial.replace(target)


def _progress_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.progress")
