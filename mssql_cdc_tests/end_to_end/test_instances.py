"""Created and dropped capture instances: a gap between two of them is detected and reported (B14)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mssql_cdc.lsn import Lsn
from mssql_cdc_tests.end_to_end.followed import followed, keys_of
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def disable(place: Place, table: str) -> None:
    place.sql(
        f"EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'{table}', @capture_instance = N'all'"
    )


def test_changes_while_cdc_was_off_are_lost_until_a_snapshot_repairs_them(
    orders: Place, capsys: pytest.CaptureFixture[str]
):
    """Review, bug 2: a usual maintenance window; the new instance was treated as a continuation of the old one."""
    place = orders
    disable(place, "orders")
    place.sql("UPDATE dbo.orders SET name = N'changed' WHERE id = 1", "DELETE FROM dbo.orders WHERE id = 2")
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    place.enable("orders")
    place.settle()
    assert place.catch_up() == 4
    assert "the previously read capture instance no longer exists" in capsys.readouterr().err
    place.configure(snapshot_mode="when_needed")
    assert place.catch_up() == 0
    assert place.check() == 0


@pytest.mark.feature("STR-16")
def test_a_table_captured_while_streaming_without_snapshots_has_its_changes_from_its_instances_start(place: Place):
    """Debezium's SqlServerChangeTableSetIT.addTable: no change between enabling and noticing is left out."""
    place.configure(snapshot_mode="no_data")
    place.create_orders()
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    place.create("notes", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.notes VALUES (1), (2)")
    place.settle()
    place.sql("INSERT INTO dbo.notes VALUES (3)")
    place.settle()
    assert place.catch_up() == 0
    rows = place.query("SELECT op, after['id'] AS id FROM t ORDER BY _pos", "notes", "changes")
    assert [(row["op"], row["id"]) for row in rows] == [("c", 1), ("c", 2), ("c", 3)]


@pytest.mark.feature("STR-18")
def test_an_instance_can_be_dropped_while_the_connector_runs(orders: Place):
    """Between two reads nothing holds a lock on the change tables."""
    place = orders
    with followed(place) as found:
        found.changes(2)
        place.sql("ALTER TABLE dbo.orders ADD amount int NULL")
        place.enable("orders", instance="orders_2")
        place.sql("INSERT INTO dbo.orders VALUES (3, N'three', 3)")
        found.changes(3)
        place.sql(
            "SET LOCK_TIMEOUT 5000",
            "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'orders', "
            "@capture_instance = N'dbo_orders'",
            "INSERT INTO dbo.orders VALUES (4, N'four', 4)",
        )
        found.wait_for(lambda it: ("c", 4) in keys_of(it.records))
        assert found.end() == 0
    assert [one for one in keys_of(found.records) if one[0] == "c"] == [("c", 3), ("c", 4)]


@pytest.mark.parametrize("mode", ["direct", "function"])
def test_a_second_instance_takes_over_and_the_first_may_be_dropped(orders: Place, mode: str):
    """A function refuses a range that begins below its instance's start; counting did so for every table."""
    place = orders
    place.configure(data_query_mode=mode)
    place.sql("ALTER TABLE dbo.orders ADD amount int NULL")
    place.enable("orders", instance="orders_2")
    place.sql("INSERT INTO dbo.orders VALUES (3, N'three', 3)")
    place.settle()
    assert place.catch_up() == 0
    place.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'orders', "
        "@capture_instance = N'dbo_orders'"
    )
    place.sql("UPDATE dbo.orders SET amount = 4 WHERE id = 3")
    place.settle()
    assert place.catch_up() == 0
    assert place.check() == 0


@pytest.mark.feature("EVO-06", "NOT-05")
def test_an_instance_that_is_read_to_its_end_is_told_once(orders: Place, tmp_path: Path):
    place = orders
    place.configure(**{"notification.enabled.channels": "sink", "notification.sink.topic.name": "told"})
    place.sql("ALTER TABLE dbo.orders ADD amount int NULL")
    place.enable("orders", instance="orders_2")
    place.settle()
    for number in (3, 4):
        place.sql(f"INSERT INTO dbo.orders VALUES ({number}, N'x', 3)")
        place.settle()
        assert place.catch_up() == 0
    output = tmp_path / "records.jsonl"
    assert place.command("records", "--output", str(output)) == 0
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    (found,) = [
        one["value"]
        for one in records
        if one["topic"] == "told" and one["value"]["aggregate_type"] == "Capture Instance"
    ]
    instances = place.control.rows("SELECT capture_instance, start_lsn FROM cdc.change_tables", doing="testing")
    starts = {one.capture_instance: Lsn(bytes(one.start_lsn)).text for one in instances}
    assert found["type"] == "COMPLETED"
    data = found["additional_data"]
    assert data.pop("commit_lsn") > starts["orders_2"]
    assert data == {
        "connector_name": "shop", "server": "shop", "database": place.database, "capture_instance": "dbo_orders",
        "start_lsn": starts["dbo_orders"], "stop_lsn": starts["orders_2"],
    }  # fmt: skip


@pytest.mark.parametrize("gone", ["off", "dropped"])
def test_a_table_that_disappears_is_named_and_ends_with_code_4(
    orders: Place, capsys: pytest.CaptureFixture[str], gone: str
):
    """Review, bug 12: the run reported nothing and ended with 0."""
    place = orders
    place.create("people", "id int NOT NULL PRIMARY KEY")
    place.settle()
    assert place.catch_up() == 0
    if gone == "off":
        disable(place, "orders")
    else:
        place.sql("DROP TABLE dbo.orders")
    place.sql("INSERT INTO dbo.people VALUES (1)")
    place.settle()
    for _ in range(2):
        capsys.readouterr()
        assert place.catch_up() == 4
        found = capsys.readouterr().err
        assert "dbo.orders" in found
        assert ("CDC is no longer enabled" if gone == "off" else "dropped") in found
    assert place.query("SELECT COUNT(*) AS n FROM t", "people") == [{"n": 1}]
    assert place.command("acknowledge", "--table", "dbo.orders") == 0
    assert place.catch_up() == 0
