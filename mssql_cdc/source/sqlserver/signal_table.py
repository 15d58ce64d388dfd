"""Finds the signal table of a database among its captured tables. `follow/signals` acts on its rows."""

from __future__ import annotations

from collections.abc import Sequence

from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.schema import Column, TableId
from mssql_cdc.source.sqlserver.sql import text
from mssql_cdc.source.values import CapturedTable


def signal_table(connector: Connector, catalog: str, tables: Sequence[CapturedTable]) -> CapturedTable | None:
    """The captured signal table of a database; None when none is configured for it or its channel is off (SIG-01).

    Its first three columns are id, type and data, whatever their names (SIG-02). Its rows arrive as
    ordinary changes and are acted on from the change log.

    Args:
        connector: names the table with `signal.data.collection`, the channel with `signal.enabled.channels`.
        catalog: the database.
        tables: all captured tables of the database.

    Raises:
        ConfigurationError: it is configured but not under CDC, has fewer than three columns, or the column filters
            affect them.
    """
    named = connector.signals.table_of(catalog)
    if named is None or "source" not in connector.signals.channels:
        return None
    wanted = tuple(part.lower() for part in named)
    for table in tables:
        if (table.table_id.schema.lower(), table.table_id.name.lower()) != wanted:
            continue
        columns = table.newest.schema.columns
        if len(columns) < 3:
            raise ConfigurationError(
                f"The signal table {table.table_id} has {len(columns)} captured columns; it needs id, type and data"
            )
        problem = _reached(connector, table.table_id, columns[:3])
        if problem is not None:
            raise ConfigurationError(
                f"The signal table {table.table_id} cannot be read: {problem}. It needs id, type and data as they are: "
                "write expressions that do not match them, or let them through"
            )
        return table
    schema, name = named
    raise ConfigurationError(
        f"The signal table {catalog}.{schema}.{name} is not enabled for CDC: run EXEC sys.sp_cdc_enable_table "
        f"@source_schema = {text(schema)}, @source_name = {text(name)}, @role_name = NULL"
    )


def _reached(connector: Connector, table: TableId, columns: Sequence[Column]) -> str | None:
    """How the column filters spoil these columns; with a masked id, or a limited length, a row is still a signal."""
    filters = connector.filters
    left_out = [column.name for column in columns if column.excluded]
    if left_out:
        name = "column.include.list" if filters.columns.include else "column.exclude.list"
        return f"{name} leaves out its {'columns' if len(left_out) > 1 else 'column'} {', '.join(left_out)}"
    for column in columns[1:]:
        rule = filters.mask_for(*table.parts, column.name)
        if rule is not None and rule.kind != "truncate" and rule.applies_to(column.type.name):
            return f"{rule.name} masks its column {column.name}"
    return None
