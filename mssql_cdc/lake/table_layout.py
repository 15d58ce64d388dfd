"""How a current table's files are laid out: partitioned by columns, clustered by columns (liquid), or neither.

The user's choice is checked against the table's columns here; `lake/partitions.py` has the values of partitions,
`lake/current.py` rewrites a table whose layout is to change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from mssql_cdc.config.data_layout import DataLayout
from mssql_cdc.errors import SchemaError
from mssql_cdc.lake.delta_schema import arrow_of, file_schema
from mssql_cdc.lake.properties import LAYOUT, STATS, listed_stats, listing
from mssql_cdc.lake.table_log import CLUSTERING, TableLog
from mssql_cdc.schema.arrow import current_names
from mssql_cdc.schema.tables import TableSchema


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns of a current table that it is partitioned by, or clustered by, as the table names them."""

    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The value of the table property that records it."""
        named = {"partition.by": self.partition_by, "cluster.by": self.cluster_by}
        return json.dumps({name: columns for name, columns in named.items() if columns}, ensure_ascii=False)

    @property
    def features(self) -> tuple[str, ...]:
        """The writer features that a table needs for it."""
        return ("clustering", "domainMetadata") if self.cluster_by else ()

    @property
    def properties(self) -> dict[str, str]:
        """The table property that records it; none without a layout."""
        return {LAYOUT: self.text} if self.partition_by or self.cluster_by else {}

    def domain(self, schema_json: str) -> dict[str, Any]:
        """The action that says what the table is clustered by."""
        paths = [[name] for name in stored(schema_json, self.cluster_by)]
        configuration = json.dumps({"clusteringColumns": paths, "domainName": CLUSTERING})
        return {"domainMetadata": {"domain": CLUSTERING, "configuration": configuration, "removed": False}}


PLAIN = TableLayout()


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """A table's next layout; `rewrites`: every file has to be rewritten."""

    layout: TableLayout
    rewrites: bool


def layout_of(wanted: DataLayout, newest: TableSchema, columns: pa.Schema) -> TableLayout:
    """The layout in the table's own column names.

    Args:
        wanted: what the user chose.
        newest: the source table's structure.
        columns: the current table's columns, including those that the source no longer has.

    Raises:
        SchemaError: a column does not exist, or the table cannot be laid out by it.
    """
    if wanted.partition_by and wanted.cluster_by:
        raise SchemaError(
            f"{newest.table_id} is to be partitioned and clustered; set one of {_name(newest, 'partition.by')} and "
            f"{_name(newest, 'cluster.by')}"
        )
    layout = TableLayout(
        _resolved(wanted.partition_by, newest, columns, "partition.by"),
        _resolved(wanted.cluster_by, newest, columns, "cluster.by"),
    )
    for name in layout.partition_by:
        if not is_partition_type(columns.field(name).type):
            raise SchemaError(
                f"{_name(newest, 'partition.by')} names {name!r} of type {columns.field(name).type}, expected whole "
                f"numbers, bit, date or text; {_name(newest, 'cluster.by')} takes other types"
            )
    return layout


def layout_change(log: TableLog, layout: TableLayout, clusterable: Sequence[str]) -> LayoutChange | None:
    """What has to change in a table; None when it is laid out as wanted.

    Clustering that a user has chosen with Spark stays as long as no property says otherwise.

    Args:
        log: the table.
        layout: what is wanted.
        clusterable: the columns that would have statistics in a table created now.

    Raises:
        SchemaError: a column to cluster by has no statistics, or only Spark can write the table.
    """
    if log.properties.get(LAYOUT, PLAIN.text) == layout.text:
        return None
    because = log.writable()
    if because:
        raise SchemaError(
            f"{log.uri} cannot be laid out by {layout.text}: {because}. Switch that off, or take the property "
            "delta.current.… back"
        )
    check_clusterable(layout, clusterable)
    known = frozenset(listed_stats(log.properties))
    same = log.partition_by == layout.partition_by
    return LayoutChange(layout, rewrites=not same or not known.issuperset(layout.cluster_by))


def unwritable_layout(log: TableLog) -> str | None:
    """Why a table that others have laid out has to be written by Spark; None: it does not."""
    schema = arrow_of(log.schema_json)
    for name in log.partition_by:
        if not is_partition_type(schema.field(name).type):
            return f"the table is partitioned by {name}, which is {schema.field(name).type}"
    known = [name for name in listed_stats(log.properties) if name in schema.names]
    with_stats = {(name,) for name in stored(log.schema_json, known)}
    for path in log.cluster_by:
        if path not in with_stats:
            return f"the table is clustered by {'.'.join(path)}, which has no statistics"
    return None


def check_clusterable(layout: TableLayout, clusterable: Sequence[str]) -> None:
    """Raise SchemaError if a column to cluster by has no statistics, by which readers skip files."""
    for name in layout.cluster_by:
        if name not in clusterable:
            raise SchemaError(
                f"The table cannot be clustered by {name!r}, which has no statistics: they exist for whole numbers, "
                "floating-point numbers, decimals of up to 15 digits, text, dates and timestamps"
            )


def is_partition_type(kind: pa.DataType) -> bool:
    """Whether every reader interprets a partition value of this type in the same way."""
    return (
        pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind) or pa.types.is_string(kind)
    )


def with_layout(metadata: Mapping[str, Any], layout: TableLayout, stats: Sequence[str]) -> dict[str, Any]:
    """The table's metadata with another layout.

    Args:
        metadata: the metadata so far.
        layout: the layout.
        stats: the columns with statistics.
    """
    before: dict[str, str] = metadata["configuration"] or {}
    configuration = {name: value for name, value in before.items() if name != LAYOUT}
    configuration |= {**layout.properties, STATS: listing(stats)}
    return {**metadata, "configuration": configuration, "partitionColumns": list(layout.partition_by)}


def stored(schema_json: str, names: Sequence[str]) -> list[str]:
    """These columns' names in files and in the log."""
    if not names:
        return []
    columns = arrow_of(schema_json)
    return file_schema(schema_json, pa.schema([columns.field(name) for name in names])).names


def _resolved(names: Sequence[str], newest: TableSchema, columns: pa.Schema, kind: str) -> tuple[str, ...]:
    known = {name.lower(): name for name in columns.names if not name.startswith("_")}
    known |= {name.lower(): stored for name, stored in current_names(newest).items()}
    for name in names:
        if name.lower() not in known:
            listed = ", ".join(column.name for column in newest.value_columns)
            raise SchemaError(f"{_name(newest, kind)} names {name!r}, which is no captured column; there are {listed}")
    return tuple(known[name.lower()] for name in names)


def _name(newest: TableSchema, kind: str) -> str:
    return f"delta.current.{newest.table_id.schema}.{newest.table_id.name}.{kind}"
