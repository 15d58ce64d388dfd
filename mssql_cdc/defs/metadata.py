"""Metadata of assets and materializations: column schemas, column lineage, counts, positions, lag.

Keys of our own begin with `mssql_cdc/`; `dagster/…` keys are the ones that Dagster's UI knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import dagster as dg

from mssql_cdc.defs.keys import DatabaseNames
from mssql_cdc.schema import TableSchema
from mssql_cdc.schema.arrow import change_log_schema, current_names, current_schema

MEANINGS = {
    "_pos": "place in the one order of all changes; sorts as text",
    "_commit_ts": "when the source committed it",
    "_batch": "number of the Delta commit that brought it",
    "_schema": "version in schema_history that tells how to read it",
    "_key": "the row's identity, exact",
    "op": "r read by a snapshot, c created, u updated, d deleted",
    "source": "where it stood in SQL Server's log",
    "key": "the key columns",
    "before": "the row before the change",
    "after": "the row after the change",
    "_snapshot": "number of the snapshot that wrote it",
    "_changed": "columns that an update touched",
    "_unavailable": "columns whose value change data capture did not deliver",
    "_exact": "exact texts of what Delta's types cannot carry",
}
"""What our own columns mean, in change logs and current tables."""


def change_log_columns(table: TableSchema) -> dg.TableSchema:
    """The change log's columns with their Arrow types."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(field.name, str(field.type), description=MEANINGS.get(field.name))
            for field in change_log_schema(table)
        ],
    )


def current_columns(table: TableSchema) -> dg.TableSchema:
    """The current table's columns; source columns show SQL Server's declaration beside the stored type."""
    names = current_names(table)
    declared = {names[column.name]: column for column in table.value_columns}
    columns: list[dg.TableColumn] = []
    for field in current_schema(table):
        column = declared.get(field.name)
        columns.append(
            dg.TableColumn(
                field.name,
                str(field.type),
                description=column.type.declaration if column else MEANINGS.get(field.name),
                constraints=dg.TableColumnConstraints(nullable=column.nullable if column else True),
            )
        )
    return dg.TableSchema(columns=columns)


def change_log_lineage(table: TableSchema, names: DatabaseNames) -> dg.TableColumnLineage:
    """Which source columns `before`, `after` and `key` are made of."""
    source = names.source_key(table.table_id)
    every = [dg.TableColumnDep(source, column.name) for column in table.value_columns]
    keys = [dg.TableColumnDep(source, column.name) for column in table.keys]
    return dg.TableColumnLineage({"before": every, "after": every, **({"key": keys, "_key": keys} if keys else {})})


def current_lineage(table: TableSchema, names: DatabaseNames) -> dg.TableColumnLineage:
    """Each column of the current table comes from the change log's `before` and `after`."""
    log = names.log_key(table.table_id)
    stored = current_names(table)
    return dg.TableColumnLineage(
        {stored[column.name]: [dg.TableColumnDep(log, "after")] for column in table.value_columns}
    )


def static_metadata(table_name: str, uri: str, columns: dg.TableSchema) -> dict[str, Any]:
    """What an asset's definition shows before anything ran."""
    return {
        "dagster/table_name": table_name,
        "dagster/uri": uri,
        "dagster/column_schema": columns,
    }


def event_metadata(values: Mapping[str, Any]) -> dict[str, dg.MetadataValue]:
    """Our values as Dagster's: times as timestamps, numbers so that the UI plots them; None is left out."""
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
