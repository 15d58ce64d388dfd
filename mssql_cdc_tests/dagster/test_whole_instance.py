"""`dagster dev` as a user starts it: a run streams into the lake, the webserver shows it, a cancel leaves nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from mssql_cdc.demo.ports import free_port
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc_tests.dagster.backfills import eventually, graphql, launch, planned_tables
from mssql_cdc_tests.sandbox_source.kit import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(500)]

PROJECT = Path(__file__).parents[2]
PATIENCE_SECONDS = 400
ITEMS = ("a1", "a2", "a3", "a4", "a5")


def write_connector(shop: Shop, folder: Path) -> Path:
    folder.mkdir()
    path = folder / "server1.json"
    properties = {
        "database.hostname": shop.connection.hostname,
        "database.port": str(shop.connection.port),
        "database.user": "sa",
        "database.password": "${env:SHOP_PASSWORD}",
        "database.names": shop.catalog,
        "topic.prefix": "server1",
        "driver.encrypt": "false",
        "snapshot.mode": "no_data",
        "snapshot.max.threads": "1",
        "snapshot.lock.timeout.ms": "-1",
        "delta.warehouse": str(folder.parent / "lake"),
    }
    path.write_text(json.dumps(properties))
    return path


@contextmanager
def dagster_dev(home: Path, environment: dict[str, str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The process group of `dagster dev`, which is gone when the block ends."""
    home.mkdir()
    shutil.copy(PROJECT / "dagster.yaml", home)
    command = [str(Path(sys.executable).parent / "dagster"), "dev", "-m", "mssql_cdc.definitions", "-p", str(port)]
    with (home / "dagster.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "-h", "127.0.0.1"],
            cwd=home,
            env={**os.environ, **environment, "DAGSTER_HOME": str(home), "PYTHONPATH": str(PROJECT)},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)


def rows(uri: str) -> int:
    try:
        return DeltaTable(uri).to_pyarrow_dataset().count_rows()
    except TableNotFoundError:
        return 0


@pytest.mark.long
@pytest.mark.feature("BLK-01", "SNP-29")
def test_the_sensor_of_a_new_instance_captures_changes_into_the_lake(shop: Shop, tmp_path: Path):
    """Then backfills of `snapshots` are launched in the same instance, since each start of one takes half a minute."""
    shop.create("orders", "id int NOT NULL PRIMARY KEY, name nvarchar(20)")
    for name in ITEMS:
        shop.create(name, "id int NOT NULL PRIMARY KEY")
        shop.run(f"INSERT INTO dbo.{name} VALUES (1), (2)")
    shop.run("INSERT INTO dbo.orders VALUES (1, N'before')")
    shop.scan()
    config = write_connector(shop, tmp_path / "connectors")
    password = shop.connection.password
    assert password is not None
    environment = {
        "SHOP_PASSWORD": password.read(),
        "MSSQL_CDC_CONNECTORS": str(config.parent),
        "MSSQL_CDC_SENSORS": "running",
    }
    discover = [sys.executable, "-m", "mssql_cdc.cli", "discover", "--config", str(config)]
    subprocess.run(discover, check=True, env={**os.environ, **environment, "PYTHONPATH": str(PROJECT)}, timeout=60)
    port = free_port()
    with dagster_dev(tmp_path / "home", environment, port) as process:
        deadline = time.monotonic() + PATIENCE_SECONDS
        materialized: list[Any] = []
        uri = str(tmp_path / "lake" / "server1" / shop.catalog / "dbo" / "orders" / "changes")
        inserted = 1
        while rows(uri) == 0 or not materialized:
            assert process.poll() is None, (tmp_path / "home" / "dagster.log").read_text()[-3000:]
            assert time.monotonic() < deadline, (tmp_path / "home" / "dagster.log").read_text()[-3000:]
            time.sleep(1)
            inserted += 1
            shop.run(f"INSERT INTO dbo.orders VALUES ({inserted}, N'streamed')")
            shop.scan()
            materialized = newest(port, shop.catalog) if rows(uri) else []
        stop = '{scheduler: sensorsOrError(repositorySelector: {repositoryName: "__repository__", '
        stop += 'repositoryLocationName: "mssql_cdc.definitions"}) {... on Sensors {results {id}}}}'
        for sensor in graphql(port, stop)["scheduler"]["results"]:
            graphql(port, f'mutation {{stopSensor(id: "{sensor["id"]}") {{__typename}}}}')
        backfills_take_exactly_their_snapshots(port, shop, tmp_path / "lake")
        assert jvms(process.pid), "the run has no JVM to leave behind"
        cancel(port)
        deadline = time.monotonic() + 60
        while jvms(process.pid):
            assert time.monotonic() < deadline, "a canceled run left its JVM behind"
            time.sleep(1)
    (event,) = materialized
    found = {entry["label"]: entry.get("intValue") for entry in event["metadataEntries"]}
    assert found["mssql_cdc/inserts"] >= 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-\d\d:00", event["partition"])


def backfills_take_exactly_their_snapshots(port: int, shop: Shop, lake: Path) -> None:
    """Of every second table, one after another although each is a run of its own; of all tables, none.

    The tables are locked, so that the first run waits in its only reader; it is terminated there.
    """
    asset, wanted = ["server1", shop.catalog, "snapshots"], list(ITEMS[::2])
    with control(shop.connection, shop.catalog) as holder:
        holder.execute("BEGIN TRANSACTION", doing="locking tables")
        for name in wanted:
            holder.execute(f"UPDATE dbo.{name} WITH (TABLOCKX) SET id = id", doing="locking tables")
        everything = launch(port, asset, [f"dbo.{name}" for name in (*ITEMS, "first_table", "orders")])
        eventually(lambda: everything.statuses() == {"FAILURE": 1}, seconds=150, otherwise=everything.runs)
        assert "mssql_cdc/snapshot_all=true" in everything.failure()
        some = launch(port, asset, [f"dbo.{name}" for name in wanted])
        eventually(lambda: waiting(shop), seconds=150, otherwise=some.runs)
        assert some.statuses() == {"STARTED": 1, "QUEUED": 2}
        assert waiting(shop) == 1
        (first,) = (run["runId"] for run in some.runs() if run["status"] == "STARTED")
        graphql(port, f'mutation {{terminateRun(runId: "{first}") {{__typename}}}}')
        eventually(lambda: some.statuses().get("CANCELING"), seconds=60, otherwise=some.runs)
    eventually(lambda: some.statuses() == {"CANCELED": 1, "SUCCESS": 2}, seconds=150, otherwise=some.runs)
    assert planned_tables(lake, shop.catalog) == [[name] for name in wanted]
    done = [run["tags"] for run in some.runs() if run["status"] == "SUCCESS"]
    assert all(tags["mssql_cdc/progress"].startswith("100") for tags in done), done
    read = {f"dbo.{name}": rows(str(lake / "server1" / shop.catalog / "dbo" / name / "changes")) for name in ITEMS}
    assert [read[tags["dagster/asset_partition_range_start"]] for tags in done] == [2, 2]
    assert [read[f"dbo.{name}"] for name in ITEMS[1::2]] == [0, 0]


def waiting(shop: Shop) -> int:
    """How many sessions wait for a lock."""
    found = shop.control.rows(
        "SELECT COUNT(DISTINCT session_id) FROM sys.dm_exec_requests WHERE blocking_session_id <> 0",
        doing="counting sessions",
    )
    return int(found[0][0])


def newest(port: int, catalog: str) -> list[Any]:
    """The newest materialization of the change log with inserts, as the webserver reports it."""
    key = json.dumps(["server1", catalog, "dbo", "orders"])
    values = "partition metadataEntries {label ... on IntMetadataEntry {intValue}}"
    asset = f"... on Asset {{assetMaterializations(limit: 1) {{{values}}}}}"
    answer = graphql(port, f"{{assetOrError(assetKey: {{path: {key}}}) {{{asset}}}}}")
    events = answer["assetOrError"].get("assetMaterializations", [])
    counts = [{entry["label"]: entry.get("intValue") for entry in event["metadataEntries"]} for event in events]
    return [event for event, found in zip(events, counts, strict=True) if found.get("mssql_cdc/inserts")]


def cancel(port: int) -> None:
    """Terminate the run that streams, and wait until Dagster shows it as canceled."""
    running = graphql(port, "{runsOrError(filter: {statuses: [STARTED]}) {... on Runs {results {runId}}}}")
    (run,) = (one["runId"] for one in running["runsOrError"]["results"])
    graphql(port, f'mutation {{terminateRun(runId: "{run}") {{__typename}}}}')
    deadline = time.monotonic() + 120
    while True:
        status = graphql(port, f'{{runOrError(runId: "{run}") {{... on Run {{status}}}}}}')["runOrError"]["status"]
        if status == "CANCELED":
            return
        assert time.monotonic() < deadline, status
        time.sleep(1)


def jvms(group: int) -> list[int]:
    """The Java processes of a process group."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, fields = (
                (folder / "comm").read_text().strip(),
                (folder / "stat").read_text().rpartition(")")[2].split(),
            )
        except OSError:
            continue  # It has ended.
        if name == "java" and int(fields[2]) == group:
            found.append(int(folder.name))
    return found
