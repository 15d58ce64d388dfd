"""Names and values of the connector's Delta table properties; other modules of `lake/` set them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


def is_on(properties: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """Whether a property of a table is on; Delta accepts `true` and `false` in any letter case.

    Args:
        properties: The table's properties.
        name: The property.
        default: The value for a table that does not set it.
    """
    return {"true": True, "false": False}.get((properties.get(name) or "").lower(), default)


def is_mapped(properties: Mapping[str, str]) -> bool:
    """Whether the table has column mapping."""
    return properties.get(MAPPING, "none").lower() != "none"


def listed_stats(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The columns for which a table wants statistics."""
    return tuple(name.strip(" `") for name in properties.get(STATS, "").split(",") if name)


def listing(columns: Sequence[str]) -> str:
    """The value of `STATS` that lists these columns."""
    return ",".join(f"`{name}`" for name in columns)
