"""A file of JSON lines, and next to it `<file>.progress`, which says how far it is complete.

The file is written and synchronized first, then the progress is replaced, which is atomic. What a killed run wrote
beyond the progress is cut off by the next one. If the file was moved away in the meantime, nothing could be cut off,
and those records would be written again: so while the file may contain more than the progress counts, the progress says
which file it is (`open`), and a run that does not find that file is refused.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from mssql_cdc.errors import BusyOutputError, StorageError
from mssql_cdc.records.outputs import OutputBatch, Progress, no_output, write_lines

KEEP_BYTES = 64 * 1024 * 1024
"""The progress is stored at the latest after this many bytes, so a killed run repeats little."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """What `<file>.progress` says.

    Attributes:
        size: How many bytes of the file are complete.
        progress: How far their records reach.
        open: The number (inode) of the file that may contain more; None: no file does.
    """

    size: int = 0
    progress: Progress | None = None
    open: int | None = None


class JsonLinesFile:
    """One JSON object per line, in UTF-8."""

    remembers = True

    def __init__(self, path: Path, file: BinaryIO, kept: _Kept, *, keep_bytes: int) -> None:
        self._path = path
        self._file = file
        self._kept = kept
        self._size = kept.size
        self._written = kept.progress
        self._keep_bytes = keep_bytes
        self._lock = Lock()  # With --follow, a thread may still write when an error closes the file.

    @property
    def kept(self) -> Progress | None:
        """How far the kept records reach."""
        return self._kept.progress

    def write(self, batch: OutputBatch) -> None:
        """Write one line per record."""
        with self._lock:
            if self._kept.open is None and batch.records.num_rows:
                self._store(replace(self._kept, open=_number(self._file)))
            self._size += write_lines(batch.records, self._file)
            self._written = batch.progress
            if self._size - self._kept.size >= self._keep_bytes:
                self._keep(self._kept.open)

    def keep(self) -> None:
        """Synchronize the file, then replace the progress."""
        with self._lock:
            self._keep(self._kept.open)

    def close(self, *, keep: bool) -> None:
        """Leave nothing beyond the progress, and stop writing.

        Args:
            keep: Keep what was written; otherwise, it is cut off.
        """
        with self._lock, self._file:
            if keep:
                self._keep(None)
            elif self._kept.open is not None:
                self._file.truncate(self._kept.size)
                self._store(replace(self._kept, open=None))

    def _keep(self, still_open: int | None) -> None:
        kept = _Kept(self._size, self._written, still_open)
        if kept != self._kept:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._store(kept)

    def _store(self, kept: _Kept) -> None:
        _store(self._path, kept)
        self._kept = kept


@contextmanager
def open_file(target: str, *, create: bool = True, keep_bytes: int = KEEP_BYTES) -> Generator[JsonLinesFile]:
    """Open a file after its last complete record; a new file if it was moved away.

    What was written is kept when the block ends without an error, and cut off otherwise.

    Args:
        target: The file.
        create: Begin a new output if there is none.
        keep_bytes: Store the progress at the latest after this many bytes.

    Raises:
        StorageError: There is no output, the file has no progress, is shorter than it was, was moved away after a run
            was killed, or another run writes to it.
    """
    path = Path(target)
    if not path.exists():
        if not create and not _progress_path(path).exists():
            raise no_output(target)
        _require_closed(path, _stored(path))
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyOutputError(f"Another run writes records to {path}; wait for it, or name another file") from None
        output = JsonLinesFile(path, file, _found(path, file), keep_bytes=keep_bytes)
        try:
            yield output
        except BaseException:
            with suppress(OSError):  # Such as a full disk: the next run cuts it off.
                output.close(keep=False)
            raise
        output.close(keep=True)


def _found(path: Path, file: BinaryIO) -> _Kept:
    """Return what is kept, and cut off the rest of the file."""
    size, kept = file.tell(), _stored(path)
    if size and not _progress_path(path).exists():
        raise StorageError(
            f"{path} has {size} bytes, but no {_progress_path(path).name} says how far its records reach. "
            "Remove it, or name another file"
        )
    if not size and (kept.size or kept.open != _number(file)):
        _require_closed(path, kept)
    closed = replace(kept, size=kept.size if size else 0, open=None)  # 0: the previous one was moved away.
    if size < closed.size:
        raise StorageError(
            f"{path} has {size} bytes, but {closed.size} were written. Restore it; or remove it and "
            f"{_progress_path(path).name} to begin again"
        )
    file.truncate(closed.size)
    if closed != kept:
        _store(path, closed)
    return closed


def _require_closed(path: Path, kept: _Kept) -> None:
    """Check that a missing file had nothing beyond its progress."""
    if kept.open is not None:
        raise StorageError(
            f"{path} was moved away after a run that was killed: what it contains after {kept.size} bytes is not "
            "kept, and would be written again. Put it back, and run once, which cuts that off. Or cut it off where it "
            f'is (truncate -s {kept.size} FILE), and take "open" out of {_progress_path(path)}'
        )


def _number(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_ino


def _stored(path: Path) -> _Kept:
    """Return what was kept last."""
    if not _progress_path(path).exists():
        return _Kept()
    facts = json.loads(_progress_path(path).read_text(encoding="utf-8"))
    progress = facts["progress"]
    kept = None if progress is None else Progress.from_json(json.dumps(progress))
    return _Kept(facts["bytes"], kept, facts.get("open"))


def _store(path: Path, kept: _Kept) -> None:
    """Replace the progress as a whole."""
    progress = kept.progress
    facts: dict[str, Any] = {
        "bytes": kept.size,
        "progress": None if progress is None else json.loads(progress.to_json()),
    }
    if kept.open is not None:
        facts["open"] = kept.open
    target = _progress_path(path)
    partial = target.with_name(f"{target.name}.partial")
    with partial.open("w", encoding="utf-8") as out:
        json.dump(facts, out)
        out.flush()
        os.fsync(out.fileno())
    partial.replace(target)


def _progress_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.progress")
