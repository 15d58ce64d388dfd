"""The commit time of the oldest row that a current table lacks, for repeated queries: only new files are examined.

`commit_times.py` answers the same question, and more, for a single query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from mssql_cdc.lake.commit_times import commit_times
from mssql_cdc.lake.delta_schema import stored_name
from mssql_cdc.lake.live_file import Identity, LiveFile
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.lake.table_commit import current_log
from mssql_cdc.lake.table_log import TableLog


@dataclass(frozen=True, slots=True)
class _Rows:
    """What the statistics of a file say: its smallest and largest `_batch`, and its oldest commit time."""

    first: int
    last: int
    oldest: datetime


@dataclass(slots=True)
class KnownCommitTimes:
    """What was last seen of a change log.

    Attributes:
        uri: Its folder.
        storage: How to reach it.
    """

    uri: str
    storage: Storage = LOCAL
    _log: TableLog | None = None
    _files: dict[Identity, _Rows | None] = field(default_factory=dict[Identity, "_Rows | None"])

    def oldest_after(self, batch: int) -> datetime | None:
        """Return the commit time of the oldest row after a `_batch`; None if there is no such row, or no table.

        Args:
            batch: The `_batch` that the current table has reached.
        """
        self._log = current_log(self.uri, self._log, self.storage)
        if self._log is None:
            return None
        if self._log.unreadable:
            return commit_times(self.uri, after=batch, storage=self.storage).oldest_after
        files, schema_json = self._log.files, self._log.schema_json
        self._files = {one: self._files.get(one) or _rows(file, schema_json) for one, file in files.items()}
        later = list(self._later(batch))
        if any(rows is None or rows.first <= batch for rows in later):
            # A file without statistics, or with rows on both sides: compaction has written it.
            return commit_times(self.uri, after=batch, storage=self.storage).oldest_after
        return min((rows.oldest for rows in later if rows is not None), default=None)

    def _later(self, batch: int) -> Iterator[_Rows | None]:
        return (rows for rows in self._files.values() if rows is None or rows.last > batch)


def _rows(file: LiveFile, schema_json: str) -> _Rows | None:
    facts = file.facts
    least, most = facts.get("minValues", {}), facts.get("maxValues", {})
    number, at = (stored_name(schema_json, name) for name in ("_batch", "_commit_ts"))
    if number not in least or number not in most or at not in least:
        return None
    return _Rows(least[number], most[number], datetime.fromisoformat(least[at]))
