"""Change rows are counted by the window of their commit time, whichever range brought them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from mssql_cdc.lake.commit_counts import count_by_window
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.read import BatchSlice, Commits, open_files
from mssql_cdc_tests.lake_kit import Change, append, change_log, column, home_in, orders

SCHEMA = orders(column("id", "int"))
HOUR = timedelta(hours=1)
TEN, ELEVEN = datetime(2026, 5, 1, 10, tzinfo=UTC), datetime(2026, 5, 1, 11, tzinfo=UTC)
JUST_BEFORE = ELEVEN - timedelta(microseconds=1)


def change(at: int, committed: datetime, op: str = "c") -> Change:
    row = {"id": at}
    return Change(at, op, row if op == "d" else None, None if op == "d" else row, committed=committed)


def filled(home: TableHome) -> TableState:
    state = change_log(home, SCHEMA)
    state = append(state, SCHEMA, change(1, TEN), change(2, JUST_BEFORE), change(3, ELEVEN, "d"))
    return append(state, SCHEMA, change(4, ELEVEN + 2 * HOUR))


def test_a_range_across_the_hour_is_counted_by_commit_hour(tmp_path: Path) -> None:
    state = filled(home_in(tmp_path))
    assert count_by_window(state.uri, HOUR, batches=BatchSlice(0, 1)) == {TEN: {"c": 2}, ELEVEN: {"d": 1}}


def test_an_interval_counts_only_its_rows_and_opens_only_its_files(tmp_path: Path) -> None:
    state = filled(home_in(tmp_path))
    late = Commits(ELEVEN, ELEVEN + HOUR)
    assert count_by_window(state.uri, HOUR, commits=late) == {ELEVEN: {"d": 1}}
    assert len(open_files(state.uri, commits=late).paths) == 1
    assert len(open_files(state.uri, commits=Commits(TEN, ELEVEN + 3 * HOUR)).paths) == 2


def test_a_window_may_be_a_quarter_of_an_hour_or_a_day(tmp_path: Path) -> None:
    state = filled(home_in(tmp_path))
    quarters = count_by_window(state.uri, timedelta(minutes=15))
    assert set(quarters) == {TEN, TEN + timedelta(minutes=45), ELEVEN, ELEVEN + 2 * HOUR}
    assert count_by_window(state.uri, timedelta(days=1)) == {datetime(2026, 5, 1, tzinfo=UTC): {"c": 3, "d": 1}}


def test_a_table_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    assert count_by_window(str(tmp_path / "none"), HOUR) == {}
