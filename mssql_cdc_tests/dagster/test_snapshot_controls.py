"""Snapshots that an operator pauses, resumes and stops from the launchpad of `signals`."""

from __future__ import annotations

import uuid

import dagster as dg
import pytest
from deltalake import DeltaTable

from mssql_cdc.capture.requests import ask_to_control
from mssql_cdc.capture.snapshot import take
from mssql_cdc.defs.memory import Memory
from mssql_cdc.defs.runs import SNAPSHOT_TAG
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc_tests.dagster.kit import Location, failures

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]


@pytest.fixture
def location(streaming: Location, monkeypatch: pytest.MonkeyPatch) -> Location:
    monkeypatch.setattr(take, "CHUNK_ROWS", 1)
    monkeypatch.setattr(take, "GROUP_CHUNKS", 1)
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two'), (3, N'three')")
    streaming.settle()
    return streaming


def rows(location: Location, name: str) -> int:
    uri = location.database().layout.root + f"/dbo/{name}/changes"
    return DeltaTable(uri).to_pyarrow_dataset().count_rows()


def act(location: Location, action: str, *tables: str) -> None:
    config = {"tables": list(tables), "action": action}
    ops = {"ops": {f"signals__{location.names.stem}": {"config": config}}}
    done = location.materialize(location.names.extra_key("signals"), run_config=ops)
    assert done.success, failures(done)


def ask(location: Location, kind: str, *tables: str) -> None:
    """What the launchpad and the command line do; no run of Dagster can begin in a thread of another one."""
    ask_to_control(location.database(), str(uuid.uuid4()), kind, tables, channel="test")


def canceled(location: Location, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
    """Execute a run, which ends as canceled."""
    done = location.run(request)
    run = location.instance.get_run_by_id(done.run_id)
    assert run is not None
    assert run.status is dg.DagsterRunStatus.CANCELED
    return done


def reason(done: dg.ExecuteInProcessResult) -> object:
    """The error that the run's step ended with."""
    (event,) = [one for one in done.all_events if one.is_step_failure]
    return event.step_failure_data.error


def snapshots_requested(location: Location) -> list[dg.RunRequest]:
    location.tick()
    return [one for one in location.requests if SNAPSHOT_TAG in one.tags]


def test_a_paused_snapshot_ends_its_run_as_canceled_until_it_is_resumed(location, after_groups):
    act(location, "snapshot", "dbo.orders")
    (request,) = snapshots_requested(location)
    after_groups(1, lambda: ask(location, "pause-snapshot"))
    before = len(location.materializations(location.snapshots))
    done = canceled(location, request)
    assert "orders is paused; the action resume_snapshot of signals continues it" in str(reason(done))
    assert len(location.materializations(location.snapshots)) == before, "the partition was not read"
    assert not snapshots_requested(location)
    location.shop.run("INSERT INTO dbo.people VALUES (5, N'five')")
    location.settle()
    assert rows(location, "people") == 1, "the other tables stream"
    act(location, "resume_snapshot")
    location.settle()
    assert len(location.materializations(location.snapshots)) == before + 1
    assert rows(location, "orders") == 6, "no chunk was read twice"


@pytest.mark.parametrize("then", [pytest.param("resumed", marks=pytest.mark.long), "stopped"])
def test_a_paused_snapshot_is_looked_for_once_a_minute_while_a_run_streams(location, after_groups, then):
    """It was found due at each tick, each of which surveyed everything."""
    act(location, "snapshot", "dbo.orders")
    (request,) = snapshots_requested(location)
    after_groups(1, lambda: ask(location, "pause-snapshot"))
    canceled(location, request)
    location = location.reloaded(dagster_max_run_seconds=3600)
    location.tick()
    (request,) = location.requests
    location.launch(request)
    location.tick()
    looked = Memory.from_json(location.cursor).looked
    assert "a run streams the changes" in location.tick().skip_message
    assert Memory.from_json(location.cursor).looked == looked
    act(location, {"resumed": "resume_snapshot", "stopped": "stop_snapshot"}[then])
    assert snapshots_requested(location), "at once"


def test_a_stopped_snapshot_ends_its_run_as_canceled_and_its_table_streams_on(location, after_groups):
    act(location, "snapshot", "dbo.orders")
    (request,) = snapshots_requested(location)
    after_groups(1, lambda: ask(location, "stop-snapshot", f"{location.shop.catalog}.dbo.orders"))
    before = len(location.materializations(location.snapshots))
    done = canceled(location, request)
    assert "the table streams on" in str(reason(done))
    assert len(location.materializations(location.snapshots)) == before
    location.shop.run("UPDATE dbo.orders SET name = N'uno' WHERE id = 1; DELETE dbo.orders WHERE id = 3")
    location.settle()
    offsets = load_offsets(location.database().layout)
    assert {entry.status for entry in offsets.entries.values()} == {"streaming"}
    assert not offsets.closed_tables
    assert rows(location, "orders") == 3 + 1 + 2
