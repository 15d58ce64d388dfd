"""What a run that streams in Dagster tells OpenLineage."""

from __future__ import annotations

from pathlib import Path

import pytest

from mssql_cdc_tests.dagster.kit import Location, failures
from mssql_cdc_tests.lineage_kit import read_events, states, to_file


@pytest.mark.feature("OL-02")
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_run_that_streams_tells_its_tables_and_its_end(streaming: Location, tmp_path: Path):
    file, events = to_file(tmp_path)
    location = streaming.reloaded(
        dagster_max_run_seconds=1,
        openlineage_integration_enabled="true",
        openlineage_integration_config_file_path=file,
    )
    location.tick()
    (request,) = location.requests
    done = location.run(request)
    assert done.success, failures(done)
    found = states(read_events(events))
    tables = sorted(f"{location.shop.catalog}.dbo.{name}" for name in ("first_table", "orders", "people"))
    assert found[:2] == [("START", []), ("RUNNING", [])]
    assert sorted(found[2:-1]) == [("RUNNING", [name]) for name in tables]
    assert (found[-1][0], sorted(found[-1][1])) == ("COMPLETE", tables)


def told(streaming: Location, tmp_path: Path) -> tuple[Location, Path]:
    """The location, which tells a file of its runs."""
    file, events = to_file(tmp_path)
    location = streaming.reloaded(openlineage_integration_enabled="true", openlineage_integration_config_file_path=file)
    return location, events


@pytest.mark.feature("OL-02")
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_run_by_hand_tells_the_tables_that_were_selected(streaming: Location, tmp_path: Path):
    location, events = told(streaming, tmp_path)
    done = location.materialize(location.key("orders"), partition=location.window)
    assert done.success, failures(done)
    orders = f"{location.shop.catalog}.dbo.orders"
    assert states(read_events(events)) == [
        ("START", []), ("RUNNING", []), ("RUNNING", [orders]), ("COMPLETE", [orders]),
    ]  # fmt: skip


@pytest.mark.feature("OL-02")
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_snapshot_tells_its_tables_and_no_current_table(streaming: Location, tmp_path: Path):
    location, events = told(streaming, tmp_path)
    done = location.materialize(location.snapshots, partition="dbo.orders")
    assert done.success, failures(done)
    found = read_events(events)
    orders = f"{location.shop.catalog}.dbo.orders"
    assert states(found)[-1] == ("COMPLETE", [orders])
    outputs = [output["name"] for event in found for output in event.get("outputs", [])]
    assert outputs
    assert not [name for name in outputs if name.endswith("current")]


@pytest.mark.feature("OL-02")
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_run_of_one_range_tells_its_end(streaming: Location, tmp_path: Path):
    location, events = told(streaming, tmp_path)
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    location.shop.scan()
    location.tick()
    (request,) = location.requests
    assert location.run(request).success
    found = states(read_events(events))
    assert found[0] == ("START", [])
    assert found[-1][0] == "COMPLETE"
    assert f"{location.shop.catalog}.dbo.orders" in found[-1][1]


@pytest.mark.feature("OL-02")
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_run_that_fails_tells_so(streaming: Location, tmp_path: Path):
    location, events = told(streaming, tmp_path)
    location.shop.run(
        "EXEC sandbox.fail_statement @pattern = N'SELECT TOP.*dbo_orders_CT', @number = 208, @times = 1000"
    )
    try:
        location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
        location.shop.scan()
        assert not location.materialize(location.key("orders"), partition=location.window).success
    finally:
        location.shop.run("EXEC sandbox.clear_faults")
    assert states(read_events(events))[-1][0] == "FAIL"
