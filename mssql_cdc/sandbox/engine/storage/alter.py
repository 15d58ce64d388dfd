"""ALTER TABLE and index definition: columns added, dropped, changed; indexes and constraints built; all undoable.

Every function takes a schema-modification lock, registers its undo and keeps older row versions readable by rewriting
them. What does not belong here: parsing, compiling expressions, logging DDL text for capture (`log_ddl` is called by
the executor with the statement).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine.locks import LockMode
from mssql_cdc.sandbox.engine.storage import references
from mssql_cdc.sandbox.engine.storage.columns import Column
from mssql_cdc.sandbox.engine.storage.constraints import Check, ForeignKey
from mssql_cdc.sandbox.engine.storage.index import Index
from mssql_cdc.sandbox.engine.storage.sorted_keys import SortedKeys
from mssql_cdc.sandbox.engine.text import display
from mssql_cdc.sandbox.engine.transaction import Transaction
from mssql_cdc.sandbox.engine.versions import Version, chain_rows, newest
from mssql_cdc.sandbox.errors import error

if TYPE_CHECKING:
    from mssql_cdc.sandbox.engine.storage.table import Table

Rewrite = Callable[[tuple], tuple]


def begin_ddl(table: Table, transaction: Transaction) -> None:
    """Lock the table's schema and stamp the change, so that older snapshots get error 3961."""
    if not table.private:
        transaction.manager.locks.acquire(transaction, table.resource, LockMode.SCH_M)
        transaction.log_part(table.database).log.append()
    before, modified = table.schema_sequence, table.modify_date

    def undo() -> None:
        table.schema_sequence, table.modify_date = before, modified

    transaction.on_undo(undo)
    table.schema_sequence = transaction.manager.sequence + 1
    table.modify_date = transaction.manager.clock.local_datetime()


def log_ddl(
    table: Table, transaction: Transaction, kind: str, command: str, *, column: str = "", details: Any = None
) -> None:
    """Write the DDL record that capture turns into cdc.ddl_history; only tracked tables need one."""
    if table.tracked:
        now = transaction.manager.clock.local_datetime()
        transaction.log_part(table.database).ddl(
            table.object_id, kind, command, time=now, column=column, details=details
        )


def add_column(table: Table, transaction: Transaction, column: Column, fill: Callable[[], object]) -> None:
    """Append a column; `fill` gives the value of each existing row (None, the default, the next identity value).

    Errors 2705 (name taken), 2738, 2744, 4901 (NOT NULL without a value for existing rows).
    """
    if table.column(column.name) is not None:
        raise error(2705, column=column.name, table=table.full_name)
    if column.is_rowversion and table.rowversion_at >= 0:
        raise error(2738, table=table.name, column=column.name)
    if column.identity is not None and table.identity is not None:
        raise error(2744, table=table.full_name)
    begin_ddl(table, transaction)
    if column.is_rowversion:
        fill = table.database.next_rowversion
    computed = column.computed

    def rewrite(row: tuple) -> tuple:
        value = computed.evaluate((*row, None)) if computed is not None and computed.stored else fill()
        if value is None and not column.nullable and computed is None:
            raise error(4901, column=column.name, table=table.name)
        return (*row, value)

    column.column_id = table.next_column_id
    _replace_columns(table, transaction, [*table.columns, column], rewrite)
    table.next_column_id += 1


def dependants(table: Table, name: str) -> list[tuple[str, str]]:
    """(kind, name) of what keeps a column from being dropped, for message 5074 per item before error 4922."""
    found = [
        ("object" if index.constraint else "index", index.name)
        for index in table.indexes
        if name in index.included or any(name == own for own, _ in index.columns)
    ]
    found += [("object", key.name) for key in table.foreign_keys if name in key.columns]
    found += [("object", check.name) for check in table.checks if check.column == name]
    for column in table.columns:
        if column.name == name and column.default is not None:
            found.append(("object", column.default.name))
        if column.computed is not None and name in column.computed.references:
            found.append(("column", column.name))
    return found


def drop_column(table: Table, transaction: Transaction, name: str) -> Column:
    """Remove a column. Errors 4924 (unknown), 4923 (the last one), 4922 (something depends on it)."""
    place = table.ordinal(name)
    if place is None:
        raise error(4924, statement="ALTER TABLE DROP COLUMN", column=name, table=table.name)
    if len(table.columns) == 1:
        raise error(4923, column=name, table=table.name)
    if dependants(table, table.columns[place].name):
        raise error(4922, statement=f"ALTER TABLE DROP COLUMN {name}")
    begin_ddl(table, transaction)
    columns = [column for i, column in enumerate(table.columns) if i != place]
    dropped = table.columns[place]
    _replace_columns(table, transaction, columns, lambda row: row[:place] + row[place + 1 :])
    return dropped


def alter_column(table: Table, transaction: Transaction, column: Column, convert: Callable[[Any], Any]) -> Column:
    """Replace the column of the same name by `column`, converting its values with `convert`; the old column.

    Errors 4924, 515 when NOT NULL meets a NULL, and whatever `convert` raises.
    """
    place = table.ordinal(column.name)
    if place is None:
        raise error(4924, statement="ALTER TABLE ALTER COLUMN", column=column.name, table=table.name)
    begin_ddl(table, transaction)
    old = table.columns[place]
    column.column_id = old.column_id
    columns = list(table.columns)
    columns[place] = column

    def rewrite(row: tuple) -> tuple:
        value = None if row[place] is None else convert(row[place])
        if value is None and not column.nullable:
            raise error(515, column=column.name, table=table.long_name, statement="UPDATE")
        return (*row[:place], value, *row[place + 1 :])

    _replace_columns(table, transaction, columns, rewrite)
    return old


def rename_column(table: Table, transaction: Transaction, name: str, new_name: str) -> None:
    """sp_rename of a column; indexes, checks and keys follow. Error 4928 for captured columns."""
    column = table.column(name)
    if column is None:
        raise error(4924, statement="sp_rename", column=name, table=table.name)
    if column.replicated:
        raise error(4928, column=column.name, reason="REPLICATED")
    begin_ddl(table, transaction)
    old = column.name

    def apply(before: str, after: str) -> None:
        column.name = after
        for index in table.indexes:
            index.columns = tuple((after if n == before else n, down) for n, down in index.columns)
            index.included = tuple(after if n == before else n for n in index.included)
        for key in table.foreign_keys:
            key.columns = tuple(after if n == before else n for n in key.columns)
        for key in table.referenced_by:
            key.referenced_columns = tuple(after if n == before else n for n in key.referenced_columns)
        table.rebind()

    transaction.on_undo(lambda: apply(new_name, old))
    apply(old, new_name)


def add_index(table: Table, transaction: Transaction, index: Index) -> None:
    """Build an index over the existing rows. Errors 1902, 1911, 1913, 1779, 8111, 1505 (duplicates)."""
    _check_index(table, index)
    begin_ddl(table, transaction)
    if index.index_id == 0:
        taken = {other.index_id for other in table.indexes}
        index.index_id = 1 if index.clustered else next(n for n in range(2, 2000) if n not in taken)
    index.bind(table.columns)
    _build(table, index, check=True)
    table.indexes.append(index)
    table.indexes.sort(key=lambda other: other.index_id)
    transaction.on_undo(lambda: table.indexes.remove(index))


def drop_index(table: Table, transaction: Transaction, index: Index) -> None:
    """Remove an index or key constraint. Error 3725 when a foreign key refers to it."""
    for key in table.referenced_by:
        if references.candidate_key(table, key.referenced_columns) is index:
            raise error(3725, name=index.name, table=key.table.name, key=key.name)
    begin_ddl(table, transaction)
    indexes = list(table.indexes)

    def undo() -> None:
        table.indexes = indexes
        _build(table, index, check=False)

    transaction.on_undo(undo)
    table.indexes = [other for other in table.indexes if other is not index]


def rebuild_index(table: Table, index: Index) -> None:
    """Make an index's entries anew (ALTER INDEX REBUILD); also enables a disabled one."""
    index.disabled = False
    _build(table, index, check=True)


def add_check(table: Table, transaction: Transaction, check: Check, *, existing: bool) -> None:
    """Add a CHECK constraint; `existing`: error 547 when a row violates it."""
    begin_ddl(table, transaction)
    if existing:
        for slot in table.heap:
            row = newest(slot)
            if row is not None and check.predicate(row) is False:
                column = f", column '{check.column}'" if check.column else ""
                raise error(
                    547, statement="ALTER TABLE", kind="CHECK", constraint=check.name,
                    database=table.database.name, table=table.full_name, column=column,
                )  # fmt: skip
    table.checks.append(check)
    transaction.on_undo(lambda: table.checks.remove(check))


def drop_check(table: Table, transaction: Transaction, check: Check) -> None:
    """Remove a CHECK constraint."""
    begin_ddl(table, transaction)
    table.checks.remove(check)
    transaction.on_undo(lambda: table.checks.append(check))


def add_foreign_key(transaction: Transaction, key: ForeignKey, *, existing: bool) -> None:
    """Add a foreign key. Errors 1769, 1770, 1776, and 547 when `existing` rows have no parent."""
    for name in key.columns:
        if key.table.column(name) is None:
            raise error(1769, name=key.name, column=name, table=key.table.full_name)
    for name in key.referenced_columns:
        if key.referenced.column(name) is None:
            raise error(1770, name=key.name, column=name, table=key.referenced.full_name)
    if references.candidate_key(key.referenced, key.referenced_columns) is None:
        raise error(1776, table=key.referenced.full_name, name=key.name)
    begin_ddl(key.table, transaction)
    if existing and references.violations(key, transaction):
        column = f", column '{key.referenced_columns[0]}'" if len(key.columns) == 1 else ""
        raise error(
            547, statement="ALTER TABLE", kind="FOREIGN KEY", constraint=key.name,
            database=key.table.database.name, table=key.referenced.full_name, column=column,
        )  # fmt: skip
    key.table.foreign_keys.append(key)
    key.referenced.referenced_by.append(key)

    def undo() -> None:
        key.table.foreign_keys.remove(key)
        key.referenced.referenced_by.remove(key)

    transaction.on_undo(undo)


def drop_foreign_key(transaction: Transaction, key: ForeignKey) -> None:
    """Remove a foreign key."""
    begin_ddl(key.table, transaction)
    key.table.foreign_keys.remove(key)
    key.referenced.referenced_by.remove(key)

    def undo() -> None:
        key.table.foreign_keys.append(key)
        key.referenced.referenced_by.append(key)

    transaction.on_undo(undo)


# -- parts ------------------------------------------------------------------------------------------------------


def _check_index(table: Table, index: Index) -> None:
    if table.index(index.name) is not None:
        raise error(1913, index=index.name, table=table.full_name)
    clustered = table.clustered
    if index.clustered and clustered is not None:
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


def _build(table: Table, index: Index, *, check: bool) -> None:
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


def _replace_columns(table: Table, transaction: Transaction, columns: list[Column], rewrite: Rewrite) -> None:
    """Swap column list and row shapes, in all versions, and rebuild the indexes."""
    old_columns, old_heap, next_id = table.columns, table.heap, table.next_column_id
    old_entries = [(index, index.entries) for index in table.indexes]
    touched: list[tuple[Version, tuple | None, Any]] = []

    def undo() -> None:
        for version, row, previous in reversed(touched):
            version.row, version.previous = row, previous
        table.columns, table.heap, table.next_column_id = old_columns, old_heap, next_id
        for index, entries in old_entries:
            index.entries = entries
        table.rebind()

    def rewrite_chain(version: Version) -> Version:
        # In place: the transaction's undo list refers to these very objects.
        slot: Any = version
        while type(slot) is Version:
            touched.append((slot, slot.row, slot.previous))
            slot.row = None if slot.row is None else rewrite(slot.row)
            if type(slot.previous) is tuple:
                slot.previous = rewrite(slot.previous)
                break
            slot = slot.previous
        return version

    transaction.on_undo(undo)
    table.heap = [
        rewrite(slot) if type(slot) is tuple else rewrite_chain(slot) if type(slot) is Version else None
        for slot in old_heap
    ]
    table.columns = columns
    table.rebind()
    for index in table.indexes:
        _build(table, index, check=True)
