"""Indexes of views, kept for the catalogue only: published scripts define them. Unique keys are not enforced."""

from __future__ import annotations

from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.storage.view_indexes import ViewIndex, keep, view_indexes
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.query.views import plan_view
from mssql_sandbox.tsql import statements as st

_CLUSTERED_ID = 1


def create(compiler: Compiler, transaction: Transaction, view: SchemaObject, node: st.CreateIndex) -> None:
    """CREATE INDEX on a view.

    Raises:
        SqlError: 1902, 1913, 1939 to 1941 for an index that the view cannot have, 1911 for an unknown column.
    """
    known, index = view_indexes(view), node.index
    shown = f"{view.schema.name}.{view.name}"
    if "SCHEMABINDING" not in view.definition.node.options:
        raise SqlError(1939, f"Cannot create index on view '{view.name}' because the view is not schema bound.")
    if any(each.name.casefold() == index.name.casefold() for each in known):
        raise error(1913, index=index.name, table=shown)
    if not known and index.clustered and not index.unique:
        raise SqlError(1941, f"Cannot create nonunique clustered index on view '{view.name}' because only unique "
                       "clustered indexes are allowed. Consider creating unique clustered index instead.")  # fmt: skip
    if not known and not index.clustered:
        raise SqlError(1940, f"Cannot create index on view '{view.name}'. It does not have a unique clustered index.")
    if known and index.clustered:
        raise error(1902, table=shown, index=known[0].name)
    columns = {field.name.casefold() for field in plan_view(compiler, view).fields}
    for column in index.columns:
        if column.name.casefold() not in columns:
            raise error(1911, column=column.name)
    number = _CLUSTERED_ID if index.clustered else max(each.index_id for each in known) + 1
    keep(view, transaction, (*known, ViewIndex(index.name, number, index.unique, index.clustered)))


def drop(transaction: Transaction, view: SchemaObject, name: str) -> bool:
    """DROP INDEX of a view; dropping the clustered index drops all others. False if there is no such index."""
    known = view_indexes(view)
    found = next((each for each in known if each.name.casefold() == name.casefold()), None)
    if found is None:
        return False
    keep(view, transaction, () if found.clustered else tuple(each for each in known if each is not found))
    return True


def forget(transaction: Transaction, view: SchemaObject) -> None:
    """ALTER VIEW drops the indexes."""
    if view_indexes(view):
        keep(view, transaction, ())
