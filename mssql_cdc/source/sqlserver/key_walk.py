"""Walks along the index of a table's key: the key of the n-th row, and of the last one (rule C20).

Every statement reads the keys of the rows up to the one that it searches for, in the order of an index. What does not
belong here: which rows those are (`chunks`), and how chunks follow each other (`chunk_planning`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mssql_cdc.schema import Column, TableSchema
from mssql_cdc.source.sqlserver.chunks import Piece, bound_expression, table_name
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.sql import quote
from mssql_cdc.source.values import Bound

PLACE = "[__$place]"
"""A name that no captured column has: names that begin with `__$` are CDC's own."""


@dataclass(frozen=True, slots=True)
class KeyWalk:
    """The keys of a table in their order.

    Attributes:
        control: a connection to the table's database.
        schema: the table, with its key.
        condition: walk only over the rows that satisfy it.
        under_lock: the caller holds a shared lock on the table, behind which a writer may wait: take no lock.
    """

    control: Control
    schema: TableSchema
    condition: str | None = None
    under_lock: bool = False

    @property
    def names(self) -> str:
        """The key's columns."""
        return ", ".join(quote(column.name) for column in self.schema.keys)

    @property
    def backwards(self) -> str:
        """The key's columns, for an order that begins with the last row."""
        return ", ".join(f"{quote(column.name)} DESC" for column in self.schema.keys)

    @property
    def texts(self) -> str:
        """The key as a bound."""
        return ", ".join(bound_expression(column) for column in self.schema.keys)

    @property
    def doing(self) -> str:
        """What the statements are for."""
        return f"planning a chunk of {self.schema.table_id}"

    def by(self, column: Column) -> KeyWalk:
        """A walk over the same rows in the order of one column of the key."""
        return replace(self, schema=self.schema.keyed_by([column.name]))

    def first(self, piece: Piece, *, order: str = "") -> str:
        """SELECT for the first keys of a piece, with parameters for their number and for the piece.

        Args:
            piece: where to walk.
            order: an order other than that of the key.
        """
        return f"SELECT TOP (?) {self.names} {self._rows(piece)} ORDER BY {order or self.names}"

    def numbered(self, first: str) -> str:
        """SELECT for the last row of the first keys, with a parameter for their number after those of `first`."""
        # TOP ends the walk, and its order is that of the row numbers, so the server sorts nothing.
        numbered = f"SELECT {self.names}, ROW_NUMBER() OVER (ORDER BY {self.names}) AS {PLACE} FROM ({first}) AS k"
        return f"SELECT {self.names} FROM ({numbered}) AS r WHERE {PLACE} = ?"

    def nth(self, piece: Piece, number: int) -> Bound | None:
        """The key of the n-th row of a piece; None if it has fewer.

        Args:
            piece: where to walk.
            number: n, at least 1.
        """
        sql = f"SELECT {self.texts} FROM ({self.numbered(self.first(piece))}) AS n"
        return bound_of(self.control.row(sql, number, *piece.parameters, number, doing=self.doing))

    def count(self, piece: Piece, number: int) -> int:
        """The number of rows in a piece, counted up to a maximum."""
        sql = f"SELECT COUNT_BIG(*) FROM (SELECT TOP (?) {self.names} {self._rows(piece)}) AS k"
        return int(self.control.value(sql, number, *piece.parameters, doing=self.doing))

    def last(self, piece: Piece) -> Bound | None:
        """The key of the last row of a piece; None if it has none."""
        sql = f"SELECT {self.texts} FROM ({self.first(piece, order=self.backwards)}) AS n"
        return bound_of(self.control.row(sql, 1, *piece.parameters, doing=self.doing))

    def _rows(self, piece: Piece) -> str:
        """FROM and WHERE for the rows of a piece; the table has the alias under which a chunk is read."""
        conditions = [text for text in (piece.sql, f"({self.condition})" if self.condition else "") if text]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"FROM {table_name(self.schema)} AS t{' WITH (NOLOCK)' if self.under_lock else ''}{where}"


def bound_of(row: Sequence[str | None] | None) -> Bound | None:
    """The bound in a row of its texts."""
    return None if row is None else tuple(row)
