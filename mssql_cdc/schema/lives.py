"""Lives of a column: where it was dropped, or left out, and came back, another one begins.

What a row holds in a Delta column is a value of the source's column only in the same life.
"""

from __future__ import annotations

from collections.abc import Sequence

from mssql_cdc.schema.tables import TableSchema


def lives(versions: Sequence[TableSchema], stored_name: str) -> dict[int, int]:
    """The lives of a Delta column by version, from 1; versions without it are missing.

    SQL Server gives a column that is added another position, also if it has the name of one that was dropped.

    Args:
        versions: Versions of a table, oldest first.
        stored_name: The column's name in the change log.
    """
    found, life, before = dict[int, int](), 0, None
    for schema in versions:
        position = next((c.position for c in schema.value_columns if c.stored_name == stored_name), None)
        if position is None:
            before = None
            continue
        # A table that was made anew may have its columns in another order; a snapshot of it brings all rows.
        is_same = before is not None and (before[0] != schema.incarnation or before[1] == position)
        life += not is_same
        found[schema.version] = life
        before = (schema.incarnation, position)
    return found
