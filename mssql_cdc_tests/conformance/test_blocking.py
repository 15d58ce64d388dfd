"""A blocking snapshot of both connectors, on request of the same row of the signal table: the same records.

Nothing is written while it runs, so that both read the same rows. What each connector places before it, and its
offsets, are compared record by record.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc_tests.conformance.beside import SCHEMAS, SIGNALS, debezium_beside, own_records
from mssql_cdc_tests.conformance.compare import differences, is_heartbeat, payload, plain
from mssql_cdc_tests.conformance.debezium import DebeziumMachine, Record
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]

SHARED = {
    "signal.data.collection": "both.dbo.signals",
    # No heartbeat is due by time.
    "heartbeat.interval.ms": "3600000",
    **SCHEMAS,
}


@pytest.mark.feature("BLK-05", "BLK-07", "SNP-34")
def test_both_connectors_write_the_same_records_of_a_blocking_snapshot(
    place: Place, machine: DebeziumMachine, tmp_path: Path
):
    place.configure(**{name.replace(".", "_"): value for name, value in SHARED.items()})
    place.create("signals", SIGNALS)
    place.create("orders", "id int NOT NULL PRIMARY KEY, note nvarchar(20) NULL")
    place.create("products", "id int NOT NULL PRIMARY KEY, color varchar(10) NULL")
    place.sql("INSERT INTO dbo.orders VALUES (1, N'x'), (2, N'y')", "INSERT INTO dbo.products VALUES (1, 'red')")
    place.settle()
    assert place.catch_up() == 0
    with debezium_beside(machine, place, tmp_path, SHARED) as beside:
        beside.engine.wait_until(lambda found: _ends(found) == 1)
        place.sql("INSERT INTO dbo.orders VALUES (3, N'z')", "UPDATE dbo.products SET color = 'blue'")
        place.settle()
        place.signal("b1", type="blocking", **{"data-collections": ["both.dbo.orders", "both.dbo.products"]})
        beside.engine.wait_until(lambda found: _ends(found) == 2)
        assert place.catch_up() == 0
        place.sql("DELETE FROM dbo.orders WHERE id = 1")
        records = beside.engine.wait_until(lambda found: found[-1].key is not None and found[-1].value is None)
        theirs = [plain(one) for one in records]
    assert place.catch_up() == 0
    ours = own_records(place, tmp_path)
    assert [is_heartbeat(one) for one in ours].count(True) == 2
    assert differences(_untimed(ours), _untimed(theirs)) == []


def _untimed(records: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
    """The records without the times of heartbeats."""
    for one in filter(is_heartbeat, records):
        payload(one["value"])["ts_ms"] = 0
    return list(records)


def _ends(records: list[Record]) -> int:
    """How many snapshots have ended."""
    return sum(one.source_offset.get("snapshot_completed") is True for one in records)
