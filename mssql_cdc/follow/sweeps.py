"""The sweep after a repeated snapshot (rule C19): deletes and records the rows that the snapshot no longer found.

Once the current table has passed the snapshot's cut, its rows with `_pos` below `(epoch, L0, MAX, number)` were neither
read nor changed since: they no longer exist at the source. Each gets a synthetic `d` in the change log, flagged
`sweep:<number>`, which the next MERGE applies like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from mssql_cdc.capture.current_tables import behind_cut
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import SNAPSHOT, LakeTable
from mssql_cdc.follow.current import merge_table
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.log import commit, load_state
from mssql_cdc.lake.offsets import Offsets, append_offsets
from mssql_cdc.lake.steps import SnapshotEnded, SweepBound, Swept, rows_swept
from mssql_cdc.lake.sweep import Sweep, sweep_files
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class Due:
    """A pending sweep: it deletes the rows below the bound of snapshot `number`."""

    table: TableId
    number: int
    low: Lsn
    epoch: int
    at: datetime

    @property
    def mark(self) -> str:
        """The flag of the sweep's rows and its commit."""
        return f"sweep:{self.number}"


def sweep_due(
    database: Database, tables: Mapping[TableId, LakeTable], offsets: Offsets, history: SchemaHistory
) -> Offsets:
    """Run the due sweeps, merge the rows that they wrote, and return the offsets afterwards.

    Args:
        database: The database.
        tables: The captured tables.
        offsets: How far each of them has come.
        history: The structures of their rows.
    """
    for due in due_sweeps(tables, offsets):
        table = tables[due.table]
        schema = history.newest(due.table)
        state = load_state(table.home.changes, owner=table.home.app_id, writer=SNAPSHOT, storage=database.storage)
        if state is None or schema is None or not schema.key_columns:
            continue
        entry = offsets.entry(due.table.text)
        if entry is None or not history.is_filled(schema, entry.filled):
            continue  # The key has another definition since: the next snapshot replaces the table.
        if (state.own or {}).get("sweep") == due.mark:
            # Committed by a run that ended before it could continue.
            merge_table(database, table, history, state.own_batch)
            offsets = _note(database, offsets, due)
            continue
        if behind_cut(database, [table], offsets, history):
            continue  # Rows that the snapshot read are not merged yet, so they would look deleted.
        sweep = Sweep(due.number, due.epoch, due.low, due.at)
        files = sweep_files(database.spark(), table.home, schema, state, sweep)
        facts = {"kind": "sweep", "sweep": due.mark, "epoch": due.epoch, "run_id": database.run_id}
        after = commit(state, files, facts, spark=database.spark)
        count = sum(file.rows for file in files)
        if count:
            database.log(f"{due.table}: {count} rows from before the snapshot no longer exist at the source")
            # The deletes belong to no range, so no cut would include them.
            merge_table(database, table, history, after.batch)
        offsets = _note(database, offsets, due)
    return offsets


def due_sweeps(tables: Mapping[TableId, LakeTable], offsets: Offsets) -> Iterator[Due]:
    """Return the newest pending sweep of each open table."""
    newest: dict[str, Due] = {}
    by_name = {table.text: table for table in tables}
    for row in offsets.noted:
        match row.facts:
            case SnapshotEnded(table=name, sweep=SweepBound() as bound) if name in by_name:
                newest[name] = Due(by_name[name], bound.number, Lsn.parse(bound.low), row.epoch, row.at)
            case Swept(table=name, number=number) if name in newest and newest[name].number == number:
                del newest[name]
            case _:
                pass
    for name, due in newest.items():
        entry = offsets.entry(name)
        if name not in offsets.closed_tables and entry is not None and entry.status == "streaming":
            yield due


def _note(database: Database, offsets: Offsets, due: Due) -> Offsets:
    """Record that the sweep is done, so that the table's log is not searched for it again."""
    row = rows_swept(database.stamp(offsets.epoch), table=due.table.text, number=due.number)
    return append_offsets(database.layout, row, seen=offsets, storage=database.storage)
