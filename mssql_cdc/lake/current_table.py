"""A current table's protocol and metadata: when it is created, and when it gets deletion vectors.

Readers need only the features that a table uses. `lake/current_structure.py` changes columns.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
from deltalake import Schema

from mssql_cdc.lake.delta_schema import needs_mapping
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.properties import (
    CHECKPOINTS,
    MAPPED_IDS,
    MAPPING,
    MAPPING_ID,
    OWNER,
    PHYSICAL_NAME,
    RENAMED,
    STRUCTURE,
)
from mssql_cdc.lake.table_commit import CHECKPOINT_INTERVAL
from mssql_cdc.lake.table_layout import PLAIN, TableLayout, check_clusterable, with_layout
from mssql_cdc.lake.table_log import VECTORS
from mssql_cdc.lake.wide_decimals import is_wide
from mssql_cdc.schema.arrow import current_names, current_schema, former_names
from mssql_cdc.schema.tables import TableSchema

Vectors = Literal["auto", "true", "false"]
OWN_STATS = ("_key", "_pos", "_batch")
LOG_RETENTION = "delta.logRetentionDuration"
"""A busy table has 17,000 commits a day; older versions lose their files to VACUUM after a week anyway."""
_COMMENTS = {
    "_key": "Identity of the row: its key as text",
    "_pos": "Position of the row's newest change; the same as in the change log",
    "_batch": "Commit of the change log that holds the row's newest change",
    "_exact": "Exact text of values that the column's type cannot represent, by column",
    "_unavailable": "Columns whose value is unknown",
}
_STATS_COLUMNS = 32
_IMPLIED = {
    2: ("appendOnly", "invariants"),
    3: ("checkConstraints",),
    4: ("changeDataFeed", "generatedColumns"),
    5: ("columnMapping",),
    6: ("identityColumns",),
}
"""The features that the writer versions before 7 imply."""


def new_table(
    home: TableHome, newest: TableSchema, vectors: Vectors, layout: TableLayout = PLAIN
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The protocol and the metadata of a new current table.

    Args:
        home: its owner.
        newest: the source table's structure.
        vectors: "true" for deletion vectors from the start.
        layout: how its files are laid out.

    Raises:
        SchemaError: the table cannot be laid out like that.
    """
    schema = current_schema(newest)
    names = current_names(newest)
    configuration = {
        OWNER: f"{home.app_id}:current",
        STRUCTURE: str(newest.version),
        CHECKPOINTS: str(CHECKPOINT_INTERVAL),
        LOG_RETENTION: "interval 7 days",
    }
    renamed = {name: stored for name, stored in names.items() if name != stored}
    if renamed:
        configuration[RENAMED] = json.dumps(renamed)
    features: list[str] = []
    if any(column.type == pa.timestamp("us") for column in schema):
        features.append("timestampNtz")
    if vectors == "true":
        features.append("deletionVectors")
        configuration[VECTORS] = "true"
    text = _commented(Schema.from_arrow(schema).to_json(), newest)
    if needs_mapping(schema):
        features.append("columnMapping")
        text = _mapped(text)
        configuration |= {MAPPING: "name", MAPPED_IDS: str(len(schema))}
    metadata: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "name": f"{newest.table_id.schema}.{newest.table_id.name}",
        "description": _description(newest),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": text,
        "partitionColumns": [],
        "configuration": configuration,
        "createdTime": int(time.time() * 1000),
    }
    check_clusterable(layout, stats_columns(schema, layout))
    protocol = with_features({"minReaderVersion": 1, "minWriterVersion": 2}, features, layout.features)
    return protocol, with_layout(metadata, layout, stats_columns(schema, layout))


def with_features(
    protocol: Mapping[str, Any], features: Sequence[str], writer_features: Sequence[str] = ()
) -> dict[str, Any]:
    """The protocol with more features; unchanged if there are none.

    Args:
        protocol: the protocol so far.
        features: features that readers and writers must know.
        writer_features: features that concern writers only.
    """
    if not features and not writer_features:
        return dict(protocol)
    reader: set[str] = set(protocol.get("readerFeatures") or ())
    writer: set[str] = set(protocol.get("writerFeatures") or ())
    if protocol["minWriterVersion"] < 7:
        writer |= {
            name for version, names in _IMPLIED.items() if version <= protocol["minWriterVersion"] for name in names
        }
    if protocol["minReaderVersion"] == 2:
        reader.add("columnMapping")
    wanted = {"minWriterVersion": 7, "writerFeatures": sorted(writer | set(features) | set(writer_features))}
    if not reader and not features:
        return {"minReaderVersion": protocol["minReaderVersion"], **wanted}
    return {
        "minReaderVersion": 3,
        "readerFeatures": sorted(reader | set(features)),
        **wanted,
    }


def stats_columns(schema: pa.Schema, layout: TableLayout = PLAIN) -> list[str]:
    """The columns with statistics: clustering columns, then the source's first ones that Delta accepts, then ours.

    Args:
        schema: the table's columns.
        layout: how its files are laid out; files do not contain partition columns.
    """
    apart = {*OWN_STATS, *layout.partition_by}
    source = [column.name for column in schema if column.name not in apart and _has_stats(column)]
    source.sort(key=lambda name: name not in layout.cluster_by)
    return [*source[:_STATS_COLUMNS], *OWN_STATS]


def _has_stats(column: pa.Field) -> bool:
    # The property's text cannot express every name.
    if "," in column.name or "`" in column.name:
        return False
    kind = column.type
    if pa.types.is_decimal(kind):
        return not is_wide(kind)
    return (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_string(kind)
        or (pa.types.is_date32(kind) or pa.types.is_timestamp(kind))
    )


def column_comments(newest: TableSchema) -> dict[str, str]:
    """The comment on each column: the source's description and type, or the meaning of a column of ours.

    If the values of a source column are divided between several columns, their comments say so.
    """
    comments = dict(_COMMENTS)
    stored, former = current_names(newest), former_names(newest)
    for column in newest.value_columns:
        name, before = stored[column.name], former.get(column.name, {})
        kind = f"SQL Server {column.type.declaration}"
        if before:
            kind += f"; rows that were written before it had this type have their value in {', '.join(before.values())}"
        comments[name] = f"{column.description} ({kind})" if column.description else kind
        for one in column.former:
            declared = one.type.declaration
            comments[before[one.name]] = f"SQL Server {declared}, the former type of {column.name}: continues in {name}"
    return comments


def _description(newest: TableSchema) -> str:
    what = f"The current rows of the SQL Server table {newest.table_id}, kept by mssql_cdc"
    return f"{newest.description.rstrip('.')}. {what}" if newest.description else what


def _commented(schema_json: str, newest: TableSchema) -> str:
    comments, found = column_comments(newest), json.loads(schema_json)
    for column in found["fields"]:
        column["metadata"]["comment"] = comments[column["name"]]
    return json.dumps(found, ensure_ascii=False)


def mapped_column(number: int) -> dict[str, Any]:
    """The metadata that gives a column its id and a physical name in a table with column mapping."""
    return {MAPPING_ID: number, PHYSICAL_NAME: f"col-{uuid.uuid4()}"}


def _mapped(schema_json: str) -> str:
    """The schema with a physical name and an id for each column."""
    found = json.loads(schema_json)
    for number, column in enumerate(found["fields"], start=1):
        column["metadata"] |= mapped_column(number)
    return json.dumps(found, ensure_ascii=False)
