"""Columnstore indexes of a table, for the catalogue only: rows are stored as in any other table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mssql_sandbox.engine.storage.table import Table
    from mssql_sandbox.engine.transaction import Transaction

_KEPT = "columnstores"


@dataclass(frozen=True, slots=True)
class Columnstore:
    """A columnstore index over columns by their ids; a clustered one has index id 1 and all columns."""

    name: str
    index_id: int
    clustered: bool
    columns: tuple[int, ...]


def columnstores(table: Table) -> tuple[Columnstore, ...]:
    """The columnstore indexes of a table; SQL Server allows one."""
    return table.properties.get(_KEPT, ())


def free_index_id(table: Table) -> int:
    """The number for another index that is not clustered."""
    taken = {index.index_id for index in table.indexes} | {each.index_id for each in columnstores(table)}
    return next(number for number in range(2, 2000) if number not in taken)


def clustered_columnstore(table: Table) -> Columnstore | None:
    """The clustered one, which keeps a table from being captured."""
    return next((each for each in columnstores(table) if each.clustered), None)


def keep(table: Table, transaction: Transaction, indexes: tuple[Columnstore, ...]) -> None:
    """Set the columnstore indexes of a table, undone by a rollback."""
    before = columnstores(table)
    table.properties[_KEPT] = indexes
    transaction.on_undo(lambda: table.properties.__setitem__(_KEPT, before))
