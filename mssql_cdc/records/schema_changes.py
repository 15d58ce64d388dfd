"""Schema change records: a table's structure as Debezium shows it, and when each version is announced.

A version is announced with a snapshot's CREATE, or in the stream just before the first event at or after its capture
instance's start (SCH-05 to SCH-10, EVO-05). A type's row in `schema/type_table.py` says what the JDBC driver reports
for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from mssql_cdc.lake.structures import SeenStructure
from mssql_cdc.lsn import Lsn
from mssql_cdc.records.capture_times import microseconds
from mssql_cdc.records.envelope import Envelopes, SourceInfo
from mssql_cdc.records.event_schemas import SCHEMA_CHANGE_KEY, SCHEMA_CHANGE_VALUE
from mssql_cdc.records.record_batch import Record
from mssql_cdc.records.schemas import jdbc_type_name
from mssql_cdc.schema import TYPES, Column, TableId, TableSchema, TableStructure

STREAMING_DDL = "N/A"


@dataclass(frozen=True, slots=True)
class Described:
    """What a schema change record shows for a table: its structure as Debezium shows it, and when it was read."""

    table_id: TableId
    structure: Mapping[str, Any]
    at: datetime

    @classmethod
    def of_seen(cls, seen: SeenStructure) -> Described | None:
        """Describe a table that is not captured; None if it has a type that is not in the type table."""
        found = seen.structure
        if any(column.type.name not in TYPES for column in found.columns):
            return None
        return cls(found.table_id, table_structure(found), seen.at)


@dataclass(frozen=True, slots=True)
class Version:
    """One row of `_schema_history`: the schema, its structure as Debezium shows it, and when it was written."""

    schema: TableSchema
    structure: Mapping[str, Any]
    at: datetime

    @classmethod
    def of_row(cls, row: Mapping[str, Any], schema: TableSchema) -> Version:
        """Build a version from a row; the `debezium` column overrides the structure derived from the columns."""
        kept = row.get("debezium")
        return cls(schema, json.loads(kept) if kept else table_structure(schema), row["at"])

    @property
    def table_id(self) -> TableId:
        """The table's id, with its database."""
        return self.schema.table_id

    @property
    def described(self) -> Described:
        """What a record shows for this version."""
        return Described(self.table_id, self.structure, self.at)


@dataclass(frozen=True, slots=True)
class Announcement:
    """A schema change in the stream; it precedes every row whose `_pos` is greater than `position`."""

    position: str
    type: Literal["CREATE", "ALTER"]
    version: Version

    @property
    def name(self) -> str:
        """The identity of the version."""
        schema = self.version.schema
        return f"{schema.table_id.text}:{schema.object_id}:{schema.version}"


def as_first_seen(versions: Iterable[TableSchema]) -> Iterator[TableSchema]:
    """Yield a table's versions with the defaults and the nullability that their capture instances began with.

    Neither is part of a capture instance: what is read from the source shows it on older rows, too. Debezium shows a
    new default, or a column that has become nullable, with the next instance (EVO-07).
    """
    first: dict[tuple[int | None, str | None, str], Column] = {}
    for schema in versions:
        began = [first.setdefault((schema.object_id, schema.instance, one.name), one) for one in schema.columns]
        columns = tuple(
            replace(column, default_text=own.default_text, nullable=own.nullable)
            for column, own in zip(schema.columns, began, strict=True)
        )
        yield replace(schema, columns=columns)


def announcements(
    versions: Mapping[TableId, Sequence[Version]], snapshotted: Iterable[TableId], epoch_at: Callable[[datetime], int]
) -> list[Announcement]:
    """Return the schema changes of the stream in order.

    A new version with the same structure as the previous one is not announced (SCH-10).

    Args:
        versions: All versions of each table, in order.
        snapshotted: The tables whose first version was announced by a snapshot.
        epoch_at: Returns the epoch in which a version was written.
    """
    known = set(snapshotted)
    found: list[Announcement] = []
    for table_id, own in versions.items():
        previous: Version | None = None
        for version in own:
            if previous is None:
                if table_id not in known:
                    found.append(Announcement(_start(version, epoch_at), "CREATE", version))
            elif version.structure != previous.structure:
                found.append(Announcement(_start(version, epoch_at), "ALTER", version))
            previous = version
    return sorted(found, key=lambda one: (one.position, one.version.table_id))


def streamed_record(announcement: Announcement, envelopes: Envelopes) -> Record:
    """Build the record of a schema change in the stream; its source block is that of the newest event.

    A new table is an event of its own: the block shows the table, at the position of the stream.
    """
    version = announcement.version.described
    own = _source_of(version, None, "false")
    newest = envelopes.newest or own
    place = {name: getattr(newest, name) for name in ("commit_lsn", "change_lsn", "event_serial_no")}
    envelopes.newest = replace(own if announcement.type == "CREATE" else newest, snapshot="false", **place)
    offset = envelopes.streaming_offset()
    return _record(announcement.type, version, envelopes, ddl=STREAMING_DDL, offset=offset)


def snapshot_record(
    described: Described, envelopes: Envelopes, *, kept: SourceInfo, kind: str, marker: str = "true"
) -> Record:
    """Build the CREATE record of a table in a snapshot.

    Args:
        described: The table as the snapshot read it.
        envelopes: Builds the record, which becomes its newest event.
        kept: The event whose position the record shows; it has none for a snapshot without rows whose position is
            unknown.
        kind: INITIAL or BLOCKING, for the offset.
        marker: `source.snapshot`.
    """
    envelopes.newest = replace(
        _source_of(described, kept.commit_lsn, marker),
        change_lsn=kept.change_lsn,
        event_serial_no=kept.event_serial_no,
    )
    offset = {"snapshot": kind, "snapshot_completed": False, "commit_lsn": kept.commit_lsn}
    return _record("CREATE", described, envelopes, ddl=None, offset=offset)


def _record(
    change: Literal["CREATE", "ALTER"], described: Described, envelopes: Envelopes, *, ddl: str | None, offset: Record
) -> Record:
    table = described.table_id
    value = {
        "source": envelopes.source_block(),
        "ts_ms": microseconds(described.at) // 1000,
        "databaseName": table.catalog,
        "schemaName": table.schema,
        "ddl": ddl,
        "tableChanges": [
            {
                "type": change,
                "id": ".".join(f'"{part}"' for part in (table.catalog, table.schema, table.name) if part is not None),
                "table": dict(described.structure),
            }
        ],
    }
    topic = envelopes.extensions.topics.schema_change_topic()
    key = {"databaseName": table.catalog}
    schemas = (SCHEMA_CHANGE_KEY, SCHEMA_CHANGE_VALUE)
    headers = envelopes.context()
    return envelopes.record(topic, key, value, offset=offset, schemas=schemas, headers=headers, partition=0)


def _source_of(described: Described, commit_lsn: str | None, marker: str) -> SourceInfo:
    table = described.table_id
    return SourceInfo(table.catalog or "", table.schema, table.name, microseconds(described.at), marker, commit_lsn)


def _start(version: Version, epoch_at: Callable[[datetime], int]) -> str:
    """Return the position after which the version applies; it precedes every row at its instance's first LSN."""
    start = version.schema.from_lsn
    return f"{epoch_at(version.at):04x}-{Lsn.parse(start).raw.hex() if start else ''}"


def table_structure(schema: TableSchema | TableStructure) -> dict[str, Any]:
    """Build `table` of a schema change record, including excluded columns: column filters affect only values (SCH-08).

    Raises:
        SchemaError: A column's type is unknown.
    """
    return {
        "defaultCharsetName": None,
        "primaryKeyColumnNames": list(schema.record_key if isinstance(schema, TableSchema) else schema.key_columns),
        "columns": [_column(column, position) for position, column in enumerate(schema.columns, start=1)],
        "comment": None,
    }


def _column(column: Column, position: int) -> dict[str, Any]:
    row = column.type.row
    name = jdbc_type_name(column)
    return {
        "name": column.name,
        "jdbcType": row.jdbc.code,
        "nativeType": None,
        "typeName": name,
        "typeExpression": name,
        "charsetName": None,
        "length": column.type.jdbc_length,
        "scale": column.type.jdbc_scale,
        "position": position,
        "optional": column.nullable,
        "autoIncremented": column.identity,
        "generated": column.computed,
        "comment": None,
        "defaultValueExpression": column.default_text,
        "enumValues": None,
    }
