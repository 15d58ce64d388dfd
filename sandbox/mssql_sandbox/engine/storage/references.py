"""Enforcing foreign keys: parents must exist, and children restrict changes of a parent.

What does not belong here: defining constraints (rule_changes.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mssql_sandbox.engine.comparison import sort_key
from mssql_sandbox.engine.storage.constraints import ForeignKey
from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.views import wait_for_row
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.engine.versions import Version, newest
from mssql_sandbox.errors import SqlError, error

if TYPE_CHECKING:
    from mssql_sandbox.engine.storage.table import Table


def check_parents(table: Table, transaction: Transaction, row: tuple, old: tuple | None, statement: str) -> None:
    """Raise 547 unless every enabled foreign key of the row is NULL or has its parent."""
    for key in table.foreign_keys:
        if not key.enabled:
            continue
        values = _values(table, key.columns, row)
        if None in values or (old is not None and values == _values(table, key.columns, old)):
            continue
        if not _exists(key.referenced, transaction, key.referenced_columns, values):
            raise _conflict(key, statement, parent=True)


def parent_changed(table: Table, transaction: Transaction, old: tuple, new: tuple | None, statement: str) -> None:
    """Apply the actions of the foreign keys that reference a row that was deleted (`new` None) or updated."""
    for key in table.referenced_by:
        if not key.enabled:
            continue
        was = _values(table, key.referenced_columns, old)
        now = None if new is None else _values(table, key.referenced_columns, new)
        if None in was or was == now:
            continue
        children = _children(key, transaction, was)
        if not children:
            continue
        action = key.on_delete if new is None else key.on_update
        if action == "NO ACTION":
            if not _exists(table, transaction, key.referenced_columns, was):
                raise _conflict(key, statement, parent=False)
        elif action == "CASCADE" and now is None:
            key.table.delete(transaction, [rowid for rowid, _ in children], statement=statement)
        else:
            _set_children(key, transaction, children, now if action == "CASCADE" else None, statement)


def _set_children(
    key: ForeignKey,
    transaction: Transaction,
    children: list[tuple[int, tuple]],
    values: tuple | None,
    statement: str,
) -> None:
    """Set the children's key columns: to the parent's new values, to their defaults or to NULL."""
    action_default = key.on_delete == "SET DEFAULT" or key.on_update == "SET DEFAULT"
    changes = []
    for rowid, row in children:
        changed = list(row)
        for position, name in enumerate(key.columns):
            place = _place(key.table, name)
            default = key.table.columns[place].default
            if values is not None:
                changed[place] = values[position]
            else:
                changed[place] = default.evaluate(None) if action_default and default is not None else None
        changes.append((rowid, tuple(changed)))
    key.table.update(transaction, changes, statement=statement)


def violations(key: ForeignKey, transaction: Transaction) -> bool:
    """Whether an existing row has no parent (ALTER TABLE … WITH CHECK)."""
    for slot in key.table.heap:
        row = newest(slot)
        if row is None:
            continue
        values = _values(key.table, key.columns, row)
        if None not in values and not _exists(key.referenced, transaction, key.referenced_columns, values):
            return True
    return False


def candidate_key(table: Table, columns: tuple[str, ...]) -> Index | None:
    """The unique index over exactly these columns, which a foreign key needs."""
    for index in table.indexes:
        if index.unique and index.predicate is None and {name for name, _ in index.columns} == set(columns):
            return index
    return None


def _place(table: Table, name: str) -> int:
    place = table.ordinal(name)
    assert place is not None
    return place


def _values(table: Table, names: tuple[str, ...], row: tuple) -> tuple:
    return tuple(row[_place(table, name)] for name in names)


def _exists(table: Table, transaction: Transaction, columns: tuple[str, ...], values: tuple) -> bool:
    """Whether a current row has these values in its key; waits for transactions that are changing it."""
    index = candidate_key(table, columns)
    assert index is not None
    by_name = dict(zip(columns, values, strict=True))
    key = index.prefix([by_name[name] for name, _ in index.columns])
    for rowid in index.entries.find(key):
        slot = table.heap[rowid]
        if type(slot) is Version and slot.transaction is not None and slot.transaction is not transaction:
            wait_for_row(transaction, table, rowid, slot.transaction)
        row = newest(slot)
        if row is not None and index.key(row) == key:
            return True
    return False


def _children(key: ForeignKey, transaction: Transaction, values: tuple) -> list[tuple[int, tuple]]:
    """(row id, row) of the current rows that reference the parent's values."""
    table = key.table
    places = [_place(table, name) for name in key.columns]
    compare = [sort_key(table.columns[place].type) or (lambda value: value) for place in places]
    wanted = [own(value) for own, value in zip(compare, values, strict=True)]
    found = []
    for rowid in _candidates(table, key.columns, values):
        slot = table.heap[rowid]
        row = newest(slot)
        other = type(slot) is Version and slot.transaction is not None and slot.transaction is not transaction
        if other:
            assert isinstance(slot, Version)
            row = row or newest(slot.previous)
        if row is None or any(
            row[place] is None or own(row[place]) != value
            for place, own, value in zip(places, compare, wanted, strict=True)
        ):
            continue
        if other and isinstance(slot, Version) and slot.transaction is not None:
            wait_for_row(transaction, table, rowid, slot.transaction)
        found.append((rowid, row))
    return found


def _candidates(table: Table, columns: tuple[str, ...], values: tuple) -> Iterable[int]:
    """Row ids of candidates for the values: by an index that starts with the columns, else all."""
    for index in table.indexes:
        names = tuple(name for name, _ in index.columns[: len(columns)])
        if names == columns and index.predicate is None and not index.disabled:
            found: list[int] = []
            bounds = index.bounds(values, values, low_inclusive=True, high_inclusive=True)
            start, after = bounds.low, bounds.after
            while True:
                keys, rowids = index.entries.slice_up(start, after=after, high=bounds.high, through=bounds.through)
                if not keys:
                    return dict.fromkeys(found)
                found += rowids
                start, after = keys[-1], True
    return range(len(table.heap))


def _conflict(key: ForeignKey, statement: str, *, parent: bool) -> SqlError:
    other, columns = (key.referenced, key.referenced_columns) if parent else (key.table, key.columns)
    same = " SAME TABLE" if key.table is key.referenced else ""
    return error(
        547,
        statement=statement,
        kind=("FOREIGN KEY" if parent else "REFERENCE").replace(
            "REFERENCE", "SAME TABLE REFERENCE" if same else "REFERENCE"
        )
        + (same if parent else ""),
        constraint=key.name,
        database=other.database.name,
        table=other.full_name,
        column=f", column '{columns[0]}'" if len(columns) == 1 else "",
    )
