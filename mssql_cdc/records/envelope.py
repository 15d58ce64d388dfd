"""Turns rows into records: envelopes, source blocks, offsets, headers, tombstones, key changes, transaction boundaries.

`Envelopes` holds the state that Debezium has while it streams one database: serial numbers, the open transaction, the
newest position. The formats are those of features §3, as the JSON converter without schemas writes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mssql_cdc.config import Connector
from mssql_cdc.records.capture_times import stamps
from mssql_cdc.records.names import transaction_topic
from mssql_cdc.records.numbering import SerialNumbers, Transaction
from mssql_cdc.records.rows import Image, Row

VERSION = "3.3.1.Final"
"""The Debezium version that the records match."""
Record = dict[str, Any]
NEW_KEY, OLD_KEY = "__debezium.newkey", "__debezium.oldkey"


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
    """Builds the records of one database, one event after another."""

    connector: Connector
    database: str
    serial: SerialNumbers = field(default_factory=SerialNumbers)
    transaction: Transaction = field(default_factory=Transaction)
    newest: SourceInfo | None = None

    def read(self, row: Row, marker: str, captured_us: int | None, *, kind: str, completed: bool) -> Record:
        """Build the record of a snapshot row.

        Args:
            row: A row with op `r`.
            marker: `source.snapshot`: first, true, last, and those with `_in_data_collection`.
            captured_us: Microseconds since 1970 for `ts_us`; None: unknown.
            kind: INITIAL or BLOCKING, for the offset.
            completed: Whether the offset marks the snapshot as complete.
        """
        self.newest = self._source(row, marker)
        offset = {"snapshot": kind, "snapshot_completed": completed, "commit_lsn": row.commit_lsn}
        return self._data(row, "r", row.key_after, None, row.after, offset=offset, captured_us=captured_us)

    def change(self, row: Row, captured_us: int | None) -> Iterator[Record]:
        """Yield the records of one streamed change: none, one, or several with tombstone and transaction boundaries."""
        settings = self.connector.records
        if row.op in settings.skipped:
            return  # Debezium does not read such rows, so they are not counted.
        if row.op == "r":
            self.newest = self._source(row, "incremental")
            yield self._data(
                row, "r", row.key_after, None, row.after, offset=self.streaming_offset(), captured_us=captured_us
            )
            return
        number = self.serial.next(row.commit_lsn, row.change_lsn, row.count)
        self.newest = self._source(row, "false", number)
        if row.op != "u":
            key = row.key
            yield from self._event(row, row.op, key, row.before, row.after, captured_us)
        elif settings.skip_unchanged and row.before == row.after:
            return
        elif row.key_before is None or row.key_before == row.key_after:
            yield from self._event(row, "u", row.key_after, row.before, row.after, captured_us)
        else:
            moved_to, moved_from = {NEW_KEY: row.key_after}, {OLD_KEY: row.key_before}
            yield from self._event(row, "d", row.key_before, row.before, None, captured_us, moved_to)
            yield from self._event(row, "c", row.key_after, None, row.after, captured_us, moved_from)

    def _event(
        self,
        row: Row,
        op: str,
        key: Image | None,
        before: Image | None,
        after: Image | None,
        captured_us: int | None,
        headers: dict[str, Any] | None = None,
    ) -> Iterator[Record]:
        settings = self.connector.records
        if op in settings.skipped:
            return
        block = None
        if settings.transaction_metadata:
            yield from self._boundaries(row)
            block = self.transaction.count(row.shape.table_id.text)
        record = self._data(
            row, op, key, before, after,
            offset=self.streaming_offset(), captured_us=captured_us, transaction=block, headers=headers,
        )  # fmt: skip
        yield record
        if op == "d" and settings.tombstones:
            yield {**record, "value": None}

    def _data(
        self,
        row: Row,
        op: str,
        key: Image | None,
        before: Image | None,
        after: Image | None,
        *,
        offset: dict[str, Any],
        captured_us: int | None,
        transaction: dict[str, Any] | None = None,
        headers: dict[str, Any] | None = None,
    ) -> Record:
        value = {
            "before": before,
            "after": after,
            "source": self.source_block(),
            "transaction": transaction,
            "op": op,
            **stamps(captured_us),
        }
        return self.record(row.shape.topic, key, value, offset=offset, headers={**(headers or {}), **self.context()})

    def record(
        self,
        topic: str,
        key: Any,
        value: Any,
        *,
        offset: dict[str, Any],
        headers: dict[str, Any] | None = None,
        partition: int | None = None,
    ) -> Record:
        """Build a record as it is written, with the connector's source partition.

        Args:
            topic: Its topic.
            key: JSON value of the key; None: no key.
            value: JSON value; None: a tombstone.
            offset: The source offset.
            headers: The headers by name.
            partition: The topic's partition; None: chosen by key, as Kafka does.
        """
        return {
            "topic": topic,
            "partition": partition,
            "key": key,
            "value": value,
            "headers": headers or {},
            "sourcePartition": {"server": self.connector.topic_prefix, "database": self.database},
            "sourceOffset": offset,
        }

    def context(self) -> dict[str, str]:
        """Return the context headers (EVT-24)."""
        if not self.connector.records.extended_headers:
            return {}
        return {
            "__debezium.context.connectorLogicalName": self.connector.topic_prefix,
            "__debezium.context.taskId": "0",
            "__debezium.context.connectorName": "sqlserver",
        }

    def source_block(self) -> dict[str, Any]:
        """Return the `source` block of the newest event."""
        info = self.newest or SourceInfo(self.database, "", "", None)
        times = stamps(info.ts_us)
        return {
            "version": VERSION,
            "connector": "sqlserver",
            "name": self.connector.topic_prefix,
            "ts_ms": times["ts_ms"],
            "snapshot": info.snapshot,
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

    def _source(self, row: Row, snapshot: str, number: int | None = None) -> SourceInfo:
        table = row.shape.table_id
        return SourceInfo(
            table.catalog or self.database, table.schema, table.name, row.commit_us, snapshot,
            row.commit_lsn, row.change_lsn, number,
        )  # fmt: skip

    def streaming_offset(self) -> dict[str, Any]:
        """Return the streaming offset: the newest position and the open transaction."""
        info = self.newest
        assert info is not None
        return {
            "commit_lsn": info.commit_lsn,
            "change_lsn": info.change_lsn,
            "event_serial_no": info.event_serial_no or 0,
            **self.transaction.offset(),
        }

    def _boundaries(self, row: Row) -> Iterator[Record]:
        """Yield END of the open transaction and BEGIN of the row's, if they differ (TXN-05)."""
        if self.transaction.id == row.commit_lsn:
            return
        if self.transaction.id is not None:
            yield self._boundary("END", row)
        self.transaction.begin(row.commit_lsn or "")
        yield self._boundary("BEGIN", row)

    def _boundary(self, status: str, row: Row) -> Record:
        open_one, ended = self.transaction, status == "END"
        value = {
            "status": status,
            "id": open_one.id,
            "event_count": open_one.total if ended else None,
            "data_collections": open_one.collections() if ended else None,
            "ts_ms": stamps(row.commit_us)["ts_ms"],
        }
        return self.record(
            transaction_topic(self.connector), {"id": open_one.id}, value, offset=self.streaming_offset()
        )
