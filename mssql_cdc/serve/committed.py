"""The offsets that the consumer has committed: a file in the state directory, which the next start goes on behind.

Only the file belongs here: `control.py` reads the commands that lead to it, `records/resume.py` finds the place in the
stream.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mssql_cdc.config import Connector
from mssql_cdc.errors import StorageError
from mssql_cdc.records.source_offsets import SourceOffset, offsets_text, parse_offsets

COMMITTED = "committed-offsets.json"


class CommittedOffsets:
    """The file of one connector. One thread may write it; whoever reads it sees it as a whole."""

    def __init__(self, state_dir: Path, connector: Connector) -> None:
        self._path, self._connector = state_dir / COMMITTED, connector

    def read(self) -> dict[str, SourceOffset]:
        """Return what was committed last, by database."""
        if not self._path.exists():
            return {}
        return parse_offsets(self._path.read_text(encoding="utf-8"), self._connector)

    def keep(self, offsets: Mapping[str, SourceOffset]) -> None:
        """Keep offsets, durably; those of other databases stay.

        Raises:
            StorageError: The file cannot be written.
        """
        values = {name: one.values for name, one in (self.read() | dict(offsets)).items()}
        partial = self._path.with_name(f"{self._path.name}.partial")
        try:
            with partial.open("w", encoding="utf-8") as out:
                out.write(offsets_text(self._connector.topic_prefix, values))
                out.flush()
                os.fsync(out.fileno())
            partial.replace(self._path)
        except OSError as error:
            raise StorageError(f"Committed offsets cannot be kept in {self._path}: {error.strerror}") from error
