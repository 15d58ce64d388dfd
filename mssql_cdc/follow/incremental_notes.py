"""The notifications of incremental snapshots in Debezium's words (NOT-04, NOT-07).

The state that a step saves keeps the notifications that are due (`kept_in`), and they are sent before the next state is
saved: a run that dies in between, or that another one overtakes, loses nothing and repeats nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.state import Reading, State
from mssql_cdc.capture.notifications import INCREMENTAL, Notifier, newest_batch, tell_once
from mssql_cdc.capture.sealing import masked_columns
from mssql_cdc.config import Connector
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.values import Bound


@dataclass
class Notes:
    """The notifications of one step."""

    database: Database
    _collected: list[Notifier] = field(default_factory=list[Notifier])

    def kept_in(self, state: State) -> State:
        """Return the state that keeps what was collected since the last one.

        Args:
            state: The state after what happened.
        """
        notes = tuple(note for one in self._collected for note in one.collected())
        self.forget()
        return replace(state, notes=notes, noticed=newest_batch(self.database) if notes else state.noticed)

    def forget(self) -> None:
        """Drop what was collected: it did not happen."""
        self._collected.clear()

    def tell(self, state: State) -> None:
        """Write and send the notifications that a saved state keeps, unless that was done already.

        Args:
            state: The state.
        """
        tell_once(self.database, state.notes, after=state.noticed)

    def told(self, state: State, kind: str) -> None:
        """Note what happened to all tables of the state: STARTED, PAUSED, RESUMED.

        Args:
            state: The tables.
            kind: What happened.
        """
        self._notifier(state).add(kind, data_collections=listed(state.tables))

    def aborted(self, state: State, tables: Collection[TableId]) -> None:
        """Note that tables are no longer read.

        Args:
            state: What was read until now.
            tables: The tables.
        """
        self._notifier(state).add("ABORTED", data_collections=listed(tables))

    def emitted(self, state: State, reading: Reading, maximum: Bound, uppers: Sequence[Bound]) -> None:
        """Note that chunks of a table were emitted.

        Args:
            state: The state after them.
            reading: The table.
            maximum: The largest key of the table, as it is shown.
            uppers: The last key of each chunk, as it is shown.
        """
        notifier = self._notifier(state)
        for upper in uppers:
            notifier.add(
                "IN_PROGRESS",
                data_collections=listed(state.tables),
                current_collection_in_progress=reading.wanted.table.text,
                maximum_key=key_text(maximum),
                last_processed_key=key_text(upper),
            )

    def left(self, before: State, state: State, rows: int, status: str) -> None:
        """Note that a table is finished; so is the snapshot, if the table was the last.

        Args:
            before: The state until now, whose first table this is.
            state: The state after it.
            rows: The number of its rows that were read.
            status: What became of it.
        """
        notifier = self._notifier(before)
        notifier.add(
            "TABLE_SCAN_COMPLETED",
            data_collections=listed(before.tables),
            scanned_collection=before.tables[0].text,
            total_rows_scanned=str(rows),
            status=status,
        )
        if not state.is_running:
            notifier.add("COMPLETED")

    def _notifier(self, state: State) -> Notifier:
        signal = state.correlation or (state.reading.wanted.signal if state.reading is not None else None)
        self._collected.append(Notifier(self.database, signal, aggregate=INCREMENTAL))
        return self._collected[-1]


def listed(tables: Collection[TableId]) -> str:
    """The names of tables as Debezium lists them (NOT-07)."""
    return ",".join(table.text for table in tables)


def key_text(bound: Bound) -> str:
    """A key as Debezium shows it: its values, separated by commas, with a special word for NULL (NOT-07)."""
    return ",".join("<null>" if value is None else value for value in bound)


def without_hidden(connector: Connector, by: TableSchema, bound: Bound) -> Bound:
    """A key with asterisks for the values that a mask or a column filter keeps from consumers.

    Args:
        connector: The configuration.
        by: The table, with the columns that order its chunks as its key.
        bound: The values of these columns.
    """
    masked = masked_columns(connector, by)
    return tuple(
        "***" if column.excluded or column.name in masked else value
        for column, value in zip(by.keys, bound, strict=True)
    )
