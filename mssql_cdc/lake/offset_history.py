"""The rows of `_offsets` themselves, which are read again for the few queries over all of them.

There are thousands a day, each with an entry per table, so the cost grows with the history. What a step needs is in the
digest (`lake/offset_digest.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.lake.offset_entries import Entries
from mssql_cdc.lake.offset_rows import OFFSETS_SCHEMA, Rows
from mssql_cdc.lake.read import BatchSlice, ordered
from mssql_cdc.lake.small_tables import ReadAt, SmallTable
from mssql_cdc.lake.steps import OffsetRow, Reached

FOLDED_ROWS = 512
"""Rows that are read at once: with hundreds of tables, about ten MB."""


@dataclass(frozen=True, slots=True)
class InMemory:
    """A history in memory."""

    table: pa.Table

    def read(self, number: int, columns: Sequence[str], *, after: int = 0) -> pa.Table:
        """Same as `Stored.read`.

        Args:
            number: The last row.
            columns: The columns.
            after: The row before the first.
        """
        numbers = self.table.column("_batch")
        wanted = pc.and_(pc.greater(numbers, after), pc.less_equal(numbers, number))
        return self.table.select(columns).filter(wanted)


@dataclass(frozen=True, slots=True)
class Stored:
    """A history in the lake. What was read at `at` need not be read again as long as rows are only appended."""

    small: SmallTable
    at: ReadAt | None

    def read(self, number: int, columns: Sequence[str], *, after: int = 0) -> pa.Table:
        """Columns of the rows after one row and up to another.

        Args:
            number: The last row.
            columns: The columns.
            after: The row before the first.
        """
        uri, storage, wanted = self.small.uri, self.small.storage, BatchSlice(after, number)
        found = ordered(uri, batches=wanted, columns=columns, storage=storage) if number else ()
        none = pa.schema([self.small.schema.field(name) for name in columns]).empty_table()
        return pa.concat_tables([none, *found]).combine_chunks()


class OffsetHistory:
    """The rows up to a given one, oldest first, read from their source, and kept when all of them are requested.

    Args:
        source: Where the rows are.
        number: The number of the last one.
    """

    def __init__(self, source: InMemory | Stored, number: int) -> None:
        self.source = source
        self._number = number

    def read(self, columns: Sequence[str], *, after: int = 0, until: int | None = None) -> pa.Table:
        """Columns of the rows after a given one.

        Args:
            columns: The columns.
            after: The row before the first.
            until: The last row; None: the newest one.
        """
        return self.source.read(self._number if until is None else min(until, self._number), columns, after=after)

    @cached_property
    def table(self) -> pa.Table:
        """All columns of all rows."""
        return self.read(OFFSETS_SCHEMA.names)

    @cached_property
    def rows(self) -> Rows:
        """The rows; decoding all of them is slow once there are thousands."""
        return Rows(self.table)

    def newest_first(self) -> Iterator[OffsetRow]:
        """The rows from the newest one backward, read only as far as they are consumed."""
        for end in range(self._number, 0, -FOLDED_ROWS):
            yield from reversed(Rows(self.read(OFFSETS_SCHEMA.names, after=max(end - FOLDED_ROWS, 0), until=end)))

    def reached(self, table: str, *, folder: str | None = None) -> set[Reached]:
        """Every position that a row ever gave the table.

        Args:
            table: Its name.
            folder: Its folder, which also finds positions under its former names; None: it is not known.
        """
        found = self._entries.of(table, folder=folder).select(["epoch", "to"]).to_pylist()
        return {Reached(one["epoch"], one["to"]) for one in found if one["to"] is not None}

    def folders_at(self, table: str, at: Reached) -> set[str]:
        """The folders of the tables that had this name at a position; only of those lost there, if any were.

        Args:
            table: The name.
            at: The position.
        """
        found = self._entries.of(table).select(["epoch", "to", "folder", "status"]).to_pylist()
        here = [one for one in found if (one["epoch"], one["to"]) == (at.epoch, at.to) and one["folder"] is not None]
        return {one["folder"] for one in [one for one in here if one["status"] == "lost"] or here}

    def span(self, epoch: int) -> tuple[str, str] | None:
        """The smallest and the largest position at which tables streamed in an epoch; None: no table did.

        Args:
            epoch: The epoch.
        """
        return self._entries.span(epoch)

    def largest_batch(self, table: str, number: int, *, folder: str | None) -> int | None:
        """The largest `_batch` that a table had up to a row.

        Args:
            table: Its name.
            number: The row's number.
            folder: Its folder, which also finds batches under its former names; None: it is not known.
        """
        rows = int(np.searchsorted(self.table.column("_batch").to_numpy(), number, side="right"))
        return self._entries.largest_batch(rows, table, folder)

    def complete_cuts(self, least: Reached) -> Sequence[int]:
        """The places among `rows` of the complete cuts that are not before a position.

        Args:
            least: The position.
        """
        complete, epoch, to = (self.table.column(name) for name in ("complete", "epoch", "to"))
        is_later = pc.or_(
            pc.greater(epoch, least.epoch), pc.and_(pc.equal(epoch, least.epoch), pc.greater_equal(to, least.to))
        )
        wanted = pc.fill_null(pc.and_(pc.and_(complete, pc.is_valid(to)), is_later), fill_value=False)
        return np.flatnonzero(wanted.to_numpy()).tolist()

    @cached_property
    def _entries(self) -> Entries:
        return Entries(self.table.column("tables"))
