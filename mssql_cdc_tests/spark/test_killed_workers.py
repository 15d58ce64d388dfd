"""A worker that dies while it folds, as the kernel ends one that takes too much memory: the trouble of one table."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import TaskContext

from mssql_cdc.errors import WorkerError
from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.lake import current, shares
from mssql_cdc.lake.apply_task import ApplyTask, apply_task
from mssql_cdc.run.follower import Follower
from mssql_cdc_tests.lake_kit import Change, append, change_log, home_in, orders
from mssql_cdc_tests.spark.conftest import rows_of
from mssql_cdc_tests.spark.model_lake import current as rows_in
from mssql_cdc_tests.spark.model_lake import same, settled, write_some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def too_large(task: ApplyTask) -> dict[str, Any]:
    """`apply_task`, but the table `orders` kills its worker."""
    if "/orders/" in task.target.uri and TaskContext.get() is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return apply_task(task)


def too_large_together(task: ApplyTask) -> dict[str, Any]:
    """`apply_task`, but a share that does not wait for the others kills its worker."""
    context = TaskContext.get()
    if context is not None and context.partitionId():
        os.kill(os.getpid(), signal.SIGKILL)
    return apply_task(task)


def test_a_table_whose_fold_kills_its_worker_holds_back_no_other(database, source, monkeypatch):
    write_some(source)
    settled(database, source)
    follower = Follower(database, slow=SlowWork())
    with monkeypatch.context() as during:
        during.setattr(current, "_LITTLE", 0)
        during.setattr(current, "apply_task", too_large)
        for number in range(2):
            write_some(source)
            source.capture()
            merged = follower.step().merged
            assert rows_in(database, "people") == source.tables["people"].rows
            assert [table.name for table in merged.tables] == ["people"]
            if number:
                assert not merged.errors, "after its failure a table is left alone for a while"
            else:
                ((table, error),) = merged.errors.items()
                assert (table.name, type(error)) == ("orders", WorkerError)
                assert "All of its tasks were this table's" in str(error)
    follower.close()
    settled(database, source)
    same(database, source)


def test_shares_that_are_too_large_together_are_folded_one_after_another(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home, schema = home_in(tmp_path), orders()
    rows = [{"id": number, "name": "a", "note": "n"} for number in range(20)]
    state = append(
        change_log(home, schema), schema, *(Change(1, "c", after=row, sequence=row["id"] + 1) for row in rows)
    )
    monkeypatch.setattr(shares, "MOST_ROWS", 5)
    monkeypatch.setattr(current, "_LITTLE", 0)
    monkeypatch.setattr(current, "apply_task", too_large_together)
    assert current.apply(spark, home, [schema], up_to=state.batch).rows == 20
    assert len(rows_of(spark, home.current)) == 20
