"""The Delta log of one change log or current table is broken: the other tables go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mssql_cdc.capture.database import Database
from mssql_cdc.errors import DataLostError, NotCaughtUpError
from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.status import read_status
from mssql_cdc_tests.spark.model_lake import changes, current, model_database, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

pytestmark = pytest.mark.spark


def break_log(database: Database, how: str, *, of: str = "current") -> None:
    log = Path(database.layout.root, "dbo", "orders", of, "_delta_log")
    for checkpoint in log.glob("*checkpoint*"):
        checkpoint.unlink()  # It would stand for the commits before it.
    newest = max(log.glob("*.json"))
    match how:
        case "gap":
            newest.rename(log / f"{int(newest.stem) + 1:020}.json")
        case "truncated":
            newest.write_bytes(newest.read_bytes()[:-20])
        case _:
            (log / f"{newest.stem}.checkpoint.parquet").write_bytes(b"PAR1 and nothing else")


@pytest.mark.parametrize("how", ["gap", "truncated", "checkpoint"])
def test_a_broken_log_is_the_trouble_of_its_table_alone(database: Database, source: ModelSource, how: str):
    for _ in range(2):
        write_some(source)
        settled(database, source)
    break_log(database, how)
    write_some(source)
    source.capture()
    follower = Follower(database.apart(), slow=SlowWork())
    done = follower.step()
    follower.close()
    assert {table.name: type(error).__name__ for table, error in done.merged.errors.items()} == {
        "orders": "StorageError"
    }
    assert current(database, "people") == source.tables["people"].rows
    assert len(changes(database, "orders")) == len(changes(database, "people"))
    assert follower.step().idle, "the table is tried again at once"
    status = read_status(database.apart())
    assert isinstance(status.finding, NotCaughtUpError)
    assert "orders: the current table cannot be read" in str(status.finding)
    found = {one.table.name: one for one in status.tables}
    assert found["people"].detail is None
    assert found["orders"].status == "streaming"
    assert "the current table cannot be read" in (found["orders"].detail or "")
    assert found["orders"].lag.log == 0
    assert found["orders"].lag.current is None


@pytest.mark.parametrize("how", ["gap", "truncated", "checkpoint"])
def test_a_broken_change_log_is_the_trouble_of_its_table_alone(database: Database, source: ModelSource, how: str):
    for _ in range(2):
        write_some(source)
        settled(database, source)
    break_log(database, how, of="changes")
    write_some(source)
    source.capture()
    follower = Follower(database.apart(), slow=SlowWork())
    follower.step()
    follower.close()
    assert current(database, "people") == source.tables["people"].rows
    found = {one.table.name: one for one in read_status(database.apart()).tables}
    assert found["people"].detail is None
    assert "orders/changes cannot be opened" in (found["orders"].detail or "")
    assert "or move the folder away and take a new snapshot" in (found["orders"].detail or "")


def test_a_change_log_that_was_moved_away_is_read_again_by_a_snapshot(
    source: ModelSource, spark: SparkSession, tmp_path: Path
):
    database = model_database(source, spark, tmp_path, snapshot_mode="when_needed")
    write_some(source)
    settled(database, source)
    break_log(database, "truncated", of="changes")
    with pytest.raises(DataLostError, match="move the folder away"):
        settled(database, source)
    home = Path(database.layout.root, "dbo", "orders")
    (home / "changes").rename(home / "damaged")
    write_some(source)
    settled(database.apart(), source)
    for name in ("orders", "people"):
        assert current(database, name) == source.tables[name].rows
