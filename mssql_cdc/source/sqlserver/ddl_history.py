"""The DDL that capture has encountered on captured tables: `cdc.ddl_history`."""

from __future__ import annotations

from collections.abc import Mapping

from mssql_cdc.lsn import Lsn
from mssql_cdc.source.sqlserver.connect import Control

_HISTORY = (
    "SELECT DISTINCT source_object_id, CONVERT(char(20), ddl_lsn, 2), ddl_command FROM cdc.ddl_history ORDER BY 1, 2"
)


def altered(control: Control, positions: Mapping[int, Lsn]) -> dict[int, str]:
    """The tables, by object id, that were altered after these positions, each with its first such statement.

    Args:
        control: A connection to the database.
        positions: Positions by the tables' object ids.
    """
    found: dict[int, str] = {}
    for table, lsn, statement in control.rows(_HISTORY, doing="looking for altered tables"):
        if table in positions and Lsn(bytes.fromhex(lsn)) > positions[table]:
            found.setdefault(int(table), str(statement))
    return found
