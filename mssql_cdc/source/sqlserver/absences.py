"""Why a previously captured table is no longer shown: dropped, CDC disabled, or hidden from the login."""

from __future__ import annotations

from collections.abc import Mapping

from mssql_cdc.schema import TableId
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.sql import quote
from mssql_cdc.source.values import Absence

_INSTANCES = "SELECT source_object_id FROM cdc.change_tables"
_VISIBLE = "SELECT object_id FROM sys.tables"
_NAMED = "SELECT s.name, t.name FROM sys.tables t JOIN sys.schemas s ON s.schema_id = t.schema_id"


def absences(control: Control, tables: Mapping[TableId, int | None]) -> dict[TableId, Absence]:
    """The reason for each of these tables, which are given with their object ids; None: another table has it now."""
    captured = {row[0] for row in control.rows(_INSTANCES, doing="looking for capture instances")}
    visible = {row[0] for row in control.rows(_VISIBLE, doing="looking for tables")}
    named = set[tuple[str, str]]()
    if None in tables.values():
        named = {(row[0], row[1]) for row in control.rows(_NAMED, doing="looking for tables by their names")}
    return {
        table: _absence(table, number in captured, number in visible if number else table.parts[1:] in named)
        for table, number in tables.items()
    }


def _absence(table: TableId, captured: bool, visible: bool) -> Absence:  # noqa: FBT001 (two answers of the server)
    name = f"{quote(table.schema)}.{quote(table.name)}"
    if captured:
        return Absence(
            f"the login can no longer see it: GRANT SELECT ON {name} TO <login's user>, or membership of the gating "
            "role; it keeps its position until then",
            lost=False,
        )
    if visible:
        return Absence(
            "CDC is no longer enabled on it; enable it (EXEC sys.sp_cdc_enable_table "
            f"@source_schema = N'{table.schema}', @source_name = N'{table.name}', @role_name = NULL) and take a "
            "snapshot of it, or acknowledge the loss",
            lost=True,
        )
    return Absence("it was dropped, or the login cannot see it and CDC is no longer enabled on it", lost=True)
