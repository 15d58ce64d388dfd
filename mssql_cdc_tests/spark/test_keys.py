"""Keys that change: the current table keeps its rows until a snapshot under the new key replaces them (rule B15)."""

from __future__ import annotations

from collections import Counter

import pytest
from deltalake import DeltaTable, QueryBuilder

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.check.story import log_start
from mssql_cdc.errors import SourceError
from mssql_cdc.run.loop import catch_up
from mssql_cdc_tests.spark.model_lake import changes, current, model_database, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NAME, ID = ("name",), ("id",)


def reads(database: Database, name: str = "orders") -> int:
    """The rows that snapshots have read."""
    return [op for op, _, _ in changes(database, name)].count("r")


@pytest.fixture
def kept(database: Database, source: ModelSource) -> Database:
    """A lake that holds some rows of two tables."""
    write_some(source)
    settled(database, source)
    return database


def test_another_key_replaces_the_current_table_once_all_rows_are_read_again(kept: Database, source: ModelSource):
    """Review, bugs 5 and 18: the table was emptied, and held only what changed later."""
    before = dict(source.tables["orders"].rows)
    source.tables["orders"].keys = (NAME,)
    source.put("orders", 1, None)
    source.put("orders", 2, "changed")
    source.faults["orders"] = "the disk is full"
    source.capture()
    with pytest.raises(SourceError, match="the disk is full"):
        catch_up([kept], timeout=60)
    assert current(kept, "orders") == before
    source.faults.clear()
    settled(kept, source)
    same(kept, source)
    source.put("orders", 3, "later")
    settled(kept, source)
    same(kept, source)


def test_a_key_that_was_away_for_a_while_is_filled_again(kept: Database, source: ModelSource):
    """Review, bug 6: an index that is disabled for a load and rebuilt froze the table for ever."""
    source.tables["orders"].keys = ()
    source.put("orders", 1, None)
    source.put("orders", 8, "while the index was disabled")
    settled(kept, source)
    source.tables["orders"].keys = (ID,)
    settled(kept, source)
    same(kept, source)
    source.put("orders", 9, "later")
    settled(kept, source)
    same(kept, source)


def test_a_further_index_changes_nothing_while_the_former_key_is_there(kept: Database, source: ModelSource):
    """Review, bugs 5 and 18: a key beside the one that there was."""
    read = reads(kept)
    source.tables["orders"].keys = (NAME, ID)
    source.put("orders", 2, "changed")
    settled(kept, source)
    same(kept, source)
    assert reads(kept) == read


def test_a_table_that_gets_its_first_key_is_read_whole(database: Database, source: ModelSource):
    source.tables["orders"].keys = ()
    write_some(source)
    settled(database, source)
    source.tables["orders"].keys = (ID,)
    source.put("orders", 2, "changed")
    settled(database, source)
    same(database, source)


def test_a_key_that_changes_while_its_snapshot_runs_is_planned_anew(
    source: ModelSource, spark: object, tmp_path: object
):
    database = model_database(source, spark, tmp_path)  # type: ignore[arg-type]
    write_some(source)
    source.faults["orders"] = "the disk is full"
    source.capture()
    with pytest.raises(SourceError, match="the disk is full"):
        catch_up([database], timeout=60)
    source.tables["orders"].keys = (NAME,)
    source.faults.clear()
    settled(database, source)
    same(database, source)


@pytest.mark.feature("SNP-01")
def test_a_table_without_a_key_adds_up_from_its_last_snapshot_on(database: Database, source: ModelSource):
    """Review, bug 15: snapshotted again, the change log held every row twice."""
    source.tables["orders"].keys = ()
    write_some(source)
    settled(database, source)
    assert folded(database) == source.tables["orders"].rows
    source.put("orders", 1, None)
    source.put("orders", 2, "before the second snapshot")
    source.capture()
    ask_for_snapshot(database, "again", ["shop.dbo.orders"], channel="test")
    source.put("orders", 8, "not captured yet when it is read")
    settled(database, source)
    assert folded(database) == source.tables["orders"].rows
    assert reads(database) > len(source.tables["orders"].rows)
    source.put("orders", 8, None)
    source.put("orders", 9, "later")
    settled(database, source)
    assert folded(database) == source.tables["orders"].rows
    # No event is missing: those that the second snapshot holds are in the log, in front of its rows.
    assert ("u", 2, "before the second snapshot") in changes(database, "orders")


def folded(database: Database) -> dict[int, str]:
    """What the change log of orders adds up to: images after, minus images before."""
    versions = database.history().versions["shop.dbo.orders"]
    start = log_start(versions, folder="dbo/orders", offsets=database.offsets())
    uri = database.layout.root + "/dbo/orders/changes"
    sql = f"SELECT before, after FROM t WHERE _pos >= '{start}'"
    rows = QueryBuilder().register("t", DeltaTable(uri)).execute(sql).read_all()
    counts: Counter[tuple[int, str]] = Counter()
    for image, sign in (("after", 1), ("before", -1)):
        for row in rows[image].to_pylist():
            if row is not None:
                counts[row["id"], row["name"]] += sign
    assert set(counts.values()) <= {0, 1}
    return dict(key for key, count in counts.items() if count)
