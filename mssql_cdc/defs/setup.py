"""One captured database of one connector as the code location knows it: configuration, stored table list, names.

Made without asking a database (the list comes from `mssql-cdc discover`); opening connections is left to runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dagster as dg

from mssql_cdc.capture.database import Database, logger
from mssql_cdc.config import Connector
from mssql_cdc.defs.keys import DatabaseNames
from mssql_cdc.lake.layout import Layout
from mssql_cdc.schema import TableId, TableSchema

DENSE_GRID = 20
"""Up to so many tables every range selects all of them, so that "missing" in the UI means missing."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What every definition of a database is built from."""

    connector: Connector
    database: str
    tables: tuple[TableSchema, ...]
    names: DatabaseNames
    warehouse: str | None = None

    @classmethod
    def of(
        cls, connector: Connector, database: str, tables: tuple[TableSchema, ...], *, warehouse: str | None = None
    ) -> Setup:
        """The set-up of one database; `tables` are those of the stored list that belong to it."""
        own = tuple(t for t in tables if (t.table_id.catalog or "").casefold() == database.casefold())
        names = DatabaseNames(connector.topic_prefix, database, tuple(t.table_id for t in own))
        return cls(connector, database, own, names, warehouse)

    @property
    def partitions(self) -> dg.DynamicPartitionsDefinition:
        """The partition set that all tables of the database share."""
        return dg.DynamicPartitionsDefinition(name=self.names.partitions)

    @property
    def log_keys(self) -> dict[dg.AssetKey, TableId]:
        """Asset key of each change log -> table."""
        return {self.names.log_key(t.table_id): t.table_id for t in self.tables}

    @property
    def current_keys(self) -> dict[dg.AssetKey, TableId]:
        """Asset key of each current table -> table; tables without a key have none."""
        return {self.names.current_key(t.table_id): t.table_id for t in self.tables if t.key_columns}

    @property
    def transactions_key(self) -> dg.AssetKey:
        """The key of the transaction metadata."""
        return self.names.extra_key("transactions")

    @property
    def layout(self) -> Layout:
        """Where the database's tables are."""
        return Layout(self.warehouse or self.connector.delta.warehouse, self.connector.topic_prefix, self.database)

    def open(
        self,
        *,
        spark: Callable[[], Any] | None = None,
        run_id: str | None = None,
        log: Callable[[str], None] = logger.info,
    ) -> Database:
        """The database for a run or a look; `spark` is called when the first Spark job is due."""
        return Database.of(
            self.connector,
            self.database,
            spark=spark or _no_spark,
            warehouse=self.warehouse,
            run_id=run_id,
            log=log,
        )


def _no_spark() -> Any:
    raise dg.DagsterInvariantViolationError("Spark was asked for where none is started: in a sensor or a signal")
