"""Notifications of the channel `sink`, as both connectors write them of initial and incremental snapshots."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc_tests.conformance.beside import SCHEMAS, SIGNALS, debezium_beside, own_records
from mssql_cdc_tests.conformance.debezium import DebeziumMachine
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
def test_both_connectors_write_the_same_notifications_of_an_initial_snapshot(
    place: Place, machine: DebeziumMachine, tmp_path: Path
):
    place.configure(**SINK, **SCHEMAS)
    place.create("orders", "id int NOT NULL PRIMARY KEY, note nvarchar(20) NULL")
    place.create("products", "id int NOT NULL PRIMARY KEY, color varchar(10) NULL")
    place.sql(
        "INSERT INTO dbo.orders VALUES (1, N'x'), (2, N'y'), (3, NULL)", "INSERT INTO dbo.products VALUES (1, 'red')"
    )
    place.settle()
    with debezium_beside(machine, place, tmp_path, SINK | SCHEMAS) as beside:
        records = beside.engine.wait_until(
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


@pytest.mark.feature("NOT-04", "NOT-07", "INC-12")
def test_both_connectors_write_the_same_notifications_of_incremental_snapshots(
    place: Place, machine: DebeziumMachine, tmp_path: Path
):
    shared = SINK | {
        "snapshot.mode": "no_data",
        "signal.data.collection": "both.dbo.signals",
        "incremental.snapshot.chunk.size": "2",
    }
    place.configure(**{name.replace(".", "_"): value for name, value in shared.items()})
    place.create("signals", SIGNALS)
    for table in ("orders", "people", "places"):
        place.create(table, "a int NOT NULL, b int NOT NULL, PRIMARY KEY (a, b)")
        place.sql(f"INSERT INTO dbo.{table} SELECT 1, value FROM GENERATE_SERIES(1, 5)")
    place.settle()
    assert place.catch_up() == 0
    first, more = ["both.dbo.orders"], ["both.dbo.people", "both.dbo.places", "both.dbo.nothing"]
    with debezium_beside(machine, place, tmp_path, shared) as beside:
        beside.engine.wait_until(lambda found: "COMPLETED" in [kind for kind, *_ in _told(found, "Initial Snapshot")])
        place.signal("i1", **{"data-collections": first})
        place.signal("i2", **{"data-collections": more})
        place.sql("INSERT INTO dbo.signals VALUES ('p', 'pause-snapshot', NULL)")
        beside.engine.wait_until(lambda found: "PAUSED" in [kind for kind, *_ in _told(found)])
        stop = json.dumps({"type": "incremental", "data-collections": [".*dbo.(pl|sig).*"]})
        place.sql(
            f"INSERT INTO dbo.signals VALUES ('s', 'stop-snapshot', '{stop}')",
            "INSERT INTO dbo.signals VALUES ('r', 'resume-snapshot', NULL)",
        )
        records = beside.engine.wait_until(lambda found: "COMPLETED" in [kind for kind, *_ in _told(found)])
        theirs = _told(records)
    assert place.catch_up() == 0
    ours = _told([Told(one["topic"], one["value"]) for one in own_records(place, tmp_path)])
    # A chunk that Debezium reads before it meets the second request has the id of the first.
    assert sorted(_steps(ours)) == sorted(_steps(theirs))
    assert [one for one in ours if one[0] in {"STARTED", "PAUSED"}] == [
        one for one in theirs if one[0] in {"STARTED", "PAUSED"}
    ]
    ends = {"ABORTED", "TABLE_SCAN_COMPLETED", "COMPLETED"}
    assert [one for one in ours if one[0] in ends] == [one for one in theirs if one[0] in ends]


KEYS = {
    "bits": ("bit NOT NULL", "1"),
    "numbers": ("bigint NOT NULL", "-7"),
    "decimals": ("decimal(9, 3) NOT NULL", "1.5"),
    "moneys": ("money NOT NULL", "12.5"),
    "floats": ("float NOT NULL", "1.5"),
    "wide_floats": ("float NOT NULL", "1e21"),
    "reals": ("real NOT NULL", "0.1"),
    "guids": ("uniqueidentifier NOT NULL", "'6f9619ff-8b86-d011-b42d-00c04fc964ff'"),
    "dates": ("date NOT NULL", "'2024-02-29'"),
    "times": ("time(7) NOT NULL", "'12:34:56.1234567'"),
    "whole_times": ("time(0) NOT NULL", "'12:34:56'"),
    "datetimes": ("datetime NOT NULL", "'2024-02-29 12:34:56.997'"),
    "whole_datetimes": ("datetime NOT NULL", "'2024-02-29 12:00:00'"),
    "smalldatetimes": ("smalldatetime NOT NULL", "'2024-02-29 12:34:00'"),
    "datetime2s": ("datetime2(7) NOT NULL", "'2024-02-29 12:34:56.1234567'"),
    "datetime2s_3": ("datetime2(3) NOT NULL", "'2024-02-29 12:34:56.120'"),
    "zoned": ("datetimeoffset(7) NOT NULL", "'2024-02-29 12:34:56.1234567 +02:00'"),
    "zoned_3": ("datetimeoffset(3) NOT NULL", "'2024-02-29 12:34:56.120 -03:30'"),
    "other_reals": ("real NOT NULL", "-16777216.0"),
    "small_floats": ("float NOT NULL", "0.0001220703125"),
    "false_bits": ("bit NOT NULL", "0"),
    "whole_zoned": ("datetimeoffset(0) NOT NULL", "'2024-02-29 12:34:56 +00:00'"),
    "texts": ("nchar(5) NOT NULL", "N'ä'"),
    "binaries": ("varbinary(8) NOT NULL", "0x0102"),
}
"""Tables with a key of one type each, and its value."""


@pytest.mark.long
@pytest.mark.feature("NOT-07")
def test_both_connectors_show_keys_of_all_types_in_one_way(place: Place, machine: DebeziumMachine, tmp_path: Path):
    shared = SINK | {"snapshot.mode": "no_data", "signal.data.collection": "both.dbo.signals"}
    place.configure(**{name.replace(".", "_"): value for name, value in shared.items()})
    place.create("signals", SIGNALS)
    for table, (column, value) in KEYS.items():
        place.create(table, f"id {column} PRIMARY KEY")
        place.sql(f"INSERT INTO dbo.{table} VALUES ({value})")
    place.settle()
    assert place.catch_up() == 0
    with debezium_beside(machine, place, tmp_path, shared) as beside:
        beside.engine.wait_until(lambda found: "COMPLETED" in [kind for kind, *_ in _told(found, "Initial Snapshot")])
        place.signal("i1", **{"data-collections": [f"both.dbo.{table}" for table in KEYS]})
        records = beside.engine.wait_until(lambda found: "COMPLETED" in [kind for kind, *_ in _told(found)])
    assert place.catch_up() == 0
    ours = _steps(_told([Told(one["topic"], one["value"]) for one in own_records(place, tmp_path)]))
    binary, theirs = "both.dbo.binaries", _steps(_told(records))
    assert [one for one in ours if one[0] != binary] == [one for one in theirs if one[0] != binary]
    assert [one for one in ours if one[0] == binary] == [(binary, "0102", "0102")]  # The difference binary-keys.


@dataclass(frozen=True)
class Told:
    topic: str
    value: Any


def _told(records: Sequence[Any], about: str = "Incremental Snapshot") -> list[tuple[str, str, dict[str, str]]]:
    """Type, id and data of notifications."""
    values = [one.value.get("payload", one.value) for one in records if one.topic == TOPIC]
    return [(one["type"], one["id"], one["additional_data"]) for one in values if one["aggregate_type"] == about]


def _steps(told: list[tuple[str, str, dict[str, str]]]) -> list[tuple[str, str, str]]:
    """The chunks of each table."""
    return [
        (data["current_collection_in_progress"], data["last_processed_key"], data["maximum_key"])
        for kind, _, data in told
        if kind == "IN_PROGRESS"
    ]
