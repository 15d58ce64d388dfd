"""Notifications of the channel `sink`: those of an initial snapshot, as both connectors write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mssql_cdc_tests.conformance.beside import SCHEMAS, debezium_beside, own_records
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]

TOPIC = "io.debezium.notification"
SINK = {"notification.enabled.channels": "sink", "notification.sink.topic.name": TOPIC}


def masked(record: dict[str, Any]) -> dict[str, Any]:
    """A notification without its id and its time."""
    key, value = record["key"], record["value"]
    assert key["payload"] == {"id": value["payload"]["id"]}
    key = {**key, "payload": {"id": "<id>"}}
    return {**record, "key": key, "value": {**value, "payload": {**value["payload"], "id": "<id>", "timestamp": 0}}}


def _by_table(records: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The notifications of each table in their order, without offsets."""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        data = record["value"]["payload"]["additional_data"]
        table = data.get("current_collection_in_progress") or data["scanned_collection"]
        found.setdefault(table, []).append({name: one for name, one in record.items() if name != "sourceOffset"})
    return found


@pytest.mark.feature("NOT-01", "NOT-02", "NOT-03")
def test_both_connectors_write_the_same_notifications_of_an_initial_snapshot(place: Place, tmp_path: Path):
    place.configure(**SINK, **SCHEMAS)
    place.create("orders", "id int NOT NULL PRIMARY KEY, note nvarchar(20) NULL")
    place.create("products", "id int NOT NULL PRIMARY KEY, color varchar(10) NULL")
    place.sql(
        "INSERT INTO dbo.orders VALUES (1, N'x'), (2, N'y'), (3, NULL)", "INSERT INTO dbo.products VALUES (1, 'red')"
    )
    place.settle()
    with debezium_beside(place, tmp_path, SINK | SCHEMAS) as (_, engine):
        records = engine.wait_until(
            lambda found: any(one.topic == TOPIC and one.value["payload"]["type"] == "COMPLETED" for one in found)
        )
        theirs = [
            {
                "topic": one.topic, "partition": one.partition, "key": one.key, "value": one.value,
                "headers": one.headers, "sourcePartition": one.source_partition, "sourceOffset": one.source_offset,
            }
            for one in records
        ]  # fmt: skip
    assert place.catch_up() == 0
    ours = own_records(place, tmp_path)
    own, other = ([masked(one) for one in each if one["topic"] == TOPIC] for each in (ours, theirs))
    assert [one["value"]["payload"]["type"] for one in (own[0], own[-1])] == ["STARTED", "COMPLETED"]
    assert (own[0], own[-1]) == (other[0], other[-1])
    # Those in between stand around the rows here, with the offsets of the records before them.
    assert _by_table(own[1:-1]) == _by_table(other[1:-1])
