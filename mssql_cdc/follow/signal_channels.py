"""The channels of signals: one class per channel, selected by `signal.enabled.channels`.

To add a channel, write a class with a `read` method and add it to `CHANNELS`. `signals` implements the effect of a
signal; the commit of `_signals` that contains a channel's signals also records how far the channel was read (A6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.capture.requests import SignalRow
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import BatchSlice, scan
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class Arrived:
    """Signals of one channel with their positions, in order; `bookmark` (JSON) is where the next read begins."""

    signals: Sequence[tuple[SignalRow, str]]
    bookmark: Any


class SignalChannel(Protocol):
    """A channel that can be reread from a bookmark."""

    def read(
        self, database: Database, tables: Mapping[TableId, LakeTable], offsets: Offsets, bookmark: Any
    ) -> Arrived | None:
        """Return the signals after the bookmark (None: from the beginning); None if there are none.

        Args:
            database: The database.
            tables: The captured tables.
            offsets: How far each of them has come.
            bookmark: How far the channel was read.
        """
        ...


class SourceTable:
    """The signal table of the source, read from its own change log up to the last complete cut (SIG-01 to SIG-03)."""

    def read(
        self, database: Database, tables: Mapping[TableId, LakeTable], offsets: Offsets, bookmark: Any
    ) -> Arrived | None:
        """Return the rows inserted into the table; the bookmark is a `_batch` of its change log.

        Args:
            database: The database.
            tables: The captured tables, the signal table among them.
            offsets: How far each of them has come.
            bookmark: The last `_batch` that was read.

        Raises:
            ConfigurationError: The table is configured but not captured, or has the wrong columns.
        """
        captured = database.source.signal_table(database.catalog, [table.captured for table in tables.values()])
        cut = offsets.last_cut()
        if captured is None or cut is None:
            return None
        up_to, taken = offsets.cut_batch(captured.table_id.text, cut), int(bookmark or 0)
        if up_to is None or up_to <= taken:
            return None
        home = tables[captured.table_id].home
        found: list[tuple[SignalRow, str]] = []
        columns = ["_pos", "op", "after"]
        for batch in scan(home.changes, batches=BatchSlice(taken, up_to), columns=columns, storage=database.storage):
            for row in batch.to_pylist():
                if row["op"] == "c" and row["after"]:
                    # The columns count by position, whatever their names (SIG-03).
                    values = [None if v is None else str(v) for v in row["after"].values()][:3]
                    found.append((SignalRow(values[0] or "", values[1] or "", values[2]), row["_pos"]))
        return Arrived(sorted(found, key=lambda item: item[1]), up_to)


CHANNELS: Mapping[str, SignalChannel] = {"source": SourceTable()}
