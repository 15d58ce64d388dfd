"""The names of a connector in Dagster: asset keys, groups, keys of snapshots, pools, jobs.

SQL Server allows names that Dagster does not; this module encodes them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import dagster as dg

from mssql_cdc.schema import TableId

_ALLOWED = re.compile(r"[A-Za-z0-9_]")
EXTRA_ASSETS = ("heartbeat", "transactions", "schema_history", "signals", "notifications", "snapshots", "records")
MANY_TABLES = 50
"""Above this, the graph shows change logs and current tables in a group per source schema."""


def encode(name: str) -> str:
    """Replace every character that Dagster rejects with `_xHHHH_` (its code point); distinct names stay distinct."""
    escaped = name.replace("_x", "_x005f_x")
    return "".join(c if _ALLOWED.match(c) else f"_x{ord(c):04x}_" for c in escaped)


@dataclass(frozen=True, slots=True)
class DatabaseNames:
    """The names of one captured database of one connector (`topic.prefix`)."""

    connector: str
    database: str
    tables: tuple[TableId, ...] = ()

    @property
    def stem(self) -> str:
        """`<connector>__<database>`: the common part of the names of jobs, sensors and pools.

        If the name is ambiguous (`a__b` and `c`, `a` and `b__c`), the length of the connector's name is appended.
        """
        connector = encode(self.connector)
        joined = f"{connector}__{encode(self.database)}"
        return joined if joined.find("__") == joined.rfind("__") else f"{joined}__{len(connector)}"

    @property
    def sensor(self) -> str:
        """The name of the sensor."""
        return f"{self.stem}__sensor"

    @property
    def spark(self) -> str:
        """The key of the connector's Spark resource; connectors differ in their Spark settings."""
        return f"spark__{encode(self.connector)}"

    @property
    def pool(self) -> str:
        """The pool that limits runs that capture changes: one that streams, its successor, a manual one."""
        return f"mssql_cdc__{self.stem}"

    @property
    def snapshot_pool(self) -> str:
        """The pool of snapshots: each run may use the readers that `snapshot.max.threads` allows, so there is one."""
        return f"{self.pool}__snapshots"

    @property
    def group(self) -> str:
        """The asset group of the database's own assets."""
        return f"{encode(self.connector)}_{encode(self.database)}"

    @property
    def operations_group(self) -> str:
        """The asset group of what operators start and watch: snapshots, signals, heartbeats, for all databases."""
        return f"{encode(self.connector)}_operations"

    @property
    def has_many_tables(self) -> bool:
        """Whether one group for all tables would be too large to look at."""
        return len(self.tables) > MANY_TABLES

    def log_group(self, table: TableId) -> str:
        """Return the asset group of a change log."""
        return f"{self.group}_{encode(table.schema)}" if self.has_many_tables else self.group

    def current_group(self, table: TableId) -> str:
        """Return the asset group of a current table."""
        return f"{self.log_group(table)}_current"

    @property
    def source_group(self) -> str:
        """The asset group of the source tables."""
        return f"source_{encode(self.database)}"

    def log_key(self, table: TableId) -> dg.AssetKey:
        """Return the change log's key."""
        return self._key(table.schema, table.name)

    def current_key(self, table: TableId) -> dg.AssetKey:
        """Return the current table's key; underscores are appended while a source table has the same name."""
        return self._key(table.schema, _free(f"{table.name}_current", {t.name for t in self._beside(table)}))

    def source_key(self, table: TableId) -> dg.AssetKey:
        """Return the key of the source table; it includes the connector because several servers may share a name."""
        path = ["sqlserver", self.connector, self.database, table.schema, table.name]
        return dg.AssetKey([encode(part) for part in path])

    def snapshot_key(self, table: TableId) -> str:
        """Return the partition key of a table's snapshots, such as `sales.orders`."""
        return ".".join(_quoted(name) for name in (table.schema, table.name))

    def extra_key(self, name: str) -> dg.AssetKey:
        """Return the key of one of `EXTRA_ASSETS`."""
        return dg.AssetKey([encode(self.connector), encode(self.database), name])

    def _beside(self, table: TableId) -> list[TableId]:
        return [other for other in self.tables if other.schema == table.schema]

    def _key(self, schema: str, name: str) -> dg.AssetKey:
        return dg.AssetKey([encode(self.connector), encode(self.database), encode(schema), encode(name)])


def _quoted(name: str) -> str:
    """Put a name with a dot in brackets; Dagster rejects control characters and `...` in partition keys."""
    shown = "".join(c if c.isprintable() else f"_x{ord(c):04x}_" for c in name)
    return f"[{encode(name) if '...' in shown else shown}]" if "." in name else shown


def _free(name: str, taken: Collection[str]) -> str:
    lowered = {other.lower() for other in taken}
    while name.lower() in lowered:
        name += "_"
    return name
