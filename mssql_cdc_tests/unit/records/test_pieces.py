"""Change logs as one ordered stream for any layout of their files (rules A4, B11)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_cdc.lake.storage import LOCAL
from mssql_cdc.lsn import cut_text
from mssql_cdc.records.pieces import ChangeLog, Limits, Piece, snapshot_numbers, snapshot_rows, streamed, window_ends
from mssql_cdc_tests.lake_kit import Change, lsn
from mssql_cdc_tests.unit.records.kit import Lake, table

EVERYTHING = Limits(cut_text(0, lsn(1 << 60)), 1 << 40)


def log_of(lake: Lake, name: str, limits: Limits = EVERYTHING) -> ChangeLog:
    table_id = table(name).table_id
    return ChangeLog(table_id, lake.layout.home(table_id).changes, limits, LOCAL)


def positions(logs: list[ChangeLog], window_rows: int) -> list[list[str]]:
    """The positions that were read, per window and table."""
    windows = streamed(logs, window_rows=window_rows)
    return [batch.rows.column("_pos").to_pylist() for window in windows for batch in window]


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=8, unique=True), min_size=1, max_size=6),
    st.integers(1, 20),
)
def test_every_row_comes_once_and_windows_ascend_for_any_files(commits: list[list[int]], window: int):
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(Path(folder))
        schema = lake.add(table("a"))
        wanted = 0
        for number, own in enumerate(commits):
            lake.append(schema, *(Change(at, "c", after={"id": at}, sequence=number + 1) for at in own))
            wanted += len(own)
        found = positions([log_of(lake, "a")], window)
        assert all(own == sorted(own) for own in found)
        flat = [pos for own in found for pos in own]
        assert flat == sorted(set(flat))
        assert len(flat) == wanted


def test_nothing_after_the_cut_or_of_a_later_batch_is_read(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "c", after={"id": 1}), Change(5, "c", after={"id": 5}))
    lake.append(schema, Change(2, "c", after={"id": 2}))
    ((own,),) = [positions([log_of(lake, "a", Limits(cut_text(0, lsn(3)), 1))], 100)]
    assert len(own) == 1
    assert own[0].startswith(f"0000-{lsn(1).raw.hex()}")


def test_snapshot_rows_are_not_streamed_and_incremental_ones_are(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "r", after={"id": 1}), snapshot="4")
    lake.append(schema, Change(2, "r", after={"id": 2}, snapshot=5), snapshot="incremental:5")
    log = log_of(lake, "a")
    assert snapshot_numbers(log) == {"4"}
    assert [batch.num_rows for batch in snapshot_rows(log, "4")] == [1]
    ((own,),) = [positions([log], 100)]
    assert own[0].startswith(f"0000-{lsn(2).raw.hex()}")


def test_deletes_of_a_sweep_are_not_streamed(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "d", {"id": 1}), flag="sweep:4")
    lake.append(schema, Change(2, "d", {"id": 2}))
    ((own,),) = [positions([log_of(lake, "a")], 100)]
    assert len(own) == 1
    assert own[0].startswith(f"0000-{lsn(2).raw.hex()}")


@pytest.mark.parametrize("rows", [1, 3])
def test_a_window_never_ends_between_the_rows_of_a_split_key_change(rows: int):
    split = f"0000-{'0' * 20}-{'0' * 8}-{'0' * 20}-"
    pieces = [Piece("a", 0, rows, split + "3", split + "3", frozenset())]
    assert all(not end < split + "4" for end in window_ends(pieces, 1))
