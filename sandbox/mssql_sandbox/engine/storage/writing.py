"""Writing rows: insert, update, delete, truncate, with keys, checks, locks, undo and log.

Functions take the table first; `Table` offers them as methods. What does not belong here: foreign keys
(references.py), reading, conversion of values to the column types.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mssql_sandbox.engine.lock_modes import LockMode
from mssql_sandbox.engine.storage import references, temporal
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.large_values import check_replicated_sizes
from mssql_sandbox.engine.storage.sorted_keys import SortedKeys
from mssql_sandbox.engine.storage.update_log import log_updates
from mssql_sandbox.engine.storage.views import wait_for_row
from mssql_sandbox.engine.text import display
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.transaction_scopes import Isolation
from mssql_sandbox.engine.versions import Slot, Version, newest
from mssql_sandbox.errors import SqlError, error

if TYPE_CHECKING:
    from mssql_sandbox.engine.storage.table import Table

_WEAK = frozenset({LockMode.IS, LockMode.S, LockMode.U, LockMode.SCH_S})


def insert(table: Table, transaction: Transaction, rows: Sequence[tuple], statement: str) -> list[int]:
    """Insert rows in their order; see `Table.insert`."""
    _lock_table(table, transaction)
    large = table.tracked and table.large_at
    indexes = [index for index in table.indexes if not index.disabled]
    part = None if table.private else transaction.log_part(table.database)
    undo, heap, free = transaction.undo.append, table.heap, table.free
    rowids: list[int] = []
    for given in rows:
        row = _filled(table, transaction, given) if table.fills else given
        if table.checks or None in row:
            _check_row(table, row, statement)
        if large:
            check_replicated_sizes(table, row)
        entries = _new_entries(table, transaction, indexes, row)
        version = Version(row, transaction, None)
        if free:
            rowid = free.pop()
            heap[rowid] = version
        else:
            rowid = len(heap)
            heap.append(version)
        table.versions += 1
        for index, key in entries:
            index.entries.add(key if index.unique else (*key, rowid), rowid)
        undo((table, rowid, version))
        if part is None:
            transaction.variable_writes |= table.kind == "variable"
        elif table.tracked:
            part.change(table.object_id, "insert", None, row)
        else:
            part.log.append()
        if table.foreign_keys:
            references.check_parents(table, transaction, row, None, statement)
        rowids.append(rowid)
    return rowids


def _new_entries(
    table: Table, transaction: Transaction, indexes: Sequence[Index], row: tuple
) -> list[tuple[Index, Any]]:
    """Keys of a new row in the indexes that cover it, checked for uniqueness."""
    entries: list[tuple[Index, Any]] = []
    for index in indexes:
        if index.predicate is not None and not index.covers(row):
            continue
        key = index.key(row)
        if index.unique and (taken := index.entries.find(key)):
            _check_unique(table, transaction, index, key, row, taken, own=-1)
        entries.append((index, key))
    return entries


def update(
    table: Table,
    transaction: Transaction,
    changes: Sequence[tuple[int, tuple]],
    statement: str,
    assigned: Container[int],
) -> list[tuple[tuple, tuple]]:
    """Update rows; see `Table.update`."""
    _lock_table(table, transaction)
    done: list[tuple[int, tuple, tuple]] = []
    for rowid, given in changes:
        old = _claim(table, transaction, rowid)
        if old is None:
            continue
        new = _filled(table, transaction, given) if table.fills else given
        _check_row(table, new, statement)
        if table.tracked and table.large_at:
            check_replicated_sizes(table, tuple(n if n is not o else None for n, o in zip(new, old, strict=True)))
        version = Version(new, transaction, table.heap[rowid])
        if type(version.previous) is not Version:
            table.versions += 1
        table.heap[rowid] = version
        transaction.undo.append((table, rowid, version))
        done.append((rowid, old, new))
    if table.history is not None:
        _keep_former(table, table.history, transaction, [old for _, old, _ in done])
    rekeyed = _reindex(table, transaction, done)
    if table.private:
        transaction.variable_writes |= table.kind == "variable"
    else:
        log_updates(table, transaction, done, rekeyed, assigned)
    if table.foreign_keys or table.referenced_by:
        for _, old, new in done:
            references.check_parents(table, transaction, new, old, statement)
            references.parent_changed(table, transaction, old, new, statement)
    return [(old, new) for _, old, new in done]


def delete(table: Table, transaction: Transaction, rowids: Sequence[int], statement: str) -> list[tuple]:
    """Delete rows; see `Table.delete`."""
    _lock_table(table, transaction)
    gone: list[tuple] = []
    for rowid in rowids:
        old = _claim(table, transaction, rowid)
        if old is None:
            continue
        version = Version(None, transaction, table.heap[rowid])
        if type(version.previous) is not Version:
            table.versions += 1
        table.heap[rowid] = version
        transaction.undo.append((table, rowid, version))
        gone.append(old)
        if table.private:
            transaction.variable_writes |= table.kind == "variable"
            continue
        part = transaction.log_part(table.database)
        if table.tracked:
            part.change(table.object_id, "delete", old, None)
        else:
            part.log.append()
    if table.history is not None:
        _keep_former(table, table.history, transaction, gone)
    if table.referenced_by:
        for old in gone:
            references.parent_changed(table, transaction, old, None, statement)
    return gone


def truncate(table: Table, transaction: Transaction) -> None:
    """Empty the table; see `Table.truncate`."""
    if table.tracked:
        raise error(4711, name=table.name)
    if any(key.table is not table for key in table.referenced_by):
        raise error(4712, name=table.name)
    if not table.private:
        transaction.manager.locks.acquire(transaction, table.resource, LockMode.SCH_M)
        transaction.log_part(table.database).log.append()
    identity = table.identity
    before = (table.heap, table.free, table.versions, [index.entries for index in table.indexes],
              identity.last if identity else None, table.schema_sequence)  # fmt: skip

    def undo() -> None:
        table.heap, table.free, table.versions, entries, last, table.schema_sequence = before
        for index, old in zip(table.indexes, entries, strict=True):
            index.entries = old
        if identity is not None:
            identity.last = last

    transaction.on_undo(undo)
    table.heap, table.free, table.versions = [], [], 0
    table.schema_sequence = transaction.manager.sequence + 1
    for index in table.indexes:
        index.entries = SortedKeys()
    if identity is not None:
        identity.last = None


# -- parts ------------------------------------------------------------------------------------------------------


def _lock_table(table: Table, transaction: Transaction) -> None:
    if table.private:
        return
    held = transaction.locks.get(table.resource)
    if held is None or held.mode in _WEAK or held.duration != "transaction":
        transaction.manager.locks.acquire(transaction, table.resource, LockMode.IX)


def _keep_former(table: Table, history: Table, transaction: Transaction, rows: Sequence[tuple]) -> None:
    former = [temporal.former_row(table, history, transaction, row) for row in rows]
    if former:
        insert(history, transaction, former, "INSERT")


def _filled(table: Table, transaction: Transaction, row: tuple) -> tuple:
    """The row with its rowversion, its period and its stored computed columns."""
    values = list(row)
    if table.period_at is not None:
        values[table.period_at[0]], values[table.period_at[1]] = temporal.current_period(table, transaction)
    if table.rowversion_at >= 0:
        values[table.rowversion_at] = table.database.next_rowversion()
    for place in table.computed_at:
        computed = table.columns[place].computed
        assert computed is not None
        values[place] = computed.evaluate(tuple(values))
    return tuple(values)


def _check_row(table: Table, row: tuple, statement: str) -> None:
    """NOT NULL and CHECK constraints."""
    for place in table.required_at:
        if row[place] is None:
            raise error(515, column=table.columns[place].name, table=table.long_name, statement=statement)
    for check in table.checks:
        if check.enabled and check.predicate(row) is False:
            column_text = f", column '{check.column}'" if check.column else ""
            raise error(
                547, statement=statement, kind="CHECK", constraint=check.name, database=table.database.name,
                table=table.full_name, column=column_text,
            )  # fmt: skip


def _claim(table: Table, transaction: Transaction, rowid: int) -> tuple | None:
    """The current row, locked for this transaction; None if it is gone. Raises MustWait, 3960."""
    slot = table.heap[rowid]
    if type(slot) is Version and slot.transaction is transaction:
        return slot.row
    if table.private:
        return newest(slot)
    if type(slot) is Version and slot.transaction is not None:
        wait_for_row(transaction, table, rowid, slot.transaction)
    locks = transaction.manager.locks
    if locks.has_row_locks(table.database.id, table.object_id):
        locks.acquire(transaction, table.row_resource(rowid), LockMode.X)
    if transaction.isolation is Isolation.SNAPSHOT:
        changed = type(slot) is Version and slot.sequence > transaction.snapshot()
        if changed or slot is None:
            raise error(3960, table=table.full_name, database=table.database.name)
    return newest(slot)


def _check_unique(
    table: Table, transaction: Transaction, index: Index, key: Any, row: tuple, rowids: Iterable[int], *, own: int
) -> None:
    """Raise 2627/2601 if another current row, among `rowids`, has the key; wait for open transactions on it."""
    for rowid in rowids:
        if rowid == own:
            continue
        slot: Slot = table.heap[rowid]
        if type(slot) is Version and slot.transaction is not None and slot.transaction is not transaction:
            wait_for_row(transaction, table, rowid, slot.transaction)
        current = newest(slot)
        if current is not None and index.covers(current) and index.key(current) == key:
            raise duplicate(table, index, row)


def duplicate(table: Table, index: Index, row: tuple) -> SqlError:
    """Error 2627 for a constraint, 2601 for an index, with the duplicate's values."""
    values = ", ".join(
        "<NULL>" if row[place] is None else display(row[place], table.columns[place].type) for place in index.ordinals
    )
    shown = f"dbo.{table.name}" if table.private else table.full_name
    if index.constraint:
        kind = "UNIQUE KEY" if index.constraint == "UNIQUE" else index.constraint
        return error(2627, kind=kind, constraint=index.name, table=shown, values=f"({values})")
    return error(2601, table=shown, index=index.name, values=f"({values})")


def _reindex(table: Table, transaction: Transaction, done: list[tuple[int, tuple, tuple]]) -> dict[int, bool]:
    """Add new keys of updated rows; returns the row ids whose unique keys changed (True: of the primary key)."""
    rekeyed: dict[int, bool] = {}
    for index in table.indexes:
        if index.disabled:
            continue
        for rowid, old, new in done:
            inside = index.covers(new)
            key = index.key(new)
            was = index.covers(old)
            if was == inside and index.key(old) == key:
                continue
            if index.unique:
                rekeyed[rowid] = rekeyed.get(rowid, False) or index.constraint == "PRIMARY KEY"
            if not inside:
                continue
            if index.unique:
                _check_unique(table, transaction, index, key, new, index.entries.find(key), own=rowid)
            # The key may still have an entry from an older version of this row.
            index.discard(key, rowid)
            index.add(new, rowid)
    return rekeyed
