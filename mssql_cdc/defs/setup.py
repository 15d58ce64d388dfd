"""One captured database of a connector as the code location knows it: configuration, stored table list, names.

Building a `Setup` queries no database, because `mssql-cdc discover` writes the table list; runs open the connections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from mssql_cdc.capture.database import Database, logger
from mssql_cdc.config import Connector
from mssql_cdc.defs.keys import DatabaseNames
from mssql_cdc.defs.windows import Windows
from mssql_cdc.lake.layout import Layout
from mssql_cdc.plan.policy import policy_of
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.protocol import Source


@dataclass(frozen=True, slots=True)
class Setup:
    """The input from which all definitions of a database are built."""

    connector: Connector
    database: str
    tables: tuple[TableSchema, ...]
    names: DatabaseNames
    windows: Windows
    warehouse: str | None = None

    @classmethod
    def of(
        cls,
        connector: Connector,
        database: str,
        tables: tuple[TableSchema, ...],
        *,
        warehouse: str | None = None,
        since: datetime | None = None,
    ) -> Setup:
        """Build the setup of one database.

        Args:
            connector: The configuration.
            database: One of the connector's databases.
            tables: The stored table list; tables of other databases are ignored.
            warehouse: Overrides `delta.warehouse`.
            since: When capture was set up, where the windows begin; None: as many windows as are kept.
        """
        own = tuple(t for t in tables if (t.table_id.catalog or "").casefold() == database.casefold())
        names = DatabaseNames(connector.topic_prefix, database, tuple(t.table_id for t in own))
        settings = connector.dagster
        windows = Windows.of(settings.window, days=settings.window_days, first=since, now=datetime.now(UTC))
        return cls(connector, database, own, names, windows, warehouse)

    @property
    def listed(self) -> list[TableId]:
        """The tables of the stored list that the filters still let through."""
        matches = self.connector.filters.tables.matches
        return [table for table in self.names.tables if matches(*table.parts)]

    @property
    def snapshot_keys(self) -> dict[str, TableId]:
        """Maps the partition key of each table's snapshots to the table."""
        return {self.names.snapshot_key(t.table_id): t.table_id for t in self.tables}

    @property
    def log_keys(self) -> dict[dg.AssetKey, TableId]:
        """Maps the asset key of each change log to its table."""
        return {self.names.log_key(t.table_id): t.table_id for t in self.tables}

    @property
    def current_keys(self) -> dict[dg.AssetKey, TableId]:
        """Maps the asset key of each current table to its table; tables without a key have no current table."""
        return {self.names.current_key(t.table_id): t.table_id for t in self.tables if t.key_columns}

    @property
    def heartbeat_key(self) -> dg.AssetKey:
        """The asset key of the heartbeat, which shows that capture is running."""
        return self.names.extra_key("heartbeat")

    @property
    def transactions_key(self) -> dg.AssetKey:
        """The asset key of the transaction metadata, which only some connectors have."""
        return self.names.extra_key("transactions")

    @property
    def has_transactions(self) -> bool:
        """Whether transaction metadata is written."""
        return self.connector.records.transaction_metadata

    @property
    def streams(self) -> bool:
        """Whether runs stream, as far as `snapshot.mode` shows: only runs query a custom mode."""
        settings = self.connector.snapshot
        return settings.mode == "custom" or policy_of(settings.mode, stream=settings.decisions.stream).stream

    @property
    def snapshots_key(self) -> dg.AssetKey:
        """The asset key of the snapshots."""
        return self.names.extra_key("snapshots")

    @property
    def records_key(self) -> dg.AssetKey:
        """The asset key of the output of records, which only some connectors have."""
        return self.names.extra_key("records")

    @property
    def layout(self) -> Layout:
        """The locations of the database's tables."""
        return Layout(self.warehouse or self.connector.delta.warehouse, self.connector.topic_prefix, self.database)

    def open(
        self,
        *,
        spark: Callable[[], Any] | None = None,
        source: Source | None = None,
        run_id: str | None = None,
        log: Callable[[str], None] = logger.info,
    ) -> Database:
        """Open the database for a run or a survey.

        Args:
            spark: Called to get the session when the first Spark job is due; None if Spark must not start.
            source: The source of changes; by default, a new one.
            run_id: The id of the Dagster run.
            log: Receives the log lines.
        """
        return Database.of(
            self.connector,
            self.database,
            spark=spark or _no_spark,
            source=source,
            warehouse=self.warehouse,
            run_id=run_id,
            log=log,
        )


def _no_spark() -> Any:
    raise dg.DagsterInvariantViolationError(
        "A sensor or a signal must not start Spark, but its code requested a session"
    )
