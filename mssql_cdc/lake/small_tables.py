"""The database's own small tables: their columns, appending to them, reading them without a JVM.

`lake/offsets.py`, `lake/history.py`, `snapshot/` and `records/` interpret the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, WriterProperties
from deltalake.exceptions import DeltaError
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from mssql_cdc.errors import OvertakenError, StorageError
from mssql_cdc.lake.features import never_altered, writer_features
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.log import TableState, commit, create_table, facts_of, load_state, newest_batch
from mssql_cdc.lake.opened import find_table, open_table
from mssql_cdc.lake.read import BatchSlice, exists, ordered, read_table
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.schema.arrow import INSTANT, TEXT_MAP

_PROPERTIES = {"delta.checkpointInterval": "20"}

retry_overtaken = retry(retry=retry_if_exception_type(OvertakenError), stop=stop_after_attempt(20), reraise=True)
"""Retries a function that builds rows from a table's newest state and appends them, if another run was faster."""


_ANY = 2**62
_FILE_BYTES = 4 * 1024 * 1024
_GROUP_ROWS = 256
"""Rows per row group, which is read at once: a row of `_offsets` has an entry per table."""
_MOST_COMMITS = 1000
"""More commits are not inspected: all rows are read again."""
_HARMLESS = frozenset({"OPTIMIZE", "VACUUM START", "VACUUM END"})


@dataclass(frozen=True, slots=True)
class ReadAt:
    """The commit up to which a table was read; `mark` distinguishes it from another one of the same version."""

    table_id: str
    version: int
    mark: str


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows of a table, oldest commit first.

    `written` is the `_batch` of the newest commit that the table ever had, even after a RESTORE. `goes_on`: the rows
    that were read before are still there, and are not in `tables`.
    """

    at: ReadAt | None
    tables: Iterable[pa.Table]
    written: int = 0
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class SmallTable:
    """One small Delta table; rows are dicts by column name. `_batch` is filled in with the commit's number."""

    uri: str
    owner: str
    schema: pa.Schema
    storage: Storage = LOCAL

    def state(self) -> TableState:
        """The newest state; creates the table when it does not exist."""
        state = load_state(self.uri, owner=self.owner, storage=self.storage)
        if state is None:
            create_table(
                self.uri,
                self.schema,
                owner=self.owner,
                properties=_PROPERTIES,
                stats_columns=("_batch",),
                storage=self.storage,
            )
            state = load_state(self.uri, owner=self.owner, storage=self.storage)
        if state is None:
            raise StorageError(f"{self.uri} was created but cannot be opened")
        return state

    def append(self, state: TableState, rows: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]) -> TableState:
        """Append the rows in one fenced commit based on `state`; return the state after it.

        Args:
            state: The state to which the rows are appended.
            rows: The rows as dicts by column name, without `_batch`.
            metadata: The facts of the commit.

        Raises:
            OvertakenError: another run has committed since `state` was loaded (`retry_overtaken`).
        """
        numbered = [{**row, "_batch": state.batch + 1} for row in rows]
        batch = pa.RecordBatch.from_pylist(numbered, schema=self.schema)
        return commit(state, write_files([batch], state.target), metadata)

    def append_columns(self, state: TableState, rows: pa.RecordBatch, metadata: Mapping[str, Any]) -> TableState:
        """The same as `append`, for rows in Arrow, of which there may be many.

        Args:
            state: The state to which the rows are appended.
            rows: The rows, without `_batch`; columns in any order.
            metadata: The facts of the commit.

        Raises:
            OvertakenError: another run has committed since `state` was loaded.
        """
        columns = {"_batch": pa.repeat(pa.scalar(state.batch + 1, pa.int64()), rows.num_rows)}
        columns |= dict(zip(rows.schema.names, rows.columns, strict=True))
        batch = pa.RecordBatch.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)
        return commit(state, write_files([batch], state.target), metadata)

    def table(self) -> pa.Table:
        """All rows, oldest commit first, in one chunk; none when the table does not exist."""
        if not exists(self.uri, self.storage):
            return self.schema.empty_table()
        found = read_table(self.uri, columns=self.schema.names, storage=self.storage).combine_chunks()
        return found.take(pc.sort_indices(found.column("_batch"))) if found.num_rows else found

    def read(self, *, since: ReadAt | None, after: int, least: int) -> Reading:
        """Read the rows in order, in bounded memory: all, or those after what was read before.

        Args:
            since: What was read before; None: nothing.
            after: Its newest `_batch`.
            least: At least this many rows of the result come at once, except for the last ones.
        """
        table = find_table(self.uri, self.storage)
        if table is None:
            return Reading(None, ())
        newest = table.history(1)
        at = ReadAt(str(table.metadata().id), table.version(), _mark(newest[0]) if newest else "")
        goes_on = since is not None and _only_appended(table, since, at)
        batches = BatchSlice(after if goes_on else 0, _ANY)
        rows = ordered(
            self.uri, batches=batches, columns=self.schema.names, version=at.version, least=least, storage=self.storage
        )
        return Reading(at, rows, newest_batch(table, owner=self.owner), goes_on=goes_on)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of `table`, as dicts."""
        return self.table().to_pylist()

    def all_rows(self) -> list[dict[str, Any]]:
        """The same as `rows`, for a table to which each commit appends rows, and from which nothing removes any.

        Raises:
            StorageError: RESTORE, or another statement by somebody else, has taken back rows.
        """
        table = find_table(self.uri, self.storage)
        if table is None:
            return []
        written, rows = newest_batch(table, owner=self.owner), self.rows()
        missing = set(range(1, written + 1)).difference(row["_batch"] for row in rows)
        ours = _HARMLESS | {"CREATE TABLE", "WRITE"}
        # A commit without rows, from before such commits were avoided, does not count as taken back.
        if missing and any(one.get("operation") not in ours for one in table.history()):
            raise StorageError(
                f"{self.uri} lacks the rows of {len(missing)} of its {written} commits: another program has restored "
                "or changed it. RESTORE it to the version before that (DESCRIBE HISTORY lists them)"
            )
        return rows

    def compact(self) -> None:
        """Compact the small files, unless another run is compacting or appending."""
        with suppress(DeltaError):
            compact_small(self.uri, self.storage)


def compact_small(uri: str, storage: Storage = LOCAL) -> tuple[int, int]:
    """Compact the small files of a small table, and return how many were removed and added.

    Readers and fencing are not affected. Files above a certain size are left as they are, so that the cost does not
    grow with the table, and neither does what a read of a few rows decodes. A table to which a user has added a feature
    that `deltalake` does not write, such as type widening, stays as it is.

    Args:
        uri: The folder of the table.
        storage: The options of the object store.

    Raises:
        deltalake.exceptions.CommitFailedError: Another run has compacted it at the same time.
    """
    properties = WriterProperties(compression="ZSTD", compression_level=1, max_row_group_size=_GROUP_ROWS)
    table = open_table(uri, storage)
    if never_altered(writer_features(table)):
        return 0, 0
    metrics = table.optimize.compact(target_size=_FILE_BYTES, writer_properties=properties)
    return metrics["numFilesRemoved"], metrics["numFilesAdded"]


def _mark(entry: Mapping[str, Any]) -> str:
    """What distinguishes a commit from another one of the same version, in a log that replaced the original."""
    facts = facts_of(entry)
    return str(facts["mark"]) if facts and "mark" in facts else f"{entry.get('operation')} {entry.get('timestamp')}"


def _only_appended(table: DeltaTable, since: ReadAt, now: ReadAt) -> bool:
    """Whether the commits since then are only appends of ours and commits that change no row."""
    count = now.version - since.version
    if since.table_id != now.table_id or not 0 <= count <= _MOST_COMMITS:
        return False
    commits = table.history(count + 1)
    if len(commits) != count + 1 or _mark(commits[-1]) != since.mark:
        return False
    return all(
        facts_of(one) is not None if one.get("operation") == "WRITE" else one.get("operation") in _HARMLESS
        for one in commits[:-1]
    )


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field("_batch", pa.int64()), *(pa.field(n, t) for n, t in columns.items())])


SMALL_TABLES = {
    "schema_history": _schema(
        table_id=pa.string(),
        schema=pa.int32(),
        incarnation=pa.int32(),
        from_lsn=pa.string(),
        object_id=pa.int64(),
        capture_object_id=pa.int64(),
        instance=pa.string(),
        columns=pa.string(),
        debezium=pa.string(),
        at=INSTANT,
    ),
    "transactions": _schema(
        _pos=pa.string(),
        transaction_id=pa.string(),
        status=pa.string(),
        event_count=pa.int64(),
        data_collections=pa.map_(pa.string(), pa.int64()),
        commit_lsn=pa.string(),
        commit_ts=INSTANT,
    ),
    "signals": _schema(
        id=pa.string(),
        type=pa.string(),
        data=pa.string(),
        channel=pa.string(),
        position=pa.string(),
        status=pa.string(),
        result=pa.string(),
        at=INSTANT,
    ),
    "notifications": _schema(
        id=pa.string(),
        aggregate_type=pa.string(),
        type=pa.string(),
        additional_data=TEXT_MAP,
        timestamp_ms=pa.int64(),
    ),
    "structures": _schema(catalog=pa.string(), schema=pa.string(), name=pa.string(), structure=pa.string(), at=INSTANT),
    "snapshots": _schema(id=pa.string(), plan=pa.string()),
    "incremental_snapshots": _schema(state=pa.string(), at=INSTANT),
    "gaps": pa.schema(
        [
            pa.field("_batch", pa.int64()),
            pa.field("table_id", pa.string()),
            pa.field("epoch", pa.int32()),
            pa.field("from", pa.string()),
            pa.field("to", pa.string()),
            pa.field("reason", pa.string()),
            pa.field("status", pa.string()),
            pa.field("by", pa.string()),
            pa.field("at", INSTANT),
        ]
    ),
}
"""Columns of the small tables with fixed columns; `_batch` comes first everywhere."""


def small_table(layout: Layout, name: str, storage: Storage = LOCAL) -> SmallTable:
    """One of this database's `SMALL_TABLES`.

    Args:
        layout: The database's folders.
        name: A key of `SMALL_TABLES`.
        storage: The options of the object store.
    """
    return SmallTable(layout.own(name), layout.own_app_id(name), SMALL_TABLES[name], storage)
