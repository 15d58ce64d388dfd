"""The signal table of the source as a signal channel: it comes with the changes of a range (SIG-01 to SIG-04)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.config.signals import WATERMARKS
from mssql_cdc.follow.signal_contract import Arrived, SignalRecord
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import BatchSlice, exists, scan
from mssql_cdc.schema import Column, TableId


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The signal table of the source, read from its own change log up to the last complete cut.

    Attributes:
        database: The database.
        tables: The captured tables, the signal table among them.
        offsets: How far each of them has come.
        absent: The tables that cannot be captured now, which is reported for each: the signals of such a table wait.
    """

    database: Database
    tables: Mapping[TableId, LakeTable]
    offsets: Offsets
    absent: Collection[TableId] = ()

    def read(self, bookmark: Any) -> Arrived | None:
        """Return the rows inserted into the table except watermarks; the bookmark is a `_batch` of its change log.

        Args:
            bookmark: The last `_batch` that was read.

        Raises:
            ConfigurationError: The table is configured but not captured, or has the wrong columns.
        """
        database, tables = self.database, self.tables
        is_signal_table = database.connector.filters.tables.is_signal_table
        if any(is_signal_table(*table.parts) for table in self.absent):
            return None
        captured = database.source.signal_table(database.catalog, [table.captured for table in tables.values()])
        cut = self.offsets.last_cut()
        if captured is None or cut is None:
            return None
        table, taken = tables[captured.table_id], int(bookmark or 0)
        home, up_to = table.home, self.offsets.batch_at(table.table.text, cut.number, folder=table.folder)
        if up_to is None or up_to <= taken or not exists(home.changes, database.storage):
            return None  # Its folder may have been moved away, so that the table is about to be read again.
        history = database.history()
        present = {name: table.captured.object_id for name, table in tables.items()}
        history = history.identified(present, self.offsets.met(present))
        found: list[SignalRecord] = []
        columns = ["_pos", "_schema", "op", "after"]
        for batch in scan(home.changes, batches=BatchSlice(taken, up_to), columns=columns, storage=database.storage):
            for row in batch.to_pylist():
                if row["op"] == "c" and row["after"]:
                    # The columns are identified by their position at the source, whatever their names (SIG-03).
                    structure = history.version(captured.table_id, row["_schema"])
                    one = _signal(row["after"], structure.columns[:3], row["_pos"])
                    found += [one] if one.type not in WATERMARKS else []
        return Arrived(sorted(found, key=lambda one: one.position or ""), up_to)


def _signal(after: Mapping[str, Any], columns: Sequence[Column], position: str) -> SignalRecord:
    """The signal in a row, which may have been captured under another configuration or structure."""
    problem = "the signal table had fewer than three columns when the row was captured" if len(columns) < 3 else None
    left_out = [column.name for column in columns if column.excluded]
    if left_out:
        problem = f"a column filter left out {', '.join(left_out)} when the row was captured"
    cells = [None if column.excluded else after[column.stored_name] for column in columns]
    values = [None if cell is None else str(cell) for cell in (*cells, None, None, None)]
    return SignalRecord(
        id=values[0] or "",
        type=values[1] or "",
        data=values[2],
        position=position,
        problem=None if problem is None else f"{problem}; a signal needs id, type and data",
    )
