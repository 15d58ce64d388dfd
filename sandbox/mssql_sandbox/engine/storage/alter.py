"""ALTER TABLE: adding, dropping, changing and renaming columns; all undoable.

Every function takes a schema-modification lock, registers its undo and keeps older row versions readable by rewriting
them. What does not belong here: indexes and keys (index_changes.py), constraints (rule_changes.py), parsing, compiling
expressions, logging DDL text for capture (the executor calls `schema_change.log_ddl` with the statement).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.index_changes import build
from mssql_sandbox.engine.storage.schema_change import begin_ddl
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.versions import Version
from mssql_sandbox.errors import error

Rewrite = Callable[[tuple], tuple]


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
    """(kind, name) of everything that prevents dropping a column, for message 5074 per item before error 4922."""
    found = [
        ("object" if index.constraint else "index", index.name)
        for index in table.indexes
        if name in index.included or any(name == own for own, _ in index.columns)
    ]
    found += [("object", key.name) for key in table.foreign_keys if name in key.columns]
    found += [("object", check.name) for check in table.checks if check.column == name or f"[{name}]" in check.text]
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
    """Replace the column of the same name by `column`, converting its values with `convert`; returns the old column.

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
        build(table, index, check=True)
