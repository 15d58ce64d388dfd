"""`_schema_history`: how to read a row of version `_schema` of any table, now and years later.

Versions are numbered per table, never restart, and are never changed once written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from mssql_cdc.errors import SchemaError
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.small_tables import SmallTable, retry_overtaken, small_table
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.schema.tables import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """All versions of all tables of one database, as loaded."""

    versions: Mapping[str, tuple[TableSchema, ...]]

    def newest(self, table_id: TableId) -> TableSchema | None:
        """The newest version of a table."""
        found = self.versions.get(table_id.text)
        return found[-1] if found else None

    def extended(self, schemas: Sequence[TableSchema]) -> SchemaHistory:
        """The history with these further versions."""
        versions = dict(self.versions)
        for schema in schemas:
            versions[schema.table_id.text] = (*versions.get(schema.table_id.text, ()), schema)
        return SchemaHistory(versions)

    def version(self, table_id: TableId, number: int) -> TableSchema:
        """The version that a row's `_schema` names."""
        for schema in self.versions.get(table_id.text, ()):
            if schema.version == number:
                return schema
        raise SchemaError(f"_schema_history has no version {number} of {table_id}")

    def match(self, schema: TableSchema) -> TableSchema | None:
        """Return the version with this structure, capture instance and incarnation; None if it is new."""
        for known in reversed(self.versions.get(schema.table_id.text, ())):
            same_instance = known.capture_object_id == schema.capture_object_id
            if same_instance and known.incarnation == schema.incarnation and known.same_structure(schema):
                return known
        return None


def load_history(layout: Layout, storage: Storage = LOCAL) -> SchemaHistory:
    """Load every version of the database."""
    return _history(small_table(layout, "schema_history", storage))


@retry_overtaken
def record_versions(
    layout: Layout,
    found: Sequence[TableSchema],
    *,
    known: SchemaHistory,
    at: datetime,
    debezium: Mapping[str, str] | None = None,
    storage: Storage = LOCAL,
) -> tuple[list[TableSchema], SchemaHistory]:
    """Return the same schemas with their versions, and the history with them; new structures are written first.

    Args:
        layout: where the database's tables are.
        found: the structures that the source shows now.
        known: the history as loaded; when it holds all of them nothing is read or written.
        at: when they were found.
        debezium: Debezium's text of a table (by `TableId.text`), only kept here.
        storage: how to reach the tables.

    Raises:
        FencedError: other runs kept writing versions.
    """
    result = [_versioned(known, schema) for schema in found]
    if not any(is_new for _, is_new in result):
        return [schema for schema, _ in result], known
    table = small_table(layout, "schema_history", storage)
    state = table.state()
    history = _history(table)
    result = [_versioned(history, schema) for schema in found]
    new = [schema for schema, is_new in result if is_new]
    if new:
        table.append(state, [_row(schema, at, debezium or {}) for schema in new], {"kind": "schema_history"})
    return [schema for schema, _ in result], history.extended(new)


def _versioned(history: SchemaHistory, schema: TableSchema) -> tuple[TableSchema, bool]:
    known = history.match(schema)
    if known is not None:
        return replace(schema, version=known.version), False
    newest = history.newest(schema.table_id)
    return replace(schema, version=newest.version + 1 if newest else 1), True


def _history(table: SmallTable) -> SchemaHistory:
    versions: dict[str, list[TableSchema]] = {}
    for row in table.rows():
        schema = _schema(row)
        versions.setdefault(row["table_id"], []).append(schema)
    return SchemaHistory({name: tuple(found) for name, found in versions.items()})


def _schema(row: Mapping[str, Any]) -> TableSchema:
    named = TableSchema.from_json(row["columns"])
    return replace(named, version=row["schema"])


def _row(schema: TableSchema, at: datetime, debezium: Mapping[str, str]) -> dict[str, Any]:
    return {
        "table_id": schema.table_id.text,
        "schema": schema.version,
        "incarnation": schema.incarnation,
        "from_lsn": schema.from_lsn,
        "object_id": schema.object_id,
        "capture_object_id": schema.capture_object_id,
        "instance": schema.instance,
        "columns": schema.to_json(),
        "debezium": debezium.get(schema.table_id.text),
        "at": at,
    }
