"""Sweeps rows of the current table that neither the snapshot nor the stream confirmed, after the snapshot's last chunk.

They were deleted while capture was interrupted. The change log gets a synthetic `d` for each (rule C19), flagged in
`_snapshot` so that Debezium's records omit them; the next MERGE then deletes them. `snapshot/` decides whether a
snapshot may sweep (a filtered one must not).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mssql_cdc.events import check_batch
from mssql_cdc.lake.delta_schema import cast_values, file_schema
from mssql_cdc.lake.files import DataFile, FileTarget, write_files
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.live_file import LiveFile
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.partitions import with_empty_texts
from mssql_cdc.lake.storage import file_system
from mssql_cdc.lake.table_log import TableLog
from mssql_cdc.lsn import Lsn, snapshot_position_text
from mssql_cdc.schema.arrow import change_log_schema, current_names
from mssql_cdc.schema.tables import TableSchema
from mssql_cdc.spark.session import private_session
from mssql_cdc.spark.tasks import interruptible, own_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SWEEP_CHUNK = 0xFFFFFF


@dataclass(frozen=True, slots=True)
class Sweep:
    """A finished snapshot: its number, its lowest position L0 and when it ended."""

    number: int
    epoch: int
    low: Lsn
    at: datetime

    @property
    def bound(self) -> str:
        """Rows with a smaller `_pos` are to be swept."""
        return snapshot_position_text(self.epoch, self.low, number=self.number)

    def position(self, row: int) -> str:
        """Return `_pos` of the row-th synthetic delete: after the deleted row, before what the snapshot read.

        It is below the bound, so that it never hides a row that the snapshot has, whatever the current table showed;
        and after every row of earlier snapshots, whose chunks have smaller numbers.
        """
        return snapshot_position_text(self.epoch, self.low, number=self.number - 1, chunk=_SWEEP_CHUNK, row=row)


def may_hold_stale(log: TableLog, sweep: Sweep) -> bool:
    """Whether a file of the current table may have rows to sweep, as far as statistics show.

    As a rule, a snapshot of the whole table leaves none: each of its rows replaces an earlier one.

    Args:
        log: The log of the current table, after the snapshot's last commit.
        sweep: Which rows to delete.
    """
    return log.unreadable is not None or any(_may_hold(log, file, sweep.bound) for file in log.files.values())


def _may_hold(log: TableLog, file: LiveFile, bound: str) -> bool:
    lowest = json.loads(file.stats or "{}").get("minValues", {}).get("_pos")
    if lowest is not None and bound.startswith(lowest):
        lowest = _lowest(log, file)  # Delta's statistics are cut off within a snapshot's position.
    return lowest is None or lowest < bound


def _lowest(log: TableLog, file: LiveFile) -> str | None:
    """The smallest `_pos` of a file according to its footer; None: the footer does not say."""
    with file_system(log.uri, log.storage).open_input_file(file.name) as opened:
        footer = pq.read_metadata(opened)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    columns = [group.column(place) for group in groups for place in range(group.num_columns)]
    found = [one.statistics for one in columns if one.path_in_schema == "_pos"]
    if len(found) != len(groups) or any(one is None or not one.has_min_max for one in found):
        return None
    return min((str(one.min) for one in found), default=None)


def stale_files(
    session: SparkSession, home: TableHome, table_schema: TableSchema, state: TableState, sweep: Sweep, *, version: int
) -> list[DataFile]:
    """Write the synthetic deletes beside the change log; `stamped` makes them files of a commit.

    At this version, the current table must have reached the snapshot's last commit. Rows that change in it in the
    meantime are newer than the deletes, which therefore do not harm them.

    Args:
        session: The Spark session.
        home: The table's folders.
        table_schema: The table's structure.
        state: The state of the change log.
        sweep: Which rows to delete.
        version: The Delta version of the current table to read.

    Returns:
        The files; none when there is nothing to sweep.
    """
    target, number = FileTarget(home.changes, storage=state.storage), state.batch + 1
    # Use the table's types: a column may have been narrowed at the source since the rows were stored.
    schema = file_schema(state.schema_json, change_log_schema(table_schema), physical=False)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = sweep_rows(batches, schema, table_schema=table_schema, batch_number=number, sweep=sweep)
        texts = [file.to_json() for file in write_files(rows, target)]
        yield pa.RecordBatch.from_pydict({"file": pa.array(texts, pa.string())})

    with own_error(session, f"The sweep of {home.current}"), private_session(session) as private:
        table = private.read.format("delta").option("versionAsOf", version).load(home.current)
        # One partition, because the rows are numbered consecutively and sweeps are small compared with their snapshot.
        stale = table.where(table["_pos"] < sweep.bound).coalesce(1)
        found = interruptible(session, lambda: stale.mapInArrow(write, "file string").collect())
    return [DataFile.from_json(row["file"]) for row in found]


def stamped(files: Sequence[DataFile], state: TableState) -> list[DataFile]:
    """Write the deletes once more, as files of the next commit from `state`: ranges may have committed since.

    Args:
        files: What `stale_files` wrote; these files remain as garbage for VACUUM.
        state: The newest state of the change log.
    """
    return write_files(_renumbered(files, state), state.target)


def _renumbered(files: Sequence[DataFile], state: TableState) -> Iterator[pa.RecordBatch]:
    system = file_system(state.uri, state.storage)
    for file in files:
        with system.open_input_file(file.path) as source:
            rows = pq.ParquetFile(source)
            for group in range(rows.num_row_groups):
                for batch in rows.read_row_group(group, use_threads=False).to_batches():
                    place = batch.schema.get_field_index("_batch")
                    number = pa.repeat(pa.scalar(state.batch + 1, pa.int64()), batch.num_rows)
                    yield batch.set_column(place, batch.schema.field(place), number)


def sweep_rows(
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    *,
    table_schema: TableSchema,
    batch_number: int,
    sweep: Sweep,
) -> Iterator[pa.RecordBatch]:
    """Change-log rows with op `d` for rows of the current table.

    Args:
        batches: rows of the current table.
        schema: the change log's schema, with its own types.
        table_schema: the newest structure of the source table.
        batch_number: `_batch` of the commit that the rows are written for.
        sweep: which snapshot did not see them.
    """
    names = current_names(table_schema)
    logged = {column.name: column.stored_name for column in table_schema.value_columns}
    done = 0
    for stored in batches:
        batch = with_empty_texts(stored, names)
        count = batch.num_rows
        nobody = pa.repeat(pa.scalar(value=False), count)
        values = {logged[name]: batch.column(target) for name, target in names.items() if target in batch.schema.names}
        # The update that brings a new column's first rows may come later.
        lacking = [name for name in names if logged[name] not in values]
        images = {name: _struct(values, schema.field(name).type, nobody, name) for name in ("before", "key")}
        source = {"commit_lsn": pa.repeat(pa.scalar(sweep.low.text), count)}
        columns = {
            **images,
            "_pos": pa.array([sweep.position(done + row) for row in range(count)], pa.string()),
            "_commit_ts": pa.repeat(pa.scalar(sweep.at, pa.timestamp("us", "UTC")), count),
            "_batch": pa.repeat(pa.scalar(batch_number, pa.int64()), count),
            "_schema": pa.repeat(pa.scalar(table_schema.version, pa.int32()), count),
            "_key": batch.column("_key"),
            "op": pa.repeat(pa.scalar("d"), count),
            "source": _struct(source, schema.field("source").type, nobody, "source"),
            "_snapshot": pa.repeat(pa.scalar(f"sweep:{sweep.number}"), count),
            "_unavailable": _with(batch.column("_unavailable"), lacking),
            "_exact": _struct(
                {"before": batch.column("_exact")},
                schema.field("_exact").type,
                pc.is_null(batch.column("_exact")),
                "_exact",
            ),
        }
        arrays = [_as(columns.get(field.name), field.type, count, field.name) for field in schema]
        done += count
        rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
        check_batch(rows, keyed=True)
        yield rows


def _with(unavailable: pa.Array, names: Sequence[str]) -> pa.Array:
    """The columns that each row does not know, plus these."""
    if not names:
        return unavailable
    return pa.array([[*(row or ()), *names] for row in unavailable.to_pylist()], unavailable.type)


def _struct(values: dict[str, pa.Array], kind: pa.StructType, nulls: pa.Array, path: str) -> pa.StructArray:
    """The struct of these values; fields that are not given are NULL."""
    children = [_as(values.get(field.name), field.type, len(nulls), f"{path}.{field.name}") for field in kind]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=nulls)


def _as(values: pa.Array | None, kind: pa.DataType, count: int, path: str) -> pa.Array:
    return pa.nulls(count, kind) if values is None else cast_values(values, kind, path)
