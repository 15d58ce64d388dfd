"""Finds the ALTER COLUMN that rewrites the values of a table without leaving a trace in the change table (D24).

Such values still fit their Delta column, so nothing else would notice (`schema/rewritten.py`). Only reading the table
shows what its rows have now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from mssql_cdc.schema import TableSchema
from mssql_cdc.schema.rewritten import is_rewritten


def altered_columns(versions: Sequence[TableSchema]) -> tuple[TableSchema, list[str]] | None:
    """The last of these versions under which values were rewritten, and the columns; None: none were.

    A version with another key does not count: its table is read again anyway.

    Args:
        versions: Versions of a table, oldest first.
    """
    pairs = list(pairwise(versions))
    for before, after in reversed(pairs):
        columns = list(_rewritten(before, after)) if before.key_fingerprint == after.key_fingerprint else []
        if columns:
            return after, columns
    return None


def _rewritten(before: TableSchema, after: TableSchema) -> Iterator[str]:
    known = {column.name: column for column in before.value_columns}
    for column in after.value_columns:
        old = known.get(column.name)
        same = old is not None and (old.position, old.stored_name) == (column.position, column.stored_name)
        if old is not None and same and not column.computed and is_rewritten(old.type, column.type):
            yield column.name
