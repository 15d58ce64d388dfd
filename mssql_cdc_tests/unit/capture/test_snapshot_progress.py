"""The progress of a snapshot, per table and in total."""

from __future__ import annotations

from mssql_cdc.capture.snapshot.progress import Progress, TableProgress
from mssql_cdc.schema import TableId


def test_progress_is_counted_per_table_and_in_total():
    large, small = TableId("shop", "dbo", "large"), TableId("shop", "dbo", "small")
    progress = Progress({large: TableProgress(7, 13, 1_400_000), small: TableProgress(1, 1, 50)})
    assert {table.name: own.percent for table, own in progress.tables.items()} == {"large": 53, "small": 100}
    assert progress.total == TableProgress(8, 14, 1_400_050)
    assert progress.total.percent == 57


def test_progress_of_an_empty_snapshot_is_zero():
    assert Progress({}).total.percent == 0
