"""Walks along a key whose index has columns in both directions, such as (sensor, time DESC) (rule C20).

Such an index follows the key's order neither forward nor backward, so a server that is asked for that order reads and
sorts all remaining rows. With the preceding columns fixed, the index does follow the order of one column, in either
direction, so these statements search for a key column by column. What does not belong here: indexes in one direction
(`key_walk`).
"""

from __future__ import annotations

from dataclasses import dataclass

from mssql_cdc.schema import Column
from mssql_cdc.source.sqlserver.chunks import Piece
from mssql_cdc.source.sqlserver.key_walk import KeyWalk
from mssql_cdc.source.sqlserver.partitioned_keys import PartitionedWalk
from mssql_cdc.source.values import Bound


@dataclass(frozen=True, slots=True)
class MixedWalk:
    """The keys of a table whose index has columns in both directions.

    Attributes:
        walk: how the index is walked in the order of one column.
        keys: the key's columns.
    """

    walk: KeyWalk | PartitionedWalk
    keys: tuple[Column, ...]

    def nth(self, piece: Piece, number: int) -> Bound | None:
        """The key of the n-th row of a piece; None if it has fewer.

        The n-th row in the order of one column has some value there. The rows before this value are counted, and the
        rest of the number is counted off among the rows with the value, in the order of the next column.

        Args:
            piece: where to walk.
            number: n, at least 1.
        """
        column, step = self._step(piece)
        while (found := step.nth(piece, number)) is not None:
            inside = piece.having(column, found[0])
            if len(inside.fixed) == len(self.keys):
                return inside.fixed
            before = piece.ending_before(column, found[0])
            left = number - (step.count(before, number) if before is not None else 0)
            # There are fewer if rows have disappeared since the search, or if partitions ended it early.
            bound = self.nth(inside, max(left, 1)) or self.last(inside)
            if bound is not None:
                return bound
        return None

    def count(self, piece: Piece, number: int) -> int:
        """The number of rows in a piece, counted up to a maximum."""
        return self.walk.count(piece, number)

    def last(self, piece: Piece) -> Bound | None:
        """The key of the last row of a piece; None if it has none."""
        column, step = self._step(piece)
        while (found := step.last(piece)) is not None:
            inside = piece.having(column, found[0])
            bound = inside.fixed if len(inside.fixed) == len(self.keys) else self.last(inside)
            if bound is not None:  # Otherwise the rows have disappeared since the search: others may be left.
                return bound
        return None

    def _step(self, piece: Piece) -> tuple[Column, KeyWalk | PartitionedWalk]:
        """The first column whose values differ in a piece, and a walk in its order."""
        column = self.keys[len(piece.fixed)]
        return column, self.walk.by(column)
