"""Change logs as one ordered stream for any layout of their files (rules A4, B11)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_cdc.lake.storage import LOCAL
from mssql_cdc.lsn import cut_text
from mssql_cdc.records.pieces import ChangeLog, Limits, Piece, snapshot_numbers, snapshot_rows, streamed
from mssql_cdc_tests.lake_kit import Change, lsn
from mssql_cdc_tests.unit.records.kit import Lake, table

EVERYTHING = Limits(cut_text(0, lsn(1 << 60)), 1 << 40)


def log_of(lake: Lake, name: str, limits: Limits = EVERYTHING) -> ChangeLog:
    table_id = table(name).table_id
    return ChangeLog(table_id, lake.layout.home(table_id), limits, LOCAL)


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


@pytest.mark.parametrize("window", [1, 2, 3])
def test_a_window_never_ends_between_the_rows_of_a_split_key_change(tmp_path: Path, window: int):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, *(Change(at, "u", {"id": at}, {"id": -at}) for at in range(1, 5)))
    found = positions([log_of(lake, "a")], window)
    assert sum(map(len, found)) == 8
    assert all(own[0].endswith("-3") and own[-1].endswith("-4") for own in found)


def test_each_row_group_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lake = Lake(tmp_path)
    logs = []
    for name in ("a", "b"):
        schema = lake.add(table(name))
        for start in (1, 4):
            lake.append(schema, *(Change(at, "c", after={"id": at}) for at in range(start, start + 6)))
        logs.append(log_of(lake, name))
    read: list[Piece] = []
    whole = ChangeLog.read
    monkeypatch.setattr(ChangeLog, "read", lambda log, piece: (read.append(piece), whole(log, piece))[1])
    assert sum(map(len, positions(logs, 2))) == 24
    assert len(read) == len({(piece.path, piece.group) for piece in read}) == 4


def test_what_was_read_before_is_left_out_but_not_a_later_batch(tmp_path: Path):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, Change(1, "c", after={"id": 1}), Change(3, "c", after={"id": 3}))
    lake.append(schema, Change(2, "r", after={"id": 2}), snapshot="repair:1")
    done = Limits(EVERYTHING.cut, EVERYTHING.batch, ((cut_text(0, lsn(2)), 1),))
    ((own,),) = [positions([log_of(lake, "a", done)], 100)]
    assert [pos[5:25] for pos in own] == [lsn(2).raw.hex(), lsn(3).raw.hex()]
