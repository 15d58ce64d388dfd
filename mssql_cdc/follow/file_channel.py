"""The file of `signal.file` as a signal channel: one JSON object per line (SIG-06).

Debezium reads the file and then empties it, so that what is written in between is lost. Here a poll takes the file away
by renaming it, which is atomic. The bookmark says how much of each taken file is in the lake; only when all of it is
there is the file deleted. The databases of a connector share the file: each of them gets every signal.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from mssql_cdc.follow.signal_contract import Arrived, SignalRecord
from mssql_cdc.follow.signal_json import json_object, signal_of_json

UNFINISHED_SECONDS = 10
"""How long a last line without a line ending is taken for one that is still being written."""
_TAKEN, _READ = ".taken-", ".read-"


class SignalFile:
    """The channel `file` as one database reads it."""

    def __init__(
        self, path: Path, catalog: str, catalogs: Sequence[str], *, now: Callable[[], float] = time.time
    ) -> None:
        """Make the channel.

        Args:
            path: The file, which need not exist.
            catalog: The database.
            catalogs: All databases that share the file.
            now: Returns the time by the file system's clock.
        """
        self._path, self._catalog, self._catalogs, self._now = path, catalog, tuple(catalogs), now

    def read(self, bookmark: Any) -> Arrived | None:
        """Return the lines after the bookmark, which is the number of bytes that were read from each taken file.

        Args:
            bookmark: What the lake holds; what it covers is deleted.

        Raises:
            OSError: The file or its folder cannot be read or written.
        """
        known = cast("Mapping[str, int]", bookmark or {})
        self._take()
        found: list[SignalRecord] = []
        after: dict[str, int] = {}
        moved = False
        for path in self._taken():
            done = known.get(path.name, 0)
            with suppress(FileNotFoundError):  # Another run has deleted it, since it is in the lake.
                written = path.stat().st_mtime
                content = path.read_bytes()
                end = self._end(content, done, written)
                if end > done:
                    moved = True
                    found += _records(path.name, content[:end], done)
                elif done >= len(content):
                    self._delete(path, done)
                after[path.name] = end
        return Arrived(found, after) if moved else None

    def _take(self) -> None:
        """Take the file away, unless it is empty."""
        with suppress(FileNotFoundError):
            if self._path.stat().st_size:
                name = f"{self._path.name}{_TAKEN}{time.time_ns():020d}-{uuid.uuid4().hex[:8]}"
                self._path.rename(self._path.with_name(name))

    def _taken(self) -> list[Path]:
        """The taken files that are still there, oldest first."""
        prefix = f"{self._path.name}{_TAKEN}"
        if not self._path.parent.is_dir():
            return []
        names = [one for one in self._path.parent.iterdir() if one.name.startswith(prefix)]
        return sorted(one for one in names if _READ not in one.name[len(prefix) :])

    def _end(self, content: bytes, done: int, written: float) -> int:
        """How much can be read: a last line without a line ending that is not JSON yet may be unfinished."""
        end = max(content.rfind(b"\n") + 1, done)
        rest = content[end:]
        unfinished = bool(rest.strip()) and not isinstance(json_object(rest), dict)
        return end if unfinished and self._now() - written < UNFINISHED_SECONDS else len(content)

    def _delete(self, path: Path, size: int) -> None:
        """Delete a file that is in the lake of every database; mark it as being in this one's."""
        markers = {one: path.with_name(f"{path.name}{_READ}{quote(one, safe='')}") for one in self._catalogs}
        if len(markers) > 1:
            markers[self._catalog].write_text(str(size), encoding="utf-8")
            if not all(_size(one) >= size for one in markers.values()):
                return
        path.unlink(missing_ok=True)
        for one in markers.values():
            one.unlink(missing_ok=True)


def _size(marker: Path) -> int:
    try:
        return int(marker.read_text(encoding="utf-8") or -1)
    except FileNotFoundError:
        return -1


def _records(name: str, content: bytes, start: int) -> Iterator[SignalRecord]:
    """A record for each line that is not blank."""
    at = start
    for line in content[start:].splitlines(keepends=True):
        if line.strip():
            yield signal_of_json(line, f"{name}:{at}", what="line")
        at += len(line)
