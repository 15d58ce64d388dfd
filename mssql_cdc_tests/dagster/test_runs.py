"""Runs of the capture step: manual runs, several partitions, checks on their own, tables missing from the list."""

from __future__ import annotations

import dagster as dg
import pytest
from deltalake import DeltaTable, write_deltalake

from mssql_cdc_tests.dagster.kit import Location, failures, metadata

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def range_key(location: Location) -> str:
    """The key of the range that the sensor would request now; its partition is added, but nothing runs."""
    location.shop.scan()
    location.tick()
    (request,) = location.requests
    assert request.partition_key is not None
    return request.partition_key


def rows(location: Location, name: str) -> int:
    uri = location.database().layout.root + f"/dbo/{name}/changes"
    return DeltaTable(uri).to_pyarrow_dataset().count_rows()


def test_materializing_one_table_reads_only_that_table_and_a_second_time_nothing(streaming):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "INSERT INTO dbo.people VALUES (1, N'Ann')")
    key = range_key(streaming)
    assert streaming.materialize(streaming.key("orders"), partition=key).success
    assert streaming.materializations(streaming.key("people"))[0].partition != key
    again = streaming.materialize(streaming.key("orders"), partition=key)
    assert again.success
    first, second = reversed(streaming.materializations(streaming.key("orders"))[:2])
    assert metadata(first)["mssql_cdc/inserts"] == 1
    assert metadata(second)["dagster/partition_row_count"] == 0
    assert "already captured" in metadata(second)["mssql_cdc/note"]


def test_a_backfill_over_two_ranges_materializes_each_with_its_own_rows(streaming):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    first = range_key(streaming)
    streaming.shop.run("INSERT INTO dbo.orders VALUES (2, N'two'), (3, N'three')")
    streaming.cursor = None
    second = range_key(streaming)
    tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": second}
    done = streaming.materialize(streaming.key("orders"), tags=tags)
    assert done.success, failures(done)
    found = {
        e.partition: metadata(e)["dagster/partition_row_count"]
        for e in streaming.materializations(streaming.key("orders"))
    }
    assert (found[first], found[second]) == (1, 2)
    assert rows(streaming, "orders") == 3


@pytest.mark.feature("BLK-01")
def test_a_manually_added_snapshot_partition_reads_the_table_once(streaming):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.shop.scan()
    key = "snapshot-20260102T030405"
    streaming.add_partition(key)
    done = streaming.materialize(streaming.key("orders"), partition=key)
    assert done.success, failures(done)
    assert metadata(streaming.materializations(streaming.key("orders"))[0])["mssql_cdc/reads"] == 1
    assert streaming.materialize(streaming.key("orders"), partition=key).success
    assert "is complete" in metadata(streaming.materializations(streaming.key("orders"))[0])["mssql_cdc/note"]
    assert rows(streaming, "orders") == 1
    run = streaming.instance.get_run_by_id(done.run_id)
    assert run.tags["mssql_cdc/progress"].startswith("100%")


def test_a_check_run_on_its_own_is_evaluated_from_the_lake(streaming):
    check = dg.AssetCheckKey(streaming.key("orders"), "captured_faithfully")
    assert execute(streaming, check) is True
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.settle()
    assert execute(streaming, check) is True
    uri = streaming.database().layout.root + "/dbo/orders/changes"
    write_deltalake(uri, DeltaTable(uri).to_pyarrow_dataset().to_table().to_reader(), mode="append")
    assert execute(streaming, check) is False


def execute(location: Location, check: dg.AssetCheckKey) -> bool:
    """Do what the Execute button of a check does."""
    job = location.repository.get_implicit_global_asset_job_def()
    chosen = job.get_subset(asset_selection=set(), asset_check_selection={check})
    done = chosen.execute_in_process(instance=location.instance, raise_on_error=False)
    assert done.success, failures(done)
    return location.checks(check.asset_key.path[-1])[0]


def test_a_table_that_appears_later_is_captured_and_a_reload_is_recommended(streaming):
    shop = streaming.shop
    shop.create("later", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT INTO dbo.later VALUES (7)", "INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.settle()
    shop.run("INSERT INTO dbo.later VALUES (8)")
    streaming.settle()
    partitions = [event.partition for event in streaming.materializations(streaming.key("later"))]
    assert len(partitions) >= 2
    assert metadata(streaming.materializations(streaming.key("later"))[0])["mssql_cdc/inserts"] == 1
    notices = [metadata(event) for event in streaming.materializations(streaming.names.extra_key("notifications"))]
    told = [found for found in notices if "mssql_cdc/unknown_tables" in found]
    assert told[0]["mssql_cdc/unknown_tables"] == f"{shop.catalog}.dbo.later"
    assert "discover" in told[0]["mssql_cdc/what_to_do"]


def test_loop_mode_materializes_each_further_range_as_its_own_partition(streaming):
    location = streaming.reloaded(dagster_max_run_seconds=4, poll_interval_ms=50)
    shop = location.shop
    shop.run("EXEC sys.sp_cdc_start_job @job_type = N'capture'")
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    key = range_key(location)
    (request,) = location.requests
    shop.run("INSERT INTO dbo.orders VALUES (2, N'two')")
    shop.scan()
    done = location.run(request)
    assert done.success, failures(done)
    found = [event.partition for event in location.materializations(location.key("orders"))]
    assert key in found
    further = found[: found.index(key)]
    assert further, "no further range"
    assert set(further) <= set(location.instance.get_dynamic_partitions(location.names.partitions))
    assert rows(location, "orders") == 2


@pytest.mark.feature("BLK-01")
def test_the_signals_launchpad_requests_a_snapshot_that_the_sensor_starts(streaming):
    shop = streaming.shop
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two')")
    streaming.settle()
    signals = streaming.names.extra_key("signals")
    config = {"ops": {f"signals__{streaming.names.stem}": {"config": {"tables": ["dbo.orders"]}}}}
    assert streaming.materialize(signals, run_config=config).success
    assert "orders" in metadata(streaming.materializations(signals)[0])["mssql_cdc/asked_for"]
    streaming.tick()
    (request,) = streaming.requests
    assert request.asset_selection == [streaming.key("orders")]
    assert request.partition_key.startswith("snapshot-")
    done = streaming.run(request)
    assert done.success, failures(done)
    assert metadata(streaming.materializations(streaming.key("orders"))[0])["mssql_cdc/reads"] == 2
    streaming.tick()
    assert not [one for one in streaming.requests if (one.partition_key or "").startswith("snapshot-")]


def test_the_launchpad_rejects_a_table_that_is_not_captured(streaming):
    config = {"ops": {f"signals__{streaming.names.stem}": {"config": {"tables": ["dbo.nothing"]}}}}
    done = streaming.materialize(streaming.names.extra_key("signals"), run_config=config)
    assert not done.success
    assert "dbo.nothing matches no captured table" in failures(done)[0]
