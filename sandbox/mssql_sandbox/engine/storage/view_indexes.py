"""Indexes of views, for the catalogue only: an indexed view is read like any other."""

from __future__ import annotations

from dataclasses import dataclass

from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.transaction import Transaction

_INDEXES = "view indexes"


@dataclass(frozen=True, slots=True)
class ViewIndex:
    """An index of a view; the first one is unique and clustered."""

    name: str
    index_id: int
    unique: bool
    clustered: bool


def view_indexes(view: SchemaObject) -> tuple[ViewIndex, ...]:
    """The indexes of a view."""
    return view.properties.get(_INDEXES, ())


def keep(view: SchemaObject, transaction: Transaction, indexes: tuple[ViewIndex, ...]) -> None:
    """Set the indexes of a view, undone by a rollback."""
    before = view_indexes(view)
    transaction.on_undo(lambda: view.properties.__setitem__(_INDEXES, before))
    view.properties[_INDEXES] = indexes
