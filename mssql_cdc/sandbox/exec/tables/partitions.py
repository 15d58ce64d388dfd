"""Partition functions and schemes of a database. Partitions are known by number only: no rows are apart."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any

from mssql_cdc.sandbox.engine.comparison import sort_key
from mssql_cdc.sandbox.engine.storage.database import Database
from mssql_cdc.sandbox.engine.types import SqlType


@dataclass(frozen=True, slots=True)
class PartitionFunction:
    """A partition function: boundaries in order, in storage form of the type."""

    name: str
    function_id: int
    type: SqlType
    boundaries: tuple[Any, ...]
    right: bool

    def number(self, value: Any) -> int:
        """The partition of a value, from 1; NULL is in the first."""
        if value is None:
            return 1
        key = sort_key(self.type) or (lambda item: item)
        keys = [key(boundary) for boundary in self.boundaries]
        return (bisect_right if self.right else bisect_left)(keys, key(value)) + 1


@dataclass(frozen=True, slots=True)
class PartitionScheme:
    """A partition scheme: its function and a filegroup for each partition."""

    name: str
    data_space_id: int
    function: PartitionFunction
    filegroups: tuple[str, ...]


def functions(database: Database) -> dict[str, PartitionFunction]:
    """Partition functions by lower-case name."""
    return database.properties.setdefault("partition functions", {})


def schemes(database: Database) -> dict[str, PartitionScheme]:
    """Partition schemes by lower-case name."""
    return database.properties.setdefault("partition schemes", {})
