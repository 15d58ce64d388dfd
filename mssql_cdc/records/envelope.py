"""The state that Debezium has while it streams one database, and what follows from it: source blocks and offsets.

`Envelopes` holds serial numbers, the open transaction and the newest position. It numbers changes in order and builds
standalone records; those of whole batches are built by `envelope_texts.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mssql_cdc.config import Connector
from mssql_cdc.records.capture_times import stamps
from mssql_cdc.records.event_values import VERSION
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.numbering import SerialNumbers
from mssql_cdc.records.record_batch import Record
from mssql_cdc.records.rows import Changes
from mssql_cdc.records.schemas import STRING, Schema
from mssql_cdc.records.string_texts import string_text
from mssql_cdc.records.transactions import Transaction

SLOTS = 8
"""Records of one change are numbered from `SLOTS` times its place on."""


@dataclass(slots=True)
class SourceInfo:
    """The contents of the `source` block; `ts_us` is the time of the commit or of the table read."""

    db: str
    schema: str
    table: str
    ts_us: int | None
    snapshot: str = "false"
    commit_lsn: str | None = None
    change_lsn: str | None = None
    event_serial_no: int | None = None


@dataclass
class Envelopes:
    """Numbers the events of one database, one after another, and builds its single records."""

    connector: Connector
    database: str
    extensions: Extensions
    serial: SerialNumbers = field(default_factory=SerialNumbers)
    transaction: Transaction = field(default_factory=Transaction)
    newest: SourceInfo | None = None

    def record(
        self,
        topic: str,
        key: Any,
        value: Any,
        *,
        offset: dict[str, Any],
        schemas: tuple[Schema, Schema],
        headers: dict[str, Any] | None = None,
        partition: int | None = None,
    ) -> Record:
        """Build a record, with the connector's source partition.

        Args:
            topic: Its topic.
            key: JSON value of the key.
            value: JSON value.
            offset: The source offset.
            schemas: The schemas of key and value.
            headers: The headers by name.
            partition: The topic's partition; None: chosen by key, as Kafka does.
        """
        settings = self.connector.records
        if settings.writes_cloud_events:
            value = None  # Debezium's converter has no CloudEvent for anything but row changes.
        elif settings.value_form.schemas:
            value = {"schema": schemas[1], "payload": value}
        if settings.writes_string_keys:
            key = string_text(schemas[0], key)
        return {
            "topic": topic,
            "partition": partition,
            "key": {"schema": schemas[0], "payload": key} if settings.key_form.schemas else key,
            "value": value,
            "headers": headers or {},
            "sourcePartition": {"server": self.connector.topic_prefix, "database": self.database},
            "sourceOffset": offset,
        }

    def context(self) -> dict[str, Any]:
        """Return the context headers (EVT-24)."""
        return context_headers(self.connector)

    def source_block(self) -> dict[str, Any]:
        """Return the `source` block of the newest event."""
        info = self.newest or SourceInfo(self.database, "", "", None)
        times = stamps(info.ts_us)
        return {
            "version": VERSION,
            "connector": "sqlserver",
            "name": self.connector.topic_prefix,
            "ts_ms": times["ts_ms"],
            "snapshot": None if self.connector.records.value_form.hides(info.snapshot) else info.snapshot,
            "db": info.db,
            "sequence": None,
            "ts_us": times["ts_us"],
            "ts_ns": times["ts_ns"],
            "schema": info.schema,
            "table": info.table,
            "change_lsn": info.change_lsn,
            "commit_lsn": info.commit_lsn,
            "event_serial_no": info.event_serial_no,
        }

    def source_info(self, changes: Changes, row: int, snapshot: str, number: int | None = None) -> SourceInfo:
        """Return the source block's contents for one change.

        Args:
            changes: Changes of one table.
            row: The place of the change among them.
            snapshot: `source.snapshot`.
            number: Its event serial number.
        """
        table = changes.shape.table_id
        return SourceInfo(
            table.catalog or self.database, table.schema, table.name, changes.commit_us[row].as_py(), snapshot,
            changes.commit_lsn[row].as_py(), changes.change_lsn[row].as_py(), number,
        )  # fmt: skip

    def streaming_offset(self) -> dict[str, Any]:
        """Return the streaming offset: the newest position and the open transaction."""
        assert self.newest is not None
        return offset_of(self.newest, self.transaction.offset())


def offset_of(info: SourceInfo, transaction: dict[str, Any]) -> dict[str, Any]:
    """Return a streaming offset: a position and the transaction that is open there.

    After a snapshot and before the first event, Debezium writes the missing change LSN as text, and counts from 1.
    """
    is_behind_snapshot = info.commit_lsn is not None and info.change_lsn is None
    return {
        "commit_lsn": info.commit_lsn,
        "change_lsn": "NULL" if is_behind_snapshot else info.change_lsn,
        "event_serial_no": 1 if is_behind_snapshot else info.event_serial_no or 0,
        **transaction,
    }


def context_headers(connector: Connector) -> dict[str, Any]:
    """Return the context headers (EVT-24)."""
    settings = connector.records
    if not settings.extended_headers:
        return {}
    found = {
        "__debezium.context.connectorLogicalName": connector.topic_prefix,
        "__debezium.context.taskId": connector.records.task_id,
        "__debezium.context.connectorName": "sqlserver",
    }
    if not settings.header_form.schemas:
        return dict(found)
    return {name: {"schema": STRING, "payload": text} for name, text in found.items()}
