"""Columnstore indexes: names and facts for the catalogue. Rows are kept as ever."""

from __future__ import annotations

from collections.abc import Sequence

from mssql_cdc.sandbox.engine.storage.table import Table
from mssql_cdc.sandbox.engine.transaction import Transaction
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.tsql import statements as st

CLUSTERED = "clustered columnstore"
KEPT = "columnstores"


def kept(table: Table) -> dict[str, tuple[int, bool]]:
    """Columnstore indexes of a table: name to (index id, clustered)."""
    return table.properties.get(KEPT, {})


def add(
    table: Table, transaction: Transaction, node: st.IndexDefinition, options: Sequence[tuple[str, str]] = ()
) -> None:
    """CREATE COLUMNSTORE INDEX; 1913 a taken name, 1902 a second clustered index, 35339 a second columnstore.

    35354 for a clustered one on a captured table.
    """
    before = dict(kept(table))
    replaces = any(name == "DROP_EXISTING" and value.upper() == "ON" for name, value in options)
    if table.index(node.name) is not None or (node.name in before and not replaces):
        raise error(1913, index=node.name, table=table.full_name)
    if node.clustered and table.tracked:
        raise SqlError(
            35354, "The statement failed because a clustered columnstore index cannot be created on a table enabled "
            "for Change Data Capture. Consider disabling Change Data Capture and then creating the clustered "
            "columnstore index."
        )  # fmt: skip
    clustered = table.clustered
    if node.clustered and clustered is not None:
        raise error(1902, table=table.full_name, index=clustered.name)
    if before and not replaces:
        raise SqlError(35339, "Multiple columnstore indexes are not supported.")
    for key in node.columns:
        if table.column(key.name) is None:
            raise error(1911, column=key.name)
    taken = {index.index_id for index in table.indexes}
    index_id = 1 if node.clustered else next(number for number in range(2, 2000) if number not in taken)
    _put(table, {node.name: (index_id, node.clustered)})
    transaction.on_undo(lambda: _put(table, before))


def drop(table: Table, transaction: Transaction, name: str) -> bool:
    """DROP INDEX of a columnstore; False when the name is none."""
    before = dict(kept(table))
    found = next((own for own in before if own.lower() == name.lower()), None)
    if found is None:
        return False
    _put(table, {own: facts for own, facts in before.items() if own != found})
    transaction.on_undo(lambda: _put(table, before))
    return True


def _put(table: Table, indexes: dict[str, tuple[int, bool]]) -> None:
    table.properties[KEPT] = indexes
    clustered = next((name for name, (_, is_clustered) in indexes.items() if is_clustered), None)
    if clustered is None:
        table.properties.pop(CLUSTERED, None)
    else:
        table.properties[CLUSTERED] = clustered
