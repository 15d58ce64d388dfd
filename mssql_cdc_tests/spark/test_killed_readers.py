"""A worker that dies while it reads, for want of memory or in a driver's native code: the trouble of one table."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from pyspark import TaskContext

import mssql_cdc.capture.range as ranges
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.snapshot import chunk_groups, take
from mssql_cdc.capture.snapshot.take import capture_snapshot
from mssql_cdc.capture.survey import survey
from mssql_cdc.capture.write_task import WriteTask, write
from mssql_cdc.errors import WorkerError
from mssql_cdc.plan.decisions import Snapshot
from mssql_cdc.plan.planner import plan
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.loop import catch_up
from mssql_cdc_tests.spark.model_lake import changes, current, model_database, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def dies_behind_its_files(task: WriteTask) -> dict[str, Any]:
    """`write`, but the table `orders` kills its worker when its files are there."""
    written = write(task)
    if "/orders/" in task.target.uri and TaskContext.get() is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return written


def dies_beside_others(task: WriteTask) -> dict[str, Any]:
    """`write`, but a task that does not wait for the others kills its worker when its files are there."""
    context, written = TaskContext.get(), write(task)
    if context is not None and context.partitionId():
        os.kill(os.getpid(), signal.SIGKILL)
    return written


def is_own(error: BaseException) -> bool:
    """Whether it is the error of a job that had one table only, and tells what ended that."""
    said = str(error)
    told = "Python worker exited unexpectedly (crashed)" in said and "All of its tasks were this table's" in said
    return type(error) is WorkerError and told


def files(database: Database, name: str) -> tuple[int, int]:
    """How many files are in the folder of a change log, and how many of them are committed."""
    uri = f"{database.layout.root}/dbo/{name}/changes"
    return len(list(Path(uri).glob("*.parquet"))), len(DeltaTable(uri).file_uris())


def test_a_table_whose_read_kills_its_worker_holds_back_no_other(database, source, monkeypatch):
    write_some(source)
    settled(database, source)
    follower = Follower(database)
    with monkeypatch.context() as during:
        during.setattr(ranges, "LITTLE_ROWS", 0)
        during.setattr(ranges, "write", dies_behind_its_files)
        write_some(source)
        source.capture()
        failed = follower.step().failed
        assert [table.name for table in failed] == ["orders"]
        assert all(is_own(error) for error in failed.values())
        assert [op for op, _, _ in changes(database, "people")] == ["r"] * 4 + ["u"] * 4
        assert [op for op, _, _ in changes(database, "orders")] == ["r"] * 4
        staged, committed = files(database, "orders")
        assert staged > committed
    follower.close()
    settled(database, source)
    same(database, source)
    for name in ("orders", "people"):
        assert [op for op, _, _ in changes(database, name)] == ["r"] * 4 + ["u"] * 4, "each change once"


def test_a_table_whose_read_always_kills_its_worker_is_given_up_and_the_others_go_on(
    spark: SparkSession, source: ModelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    database = model_database(
        source, spark, tmp_path, dagster_max_attempts="2", retriable_restart_connector_wait_ms="10"
    )
    write_some(source)
    settled(database, source)
    with monkeypatch.context() as during:
        during.setattr(ranges, "LITTLE_ROWS", 0)
        during.setattr(ranges, "write", dies_behind_its_files)
        write_some(source)
        source.capture()
        with pytest.raises(WorkerError, match="orders"):
            catch_up([database], timeout=120)
        entries = survey(database).offsets.entries
        assert {name: entry.status for name, entry in entries.items()} == {
            "shop.dbo.orders": "failed",
            "shop.dbo.people": "streaming",
        }
        assert current(database, "people") == source.tables["people"].rows
    settled(database, source)
    same(database, source)


@pytest.mark.parametrize("keys", [pytest.param((("id",),), marks=pytest.mark.long), ()], ids=["in chunks", "whole"])
def test_a_table_whose_chunks_kill_their_worker_holds_back_no_other_snapshot(database, source, monkeypatch, keys):
    source.tables["orders"].keys = keys
    write_some(source)
    source.capture()
    monkeypatch.setattr(take, "CHUNK_ROWS", 2)
    with monkeypatch.context() as during:
        during.setattr(chunk_groups, "write", dies_behind_its_files)
        seen = survey(database)
        decision = plan(seen.facts)
        assert isinstance(decision, Snapshot)
        result = capture_snapshot(database, seen, decision)
        assert [table.name for table in result.failed] == ["orders"]
        assert all(is_own(error) for error in result.failed.values())
        assert {table.name: rows for table, rows in result.rows.items()} == {"orders": 0, "people": 4}
    settled(database, source)
    for name in ("orders", "people"):
        assert sorted(changes(database, name)) == [("r", key, source.tables[name].rows[key]) for key in range(4)]
    staged, committed = files(database, "orders")
    assert staged > committed


def test_chunks_that_are_too_large_together_are_read_one_after_another(database, source, monkeypatch):
    write_some(source)
    source.capture()
    monkeypatch.setattr(take, "CHUNK_ROWS", 1)
    monkeypatch.setattr(chunk_groups, "write", dies_beside_others)
    seen = survey(database)
    decision = plan(seen.facts)
    assert isinstance(decision, Snapshot)
    capture_snapshot(database, seen, decision).raise_failure()
    for name in ("orders", "people"):
        assert sorted(changes(database, name)) == [("r", key, source.tables[name].rows[key]) for key in range(4)]
