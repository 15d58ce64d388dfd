"""`run --until-caught-up` ends behind a wait without progress, however long what it does takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.capture.snapshot.progress import Progress, TableProgress
from mssql_cdc.errors import SourceUnavailableError
from mssql_cdc.run.loop import catch_up
from mssql_cdc.run.patience import Patience
from mssql_cdc.schema import TableId
from mssql_cdc_tests.spark.model_lake import model_database, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

pytestmark = pytest.mark.spark


@pytest.mark.feature("SNP-01")
def test_steps_that_come_nearer_to_the_goal_are_no_wait(database: Database, source: ModelSource):
    """Behind a first snapshot of more than ten minutes the command ended with code 3, though it had succeeded."""
    write_some(source)
    source.capture()
    catch_up([database], timeout=0)
    same(database, source)
    write_some(source)
    source.capture()
    catch_up([database], timeout=0)
    same(database, source)


def test_an_incremental_snapshot_that_waits_is_what_the_time_out_names(
    source: ModelSource, spark: SparkSession, tmp_path: Path
):
    """It said that it waits for "no changes since …"."""
    database = model_database(source, spark, tmp_path)
    write_some(source)
    settled(database, source)
    limits = {"incremental_snapshot_max_rows_per_second": "1", "incremental_snapshot_chunk_size": "1"}
    slow = model_database(source, spark, tmp_path, **limits)
    ask_for_snapshot(slow, "again", ["shop.dbo.orders"], channel="test", kind="incremental")
    with pytest.raises(SourceUnavailableError) as raised:
        catch_up([slow], timeout=0)
    assert "still waiting for: shop.dbo.orders: incremental snapshot: " in str(raised.value)
    assert str(raised.value).endswith("; incremental.snapshot.max.rows.per.second is 1")


def test_a_group_of_chunks_is_progress_and_one_that_is_read_again_is_none():
    now = 0.0
    shown: list[Progress] = []
    patience = Patience(10, show=shown.append, clock=lambda: now)

    def read(at: float, **done: int) -> bool:
        """Whether the patience ends ten seconds behind this progress at this time."""
        nonlocal now
        now = at
        tables = {TableId("shop", "dbo", name): TableProgress(count, 9, count) for name, count in done.items()}
        patience.progress(Progress(tables))
        now = at + 10
        return patience.is_over(None)

    assert not read(1, orders=0, people=0)
    assert not read(5, orders=1, people=0)
    assert read(20, orders=1, people=0), "nothing was added"
    assert read(20, orders=0, people=0), "the snapshot failed, and began anew"
    assert not read(20, orders=1, people=1)
    assert read(40, orders=1)
    assert not read(40, orders=2)
    assert len(shown) == 7
