"""Partition functions and schemes of a database, and tables on them.

The rows of a table are kept together; the partition of a row follows from its value.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.comparison import sort_key
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import SqlType, declaration
from mssql_sandbox.errors import SqlError, error


@dataclass(slots=True, eq=False)
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

    @property
    def count(self) -> int:
        """The number of partitions."""
        return len(self.boundaries) + 1


@dataclass(slots=True, eq=False)
class PartitionScheme:
    """A partition scheme: its function, a filegroup for each partition, and one for the next."""

    name: str
    data_space_id: int
    function: PartitionFunction
    filegroups: tuple[str, ...]
    next_used: str | None = None


@dataclass(frozen=True, slots=True)
class Partitioned:
    """The partitioning of a table: by a scheme, on a column."""

    scheme: PartitionScheme
    column: str

    def number(self, table: Table, row: tuple) -> int:
        """The partition of a row."""
        place = table.ordinal(self.column)
        assert place is not None
        return self.scheme.function.number(row[place])


PARTITIONED = "partitioned"


def partitioning(table: Table) -> Partitioned | None:
    """The partitioning of a table; None if it has none."""
    return table.properties.get(PARTITIONED)


def place_table(table: Table, options: Sequence[tuple[str, str]]) -> None:
    """ON scheme (column) of a table, its key or its clustered index.

    Raises:
        SqlError: 1911 no such column, 7726 its type is not the function's.
    """
    given = dict(options)
    scheme = schemes(table.database).get(given.get("ON", "").lower())
    if scheme is None or "ON COLUMN" not in given:
        return
    column = table.column(given["ON COLUMN"])
    if column is None:
        raise error(1911, column=given["ON COLUMN"])
    if (column.type.name, column.type.scale) != (scheme.function.type.name, scheme.function.type.scale):
        raise SqlError(
            7726, f"Partition column '{column.name}' has data type {declaration(column.type)} which is different from "
            f"the partition function '{scheme.function.name}' parameter data type "
            f"{declaration(scheme.function.type)}."
        )  # fmt: skip
    table.properties[PARTITIONED] = Partitioned(scheme, column.name)


def functions(database: Database) -> dict[str, PartitionFunction]:
    """Partition functions by lower-case name."""
    return database.properties.setdefault("partition functions", {})


def schemes(database: Database) -> dict[str, PartitionScheme]:
    """Partition schemes by lower-case name."""
    return database.properties.setdefault("partition schemes", {})
