"""Runs of the steps: manual runs, several windows, snapshots, checks on their own, tables missing from the list."""

from __future__ import annotations

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from deltalake import DeltaTable, write_deltalake

from mssql_cdc.capture.incremental.store import load
from mssql_cdc.capture.survey import survey
from mssql_cdc.defs.background import PROGRESS_TAG
from mssql_cdc.defs.handover import Handover
from mssql_cdc.defs.recorder import Recorder
from mssql_cdc.defs.runs import SNAPSHOT_TAG
from mssql_cdc.run.follower import Follower
from mssql_cdc_tests.dagster.kit import Location, failures, metadata
from mssql_cdc_tests.dagster.sensing import ask

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def rows(location: Location, name: str) -> int:
    uri = location.database().layout.root + f"/dbo/{name}/changes"
    return DeltaTable(uri).to_pyarrow_dataset().count_rows()


def test_materializing_one_table_reads_only_that_table_and_a_second_time_nothing(streaming):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "INSERT INTO dbo.people VALUES (1, N'Ann')")
    streaming.shop.scan()
    before = len(streaming.materializations(streaming.key("people")))
    done = streaming.materialize(streaming.key("orders"), partition=streaming.window)
    assert done.success, failures(done)
    assert len(streaming.materializations(streaming.key("people"))) == before
    assert streaming.logged("orders")["mssql_cdc/inserts"] == 1
    assert "mssql_cdc/note" not in streaming.logged("orders")
    again = streaming.materialize(streaming.key("orders"), partition=streaming.window)
    assert again.success, failures(again)
    assert streaming.logged("orders")["mssql_cdc/inserts"] == 1
    assert streaming.logged("orders")["mssql_cdc/note"] == "nothing to read"
    assert rows(streaming, "orders") == 1
    assert not DeltaTable.is_deltatable(streaming.database().layout.root + "/dbo/people/changes")


def test_old_windows_are_reported_again_with_their_counts_and_read_nothing(streaming):
    """Three windows of a quarter of an hour: before the table, finished with rows, and the current one."""
    location = streaming.reloaded(dagster_window="15 minutes", since=datetime.now(UTC) - timedelta(minutes=50))
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    location.settle()
    windows = location.setup.windows
    keys = windows.definition.get_partition_keys()
    tags = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-2]}
    location.shop.run("INSERT INTO dbo.orders VALUES (2, N'two')")
    location.shop.scan()
    location.shop.set_clock(datetime.now(UTC) + timedelta(minutes=3))  # The newest of them may have just ended.
    done = location.materialize(location.key("orders"), tags=tags)
    assert done.success, failures(done)
    found = {event.partition: metadata(event) for event in reversed(location.materializations(location.key("orders")))}
    old = [found[key] for key in keys[:-2]]
    assert {one["dagster/partition_row_count"] for one in old} == {0}
    assert {one["mssql_cdc/note"] for one in old} == {"not captured yet"}
    assert rows(location, "orders") == 1, "a range after the chosen windows was read"


def test_a_backfill_reads_up_to_now_and_counts_by_commit_time(streaming):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.settle()
    streaming.shop.run("INSERT INTO dbo.orders VALUES (2, N'two'), (3, N'three')")
    streaming.shop.scan()
    done = streaming.materialize(streaming.key("orders"), streaming.key("people"), partition=streaming.window)
    assert done.success, failures(done)
    assert streaming.logged("orders")["dagster/partition_row_count"] == 3
    assert streaming.logged("people")["dagster/partition_row_count"] == 0
    assert rows(streaming, "orders") == 3


@pytest.mark.feature("BLK-01")
def test_materializing_a_partition_of_snapshots_reads_the_table_again(streaming):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.settle()
    for count in (1, 2):
        done = streaming.materialize(streaming.snapshots, partition="dbo.orders")
        assert done.success, failures(done)
        (event, *_) = streaming.materializations(streaming.snapshots)
        assert (event.partition, metadata(event)["dagster/partition_row_count"]) == ("dbo.orders", 1)
        assert rows(streaming, "orders") == 1 + count
        time.sleep(1)  # snapshots are numbered by the second
    assert streaming.logged("orders")["mssql_cdc/reads"] == 2
    run = streaming.instance.get_run_by_id(done.run_id)
    assert run.tags["mssql_cdc/progress"].startswith("100%")
    streaming.shop.run("INSERT INTO dbo.orders VALUES (2, N'two')")
    streaming.settle()
    assert streaming.logged("orders")["dagster/partition_row_count"] == 4
    assert metadata(streaming.materializations(streaming.current("orders"))[0])["dagster/row_count"] == 2


@pytest.mark.feature("BLK-01")
def test_reading_every_table_again_needs_a_tag(streaming):
    streaming.settle()
    keys = sorted(streaming.setup.snapshot_keys)
    several = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}
    refused = streaming.materialize(streaming.snapshots, tags=several)
    assert not refused.success
    assert "mssql_cdc/snapshot_all=true" in failures(refused)[0]
    taken = len(streaming.materializations(streaming.snapshots))
    done = streaming.materialize(streaming.snapshots, tags={**several, "mssql_cdc/snapshot_all": "true"})
    assert done.success, failures(done)
    assert len(streaming.materializations(streaming.snapshots)) == taken + len(keys)


def test_materializing_all_snapshots_reads_only_the_missing_tables(shop, locate):
    shop.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(20)")
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    shop.scan()
    location = locate()
    assert location.materialize(location.snapshots, partition="dbo.first_table").success
    keys = sorted(location.setup.snapshot_keys)
    several = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}
    done = location.materialize(location.snapshots, tags=several)
    assert done.success, failures(done)
    assert [event.partition for event in location.materializations(location.snapshots)] == [
        "dbo.orders",
        "dbo.first_table",
    ]


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


@pytest.mark.feature("STR-16", "SNP-20")
def test_a_table_that_appears_later_is_captured_and_a_reload_is_recommended(streaming):
    shop = streaming.shop
    shop.create("later", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT INTO dbo.later VALUES (7)", "INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.settle()
    shop.run("INSERT INTO dbo.later VALUES (8)")
    streaming.settle()
    assert streaming.logged("later")["mssql_cdc/inserts"] == 2, "also those from before the look that found it"
    notices = [metadata(event) for event in streaming.materializations(streaming.names.extra_key("notifications"))]
    told = [found for found in notices if "mssql_cdc/unknown_tables" in found]
    assert told[0]["mssql_cdc/unknown_tables"] == f"{shop.catalog}.dbo.later"
    assert "discover" in told[0]["mssql_cdc/what_to_do"]


def test_a_continuous_run_reads_ranges_as_they_come(streaming):
    location = streaming.reloaded(dagster_max_run_seconds=4, poll_interval_ms=50)
    shop = location.shop
    shop.run("EXEC sys.sp_cdc_start_job @job_type = N'capture'")
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    request = ask(location)
    shop.run("INSERT INTO dbo.orders VALUES (2, N'two')")
    shop.scan()
    done = location.run(request)
    assert done.success, failures(done)
    assert rows(location, "orders") == 2
    assert location.logged("orders")["dagster/partition_row_count"] == 2
    assert len(location.materializations(location.key("orders"))) <= 4, "an event per range"
    assert location.instance.get_run_by_id(done.run_id).tags["mssql_cdc/state"] == "handed over"


def test_ranges_are_read_while_no_event_can_be_written(streaming, monkeypatch):
    """The first event waits until a change made after it is in the lake."""
    location = streaming.reloaded(dagster_max_run_seconds=600, poll_interval_ms=50)
    shop, write = location.shop, Recorder.write
    begun, free = threading.Event(), threading.Event()

    def wait_to_write(recorder: Recorder, *event: Any, **more: Any) -> None:
        begun.set()
        free.wait(120)
        write(recorder, *event, **more)

    def change() -> bool:
        try:
            assert begun.wait(120)
            shop.run("INSERT INTO dbo.orders VALUES (2, N'two')")
            shop.scan()
            end = time.monotonic() + 90
            while rows(location, "orders") < 2 and time.monotonic() < end:
                time.sleep(0.1)
            return rows(location, "orders") == 2
        finally:
            free.set()

    monkeypatch.setattr(Recorder, "write", wait_to_write)
    monkeypatch.setattr(Handover, "is_over", lambda _: free.is_set())
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    request = ask(location)
    with ThreadPoolExecutor(1) as pool:
        changed = pool.submit(change)
        done = location.run(request)
    assert done.success, failures(done)
    assert changed.result(), "the range waited for the event"
    assert location.logged("orders")["dagster/partition_row_count"] == 2


def test_a_database_without_changes_is_reported_in_every_window(streaming):
    location = streaming.reloaded(dagster_max_run_seconds=1)
    location.tick()
    (request,) = location.requests
    done = location.run(request)
    assert done.success, failures(done)
    for key in (location.key("orders"), location.key("people"), location.setup.heartbeat_key):
        event = location.materializations(key)[0]
        assert event.partition == (None if key == location.setup.heartbeat_key else location.window)
        assert metadata(event)["mssql_cdc/lag_seconds"] == 0
    context = LoadingContextForTest(location.instance)
    status = CachingStaleStatusResolver(location.instance, location.repository.asset_graph, context)
    for key in (location.key("orders"), location.current("orders")):
        assert status.get_status(key).value != "STALE"


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
    assert request.partition_key == "dbo.orders"
    assert request.tags[SNAPSHOT_TAG].startswith("snapshot-")
    done = streaming.run(request)
    assert done.success, failures(done)
    assert streaming.logged("orders")["mssql_cdc/reads"] == 2
    run = streaming.instance.get_run_by_id(done.run_id)
    assert run is not None
    assert re.fullmatch(r"100%, 2 rows, 1 of 1 chunks, \S+ rows/s", run.tags[PROGRESS_TAG])
    streaming.tick()
    assert not [one for one in streaming.requests if SNAPSHOT_TAG in one.tags]


def test_a_snapshot_begins_although_a_run_that_streams_moves_its_table_on_meanwhile(streaming, monkeypatch):
    shop = streaming.shop
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.settle()
    overtaken = 0

    def survey_and_be_overtaken(database, **more):
        nonlocal overtaken
        seen = survey(database, **more)
        if overtaken < 2:  # The first survey chooses the tables; the second is what the snapshot is based on.
            overtaken += 1
            shop.run(f"INSERT INTO dbo.orders VALUES ({1 + overtaken}, N'streamed')")
            shop.scan()
            assert Follower(streaming.database(), ready=True, merge=False).step().range is not None
        return seen

    for module in ("defs.work", "run.snapshots"):
        monkeypatch.setattr(f"mssql_cdc.{module}.survey", survey_and_be_overtaken)
    done = streaming.materialize(streaming.snapshots, partition="dbo.orders")
    assert done.success, failures(done)
    assert streaming.logged("orders")["mssql_cdc/reads"] == 3


@pytest.mark.feature("BLK-04")
def test_the_signals_launchpad_requests_a_blocking_snapshot_of_some_rows_and_lists_it(streaming):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two'), (3, N'three')")
    streaming.settle()
    signals = streaming.names.extra_key("signals")
    config = {"tables": ["dbo.orders"], "condition": "name <> 'two'"}
    ops = {"ops": {f"signals__{streaming.names.stem}": {"config": config}}}
    done = streaming.materialize(signals, run_config=ops)
    assert done.success, failures(done)
    assert [row["outcome"] for row in listed(streaming)] == ["requested"]
    streaming.settle()
    assert streaming.logged("orders")["mssql_cdc/reads"] == 2
    (signal,) = listed(streaming)
    assert (signal["channel"], signal["outcome"]) == ("dagster", "completed")
    assert signal["condition"].endswith(".[dbo].[orders] WHERE name <> 'two'")
    assert signal["effect"].endswith(".dbo.orders where name <> 'two'")


def test_the_signals_launchpad_rejects_a_condition_that_does_more_than_filter(streaming):
    streaming.settle()
    config = {"tables": ["dbo.orders"], "condition": "id = 1; DROP TABLE dbo.orders"}
    ops = {"ops": {f"signals__{streaming.names.stem}": {"config": config}}}
    done = streaming.materialize(streaming.names.extra_key("signals"), run_config=ops)
    assert not done.success
    assert "a filter contains ';'" in failures(done)[0]


def listed(location: Location) -> list[Any]:
    """The rows of the newest list of signals."""
    table = metadata(location.materializations(location.names.extra_key("signals"))[0])["mssql_cdc/signals"]
    return [row.data for row in table.records]


@pytest.mark.feature("SIG-01", "SIG-06")
def test_the_sensor_takes_signals_from_a_file_while_the_source_is_idle(streaming, tmp_path):
    file = tmp_path / "signals.txt"
    location = streaming.reloaded(signal_enabled_channels="file", signal_file=file, signal_poll_interval_ms=1)
    location.settle()
    location.tick()
    assert location.requests == []
    signal = {"id": "f1", "type": "execute-snapshot", "data": {"type": "blocking", "data-collections": ["dbo.orders"]}}
    file.write_text(json.dumps(signal) + "\n")
    location.tick()
    (request,) = location.requests
    assert request.partition_key == "dbo.orders"
    done = location.run(request)
    assert done.success, failures(done)
    location.tick()
    assert not [one for one in location.requests if SNAPSHOT_TAG in one.tags]
    assert list(tmp_path.glob("signals.txt*")) == []


@pytest.mark.long
@pytest.mark.feature("INC-10", "INC-13", "INC-14")
@pytest.mark.parametrize("seconds", [0, 8])
def test_the_signals_launchpad_controls_an_incremental_snapshot_beside_the_runs(streaming, seconds):
    location = streaming.reloaded(dagster_max_run_seconds=seconds, poll_interval_ms=50)
    location.shop.run("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two')")
    streaming.settle()
    for action, tables in [
        ("incremental_snapshot", ["dbo.orders", "dbo.people"]),
        ("pause_snapshot", []),
        ("stop_snapshot", ["dbo.people"]),
        ("resume_snapshot", []),
    ]:
        config = {"tables": tables, "action": action}
        signals = {"ops": {f"signals__{location.names.stem}": {"config": config}}}
        done = location.materialize(location.names.extra_key("signals"), run_config=signals)
        assert done.success, failures(done)
    if seconds:
        location.shop.run("EXEC sys.sp_cdc_start_job @job_type = N'capture'")
        end = time.monotonic() + 180
        while load(location.database()).is_due:  # One run is enough, unless the machine is slow.
            assert time.monotonic() < end
            done = location.run(ask(location))
            assert done.success, failures(done)
    else:
        location.settle()
    assert not load(location.database()).state.is_running
    assert rows(location, "orders") == 4
    assert not DeltaTable.is_deltatable(location.database().layout.root + "/dbo/people/changes")


def test_the_launchpad_rejects_a_table_that_is_not_captured(streaming):
    config = {"ops": {f"signals__{streaming.names.stem}": {"config": {"tables": ["dbo.nothing"]}}}}
    done = streaming.materialize(streaming.names.extra_key("signals"), run_config=config)
    assert not done.success
    assert "dbo.nothing matches no captured table" in failures(done)[0]
