"""What a step says of the current tables that it has updated: a line costs Dagster 25 ms before the next range."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.run.follower import Follower
from mssql_cdc_tests.spark.model_lake import current, model_database, same, settled
from mssql_cdc_tests.spark.model_source import ModelSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def told(database, source, follower: Follower) -> list[str]:
    """The lines of one step about current tables."""
    lines: list[str] = []
    object.__setattr__(database, "log", lines.append)
    source.capture()
    follower.step()
    return [line for line in lines if "current table" in line]


def test_a_step_says_in_one_line_which_tables_it_has_updated(spark: SparkSession, tmp_path: Path):
    names = [f"t{number:02}" for number in range(12)]
    source = ModelSource(*names)
    database = model_database(source, spark, tmp_path)
    for name in names:
        source.put(name, 1, "a")
    settled(database, source)
    follower = Follower(database, slow=SlowWork())
    for name in names[:2]:
        source.put(name, 1, "b")
    source.put(names[0], 2, "c")
    assert told(database, source, follower) == [
        "3 change rows merged into current tables (shop.dbo.t00 2, shop.dbo.t01 1)"
    ]
    for name in names:
        source.put(name, 1, "d")
    (line,) = told(database, source, follower)
    assert line.startswith("12 change rows merged into current tables (shop.dbo.t00 1, ")
    assert line.endswith("shop.dbo.t07 1 and 4 more tables)")
    follower.close()
    same(database, source)


def test_a_table_that_was_restored_is_told_in_a_line_of_its_own(database, source, spark: SparkSession):
    for name in ("orders", "people"):
        source.put(name, 1, "a")
    settled(database, source)
    source.put("orders", 2, "b")
    settled(database, source)
    uri = f"{database.layout.root}/dbo/orders/current"
    spark.sql(f"RESTORE TABLE delta.`{uri}` TO VERSION AS OF 0").collect()
    assert current(database, "orders") != source.tables["orders"].rows
    follower = Follower(database.apart(), slow=SlowWork())
    lines = told(follower.database, source, follower)
    assert [line for line in lines if "restored" in line] == lines[:1]
    assert lines[0].startswith("shop.dbo.orders: somebody has restored the current table (Delta version 2)")
    assert len(lines) == 2
    follower.close()
    same(database, source)
