"""A Delta table of records. Records and progress share one commit: the progress is in its metadata.

RESTORE rolls records back but keeps the history with the progress. So what others have committed after the newest
progress is checked before a run continues there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from mssql_cdc.config import Connector
from mssql_cdc.errors import StorageError
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.log import TableState, backwards, commit, create_table, facts_of, load_state
from mssql_cdc.lake.read import exists
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lake.tamper import is_harmless
from mssql_cdc.records.outputs import OutputBatch, Progress, no_output
from mssql_cdc.records.record_batch import RECORDS

KEEP_ROWS = 250_000
KEEP_BYTES = 256 * 1024 * 1024
TABLE = pa.schema(
    [
        pa.field("database", pa.string()),
        pa.field("number", pa.int64()),
        *(pa.field(field.name, field.type) for field in RECORDS),
        pa.field("_batch", pa.int64()),
    ]
)
"""`number` is the place of a record among those of its database; `_batch` is the commit's."""
_PROPERTIES = {"delta.appendOnly": "true", "delta.checkpointInterval": "50"}


class DeltaOutput:
    """Appends records to a Delta table that no one else writes to."""

    remembers = True

    def __init__(self, uri: str, connector: Connector, *, create: bool = True, keep_rows: int = KEEP_ROWS) -> None:
        self._state = _opened(uri, connector, create=create)
        self._keep_rows = keep_rows
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._written: Progress | None = None
        self.kept: Progress | None = None
        own = self._state.own
        if own is not None:
            _verify_records(self._state, own["batch"])
            self.kept = Progress.from_json(json.dumps(own["progress"]))
        elif self._state.own_batch:
            raise StorageError(
                f"The log of {uri} no longer holds the commit that says how far its records reach. Name another table"
            )

    def write(self, batch: OutputBatch) -> None:
        """Take records; they are committed once there are enough."""
        self._written = batch.progress
        count = batch.records.num_rows
        if not count:
            return
        numbers = pa.array(np.arange(batch.first_number, batch.first_number + count))
        number = pa.repeat(pa.scalar(self._state.batch + 1, pa.int64()), count)
        columns = [pa.repeat(pa.scalar(batch.database), count), numbers, *batch.records.columns, number]
        self._waiting.append(pa.RecordBatch.from_arrays(columns, schema=TABLE))
        self._rows, self._bytes = self._rows + count, self._bytes + batch.records.nbytes
        if self._rows >= self._keep_rows or self._bytes >= KEEP_BYTES:
            self.keep()

    def keep(self) -> None:
        """Commit the pending records, and how far they reach.

        Without records, only an output of some tables or keys commits how far it has looked for them. Any other
        output would make a commit for every cut without a record, and finds the next record soon.
        """
        if self._written is None or (not self._waiting and not self._has_looked(self._written)):
            return
        files = write_files(self._waiting, self._state.target)
        self._state = commit(self._state, files, {"progress": json.loads(self._written.to_json())})
        self._waiting, self._rows, self._bytes, self.kept = [], 0, 0, self._written

    def _has_looked(self, written: Progress) -> bool:
        return written.is_of_part and written != self.kept


def _opened(uri: str, connector: Connector, *, create: bool) -> TableState:
    owner, storage = f"mssql_cdc:{connector.topic_prefix}:records", Storage(dict(connector.delta.storage))
    columns = ("database", "number", "topic", "position", "_batch")
    if not create and not exists(uri, storage):
        raise no_output(uri)
    create_table(uri, TABLE, owner=owner, properties=_PROPERTIES, stats_columns=columns, storage=storage)
    state = load_state(uri, owner=owner, storage=storage)
    if state is None:
        raise StorageError(f"{uri} was created but cannot be opened")
    return state


def _verify_records(state: TableState, batch: int) -> None:
    """Check that the table has the records that the newest progress counts, except those that a DELETE has removed.

    The history is followed back from the newest version. A RESTORE leads to the version that it restored.

    Args:
        state: The state of the table's log.
        batch: The `_batch` of the commit with the newest progress.

    Raises:
        StorageError: The path does not lead to the commit of the newest progress.
    """
    since = _commits_since(state, batch)
    kept, version = min(since), state.delta_version
    while version > kept:
        commit_info = since.get(version, {})
        operation = str(commit_info.get("operation", "an unknown commit")).upper()
        if operation == "RESTORE" and (restored := _restored_version(commit_info)) >= kept:
            version = restored
        elif is_harmless(operation) or operation == "DELETE":
            version -= 1
        else:
            raise StorageError(
                f"{state.uri} was changed by {operation} in Delta version {version}: records that its progress counts "
                f"may be missing or doubled. RESTORE it to version {kept}, or name another table"
            )


def _commits_since(state: TableState, batch: int) -> dict[int, Mapping[str, Any]]:
    """Return our commit with this `_batch`, and those after it, by version."""
    found: dict[int, Mapping[str, Any]] = {}
    for entry in backwards(state):
        found[entry["version"]] = entry
        if (facts_of(entry) or {}).get("batch") == batch:
            return found
    raise StorageError(f"The log of {state.uri} was changed while it was read. Try again")


def _restored_version(commit_info: Mapping[str, Any]) -> int:
    """Return the version that a RESTORE restored; -1: it names a time."""
    parameters: Mapping[str, Any] = commit_info.get("operationParameters") or {}
    version = str(parameters.get("version"))
    return int(version) if version.isdecimal() else -1
