"""The offsets that the consumer has committed: a file in the state directory; the next start resumes after them.

Only the file is handled here: `control.py` reads the commands that update it, `records/resume.py` finds the place in
the stream.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError, StorageError
from mssql_cdc.records.source_offsets import FoundOffsets, SourceOffset, find_offsets, offset_pairs, offsets_text

COMMITTED = "committed-offsets.json"


class CommittedOffsets:
    """The file of one connector. One thread may write it; readers always see a complete file."""

    def __init__(self, state_dir: Path, connector: Connector) -> None:
        self._path, self._connector = state_dir / COMMITTED, connector

    def read(self) -> dict[str, SourceOffset]:
        """Return what was committed last, by database; the connector may have had other databases before.

        Raises:
            ConfigurationError: The file contains something else, or belongs to another connector.
        """
        return self._found().own

    def _found(self) -> FoundOffsets:
        if not self._path.exists():
            return FoundOffsets({}, {})
        try:
            return find_offsets(offset_pairs(self._path.read_text(encoding="utf-8")), self._connector)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{error}. They are in {self._path}, which the connector itself has written: name another folder with "
                "--state-dir, or move the file away and say with --offsets where to begin"
            ) from error

    def keep(self, offsets: Mapping[str, SourceOffset]) -> None:
        """Store offsets durably; those of other databases stay, even of databases that the connector no longer has.

        Raises:
            StorageError: The file cannot be written.
        """
        found = self._found()
        values = found.others | {name: one.values for name, one in (found.own | dict(offsets)).items()}
        partial = self._path.with_name(f"{self._path.name}.partial")
        try:
            with partial.open("w", encoding="utf-8") as out:
                out.write(offsets_text(self._connector.topic_prefix, values))
                out.flush()
                os.fsync(out.fileno())
            partial.replace(self._path)
        except OSError as error:
            raise StorageError(f"Committed offsets cannot be kept in {self._path}: {error.strerror}") from error
