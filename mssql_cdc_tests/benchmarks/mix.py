"""Changes as an application makes them: 70 % updates of random keys, 20 % inserts of new ones, 10 % deletes.

A change event is one inserted, updated or deleted row: one row of the connector's change log, one record of Debezium
without tombstones. CDC stores two change rows for an update, so 1.7 on average for an event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyodbc

from mssql_cdc_tests.benchmarks.server import VALUES
from mssql_cdc_tests.benchmarks.sizes import TABLES, Sizes

MOST = 5_000
"""The change events of a transaction at most: the sandbox looks at a whole table for each list of keys."""


@dataclass(slots=True)
class MixedTable:
    """A table with the columns of `server.COLUMNS`, and which of its rows exist.

    Attributes:
        name: Its name.
        keys: The keys of its rows.
        following: The key of the next new row.
        chance: Chooses the keys.
    """

    name: str
    keys: np.ndarray
    following: int
    chance: np.random.Generator

    def change(self, connection: pyodbc.Connection, events: int) -> int:
        """Make so many change events; return how many change rows CDC stores for them.

        Args:
            connection: A connection that does not commit by itself.
            events: The number of change events.
        """
        rows = 0
        while events:
            batch = min(events, MOST, len(self.keys))
            rows += self._transaction(connection, batch)
            events -= batch
        return rows

    def _transaction(self, connection: pyodbc.Connection, events: int) -> int:
        deletes, inserts = events // 10, events // 5
        updates = events - deletes - inserts
        chosen = self.chance.choice(len(self.keys), updates + deletes, replace=False)
        updated, deleted = self.keys[chosen[:updates]], self.keys[chosen[updates:]]
        last = self.following + inserts - 1
        changed = "quantity = quantity + 1, name = CONCAT(N'Changed name ', quantity)"
        connection.execute(f"UPDATE dbo.{self.name} SET {changed} WHERE id IN ({_listed(updated)})")
        if inserts:
            numbers = f"dbo.numbers n WHERE n.i BETWEEN {self.following} AND {last}"
            connection.execute(f"INSERT INTO dbo.{self.name} SELECT {VALUES} FROM {numbers}")
        if deletes:
            connection.execute(f"DELETE FROM dbo.{self.name} WHERE id IN ({_listed(deleted)})")
        connection.commit()
        self.keys = np.concatenate([np.delete(self.keys, chosen[updates:]), np.arange(self.following, last + 1)])
        self.following = last + 1
        return 2 * updates + inserts + deletes


def mixed_tables(names: Sequence[str], sizes: Sizes) -> list[MixedTable]:
    """Tables that `create_database` fills with `filled` rows, before any of them has changed."""
    rows = filled(names, sizes)
    return [
        MixedTable(name, np.arange(1, rows[name] + 1), rows[name] + 1, np.random.default_rng(number))
        for number, name in enumerate(names)
    ]


def filled(names: Sequence[str], sizes: Sizes) -> dict[str, int]:
    """How many rows each table has beforehand: the first twenty from most to least, the others the least."""
    return dict(zip(names, _falling(*sizes.filled, len(names)), strict=True))


def numbers_needed(sizes: Sizes, events: int) -> int:
    """The largest key after so many change events of a table, for `create_database`."""
    return sizes.filled[1] + events // 5 + 1


def _falling(least: int, most: int, count: int) -> Iterator[int]:
    steps = min(count, TABLES) - 1
    for number in range(count):
        yield most - (most - least) * min(number, steps) // max(steps, 1)


def _listed(keys: np.ndarray) -> str:
    return ",".join(map(str, keys.tolist()))
