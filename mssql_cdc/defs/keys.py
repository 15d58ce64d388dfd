"""Names under which a connector appears in Dagster: asset keys, groups, partition sets, pools, jobs.

SQL Server allows names which Dagster does not; they are encoded in one place, here.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import dagster as dg

from mssql_cdc.schema import TableId

_ALLOWED = re.compile(r"[A-Za-z0-9_]")
EXTRA_ASSETS = ("transactions", "schema_history", "signals", "notifications")


def encode(name: str) -> str:
    """`name` with every character that Dagster refuses as `_xHHHH_` (its code point); unequal names stay unequal."""
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
        """`<connector>__<database>`: the part that jobs, sensors, pools and partition sets share.

        Where that could be read in two ways (`a__b` and `c`, `a` and `b__c`) the connector's length is appended.
        """
        connector = encode(self.connector)
        joined = f"{connector}__{encode(self.database)}"
        return joined if joined.find("__") == joined.rfind("__") else f"{joined}__{len(connector)}"

    @property
    def spark(self) -> str:
        """The key of the connector's Spark resource; connectors differ in their Spark settings."""
        return f"spark__{encode(self.connector)}"

    @property
    def partitions(self) -> str:
        """The name of the dynamic partition set."""
        return f"mssql_cdc__{self.stem}"

    @property
    def pool(self) -> str:
        """The pool that lets one range and one snapshot run at a time."""
        return f"mssql_cdc__{self.stem}"

    @property
    def group(self) -> str:
        """The asset group of the change logs."""
        return f"{encode(self.connector)}_{encode(self.database)}"

    @property
    def current_group(self) -> str:
        """The asset group of the current tables."""
        return f"{self.group}_current"

    @property
    def source_group(self) -> str:
        """The asset group of the source tables."""
        return f"source_{encode(self.database)}"

    def log_key(self, table: TableId) -> dg.AssetKey:
        """The change log's key."""
        return self._key(table.schema, table.name)

    def current_key(self, table: TableId) -> dg.AssetKey:
        """The current table's key; a real table of the same name pushes it one underscore further."""
        return self._key(table.schema, _free(f"{table.name}_current", {t.name for t in self._beside(table)}))

    def source_key(self, table: TableId) -> dg.AssetKey:
        """The key of the table in SQL Server; each connector shows its own, since servers may have equal names."""
        path = ["sqlserver", self.connector, self.database, table.schema, table.name]
        return dg.AssetKey([encode(part) for part in path])

    def extra_key(self, name: str) -> dg.AssetKey:
        """The key of one of `EXTRA_ASSETS`."""
        return dg.AssetKey([encode(self.connector), encode(self.database), name])

    def _beside(self, table: TableId) -> list[TableId]:
        return [other for other in self.tables if other.schema == table.schema]

    def _key(self, schema: str, name: str) -> dg.AssetKey:
        return dg.AssetKey([encode(self.connector), encode(self.database), encode(schema), encode(name)])


def _free(name: str, taken: Collection[str]) -> str:
    lowered = {other.lower() for other in taken}
    while name.lower() in lowered:
        name += "_"
    return name
