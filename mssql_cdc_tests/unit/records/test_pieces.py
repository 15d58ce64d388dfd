"""Change logs as one ordered stream for any layout of their files (rules A4, B11)."""

from __future__ import annotations

import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_cdc.lake.storage import LOCAL
from mssql_cdc.lsn import cut_text, snapshot_position_text
from mssql_cdc.records import pieces
from mssql_cdc.records.pieces import ChangeLog, Limits, Piece, first_row, snapshot_numbers, snapshot_rows, streamed
from mssql_cdc_tests.lake_kit import Change, column, lsn
from mssql_cdc_tests.unit.records.kit import Lake, table

EVERYTHING = Limits(cut_text(0, lsn(1 << 60)), 1 << 40)


def log_of(lake: Lake, name: str, limits: Limits = EVERYTHING) -> ChangeLog:
    table_id = table(name).table_id
    return ChangeLog(table_id, lake.layout.home(table_id), limits, LOCAL)


def positions(logs: list[ChangeLog], window_rows: int) -> list[list[str]]:
    """The positions that were read, per window and table."""
    windows = streamed(logs, window_rows=window_rows)
    return [batch.rows.column("_pos").to_pylist() for window in windows for batch in window]


def reads(monkeypatch: pytest.MonkeyPatch) -> list[Piece]:
    """The pieces that are read from now on."""
    found: list[Piece] = []
    whole = ChangeLog.read
    monkeypatch.setattr(ChangeLog, "read", lambda log, piece: (found.append(piece), whole(log, piece))[1])
    return found


def large(at: int, op: str = "c", size: int = 1000, **more: Any) -> Change:
    """A change with a large value."""
    return Change(at, op, after={"id": at, "note": f"{at}".rjust(size, "x")}, **more)


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
    read = reads(monkeypatch)
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


def test_no_more_row_groups_of_large_rows_are_read_than_make_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """All of a table's were read before its first record, until 15,000 rows waited: from 2 GiB on, none came."""
    monkeypatch.setattr(pieces, "WINDOW_BYTES", 4000)
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    for start in range(0, 80, 2):
        lake.append(schema, large(start), large(start + 1))
    log, rows = log_of(lake, "a"), 0
    assert len(log.pieces) == 40
    read = reads(monkeypatch)
    for (batch,) in streamed([log]):
        rows += batch.rows.num_rows
        assert batch.rows.nbytes <= 4000
        assert len(read) - rows // 2 <= 3  # Row groups beside those of the windows so far.
    assert rows == 80


def test_no_more_row_groups_of_a_snapshot_are_read_than_make_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pieces, "WINDOW_BYTES", 4000)
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    for start in range(0, 80, 2):
        lake.append(schema, *(large(7, "r", sequence=start + row) for row in (1, 2)))
    log, read = log_of(lake, "a"), reads(monkeypatch)
    windows = snapshot_rows(log, "1")
    first = next(windows)
    assert first.nbytes <= 4000
    assert len(read) <= 3
    assert first.num_rows + sum(rows.num_rows for rows in windows) == 80


def test_row_groups_that_overlap_are_copied_together_by_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each spans all positions, so that all are read first; together, they can have more than an Arrow array."""
    monkeypatch.setattr(pieces, "WINDOW_BYTES", 4000)
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    for start in range(10):
        lake.append(schema, *(large(at) for at in range(start, 80, 10)))
    log, whole = log_of(lake, "a"), pa.concat_batches

    def limited(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        assert sum(batch.nbytes for batch in batches) <= 4000
        return whole(batches)

    monkeypatch.setattr(pa, "concat_batches", limited)
    found = positions([log], 15_000)
    assert [pos for own in found for pos in own] == sorted({pos for own in found for pos in own})
    assert sum(map(len, found)) == 80


@pytest.mark.parametrize("places", [{0}, {50}, {99}, {10, 11, 12}, {0, 40, 80}])
def test_some_large_rows_among_small_ones_make_no_large_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: set[int]
):
    """Windows had so many rows as fit at the average size, and the large ones could all stand in one."""
    monkeypatch.setattr(pieces, "WINDOW_BYTES", 20_000)
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, *(large(at, size=15_000 if at in places else 10) for at in range(100)))
    windows = [rows for (batch,) in streamed([log_of(lake, "a")]) for rows in [batch.rows]]
    assert max(rows.nbytes for rows in windows) <= 20_000
    assert sum(rows.num_rows for rows in windows) == 100
    assert len(windows) <= 40


def test_one_row_of_a_snapshot_costs_one_row_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    for start in range(0, 8, 2):
        lake.append(schema, *(Change(7, "r", after={"id": row}, sequence=start + row) for row in (1, 2)))
    log, read = log_of(lake, "a"), reads(monkeypatch)
    first = first_row(log, "1")
    assert first is not None
    assert first.column("_pos").to_pylist() == [snapshot_position_text(0, lsn(7), number=1, chunk=0, row=1)]
    assert len(read) == 1


def test_a_row_group_that_others_have_made_large_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Pyarrow reads no 2 GiB of a text within a struct at once; a compacted file of equal texts has them in 5 MB."""
    lake = Lake(tmp_path)
    schema = lake.add(table("a"))
    lake.append(schema, *(Change(at, "c", after={"id": at}) for at in range(10)))
    log = log_of(lake, "a")

    def refused(*_: object, **__: object) -> None:
        raise NotImplementedError("Nested data conversions not implemented for chunked array outputs")

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", refused)
    assert sum(map(len, positions([log], 100))) == 10


def test_instants_of_other_writers_are_read_whole(tmp_path: Path):
    """Spark's OPTIMIZE may store INT96, which overflows in nanoseconds: 9999-12-31 is the end of many rows."""
    lake, end = Lake(tmp_path), datetime(9999, 12, 31)  # noqa: DTZ001 - a datetime2 has no time zone
    schema = lake.add(table("a", column("id", "int", nullable=False), column("ends", "datetime2", scale=3)))
    lake.append(schema, Change(1, "c", after={"id": 1, "ends": end}))
    (file,) = tmp_path.rglob("changes/*.parquet")
    pq.write_table(
        pq.read_table(file, partitioning=None), file, use_deprecated_int96_timestamps=True, store_schema=False
    )
    ((batch,),) = streamed([log_of(lake, "a")])
    assert batch.rows.column("after")[0].as_py() == {"id": 1, "ends": end}
