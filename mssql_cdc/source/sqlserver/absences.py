"""Why a previously captured table is no longer listed: renamed, dropped, CDC disabled, or hidden from the login."""

from __future__ import annotations

from collections.abc import Mapping

from mssql_cdc.config.filters import TableFilter
from mssql_cdc.schema import TableId
from mssql_cdc.source.sqlserver.connect import Control
from mssql_cdc.source.sqlserver.sql import quote, text
from mssql_cdc.source.values import Absence

_INSTANCES = "SELECT source_object_id FROM cdc.change_tables"
_VISIBLE = "SELECT t.object_id, s.name, t.name FROM sys.tables t JOIN sys.schemas s ON s.schema_id = t.schema_id"


def absences(control: Control, tables: Mapping[TableId, int | None], filters: TableFilter) -> dict[TableId, Absence]:
    """The reason why each of these tables is no longer listed.

    Args:
        control: A connection to the database.
        tables: The tables under the names that the lake knows, with their object ids; None: another table has the id.
        filters: Which tables the connector captures.
    """
    captured = {row[0] for row in control.rows(_INSTANCES, doing="looking for capture instances")}
    visible = {row[0]: (row[1], row[2]) for row in control.rows(_VISIBLE, doing="looking for tables")}
    names = {*visible.values()}
    found: dict[TableId, Absence] = {}
    for table, number in tables.items():
        name = visible.get(number) if number is not None else table.parts[1:] if table.parts[1:] in names else None
        now = TableId(table.catalog, *name) if name is not None else None
        is_taken = now != table and table.parts[1:] in names
        found[table] = (
            _shown(table, now, filters, is_taken=is_taken) if number in captured else _not_captured(now, filters)
        )
    return found


def _shown(table: TableId, now: TableId | None, filters: TableFilter, *, is_taken: bool) -> Absence:
    """The reason for a table that still has a capture instance, with the name under which the login sees it."""
    if now is not None and now != table:
        remedy = _excluded(now, filters) or "and it cannot be captured as it is"
        end = "disable CDC on it and acknowledge the loss" if is_taken else f"exclude {table}, too"
        return Absence(f"it is {now} now, {remedy}; it keeps its position until then. To give it up, {end}", lost=False)
    return Absence(
        f"the login can no longer see it: GRANT SELECT ON {quote(table.schema)}.{quote(table.name)} TO <login's user>, "
        "or membership of the gating role; it keeps its position until then",
        lost=False,
    )


def _not_captured(now: TableId | None, filters: TableFilter) -> Absence:
    if now is None:
        return Absence("it was dropped, or the login cannot see it and CDC is no longer enabled on it", lost=True)
    excluded = _excluded(now, filters)
    renamed = f" (it is {now} now, {excluded})" if excluded else ""
    return Absence(
        f"CDC is no longer enabled on it{renamed}; enable it (EXEC sys.sp_cdc_enable_table @source_schema = "
        f"{text(now.schema)}, @source_name = {text(now.name)}, @role_name = NULL) and take a snapshot of it, or "
        "acknowledge the loss",
        lost=True,
    )


def _excluded(table: TableId, filters: TableFilter) -> str | None:
    """What excludes a table, and what to do about it; None: the filters let it through."""
    names = " and ".join(filters.excluded_by(*table.parts))
    return f"which is left out: let {table.schema}.{table.name} through {names}" if names else None
