"""Reading and writing the metadata tables of one database through a transaction.

The tables are ordinary tables of the engine; this module hides column positions and read views from its callers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.cdc.layout import LSN_TIME_MAPPING, TableLayout
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.server import Server
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.storage.views import ReadView, open_view
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import error

Record = dict[str, Any]
"""A row by column name."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata tables of `database`, as `transaction` sees them."""

    database: Database
    transaction: Transaction

    def table(self, layout: TableLayout) -> Table:
        """The table of a layout.

        Raises:
            SqlError: 208, change data capture is off, so the table is not there.
        """
        return find_table(self.database, layout)

    def view(self, *, for_update: bool = False) -> ReadView:
        """A read view of the transaction."""
        return open_view(self.transaction, self.database, for_update=for_update)

    def records(self, layout: TableLayout) -> Iterator[Record]:
        """All rows of a table, in key order."""
        table = self.table(layout)
        names = [column.name for column in table.columns]
        for slice_ in table.scan(self.view()):
            for row in slice_:
                yield dict(zip(names, row, strict=True))

    def insert(self, layout: TableLayout, *rows: tuple) -> None:
        """Insert rows, values in column order."""
        self.table(layout).insert_many(self.transaction, rows)

    def delete(self, layout: TableLayout, condition: Callable[[Record], bool]) -> int:
        """Delete the rows that satisfy the condition; returns their number."""
        table = self.table(layout)
        rowids = [rowid for rowid, record in self._entries(table) if condition(record)]
        table.delete(self.transaction, rowids)
        return len(rowids)

    def update(self, layout: TableLayout, condition: Callable[[Record], bool], **values: object) -> int:
        """Set columns of the rows that satisfy the condition; returns their number."""
        table = self.table(layout)
        changes = [
            (rowid, tuple({**record, **values}.values())) for rowid, record in self._entries(table) if condition(record)
        ]
        table.update(self.transaction, changes)
        return len(changes)

    def _entries(self, table: Table) -> list[tuple[int, Record]]:
        names = [column.name for column in table.columns]
        view = self.view(for_update=True)
        return [
            (rowid, dict(zip(names, row, strict=True))) for slice_ in table.scan_entries(view) for rowid, row in slice_
        ]

    # -- lsn_time_mapping: large, so always through its index -------------------------------------------------

    def newest_mapping(self) -> tuple | None:
        """The row with the largest `start_lsn`."""
        return next(self._mappings(descending=True), None)

    def mappings(self, *, descending: bool = False) -> Iterator[tuple]:
        """All rows of the mapping by `start_lsn`."""
        return self._mappings(descending=descending)

    def mapping(self, lsn: bytes) -> tuple | None:
        """The row of exactly this LSN."""
        table = self.table(LSN_TIME_MAPPING)
        index = table.clustered
        assert index is not None, "lsn_time_mapping is created with a clustered index"
        found = table.seek(self.view(), index, (lsn,))
        return found[0][1] if found else None

    def lsn_by_time(self, time: int, *, below: bool, inclusive: bool) -> bytes | None:
        """The LSN of the commit time nearest to `time`, below or above it.

        Ties on the time go to the largest or smallest LSN respectively.
        """
        table = self.table(LSN_TIME_MAPPING)
        index = next(index for index in table.indexes if not index.clustered)
        bounds: dict[str, Any] = {"high" if below else "low": (time,)}
        bounds["high_inclusive" if below else "low_inclusive"] = inclusive
        found: list[tuple] = []
        for slice_ in table.scan(self.view(), index=index, descending=below, **bounds):
            for row in slice_:
                if row[2] is None:
                    continue
                if found and row[2] != found[0][2]:
                    return (max if below else min)(row[0] for row in found)
                found.append(row)
        return (max if below else min)(row[0] for row in found) if found else None

    def newest_time(self) -> int | None:
        """The latest commit time in the mapping."""
        table = self.table(LSN_TIME_MAPPING)
        index = next(index for index in table.indexes if not index.clustered)
        for slice_ in table.scan(self.view(), index=index, descending=True):
            return slice_[0][2]
        return None

    def _mappings(self, *, descending: bool) -> Iterator[tuple]:
        for slice_ in self.table(LSN_TIME_MAPPING).scan(self.view(), descending=descending):
            yield from slice_


def find_table(database: Database, layout: TableLayout) -> Table:
    """A metadata table; error 208 with the name that SQL Server shows if it does not exist."""
    schema = database.schemas.get(layout.schema)
    table = schema.objects.get(layout.name) if schema is not None else None
    if not isinstance(table, Table):
        raise error(208, name=f"{layout.schema}.{layout.name}")
    return table


@contextmanager
def own_transaction(server: Server, name: str, *, spid: int = 0) -> Iterator[Transaction]:
    """A transaction of one statement: committed at the end, rolled back if the body raises."""
    transaction = server.transactions.begin(name=name, spid=spid)
    try:
        transaction.begin_statement()
        yield transaction
        transaction.end_statement()
        transaction.commit()
    except BaseException:
        transaction.rollback()
        raise
