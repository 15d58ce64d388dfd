"""The values of row changes: Debezium's envelope, or a CloudEvent as Debezium's converter makes one (features 3.11).

`envelope_texts.py` builds the records around them; `schemas.py` has the schemas of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.config import Connector
from mssql_cdc.errors import ConversionError
from mssql_cdc.records.capture_times import stamp_texts
from mssql_cdc.records.connect_values import dumped
from mssql_cdc.records.json_texts import Texts, joined, json_text, or_null
from mssql_cdc.records.post_processors import parsed
from mssql_cdc.records.rows import Changes, Numbers
from mssql_cdc.records.transaction_structs import TransactionTexts
from mssql_cdc.records.transactions import Orders

VERSION = "3.3.1.Final"
"""The Debezium version that the records match."""
_EXTENSION = "iodebezium"
_IMAGES = ("before", "after")


@dataclass(frozen=True, slots=True)
class Places:
    """The places of events in their transactions: the number of each event among those of `orders`; -1: it has none."""

    orders: Orders
    events: Numbers

    def columns(self) -> tuple[Texts, Texts, Texts]:
        """The transaction's id, `total_order` and `data_collection_order` of each event; NULL where it has no place."""
        has_place = pa.array(self.events >= 0)
        found = self.orders.places(np.maximum(self.events, 0))
        id_, total, table = (pc.if_else(has_place, column, pa.scalar(None, pa.string())) for column in found)
        return id_, total, table


@dataclass(frozen=True, slots=True)
class Event:
    """What the values of one table's changes show.

    Args:
        changes: The changes.
        before: The images that are shown, `null` where there is none.
        after: The same.
        op: `op` of each.
        markers: `source.snapshot` of each, or of all.
        serial: `event_serial_no` of each, `null` where there is none.
        captured_us: Microseconds since 1970 for `ts_us`.
        places: The places in transactions; None without transaction metadata.
    """

    changes: Changes
    before: Texts
    after: Texts
    op: pa.Array
    markers: pa.Array | str
    serial: Texts
    captured_us: pa.Array
    places: Places | None = None

    @property
    def has_places(self) -> bool:
        """Whether any event has a place in a transaction."""
        return self.places is not None and bool((self.places.events >= 0).any())


def envelope(event: Event, connector: Connector, made: TransactionTexts | None = None) -> Texts:
    """Return Debezium's envelopes, without their schema.

    Args:
        event: What they show.
        connector: The modes.
        made: Makes the transaction blocks with a user's factory; None: they are Debezium's.
    """
    ms, us, ns = stamp_texts(event.captured_us)
    block: Texts | str = "null"
    if event.places is not None and event.has_places:
        id_, total, table = event.places.columns()
        if made is None:
            block = joined('{"id":"', id_, '","total_order":', total, ',"data_collection_order":', table, "}")
        else:
            block = made.blocks(id_, total, table)
        block = or_null(block)
    return joined(
        '{"before":', event.before, ',"after":', event.after, ',"source":', _source(event, connector),
        ',"transaction":', block, ',"op":"', event.op, '","ts_ms":', ms, ',"ts_us":', us, ',"ts_ns":', ns, "}",
    )  # fmt: skip


def lsn_texts(lsns: pa.Array) -> Texts:
    """Return LSNs as JSON."""
    return or_null(joined('"', lsns, '"'))


def _source(event: Event, connector: Connector) -> Texts:
    changes, markers = event.changes, event.markers
    table = changes.shape.table_id
    if connector.records.value_form.hides("false"):
        # A default is not set in Debezium's records; only the converter shows it.
        shown = "null" if markers == "false" else joined('"', markers, '"')
        shown = shown if isinstance(shown, str) else pc.if_else(pc.equal(markers, "false"), "null", shown)
    else:
        shown = f'"{markers}"' if isinstance(markers, str) else joined('"', markers, '"')
    ms, us, ns = stamp_texts(changes.commit_us)
    return joined(
        f'{{"version":"{VERSION}","connector":"sqlserver","name":{json_text(connector.topic_prefix)},"ts_ms":',
        ms, ',"snapshot":', shown,
        f',"db":{json_text(table.catalog or "")},"sequence":null,"ts_us":', us, ',"ts_ns":', ns,
        f',"schema":{json_text(table.schema)},"table":{json_text(table.name)},"change_lsn":',
        lsn_texts(changes.change_lsn), ',"commit_lsn":', lsn_texts(changes.commit_lsn),
        ',"event_serial_no":', event.serial, "}",
    )  # fmt: skip


def cloud_event(event: Event, connector: Connector, made: TransactionTexts | None = None) -> Texts:
    """Return CloudEvents in their JSON format; only their data has a schema.

    Args:
        event: What they show.
        connector: The modes.
        made: As for `envelope`.
    """
    changes, name = event.changes, connector.topic_prefix
    change_lsn, commit_lsn = or_null(changes.change_lsn), or_null(changes.commit_lsn)
    data = joined('{"before":', event.before, ',"after":', event.after, "}")
    if changes.shape.value_schema is not None:
        data = joined(f'{{"schema":{changes.shape.value_schema},"payload":', data, "}")
    return joined(
        f'{{"id":"name:{_inner(name)};change_lsn:', change_lsn, ";commit_lsn:", commit_lsn,
        ";event_serial_no:", event.serial,
        f'","source":"/debezium/sqlserver/{_inner(name)}","specversion":"1.0",'
        '"type":"io.debezium.connector.sqlserver.DataChangeEvent","time":"', _times(changes.commit_us),
        '","datacontenttype":"application/json"',
        _extensions(event, name, made) if connector.records.cloud_events.extensions else "", ',"data":', data, "}",
    )  # fmt: skip


def _extensions(event: Event, name: str, made: TransactionTexts | None) -> Texts:
    """The operation, the source block and the transaction block; a 64-bit number is a text in CloudEvents."""
    changes, table = event.changes, event.changes.shape.table_id
    ms, us, ns = stamp_texts(changes.commit_us)
    serial = pc.if_else(pc.equal(event.serial, "null"), "null", joined('"', event.serial, '"'))
    texts: dict[str, Texts | str] = {
        "op": joined('"', event.op, '"'), "version": f'"{VERSION}"', "connector": '"sqlserver"',
        "name": json_text(name), "tsms": joined('"', ms, '"'),
        "snapshot": f'"{event.markers}"' if isinstance(event.markers, str) else joined('"', event.markers, '"'),
        "db": json_text(table.catalog or ""), "sequence": "null", "tsus": joined('"', us, '"'),
        "tsns": joined('"', ns, '"'), "schema": json_text(table.schema), "table": json_text(table.name),
        "changelsn": lsn_texts(changes.change_lsn), "commitlsn": lsn_texts(changes.commit_lsn),
        "eventserialno": serial, "txid": "null", "txtotalorder": "null", "txdatacollectionorder": "null",
    }  # fmt: skip
    if event.places is not None and event.has_places:
        names = ("txid", "txtotalorder", "txdatacollectionorder")
        columns = event.places.columns()
        shown = [joined('"', column, '"') for column in columns] if made is None else made.leading(*columns)
        texts |= {one: or_null(column) for one, column in zip(names, shown, strict=True)}
    pieces = [piece for one, text in texts.items() for piece in (f',"{_EXTENSION}{one}":', text)]
    return joined(*pieces)


def with_images_of(event: Event, before: Texts, after: Texts) -> Event:
    """Return the event with the images of processed envelopes, for CloudEvents.

    Args:
        event: The event.
        before: Its envelopes before the post-processors.
        after: Its envelopes after them.

    Raises:
        ConversionError: A post-processor changed something else, which a CloudEvent does not take from the envelope.
    """
    images: dict[str, list[str]] = {name: [] for name in _IMAGES}
    for old, new, position in zip(before.to_pylist(), after.to_pylist(), event.changes.pos.to_pylist(), strict=True):
        was, now = parsed(old), parsed(new)
        others = [name for name in was if name not in _IMAGES and was[name] != now[name]]
        if others:
            raise ConversionError(
                f"A post-processor changes {', '.join(others)} of the change at {position}; with CloudEvents, only "
                "before and after can be changed"
            )
        for name in _IMAGES:
            images[name].append(dumped(now[name]))
    found: Sequence[Texts] = [pa.array(images[name], pa.string()) for name in _IMAGES]
    return replace(event, before=found[0], after=found[1])


def _inner(text: str) -> str:
    return json_text(text)[1:-1]


def _times(micros: pa.Array) -> Texts:
    """Return instants as RFC 3339 writes them, in UTC with milliseconds."""
    instants = micros.cast(pa.timestamp("us")).cast(pa.timestamp("ms"), safe=False)
    return joined(pc.strftime(instants, "%Y-%m-%dT%H:%M:%S"), "Z")
