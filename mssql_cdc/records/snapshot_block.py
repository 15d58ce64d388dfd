"""The records of one snapshot: CREATE records of all tables, then each table's rows with their markers (SNP).

`records/snapshots.py` decides where a snapshot is placed among the other records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from mssql_cdc.records.envelope import Envelopes, SourceInfo
from mssql_cdc.records.pieces import ChangeLog, TextBytes, first_row, snapshot_rows
from mssql_cdc.records.record_batch import Record
from mssql_cdc.records.schema_changes import Described, Version, snapshot_record
from mssql_cdc.records.snapshots import INITIAL, Block
from mssql_cdc.records.state import InSnapshot
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class SnapshotRows:
    """Consecutive rows of one table of a snapshot, and their place in it.

    Args:
        block: The snapshot.
        log: The table's change log.
        rows: Rows of its change log.
        is_first_table: The table is the snapshot's first one.
        is_first: They begin with the table's first row.
        is_last: They end with the table's last row.
        ends_snapshot: They end with the snapshot's last row.
        done: The tables before this one (`ChangeLog.identity`).
    """

    block: Block
    log: ChangeLog
    rows: pa.RecordBatch
    is_first_table: bool
    is_first: bool
    is_last: bool
    ends_snapshot: bool
    done: tuple[str, ...] = ()

    @property
    def table_id(self) -> TableId:
        """The table."""
        return self.log.table_id

    @property
    def markers(self) -> pa.Array:
        """`source.snapshot` of each row."""
        found = np.full(self.rows.num_rows, "true", object)
        if self.is_last:
            found[-1] = "last_in_data_collection"
        if self.is_first and self.is_first_table:
            found[0] = "first"
        elif self.is_first and not (self.is_last and self.rows.num_rows == 1):
            found[0] = "first_in_data_collection"
        if self.ends_snapshot:
            found[-1] = "last"
        return pa.array(found, pa.string())


def block_rows(
    block: Block, logs: Mapping[TableId, ChangeLog], text_bytes: TextBytes, *, within: InSnapshot | None = None
) -> Iterator[SnapshotRows]:
    """Yield the rows of one snapshot, table by table.

    Args:
        block: The snapshot.
        logs: The change logs of its tables.
        text_bytes: Bounds the text that their records repeat.
        within: What has already been written of the snapshot; None: nothing.
    """
    pending: SnapshotRows | None = None
    for found in _rows(block, logs, text_bytes, within):
        if pending is not None:
            yield replace(pending, is_last=found.table_id != pending.table_id)
        pending = found
    if pending is not None:
        yield replace(pending, is_last=True, ends_snapshot=True)


def _rows(
    block: Block, logs: Mapping[TableId, ChangeLog], text_bytes: TextBytes, within: InSnapshot | None
) -> Iterator[SnapshotRows]:
    begun, done = _written(block, logs, within)
    is_new = within is None or within.table is None
    for table_id in sorted(block.tables, key=lambda table: table != begun):
        if table_id not in logs or logs[table_id].identity in done:
            continue
        log, low = logs[table_id], f"{within.position}+" if within is not None and table_id == begun else ""
        is_first, is_first_table = not low, is_new and table_id == block.tables[0]
        low = max(low, block.lows.get(table_id, ""))
        for rows in snapshot_rows(log, block.number, text_bytes, low=low):
            yield SnapshotRows(block, log, rows, is_first_table, is_first, False, False, done)
            is_first = False
        done = (*done, log.identity)


def _written(
    block: Block, logs: Mapping[TableId, ChangeLog], within: InSnapshot | None
) -> tuple[TableId | None, tuple[str, ...]]:
    """Return the table that is partly written, if it is still there, and the tables that are done."""
    if within is None or within.table is None:
        return None, ()
    # Outputs that began before logs had an identity here have the table's name.
    own = {table: {table.text, *([logs[table].identity] if table in logs else [])} for table in block.tables}
    begun = next((table for table, ids in own.items() if within.table in ids), None)
    if within.done is not None or begun is None:
        return begun, within.done or ()
    before = block.tables[: block.tables.index(begun)]
    return begun, tuple(logs[table].identity for table in before if table in logs)


def create_records(
    block: Block,
    logs: Mapping[TableId, ChangeLog],
    versions: Mapping[TableId, Sequence[Version]],
    envelopes: Envelopes,
    others: Sequence[Described] = (),
    *,
    kept: SourceInfo,
) -> Iterator[Record]:
    """Yield the CREATE record of each table of a snapshot.

    Args:
        block: The snapshot.
        logs: The change logs of its tables.
        versions: All versions of each table, in order.
        envelopes: Builds the records, one after another.
        others: The tables that are not captured; only the initial snapshot describes them.
        kept: The event whose position the records show.
    """
    found = _first_versions(block, logs)
    shown = {
        table: next((v for v in versions[table] if v.schema.version == found.get(table)), versions[table][0]).described
        for table in (*block.tables, *block.described)
    }
    if block.kind == INITIAL:
        shown = {one.table_id: one for one in others} | shown
        # Java compares names by their UTF-16 code units.
        shown = {table: shown[table] for table in sorted(shown, key=lambda table: table.text.encode("utf-16-be"))}
    for place, described in enumerate(shown.values(), start=1):
        is_last = not block.has_rows and place == len(shown)
        marker = "last" if is_last else "true"
        yield snapshot_record(described, envelopes, kept=kept, kind=block.kind, marker=marker)


def _first_versions(block: Block, logs: Mapping[TableId, ChangeLog]) -> dict[TableId, int]:
    """Return the schema version of each table's first row."""
    found: dict[TableId, int] = {}
    for table_id in block.tables:
        if table_id in logs:
            first = first_row(logs[table_id], block.number, low=block.lows.get(table_id, ""))
            if first is not None:
                found[table_id] = first.column("_schema")[0].as_py()
    return found
