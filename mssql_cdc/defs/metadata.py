"""Metadata of assets and materializations: column schemas, column lineage, counts, positions, lag.

Project-specific keys begin with `mssql_cdc/`; Dagster's UI interprets the `dagster/…` keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import dagster as dg

from mssql_cdc.defs.keys import DatabaseNames
from mssql_cdc.schema import TableSchema
from mssql_cdc.schema.arrow import change_log_schema, current_names, current_schema, former_names

MEANINGS = {
    "_pos": "position in the total order of all changes; sorts as text",
    "_commit_ts": "commit time at the source",
    "_batch": "number of the Delta commit that wrote the row",
    "_schema": "schema version of the row, see schema_history",
    "_key": "exact identity of the row",
    "op": "r read by a snapshot, c created, u updated, d deleted",
    "source": "position in SQL Server's log",
    "key": "the key columns",
    "before": "the row before the change",
    "after": "the row after the change",
    "_snapshot": "number of the snapshot that wrote it",
    "_changed": "columns that an update set",
    "_unavailable": "columns whose value change data capture did not deliver",
    "_exact": "exact text of values that Delta types cannot represent",
}
"""Descriptions of the project's own columns in change logs and current tables."""


def change_log_columns(table: TableSchema) -> dg.TableSchema:
    """Return the change log's columns with their Arrow types."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(field.name, str(field.type), description=MEANINGS.get(field.name))
            for field in change_log_schema(table)
        ],
    )


def current_columns(table: TableSchema) -> dg.TableSchema:
    """Return the current table's columns; source columns show SQL Server's declaration next to the stored type."""
    names = current_names(table)
    declared = {names[column.name]: column for column in table.value_columns}
    former = {target: f"former type of {name}" for name, one in former_names(table).items() for target in one.values()}
    columns: list[dg.TableColumn] = []
    for field in current_schema(table):
        column = declared.get(field.name)
        columns.append(
            dg.TableColumn(
                field.name,
                str(field.type),
                description=column.type.declaration if column else (former | MEANINGS).get(field.name),
                constraints=dg.TableColumnConstraints(nullable=column.nullable if column else True),
            )
        )
    return dg.TableSchema(columns=columns)


def source_columns(table: TableSchema) -> dg.TableSchema:
    """Return the source table's captured columns as SQL Server declares them."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                column.name, column.type.declaration, constraints=dg.TableColumnConstraints(nullable=column.nullable)
            )
            for column in table.value_columns
        ]
    )


def change_log_lineage(table: TableSchema, names: DatabaseNames) -> dg.TableColumnLineage:
    """Return the source columns from which `before`, `after` and `key` are built."""
    source = names.source_key(table.table_id)
    every = [dg.TableColumnDep(source, column.name) for column in table.value_columns]
    keys = [dg.TableColumnDep(source, column.name) for column in table.keys]
    return dg.TableColumnLineage({"before": every, "after": every, **({"key": keys, "_key": keys} if keys else {})})


def current_lineage(table: TableSchema, names: DatabaseNames) -> dg.TableColumnLineage:
    """Return the current table's lineage: each column comes from the change log's `after`."""
    log = names.log_key(table.table_id)
    former = (target for one in former_names(table).values() for target in one.values())
    return dg.TableColumnLineage(
        {target: [dg.TableColumnDep(log, "after")] for target in (*current_names(table).values(), *former)}
    )


def static_metadata(table_name: str, uri: str, columns: dg.TableSchema) -> dict[str, Any]:
    """Return the metadata of an asset's definition, which is shown before the first run.

    Args:
        table_name: The table's name.
        uri: The table's location.
        columns: The table's columns.
    """
    return {
        "dagster/table_name": table_name,
        "dagster/uri": uri,
        "dagster/column_schema": columns,
    }


def event_metadata(values: Mapping[str, Any]) -> dict[str, dg.MetadataValue]:
    """Convert values to Dagster's metadata values.

    Times become timestamps, and numbers stay numbers so that the UI can plot them; None is omitted.
    """
    shown: dict[str, dg.MetadataValue] = {}
    for name, value in values.items():
        key = name if "/" in name else f"mssql_cdc/{name}"
        if value is None:
            continue
        if isinstance(value, dg.MetadataValue):
            shown[key] = value
        elif isinstance(value, datetime):
            shown[key] = dg.MetadataValue.timestamp(value.timestamp())
        elif isinstance(value, bool):
            shown[key] = dg.MetadataValue.bool(value)
        elif isinstance(value, int):
            shown[key] = dg.MetadataValue.int(value)
        elif isinstance(value, float):
            shown[key] = dg.MetadataValue.float(value)
        else:
            shown[key] = dg.MetadataValue.text(str(value))
    return shown
