"""Names and values of the connector's Delta table properties; other modules of `lake/` set them."""

OWNER = "mssql_cdc.owner"
STRUCTURE = "mssql_cdc.schema"
RENAMED = "mssql_cdc.renamed"
LAYOUT = "mssql_cdc.layout"
WIDENING = "delta.enableTypeWidening"
MAPPING = "delta.columnMapping.mode"
MAPPED_IDS = "delta.columnMapping.maxColumnId"
MAPPING_ID = "delta.columnMapping.id"
TYPE_CHANGES = "delta.typeChanges"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
CHECKPOINTS = "delta.checkpointInterval"
TIMESTAMP_NTZ = "delta.feature.timestampNtz"
STATS = "delta.dataSkippingStatsColumns"
CHANGE_LOG_STATS = ("_pos", "_commit_ts", "_batch", "_schema", "_key", "op")
CHANGE_LOG_PROPERTIES = {
    "delta.appendOnly": "true",
    "delta.checkpointInterval": "50",
}
