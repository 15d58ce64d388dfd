"""Builds the records of whole batches of changes: envelopes, headers, tombstones, key changes, transaction boundaries.

It has no state, so that several batches can be built at once; `ordered.py` has already numbered the changes. The
formats are those of features §3, as the JSON converter without schemas writes them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.config import Connector
from mssql_cdc.records.capture_times import stamp_texts
from mssql_cdc.records.envelope import SLOTS, context_headers
from mssql_cdc.records.event_schemas import TRANSACTION_KEY, TRANSACTION_VALUE
from mssql_cdc.records.event_values import Event, Places, cloud_event, envelope, lsn_texts, with_images_of
from mssql_cdc.records.extending import Extensions
from mssql_cdc.records.json_texts import Texts, joined, json_text, repeated
from mssql_cdc.records.numbered import Numbered, taken, taken_numbers
from mssql_cdc.records.record_batch import Part, batch_of
from mssql_cdc.records.rows import Changes, Numbers
from mssql_cdc.records.simple_headers import simple_texts
from mssql_cdc.records.string_texts import string_texts

NEW_KEY, OLD_KEY = "__debezium.newkey", "__debezium.oldkey"
_END, _BEGIN, _FIRST, _TOMBSTONE, _CREATE = range(5)


@dataclass(frozen=True)
class EnvelopeTexts:
    """Builds the records of batches of changes of one database."""

    connector: Connector
    database: str
    extensions: Extensions

    def reads(
        self,
        changes: Changes,
        markers: pa.Array,
        captured_us: pa.Array,
        *,
        kind: str,
        last: bool,
        serial: int | None = None,
    ) -> pa.RecordBatch:
        """Build the records of snapshot rows.

        Args:
            changes: Rows with op `r`.
            markers: `source.snapshot` of each: first, true, last, and those with `_in_data_collection`.
            captured_us: Microseconds since 1970 for `ts_us`.
            kind: INITIAL or BLOCKING, for the offset.
            last: Whether the last row completes the snapshot.
            serial: The serial number of the event whose position they show.
        """
        count = len(changes)
        completed = np.zeros(count, bool)
        completed[-1] = last
        offset = joined(
            f'{{"snapshot":{json_text(kind)},"snapshot_completed":', pc.if_else(pa.array(completed), "true", "false"),
            ',"commit_lsn":', lsn_texts(changes.commit_lsn), "}",
        )  # fmt: skip
        number = repeated(json_text(serial), count)
        event = Event(changes, changes.before, changes.after, changes.op, markers, number, captured_us)
        return self._batch(event, changes.key_after, self._headers(), offset)

    def stream(self, changes: Changes, numbered: Numbered) -> list[Part]:
        """Build the records of streamed changes, in parts, each with numbers that order the records of all tables."""
        moved = numbered.moved & ~numbered.dropped
        plain = np.flatnonzero(~moved & ~numbered.dropped)
        parts = [*self._boundaries(changes, numbered), *self._plain(changes, numbered, plain)]
        moves = np.flatnonzero(moved)
        if len(moves):
            parts += self._moved(changes, numbered, moves, "d")
            parts += self._moved(changes, numbered, moves, "c")
        return parts

    def _plain(self, changes: Changes, numbered: Numbered, rows: Numbers) -> list[Part]:
        """Records of changes that keep their key, and tombstones."""
        if len(rows) < len(changes):
            changes, numbered = taken(changes, rows), taken_numbers(numbered, rows)
        if not len(rows):
            return []
        is_delete, is_read = changes.is_op("d"), changes.is_op("r")
        key = changes.key_after
        if key is not None and changes.key_before is not None and is_delete.any():
            key = pc.if_else(pa.array(is_delete), changes.key_before, key)
        events = numbered.first if numbered.first is not None else None
        offset = self._offset(changes, numbered, events, is_read)
        serial = pc.if_else(pa.array(is_read), "null", _shown(numbered.serial))
        event = Event(
            changes, changes.before, changes.after, changes.op, self._markers(is_read), serial, numbered.captured_us,
            _places(numbered, events),
        )  # fmt: skip
        batch = self._batch(event, key, self._headers(), offset)
        return [(numbered.place * SLOTS + _FIRST, batch), *self._tombstones(batch, numbered.place, is_delete)]

    def _moved(self, changes: Changes, numbered: Numbered, rows: Numbers, op: str) -> list[Part]:
        """The delete or the create of updates that change their key, with the other key as a header."""
        changes, numbered = taken(changes, rows), taken_numbers(numbered, rows)
        count, is_delete = len(changes), op == "d"
        none = repeated("null", count)
        before, after = (changes.before, none) if is_delete else (none, changes.after)
        own, other = (changes.key_before, changes.key_after) if is_delete else (changes.key_after, changes.key_before)
        shown = changes.header_after if is_delete else changes.header_before
        events = numbered.first if is_delete else numbered.create
        offset = self._offset(changes, numbered, events, np.zeros(count, bool))
        event = Event(
            changes, before, after, repeated(op, count), "false", _shown(numbered.serial), numbered.captured_us,
            _places(numbered, events),
        )  # fmt: skip
        other = other if shown is None else shown
        assert other is not None
        settings = self.connector.records
        if settings.writes_simple_headers:
            other = simple_texts(other, changes.shape, settings)
        if changes.shape.string_header is not None:
            other = string_texts(other, changes.shape.string_header)
        header = _with_schema(other, changes.shape.header_schema)
        batch = self._batch(event, own, self._headers(NEW_KEY if is_delete else OLD_KEY, header), offset)
        found = [(numbered.place * SLOTS + (_FIRST if is_delete else _CREATE), batch)]
        return found + (self._tombstones(batch, numbered.place, np.ones(count, bool)) if is_delete else [])

    def _tombstones(self, batch: pa.RecordBatch, place: Numbers, is_delete: Numbers) -> list[Part]:
        if not self.connector.records.tombstones or not is_delete.any():
            return []
        deletes = batch.filter(pa.array(is_delete))
        where = deletes.schema.get_field_index("value")
        empty = deletes.set_column(where, deletes.schema.field(where), pa.nulls(deletes.num_rows, pa.string()))
        return [(place[is_delete] * SLOTS + _TOMBSTONE, empty)]

    def _boundaries(self, changes: Changes, numbered: Numbered) -> list[Part]:
        """END of the previous transaction and BEGIN of its own, for each change that begins one (TXN-05)."""
        orders = numbered.orders
        if orders is None or numbered.first is None or numbered.create is None or not len(orders.begins):
            return []
        events = np.where(numbered.first >= 0, numbered.first, numbered.create)
        segments = np.cumsum(orders.begins)
        rows = np.flatnonzero((events >= 0) & orders.begins[np.maximum(events, 0)])
        if not len(rows):
            return []
        changes, numbered, events = taken(changes, rows), taken_numbers(numbered, rows), events[rows]
        positions = self._positions(changes, numbered.serial)
        ms = stamp_texts(changes.commit_us)[0]
        topic = self.extensions.topics.transaction_topic()
        ids = orders.transactions.take(pa.array(segments[events]))
        begin = joined(
            '{"status":"BEGIN","id":"', ids, '","event_count":null,"data_collections":null,"ts_ms":', ms, "}"
        )
        offset = joined(positions, ',"transaction_id":"', ids, '"}')
        found = [(numbered.place * SLOTS + _BEGIN, self._boundary(topic, ids, begin, offset, changes))]
        old, totals, collections = (column.take(pa.array(segments[events] - 1)) for column in orders.ends)
        ended = old.is_valid()
        end = joined(
            '{"status":"END","id":"', old, '","event_count":', totals, ',"data_collections":', collections,
            ',"ts_ms":', ms, "}",
        )  # fmt: skip
        offset = joined(positions, orders.offsets(events), "}")
        kept_changes = taken(changes, np.flatnonzero(ended))
        batch = self._boundary(topic, old.filter(ended), end.filter(ended), offset.filter(ended), kept_changes)
        return [(numbered.place[np.asarray(ended)] * SLOTS + _END, batch), *found]

    def _boundary(self, topic: str, ids: Texts, value: Texts, offset: Texts, changes: Changes) -> pa.RecordBatch:
        settings, made = self.connector.records, self.extensions.transactions
        key_schema = json_text(TRANSACTION_KEY if made is None else made.key) if settings.key_form.schemas else None
        value_schema = (
            json_text(TRANSACTION_VALUE if made is None else made.value) if settings.value_form.schemas else None
        )
        key = joined('{"id":"', ids, '"}') if made is None else made.keys(ids)
        if settings.writes_string_keys:
            key = string_texts(key, TRANSACTION_KEY if made is None else made.key)
        value = value if made is None else made.values(value)
        shown = None if settings.writes_cloud_events else _with_schema(value, value_schema)
        columns = {
            "topic": topic, "partition": None, "key": _with_schema(key, key_schema),
            "value": shown, "headers": "{}",
            "source_partition": self._partition(), "source_offset": offset, "position": changes.pos,
        }  # fmt: skip
        return batch_of(columns, len(ids))

    def _batch(self, event: Event, key: Texts | None, headers: Texts | str, offset: Texts) -> pa.RecordBatch:
        changes, shape = event.changes, event.changes.shape
        cloudy, made = self.connector.records.writes_cloud_events, self.extensions.transactions
        if shape.checked is not None:
            plain = envelope(event, self.connector, made)
            key, payload = self.extensions.post_processors.process(key, plain, changes.pos, shape.checked)
            value = cloud_event(with_images_of(event, plain, payload), self.connector, made) if cloudy else payload
        else:
            value = cloud_event(event, self.connector, made) if cloudy else envelope(event, self.connector, made)
        value = value if cloudy else _with_schema(value, shape.value_schema)
        if key is not None and shape.string_key is not None:
            key = string_texts(key, shape.string_key)
        columns = {
            "topic": shape.topic, "partition": None,
            "key": None if key is None else _with_schema(key, shape.key_schema),
            "value": value, "headers": headers,
            "source_partition": self._partition(), "source_offset": offset, "position": changes.pos,
        }  # fmt: skip
        return batch_of(columns, len(changes))

    def _positions(self, changes: Changes, serial: Numbers) -> Texts:
        return joined(
            '{"commit_lsn":', lsn_texts(changes.commit_lsn), ',"change_lsn":', lsn_texts(changes.change_lsn),
            ',"event_serial_no":', _shown(serial),
        )  # fmt: skip

    def _offset(self, changes: Changes, numbered: Numbered, events: Numbers | None, is_read: Numbers) -> Texts:
        """The streaming offsets; the serial number of a row of an incremental snapshot is 0."""
        positions = self._positions(changes, np.where(is_read, 0, numbered.serial))
        if numbered.orders is None or events is None or numbered.before is None:
            return joined(positions, "}")
        return joined(positions, numbered.orders.offsets(np.where(events >= 0, events + 1, numbered.before)), "}")

    def _headers(self, name: str | None = None, key: Texts | None = None) -> Texts | str:
        context = json_text(context_headers(self.connector))
        if name is None or key is None:
            return context
        rest = context[1:] if context == "{}" else f",{context[1:]}"
        return joined(f"{{{json_text(name)}:", key, rest)

    def _partition(self) -> str:
        return json_text({"server": self.connector.topic_prefix, "database": self.database})

    def _markers(self, is_read: Numbers) -> pa.Array | str:
        return pc.if_else(pa.array(is_read), "incremental", "false") if is_read.any() else "false"


def _places(numbered: Numbered, events: Numbers | None) -> Places | None:
    return None if numbered.orders is None or events is None else Places(numbered.orders, events)


def _with_schema(texts: Texts, schema: str | None) -> Texts:
    return texts if schema is None else joined(f'{{"schema":{schema},"payload":', texts, "}")


def _shown(numbers: Numbers) -> Texts:
    return pa.array(numbers, pa.int64()).cast(pa.string())
