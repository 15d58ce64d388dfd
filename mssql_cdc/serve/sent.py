"""What the renderer has written for one database: its last record, its transactions, and what waits in the pipe."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_COMMIT = slice(5, 25)
"""The place of the commit LSN in `_pos`."""
_STREAMED = "-[1-4]$"
"""The end of `_pos` of a streamed change: rows of snapshots have the operation 0."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What has been written since the start; the renderer replaces the object, so that another thread may read it.

    Attributes:
        topic: The topic of the last record; None: there is none.
        offset: The source offset of the last record.
        streamed: That of the last record that does not belong to a snapshot.
        transactions: The number of commits among the changes.
        commit: The commit of the last change.
        waiting: The number of records that are being written, which the reader has not taken.
        waiting_bytes: Their size in bytes.
    """

    topic: str | None = None
    offset: str = "{}"
    streamed: str = "{}"
    transactions: int = 0
    commit: str | None = None
    waiting: int = 0
    waiting_bytes: int = 0

    def writing(self, records: pa.RecordBatch) -> Sent:
        """Return the state while these records are being written."""
        return replace(self, waiting=records.num_rows, waiting_bytes=records.nbytes)

    def written(self, records: pa.RecordBatch) -> Sent:
        """Return the state after these records were written."""
        found = replace(self, waiting=0, waiting_bytes=0)
        if not records.num_rows:
            return found
        positions = records.column("position")
        changes = positions.filter(pc.match_substring_regex(positions, _STREAMED))
        commits = pc.unique(pc.utf8_slice_codeunits(changes, _COMMIT.start, _COMMIT.stop)).to_pylist()
        if commits:
            new = len(commits) - (commits[0] == self.commit)
            found = replace(found, transactions=self.transactions + new, commit=commits[-1])
        last = records.num_rows - 1
        topic, offset = (records.column(name)[last].as_py() for name in ("topic", "source_offset"))
        return replace(found, topic=topic, offset=offset, streamed=offset if commits else self.streamed)

    @property
    def position(self) -> dict[str, Any]:
        """The LSNs of the last streamed record."""
        values = json.loads(self.streamed)
        return {name: values[name] for name in ("commit_lsn", "change_lsn") if values.get(name) is not None}

    @property
    def last(self) -> str | None:
        """The last record in one line, without its values."""
        return None if self.topic is None else f"{self.topic} {self.offset}"
