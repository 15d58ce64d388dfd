"""Notices for the user about a captured table and its columns, one line each. The caller logs them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mssql_cdc.config import Connector
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.values import CapturedTable


def notices(connector: Connector, table: CapturedTable) -> list[str]:
    """Report `CaptureInstance.warnings`, what is taken on trust, and columns that a mask matches but does not hide."""
    newest = table.newest
    return [*newest.warnings, *table.unproven, *_not_hidden(connector, newest.schema)]


def layout_notices(connector: Connector, database: str, tables: Collection[TableId]) -> Iterator[str]:
    """Report properties that lay out the current table of a table that is not captured.

    Args:
        connector: The configuration.
        database: The database.
        tables: Its captured tables.
    """
    known = {name for table in tables for name in (table.text.lower(), f"{table.schema}.{table.name}".lower())}
    alone = len(connector.databases) == 1
    given = {"partition.by": connector.delta.partition_by, "cluster.by": connector.delta.cluster_by}
    for kind, one in ((kind, one) for kind, found in given.items() for one in found):
        here = one.table.startswith(f"{database.lower()}.") if one.table.count(".") == 2 else alone
        if here and one.table not in known:
            name = f"delta.current.{one.table}.{kind}"
            yield f"{name} has no effect: {database} has no captured table of this name"


def _not_hidden(connector: Connector, schema: TableSchema) -> Iterator[str]:
    """Debezium masks text and truncates text and bytes; other columns that such a property names keep their values."""
    table = schema.table_id
    for column in schema.value_columns:
        rule = connector.filters.mask_for(*table.parts, column.name)
        if rule is not None and not rule.applies_to(column.type.name):
            verb = "shortened" if rule.kind == "truncate" else "masked"
            yield (
                f"{table}: column {column.name!r} ({column.type.declaration}) is not {verb}, although a property "
                "matches it; only text is. Its values are stored unchanged; exclude it with column.exclude.list"
            )
