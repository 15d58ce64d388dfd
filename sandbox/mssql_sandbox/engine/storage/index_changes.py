"""Indexes and key constraints of a table: adding, dropping, rebuilding; all undoable."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from mssql_sandbox.engine.storage import references, schema_change
from mssql_sandbox.engine.storage.columnstore import free_index_id
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.sorted_keys import SortedKeys
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.text import display
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.versions import chain_rows, newest
from mssql_sandbox.errors import error


def add_index(table: Table, transaction: Transaction, index: Index) -> None:
    """Build an index over the existing rows. Errors 1902, 1911, 1913, 1779, 8111, 1505 (duplicates)."""
    _check_index(table, index)
    schema_change.begin_ddl(table, transaction)
    if index.index_id == 0:
        index.index_id = 1 if index.clustered and not index.hypothetical else free_index_id(table)
    index.bind(table.columns)
    if not index.disabled:
        build(table, index, check=True)
    table.indexes.append(index)
    table.indexes.sort(key=lambda other: other.index_id)
    transaction.on_undo(lambda: table.indexes.remove(index))


def drop_index(table: Table, transaction: Transaction, index: Index) -> None:
    """Remove an index or key constraint. Error 3725 if a foreign key references it."""
    for key in table.referenced_by:
        if references.candidate_key(table, key.referenced_columns) is index:
            raise error(3725, name=index.name, table=key.table.name, key=key.name)
    schema_change.begin_ddl(table, transaction)
    indexes = list(table.indexes)

    def undo() -> None:
        table.indexes = indexes
        build(table, index, check=False)

    transaction.on_undo(undo)
    table.indexes = [other for other in table.indexes if other is not index]


def rebuild_index(table: Table, index: Index) -> None:
    """Rebuild the entries of an index (ALTER INDEX REBUILD); also enables a disabled index."""
    index.disabled = False
    build(table, index, check=True)


def _check_index(table: Table, index: Index) -> None:
    if table.index(index.name) is not None:
        raise error(1913, index=index.name, table=table.full_name)
    clustered = table.clustered
    if index.clustered and clustered is not None and not index.hypothetical:
        raise error(1902, table=table.full_name, index=clustered.name)
    if index.constraint == "PRIMARY KEY" and table.primary_key is not None:
        raise error(1779, table=table.name)
    for name, _ in index.columns:
        column = next((column for column in table.columns if column.name == name), None)
        if column is None:
            raise error(1911, column=name)
        if index.constraint == "PRIMARY KEY" and column.nullable:
            raise error(8111, table=table.name)
        if column.type.name in {"text", "ntext", "image", "xml", "geometry", "geography"} or column.type.length == -1:
            raise error(1919, column=name, table=table.name)


def build(table: Table, index: Index, *, check: bool) -> None:
    """Fill the index from the heap; `check` for duplicates among the newest rows."""
    entries = []
    for rowid, slot in enumerate(table.heap):
        rows = chain_rows(slot)
        keys = {index.entry_key(row, rowid) for row in rows if index.covers(row)}
        entries.extend((key, rowid) for key in keys)
    entries.sort(key=lambda entry: entry[0])
    if check and index.unique:
        for (key, rowid), (following, other) in pairwise(entries):
            if key == following and rowid != other:
                _reject_duplicate(table, index, rowid, other, key)
    index.entries = SortedKeys()
    index.entries.build(entries)


def _reject_duplicate(table: Table, index: Index, rowid: int, other: int, key: Any) -> None:
    first, second = newest(table.heap[rowid]), newest(table.heap[other])
    if first is None or second is None or index.key(first) != key or index.key(second) != key:
        return
    values = ", ".join(
        "<NULL>" if first[i] is None else display(first[i], table.columns[i].type) for i in index.ordinals
    )
    raise error(1505, table=table.full_name, index=index.name, values=f"({values})")
