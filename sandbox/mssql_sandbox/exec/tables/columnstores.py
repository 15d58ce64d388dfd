"""CREATE and DROP of columnstore indexes, and the tables that cannot have them."""

from __future__ import annotations

from collections.abc import Sequence

from mssql_sandbox.engine.storage.columnstore import Columnstore, columnstores, free_index_id, keep
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.transaction import Transaction
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.tsql import statements as st


def add(
    table: Table, transaction: Transaction, node: st.IndexDefinition, options: Sequence[tuple[str, str]] = ()
) -> None:
    """CREATE COLUMNSTORE INDEX; 1913 a taken name, 1902 a second clustered index, 35339 a second columnstore.

    35354 for a clustered one on a captured table.
    """
    before = columnstores(table)
    replaces = any(name == "DROP_EXISTING" and value.upper() == "ON" for name, value in options)
    if table.index(node.name) is not None or (any(each.name == node.name for each in before) and not replaces):
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
    columns = list(table.columns) if node.clustered else []
    for key in node.columns:
        column = table.column(key.name)
        if column is None:
            raise error(1911, column=key.name)
        columns.append(column)
    index_id = 1 if node.clustered else free_index_id(table)
    ids = tuple(column.column_id for column in columns)
    keep(table, transaction, (Columnstore(node.name, index_id, node.clustered, ids),))


def drop(table: Table, transaction: Transaction, name: str) -> bool:
    """DROP INDEX of a columnstore; False if there is no such index."""
    left = tuple(each for each in columnstores(table) if each.name.lower() != name.lower())
    if len(left) == len(columnstores(table)):
        return False
    keep(table, transaction, left)
    return True
