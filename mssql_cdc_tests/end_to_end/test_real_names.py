"""The name of a database in the case that the server has it, whatever its case in `database.names` (PRE-11)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mssql_cdc_tests.end_to_end.followed import followed
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def lakes(place: Place) -> list[str]:
    """The folders of databases in the lake."""
    return [path.name for path in Path(place.warehouse, "shop").iterdir()]


@pytest.mark.feature("PRE-11")
def test_lake_and_records_have_the_servers_spelling_of_a_database(orders: Place):
    """Another spelling in the file would else begin another lake, and records would name the database in two ways."""
    assert lakes(orders) == [orders.database]
    orders.configure(database_names=orders.database.upper())
    orders.sql("INSERT INTO dbo.orders VALUES (3, N'three')")
    orders.settle()
    assert orders.catch_up() == 0
    assert orders.check() == 0
    assert lakes(orders) == [orders.database]
    output = orders.folder / "records.jsonl"
    assert orders.command("records", "--output", str(output)) == 0
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    told = [one for one in records if one["value"] and one["value"].get("op")]
    assert [one["value"]["op"] for one in told] == ["r", "r", "c"]
    assert {one["value"]["source"]["db"] for one in told} == {orders.database}
    assert {one["sourcePartition"]["database"] for one in told} == {orders.database}


@pytest.mark.feature("PRE-11")
def test_a_first_start_takes_the_servers_spelling_of_a_database(place: Place):
    place.configure(database_names=place.database.upper())
    place.create("items", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.items VALUES (1)")
    place.settle()
    with followed(place) as found:
        (record,) = found.changes(1)
        assert found.end() == 0
    assert record["sourcePartition"]["database"] == record["value"]["payload"]["source"]["db"] == place.database
    assert record["topic"] == f"shop.{place.database}.dbo.items"
