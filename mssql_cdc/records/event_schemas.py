"""Schemas of records that are not row changes: heartbeats, transactions, notifications, schema changes (features §3).

`schemas.py` has those of tables.
"""

from __future__ import annotations

from mssql_cdc.records.schemas import STRING, array, field, source_schema, struct

HEARTBEAT_KEY = struct([field("serverName", "string")], name="io.debezium.connector.common.ServerNameKey", version=1)
HEARTBEAT_VALUE = struct([field("ts_ms", "int64")], name="io.debezium.connector.common.Heartbeat", version=1)
NOTIFICATION_KEY = struct([field("id", "string")], name="io.debezium.connector.common.NotificationKey", version=1)
NOTIFICATION_VALUE = struct(
    [
        *(field(name, "string") for name in ("id", "type", "aggregate_type")),
        {
            "type": "map", "keys": {"type": "string", "optional": False},
            "values": {"type": "string", "optional": False}, "optional": True, "field": "additional_data",
        },
        field("timestamp", "int64"),
    ],
    name="io.debezium.connector.common.Notification", version=1,
)  # fmt: skip
TRANSACTION_KEY = struct([field("id", "string")], name="io.debezium.connector.common.TransactionMetadataKey", version=1)
_COLLECTION = struct(
    [field("data_collection", "string"), field("event_count", "int64")],
    optional=True, name="event.collection", version=1,
)  # fmt: skip
TRANSACTION_VALUE = struct(
    [
        field("status", "string"), field("id", "string"), field("event_count", "int64", optional=True),
        array(_COLLECTION, optional=True, field="data_collections"), field("ts_ms", "int64"),
    ],
    name="io.debezium.connector.common.TransactionMetadataValue", version=1,
)  # fmt: skip
SCHEMA_CHANGE_KEY = struct(
    [field("databaseName", "string")], name="io.debezium.connector.sqlserver.SchemaChangeKey", version=1
)
_COLUMN = struct(
    [
        field("name", "string"), field("jdbcType", "int32"), field("nativeType", "int32", optional=True),
        field("typeName", "string"),
        *(field(name, "string", optional=True) for name in ("typeExpression", "charsetName")),
        *(field(name, "int32", optional=True) for name in ("length", "scale")), field("position", "int32"),
        *(field(name, "boolean", optional=True) for name in ("optional", "autoIncremented", "generated")),
        *(field(name, "string", optional=True) for name in ("comment", "defaultValueExpression")),
        array(STRING, optional=True, field="enumValues"),
    ],
    name="io.debezium.connector.schema.Column", version=1,
)  # fmt: skip
_TABLE = struct(
    [
        field("defaultCharsetName", "string", optional=True),
        array(STRING, optional=True, field="primaryKeyColumnNames"), array(_COLUMN, field="columns"),
        field("comment", "string", optional=True),
    ],
    optional=True, name="io.debezium.connector.schema.Table", version=1, field="table",
)  # fmt: skip
_CHANGE = struct(
    [field("type", "string"), field("id", "string"), _TABLE], name="io.debezium.connector.schema.Change", version=1
)
SCHEMA_CHANGE_VALUE = struct(
    [
        source_schema(), field("ts_ms", "int64"),
        *(field(name, "string", optional=True) for name in ("databaseName", "schemaName", "ddl")),
        array(_CHANGE, field="tableChanges"),
    ],
    name="io.debezium.connector.sqlserver.SchemaChangeValue", version=1,
)  # fmt: skip
