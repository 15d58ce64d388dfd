"""Indexes of views, and which tables they make watch out for duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction

_INDEXES, _VIEWS = "view indexes", "indexed views"


@dataclass(frozen=True, slots=True)
class ViewIndex:
    """An index of a view: columns with direction; the first one is unique and clustered."""

    name: str
    index_id: int
    columns: tuple[tuple[str, bool], ...]
    unique: bool
    clustered: bool
    included: tuple[str, ...] = ()


def view_indexes(view: SchemaObject) -> tuple[ViewIndex, ...]:
    """The indexes of a view."""
    return view.properties.get(_INDEXES, ())


def views_over(table: Table) -> tuple[SchemaObject, ...]:
    """The indexed views that read a table."""
    return table.properties.get(_VIEWS, ())


def keep(view: SchemaObject, transaction: Transaction, indexes: tuple[ViewIndex, ...], tables: set[Table]) -> None:
    """Give a view these indexes, and let its tables know of it, or forget it where none are left."""
    _put(view.properties, _INDEXES, transaction, indexes)
    for table in tables:
        others = tuple(each for each in views_over(table) if each is not view)
        _put(table.properties, _VIEWS, transaction, (*others, view) if indexes else others)


def _put(properties: dict[str, Any], key: str, transaction: Transaction, value: tuple[Any, ...]) -> None:
    before = properties.get(key, ())
    transaction.on_undo(lambda: properties.__setitem__(key, before))
    properties[key] = value
