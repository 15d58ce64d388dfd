"""Walks along a key whose index is partitioned by another column (rule C20).

Such an index is in the key's order only within each partition: for the first rows of the whole table, the server
would read and sort all remaining rows [KB 2965553]. These statements query each partition separately, and end after
the keys of about one chunk. What does not belong here: indexes in one order (`key_walk`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mssql_cdc.schema import Column
from mssql_cdc.source.sqlserver.chunks import Piece, up_to
from mssql_cdc.source.sqlserver.key_indexes import KeyIndexes
from mssql_cdc.source.sqlserver.key_walk import PLACE, KeyWalk, bound_of
from mssql_cdc.source.sqlserver.sql import quote
from mssql_cdc.source.values import Bound

_OUTER = "[__$partition]"
"""The partition whose keys a subquery searches for."""


@dataclass(frozen=True, slots=True)
class PartitionedWalk:
    """The keys of a table whose index is partitioned by another column.

    Attributes:
        walk: the table.
        object_id: its id.
        index_id: the id of the index.
        number: T-SQL that gives the number of a row's partition.
    """

    walk: KeyWalk
    object_id: int
    index_id: int
    number: str

    def by(self, column: Column) -> PartitionedWalk:
        """A walk over the same rows in the order of one column of the key."""
        return replace(self, walk=self.walk.by(column))

    def nth(self, piece: Piece, number: int) -> Bound | None:
        """A key that ends n rows of a piece, or fewer; None if fewer are left.

        The partition with the first key gives a limit: its n-th key, or its last one. If no other partition has rows up
        to the limit, the limit is the result. Otherwise, each of the a partitions that have such rows has its n/a-th
        row at some key, and the first of these keys is the result: up to it, no partition has more than n/a rows, and
        one has exactly that many. If no partition has an n/a-th row there, the limit is the result, so that a chunk
        with few rows ends a partition.

        Args:
            piece: where to walk.
            number: n, at least 1.
        """
        firsts, values = self._ends(piece, self.walk.names)
        begin = self._value(f"SELECT TOP (1) {PLACE} FROM ({firsts}) AS n ORDER BY {self.walk.names}", *values)
        if begin is None:
            return None
        own = _within(Piece(f"{self.number} = CAST(? AS int)", (str(begin),)), piece)
        limit = self.walk.nth(own, number)
        if limit is None:
            if self.count(piece, number) < number:
                return None
            limit = self.walk.last(own)
            if limit is None:  # Its rows have disappeared since the search.
                return None
        condition, bounds = up_to(self.walk.schema.keys, limit)
        sharing, values = f"SELECT * FROM ({firsts}) AS n WHERE {condition}", [*values, *bounds]
        partitions = self._value(f"SELECT COUNT(*) FROM ({sharing}) AS n", *values) or 1
        if partitions == 1:
            return limit
        part = -(-number // partitions)
        its = self.walk.numbered(self.walk.first(_within(Piece(f"{self.number} = {_OUTER}.{PLACE}"), piece)))
        ends = f"SELECT e.* FROM ({sharing}) AS {_OUTER} CROSS APPLY ({its}) AS e"
        sql = f"SELECT TOP (1) {self.walk.texts} FROM ({ends}) AS n WHERE {condition} ORDER BY {self.walk.names}"
        values = [*values, part, *piece.parameters, part, *bounds]
        return bound_of(self.walk.control.row(sql, *values, doing=self.walk.doing)) or limit

    def count(self, piece: Piece, number: int) -> int:
        """The number of rows in a piece, counted up to a maximum."""
        return self.walk.count(piece, number)

    def last(self, piece: Piece) -> Bound | None:
        """The key of the last row of a piece; None if it has none."""
        lasts, values = self._ends(piece, self.walk.backwards)
        sql = f"SELECT TOP (1) {self.walk.texts} FROM ({lasts}) AS n ORDER BY {self.walk.backwards}"
        return bound_of(self.walk.control.row(sql, *values, doing=self.walk.doing))

    def _ends(self, piece: Piece, order: str) -> tuple[str, list[object]]:
        """SELECT for the first key of each partition in an order, with the partition's number; and its parameters."""
        own = self.walk.first(_within(Piece(f"{self.number} = {_OUTER}.partition_number"), piece), order=order)
        sql = (
            f"SELECT e.*, {_OUTER}.partition_number AS {PLACE} FROM sys.partitions AS {_OUTER} "
            f"CROSS APPLY ({own}) AS e WHERE {_OUTER}.object_id = ? AND {_OUTER}.index_id = ?"
        )
        return sql, [1, *piece.parameters, self.object_id, self.index_id]

    def _value(self, sql: str, *values: object) -> int | None:
        return self.walk.control.value(sql, *values, doing=self.walk.doing)


def by_partition(walk: KeyWalk, indexes: KeyIndexes) -> KeyWalk | PartitionedWalk:
    """The walk by partition where the index of the key is partitioned by another column, otherwise the walk itself.

    Args:
        walk: the table.
        indexes: the indexes of its key.
    """
    best = next(iter(indexes.found), None)
    if best is None or best.column is None or best.function is None:  # A function that the login may not see.
        return walk
    number = f"$PARTITION.{quote(best.function)}({quote(best.column)})"
    return PartitionedWalk(walk, best.object_id, best.index_id, number)


def _within(partition: Piece, piece: Piece) -> Piece:
    """The rows of a piece in a partition."""
    return Piece(
        f"{partition.sql} AND {piece.sql}" if piece.sql else partition.sql, (*partition.parameters, *piece.parameters)
    )
