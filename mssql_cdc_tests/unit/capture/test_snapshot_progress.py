"""The progress of a snapshot, per table and in total."""

from __future__ import annotations

import pytest

from mssql_cdc.capture.snapshot.progress import Progress, TableProgress
from mssql_cdc.schema import TableId


def test_progress_is_counted_per_table_and_in_total():
    large, small = TableId("shop", "dbo", "large"), TableId("shop", "dbo", "small")
    progress = Progress({large: TableProgress(7, 13, 1_400_000), small: TableProgress(1, 1, 50)})
    assert {table.name: own.percent for table, own in progress.tables.items()} == {"large": 53, "small": 100}
    assert progress.total == TableProgress(8, 14, 1_400_050)
    assert progress.total.percent == 57


def test_progress_tells_the_rate_and_the_time_left_of_this_run():
    large, small = TableId("shop", "dbo", "large"), TableId("shop", "dbo", "small")
    tables = {large: TableProgress(8, 20, 1_200_000, 4_000_000), small: TableProgress(1, 1, 50, 50)}
    progress = Progress(tables, seconds=30.0)
    assert (progress.rows_left, progress.percent) == (2_400_000, 40)
    assert progress.rows_per_second == pytest.approx(40_001, abs=1)
    assert progress.seconds_left == pytest.approx(60, abs=0.01)
    assert progress.text == "40%, 1,200,050 rows, 9 of 21 chunks, 40,002 rows/s, 1 min 0 s left"


def test_progress_shows_that_the_number_of_chunks_is_an_estimate_until_all_are_planned():
    large, small = TableId("shop", "dbo", "large"), TableId("shop", "dbo", "small")
    tables = {
        large: TableProgress(8, 20, 1_600_000, 4_000_000, is_planned=False),
        small: TableProgress(1, 1, 50, 50, is_planned=True),
    }
    progress = Progress(tables, seconds=30.0)
    assert progress.text == "40%, 1,600,050 rows, 9 of about 21 chunks, 53,335 rows/s, 45 s left"


def test_progress_says_nothing_of_the_time_left_before_this_run_has_read_a_chunk():
    tables = {TableId("shop", "dbo", "large"): TableProgress(2, 20, 0, 4_000_000)}
    assert Progress(tables, seconds=30.0).text == "10%, 0 rows, 2 of 20 chunks"


def test_progress_is_that_of_the_rows_where_the_chunks_of_small_tables_are_many():
    large, small = TableId("shop", "dbo", "large"), TableId("shop", "dbo", "small")
    tables = {large: TableProgress(0, 1, 0, 900), small: TableProgress(9, 9, 100, 100)}
    assert Progress(tables, seconds=1.0).percent == 10


def test_progress_of_an_empty_snapshot_is_zero():
    assert Progress({}).total.percent == 0
