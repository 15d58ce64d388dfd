"""Lives of a column: a new one begins where the column comes back after it was dropped or left out.

What a row holds in a Delta column is a value of the source's column only within the same life.
"""

from __future__ import annotations

from collections.abc import Sequence

from mssql_cdc.schema.rewritten import is_rewritten
from mssql_cdc.schema.tables import Column, TableSchema


def lives(versions: Sequence[TableSchema], stored_name: str, *, of_values: bool = False) -> dict[int, int]:
    """The life of a Delta column in each version, counted from 1; versions without the column are missing.

    SQL Server gives an added column a new position, even if it has the name of a dropped one.

    Args:
        versions: Versions of a table, oldest first.
        stored_name: The column's name in the change log.
        of_values: Whether a type change that rewrites earlier values begins a new life, too.
    """
    found, life, before = dict[int, int](), 0, None
    for schema in versions:
        column = next((c for c in schema.value_columns if c.stored_name == stored_name), None)
        if column is None:
            before = None
            continue
        is_same = before is not None and _continues(before, (schema.incarnation, column))
        if is_same and of_values and before is not None:
            is_same = not is_rewritten(before[1].type, column.type)
        life += not is_same
        found[schema.version] = life
        before = schema.incarnation, column
    return found


def _continues(before: tuple[int, Column], now: tuple[int, Column]) -> bool:
    """Whether a column is the same as before.

    A re-created table may have its columns in a different order; its snapshot brings all rows.
    """
    return before[0] != now[0] or before[1].position == now[1].position
