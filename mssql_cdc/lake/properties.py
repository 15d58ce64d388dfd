"""Names and values of the Delta table properties that our tables have; what sets them is elsewhere in `lake/`."""

OWNER = "mssql_cdc.owner"
STRUCTURE = "mssql_cdc.schema"
WIDENING = "delta.enableTypeWidening"
MAPPING = "delta.columnMapping.mode"
TIMESTAMP_NTZ = "delta.feature.timestampNtz"
STATS = "delta.dataSkippingStatsColumns"
CHANGE_LOG_STATS = ("_pos", "_commit_ts", "_batch", "_schema", "_key", "op")
CHANGE_LOG_PROPERTIES = {
    "delta.appendOnly": "true",
    "delta.checkpointInterval": "50",
}
