"""Snapshots that read a part of a table, by a signal's filter or a statement of the configuration (SNP-13, BLK-04).

A part of the rows cannot repair a table whose stream does not go on: what is left out would stay as it was.
"""

from __future__ import annotations

import json

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import REQUESTED, SignalRow, note_signal
from mssql_cdc.errors import DataLostError
from mssql_cdc.lake.gaps import load_gaps
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.run.loop import catch_up
from mssql_cdc.run.loss import go_on_after_restore
from mssql_cdc_tests.spark.model_lake import changes, current, model_database, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SOME = "SELECT * FROM dbo.orders WHERE id IN (2, 3)"
OVERRIDE = {
    "snapshot.select.statement.overrides": "dbo.orders",
    "snapshot.select.statement.overrides.dbo.orders": SOME,
}


def ask_for_some(database: Database) -> None:
    """Request a snapshot of the orders 2 and 3."""
    filters = [{"data-collection": "shop.dbo.orders", "filter": SOME}]
    data = {"type": "blocking", "data-collections": ["shop.dbo.orders"], "additional-conditions": filters}
    note_signal(database, SignalRow("s1", "execute-snapshot", json.dumps(data)), "test", REQUESTED, "")


def clean_up_while_reading(source: ModelSource) -> None:
    """Let cleanup pass the stream's position after the first rows were read."""

    def cleanup() -> None:
        source.before_read = lambda: None
        source.tables["orders"].minimum = source.number

    source.before_read = cleanup


def reads(database: Database, name: str = "orders") -> list[int | None]:
    return [key for op, key, _ in changes(database, name) if op == "r"]


@pytest.mark.feature("BLK-04", "SNP-07")
def test_changes_that_go_while_a_filter_is_read_are_repaired_by_a_whole_snapshot(source, spark, tmp_path):
    database = model_database(source, spark, tmp_path, snapshot_mode="when_needed")
    write_some(source)
    settled(database, source)
    source.put("orders", 0, "not in the filter")
    source.put("orders", 1, None)
    source.capture()
    ask_for_some(database)
    clean_up_while_reading(source)
    settled(database, source)
    same(database, source)
    assert [gap.status for gap in load_gaps(database.layout)] == ["open"]


@pytest.mark.feature("BLK-04")
def test_changes_that_go_while_a_filter_is_read_are_a_loss(database, source):
    write_some(source)
    settled(database, source)
    source.put("orders", 0, "not in the filter")
    source.put("orders", 1, None)
    source.capture()
    ask_for_some(database)
    clean_up_while_reading(source)
    with pytest.raises(DataLostError, match=r"shop\.dbo\.orders"):
        catch_up([database], timeout=120)
    assert load_offsets(database.layout).entries["shop.dbo.orders"].status == "lost"


@pytest.mark.feature("SNP-13")
def test_a_table_that_lost_changes_is_read_in_full_despite_a_statement_of_its_own(source, spark, tmp_path):
    database = model_database(source, spark, tmp_path, snapshot_mode="when_needed", **OVERRIDE)
    write_some(source)
    settled(database, source)
    assert current(database, "orders") == {key: source.tables["orders"].rows[key] for key in (2, 3)}
    source.put("orders", 0, "streamed")
    source.put("orders", 1, "streamed")
    settled(database, source)
    source.put("orders", 0, "lost")
    source.put("orders", 1, None)
    source.capture()
    source.tables["orders"].minimum = source.number
    settled(database, source)
    same(database, source)


@pytest.mark.feature("SNP-13")
def test_a_table_with_another_key_is_read_in_full_despite_a_statement_of_its_own(source, spark, tmp_path):
    database = model_database(source, spark, tmp_path, **OVERRIDE)
    write_some(source)
    settled(database, source)
    source.put("orders", 0, "streamed")
    settled(database, source)
    source.tables["orders"].keys = (("name",),)
    source.put("people", 0, "later")
    settled(database, source)
    same(database, source)


@pytest.mark.feature("SNP-13")
def test_behind_a_restore_a_table_is_read_in_full_despite_a_statement_of_its_own(source, spark, tmp_path):
    database = model_database(source, spark, tmp_path, **OVERRIDE)
    write_some(source)
    settled(database, source)
    source.put("orders", 0, "streamed")
    source.put("orders", 7, "never happened")
    settled(database, source)
    source.restore(20)
    for key in range(4):
        source.put("people", key, "another history")
    source.capture()
    go_on_after_restore(database, by="somebody")
    settled(database, source)
    same(database, source)


@pytest.mark.feature("SNP-13")
def test_rows_that_go_between_two_reads_of_a_part_are_swept(source, spark, tmp_path):
    """The first read no longer counts, since cleanup has passed its mark: the deletes behind it are gone with it."""
    database = model_database(source, spark, tmp_path, **OVERRIDE)
    write_some(source)
    source.capture()

    def cleanup() -> None:
        source.before_read = lambda: None
        source.put("orders", 3, None)
        source.put("people", 9, "later")
        source.capture()
        source.tables["orders"].minimum = source.number

    source.before_read = cleanup
    settled(database, source)
    assert reads(database) == [2, 3, 2], "read twice"
    assert current(database, "orders") == {2: source.tables["orders"].rows[2]}


@pytest.mark.feature("BLK-04")
def test_a_table_without_a_key_is_read_in_full_despite_a_filter(source, spark, tmp_path):
    database = model_database(source, spark, tmp_path)
    source.tables["orders"].keys = ()
    write_some(source)
    settled(database, source)
    ask_for_some(database)
    source.put("orders", 1, "later")
    settled(database, source)
    assert reads(database) == [0, 1, 2, 3] * 2
