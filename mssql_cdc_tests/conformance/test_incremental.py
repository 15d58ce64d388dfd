"""Incremental snapshots of both connectors, on request of the same row of the signal table: the same read events.

Their positions and their order differ: Debezium's follow its watermarks, ours the end of the stream.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc_tests.conformance.beside import SIGNALS, debezium_beside, own_records
from mssql_cdc_tests.conformance.debezium import DebeziumMachine, Record
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]

BLUE = [{"data-collection": "both.dbo.products", "filter": "color = 'blue'"}]


def read_events(records: list[Any]) -> list[Any]:
    """What the records of read rows say, in an order of their own."""
    found = [
        (one["topic"], one["key"], one["value"]["after"], one["value"]["before"], one["value"]["source"]["snapshot"])
        for one in records
        if one["value"] and one["value"].get("op") == "r"
    ]
    return sorted(found, key=json.dumps)


@pytest.mark.feature("INC-01", "INC-04", "EVT-25")
def test_both_connectors_emit_the_same_read_events(place: Place, machine: DebeziumMachine, tmp_path: Path):
    shared = {
        "snapshot.mode": "no_data",
        "signal.data.collection": "both.dbo.signals",
        "incremental.snapshot.chunk.size": "3",
    }
    place.configure(**{name.replace(".", "_"): value for name, value in shared.items()})
    place.create("signals", SIGNALS)
    place.create("orders", "a int NOT NULL, b nvarchar(10) NOT NULL, note nvarchar(20) NULL, PRIMARY KEY (a, b)")
    place.create("products", "id int NOT NULL PRIMARY KEY, color varchar(10) NULL, price decimal(10, 2) NULL")
    place.sql("INSERT INTO dbo.orders SELECT value % 3, CONCAT(N'k', value), N'x' FROM GENERATE_SERIES(1, 10)")
    colors = "IIF(value % 2 = 0, 'blue', 'red')"
    place.sql(f"INSERT INTO dbo.products SELECT value, {colors}, value * 1.5 FROM GENERATE_SERIES(1, 9)")
    place.settle()
    assert place.catch_up() == 0
    with debezium_beside(machine, place, tmp_path, shared) as beside:
        beside.engine.wait_until(lambda _: "Final stage" in beside.log)
        place.signal(
            "i1", **{"data-collections": ["both.dbo.orders", "both.dbo.products"], "additional-conditions": BLUE}
        )
        records = beside.engine.wait_until(lambda found: len(_reads(found)) >= 14)
        theirs = read_events([{"topic": one.topic, "key": one.key, "value": one.value} for one in records])
    assert place.catch_up() == 0
    ours = read_events(own_records(place, tmp_path))
    assert len(ours) == 14
    assert ours == theirs


def _reads(records: list[Record]) -> list[Record]:
    return [one for one in records if one.value and one.value.get("op") == "r"]
