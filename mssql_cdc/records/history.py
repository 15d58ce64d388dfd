"""Debezium's schema history, rendered: what a connector needs besides its offsets to continue where this one ends.

One JSON document per change, as `FileSchemaHistory` and the history topic hold them (features §3.5, SCH-01). They say
the same as schema change records, in another form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mssql_cdc.config import Connector
from mssql_cdc.records.database_view import DatabaseView
from mssql_cdc.records.envelope import Envelopes
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.kept_position import kept_position
from mssql_cdc.records.record_batch import Record
from mssql_cdc.records.schema_changes import streamed_record
from mssql_cdc.records.selection import Selection
from mssql_cdc.records.snapshot_block import create_records

_OF_COLUMN = (
    "name", "jdbcType", "nativeType", "typeName", "typeExpression", "charsetName", "length", "scale", "position",
    "optional", "autoIncremented", "generated", "comment",
)  # fmt: skip
_LEFT_OUT = {"nativeType", "length", "scale"}
"""Members that are left out of a column that has no value for them."""


def schema_history(connector: Connector, *, warehouse: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the history records of a connector's databases, oldest first.

    Args:
        connector: The configuration.
        warehouse: Overrides `delta.warehouse`.
    """
    plain = {
        f"{part}_{name}": None for part in ("key", "value") for name in ("converter", "schemas", "nulls", "decimals")
    }
    told = replace(connector, records=replace(connector.records, schema_changes=True, **plain))
    extensions = Extensions.of(told)
    for database in connector.databases:
        view = DatabaseView.load(
            told, database, warehouse=warehouse, state=None, selection=Selection(), extensions=extensions
        )
        if view is not None:
            yield from map(_history_record, _changes(view, Envelopes(told, database, extensions)))


def _changes(view: DatabaseView, envelopes: Envelopes) -> Iterator[Record]:
    for block in view.blocks:
        kept = kept_position(block, None)
        yield from create_records(block, view.logs, view.versions, envelopes, view.others, kept=kept)
    for one in view.announcements:
        start = one.version.schema.from_lsn
        record = streamed_record(one, envelopes)
        yield {**record, "sourceOffset": {"commit_lsn": start, "change_lsn": start, "event_serial_no": 0}}


def _history_record(record: Record) -> dict[str, Any]:
    value = record["value"]
    return {
        "source": record["sourcePartition"],
        "position": record["sourceOffset"],
        "ts_ms": value["ts_ms"],
        "databaseName": value["databaseName"],
        "schemaName": value["schemaName"],
        **({"ddl": value["ddl"]} if value["ddl"] is not None else {}),
        "tableChanges": [_change(one) for one in value["tableChanges"]],
    }


def _change(change: dict[str, Any]) -> dict[str, Any]:
    table = change["table"]
    return {
        "type": change["type"],
        "id": change["id"],
        "table": {
            "defaultCharsetName": table["defaultCharsetName"],
            "primaryKeyColumnNames": table["primaryKeyColumnNames"],
            "columns": [_column(one) for one in table["columns"]],
            "attributes": [],
        },
        "comment": table["comment"],
    }


def _column(column: dict[str, Any]) -> dict[str, Any]:
    found = {name: column[name] for name in _OF_COLUMN if name not in _LEFT_OUT or column[name] is not None}
    default = column["defaultValueExpression"]
    found["hasDefaultValue"] = default is not None
    if default is not None:
        found["defaultValueExpression"] = default
    return {**found, "enumValues": column["enumValues"] or []}
