"""The asset events of a run: windows of change logs, current tables, source tables, the heartbeat, checks.

The functions only write; `book.py` decides what is written when.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import dagster as dg

from mssql_cdc.defs.metadata import event_metadata, source_columns
from mssql_cdc.defs.recorder import Event
from mssql_cdc.defs.report import ABSENT, OF_CAPTURE, evaluation
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.verdicts import Verdict
from mssql_cdc.run.execute import Done
from mssql_cdc.schema import TableId, TableSchema

COMPLETE = "mssql_cdc/complete"
STRUCTURE = "mssql_cdc/structure"


class Writer(Protocol):
    """Where the events go (`recorder.py`)."""

    @property
    def instance(self) -> dg.DagsterInstance:
        """The instance that has the earlier events."""
        ...

    def write(self, event: Event, *, of_run: bool = True) -> None:
        """Store an event."""
        ...


@dataclass
class AssetEvents:
    """Builds the events of one database and hands them to the writer."""

    setup: Setup
    writer: Writer
    _structures: dict[TableId, str] = field(default_factory=dict[TableId, str])

    def window(self, table: TableId, window: datetime, values: Mapping[str, Any]) -> None:
        """Report a window of a change log.

        Args:
            table: The table.
            window: Where the window begins.
            values: The metadata.
        """
        self._materialization(self.setup.names.log_key(table), values, window)

    def current(self, table: TableId, values: Mapping[str, Any]) -> None:
        """Report a current table."""
        self._materialization(self.setup.names.current_key(table), values)

    def late(self, table: TableId, at: datetime, *, log: float | None, current: float | None) -> None:
        """Report the lags of a table from which nothing was read: its page plots them, and its window stays missing.

        Args:
            table: The table.
            at: The current time.
            log: The lag of its change log, in seconds.
            current: That of its current table; None: it has none.
        """
        names = self.setup.names
        found = ((names.log_key(table), self.setup.windows.key(at), log), (names.current_key(table), None, current))
        for key, partition, lag in found:
            if lag is not None:
                values = event_metadata({"lag_seconds": lag})
                self.writer.write(dg.AssetObservation(key, partition=partition, metadata=values))

    def heartbeat(self, values: Mapping[str, Any]) -> None:
        """Report that capture is running."""
        self._materialization(self.setup.heartbeat_key, values)

    def check(self, table: TableId, verdict: Verdict, values: Mapping[str, Any], window: datetime | None) -> None:
        """Report a table's check.

        Args:
            table: The table.
            verdict: Its state.
            values: The metadata in addition to the verdict's.
            window: The window that has ended; None: the check is not about one.
        """
        absent = True if verdict.absent else None
        marks = {ABSENT: absent, OF_CAPTURE: True if verdict.of_capture else None}
        values = {"problem": verdict.problem, "what_to_do": verdict.what_to_do, **marks, **values}
        event = evaluation(
            self.setup,
            table,
            passed=verdict.passed,
            severity=verdict.severity,
            partition=self.setup.windows.key(window) if window is not None else None,
            metadata=event_metadata(values),
        )
        self.writer.write(event)

    def sources(self, done: Done) -> None:
        """Report a source table when it is first seen, and when its structure has changed."""
        fresh: dict[dg.AssetKey, tuple[TableId, str, TableSchema]] = {}
        for table, lake in done.seen.tables.items():
            newest, instances = done.history.newest(table), [one.name for one in lake.captured.instances]
            structure = f"version {newest.version if newest is not None else 1}, {', '.join(instances)}"
            if self._structures.get(table) != structure:
                schema = newest or lake.captured.newest.schema
                fresh[self.setup.names.source_key(table)] = table, structure, schema
        if not fresh:
            return
        # One query for all: a query for each table took 20 ms of CPU in SQLite.
        entries = (record.asset_entry for record in self.writer.instance.get_asset_records([*fresh]))
        reported = {entry.asset_key: _structure(entry.last_materialization) for entry in entries}
        for key, (table, structure, schema) in fresh.items():
            if reported.get(key) != dg.MetadataValue.text(structure):
                columns = dg.MetadataValue.table_schema(source_columns(schema))
                values = {"structure": structure, "dagster/column_schema": columns}
                self.writer.write(dg.AssetMaterialization(key, metadata=event_metadata(values)), of_run=False)
            self._structures[table] = structure

    def _materialization(self, key: dg.AssetKey, values: Mapping[str, Any], window: datetime | None = None) -> None:
        partition = self.setup.windows.key(window) if window is not None else None
        self.writer.write(dg.AssetMaterialization(key, partition=partition, metadata=event_metadata(values)))


def _structure(event: dg.EventLogEntry | None) -> dg.MetadataValue[Any] | None:
    """The structure of a source table in its newest event; None: it has none."""
    last = event.asset_materialization if event is not None else None
    return last.metadata.get(STRUCTURE) if last is not None else None
