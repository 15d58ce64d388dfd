"""An update in shares is the same table as one in a single task, whatever the ranges of keys and groups of files."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mssql_cdc.errors import StorageError
from mssql_cdc.lake import current, shares
from mssql_cdc.lake.apply_task import ApplyTask
from mssql_cdc.lake.current import CurrentRequest, CurrentTables
from mssql_cdc.lake.current_table import Vectors
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.read import BatchSlice
from mssql_cdc.lake.window import KeyRange, WindowFile, _overlapping, window
from mssql_cdc_tests.lake_kit import Change, append, change_log, home_in
from mssql_cdc_tests.unit.lake.test_current_tables import SCHEMA, Model, apply, mutate, newest, no_spark, rows

FORCED = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)


def created(at: int, keys: range) -> list[Change]:
    return [Change(at, "c", after={"id": n, "name": "a", "note": None}, sequence=n + 1) for n in keys]


def task_of(home: TableHome, up_to: int, vectors: Vectors = "true") -> ApplyTask:
    plan = CurrentTables(no_spark)._plan(CurrentRequest(home, [SCHEMA], up_to, vectors))
    assert isinstance(plan, current.Planned)
    return plan.task


@pytest.fixture
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small that every update has several ranges, and every table several groups."""
    monkeypatch.setattr(shares, "MOST_ROWS", 4)
    monkeypatch.setattr(shares, "LOOK_UP_SECONDS", 1e-9)
    monkeypatch.setattr(shares, "LARGE_ROWS", 6)
    monkeypatch.setattr("mssql_cdc.lake.apply_task.LARGE_ROWS", 6)


@pytest.mark.long
@pytest.mark.usefixtures("small_shares")
@FORCED
@given(seed=st.integers(0, 2**32), modes=st.lists(st.sampled_from(["auto", "true", "false"]), min_size=1, max_size=10))
def test_any_history_in_shares_is_the_model(tmp_path_factory: pytest.TempPathFactory, seed: int, modes: list[Vectors]):
    random_, model = random.Random(seed), Model()
    home = home_in(tmp_path_factory.mktemp("lake"))
    state = change_log(home, SCHEMA)
    for at, vectors in enumerate(modes, start=1):
        for part in range(random_.randint(1, 3)):
            state = append(state, SCHEMA, *mutate(random_, model, 10 * at + part, random_.randint(1, 30)))
        apply(home, state.batch, vectors)
        assert rows(home) == model
        assert newest(home).rows == len(model)


@pytest.mark.usefixtures("small_shares")
def test_a_row_that_is_newer_than_its_change_stays_whichever_share_has_its_file(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, *created(50, range(40)))
    apply(home, state.batch, "true")
    late = [Change(5, "r", after={"id": n, "name": "late", "note": None}, sequence=n + 1) for n in range(60)]
    state = append(state, SCHEMA, *late)
    apply(home, state.batch, "true")
    found = rows(home)
    assert {found[n][0] for n in range(40)} == {"a"}
    assert {found[n][0] for n in range(40, 60)} == {"late"}
    assert len(found) == newest(home).rows == 60


@pytest.mark.usefixtures("small_shares")
def test_a_large_update_has_several_shares_that_have_each_key_and_file_once(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, *created(1, range(40)))
    apply(home, state.batch, "true")
    changed = [Change(2, "u", c.after, c.after, sequence=c.sequence) for c in created(2, range(0, 40, 2))]
    state = append(state, SCHEMA, *changed)
    whole = task_of(home, state.batch)
    found = shares.shares(whole, cores=2)
    assert len(found) >= 5
    assert sorted(file.path for share in found for file in share.live) == sorted(file.path for file in whole.live)
    keys = [key for share in found for batch in share.window.rows(["_key"]) for key in batch.column(0).to_pylist()]
    assert sorted(keys) == sorted(f"{len(str(n))}:{n}" for n in range(0, 40, 2))


def test_a_small_update_is_one_task(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, *created(1, range(40)))
    apply(home, state.batch, "true")
    state = append(state, SCHEMA, *created(2, range(40, 50)))
    task = task_of(home, state.batch)
    assert shares.shares(task, cores=8) == [task]


@pytest.mark.parametrize("snapshot", [True, False])
def test_ranges_of_keys_read_each_file_once_where_files_have_keys_of_their_own(tmp_path: Path, *, snapshot: bool):
    home = home_in(tmp_path)
    state = change_log(home, SCHEMA)
    for part in range(4):
        keys = range(1000 + 100 * part, 1100 + 100 * part) if snapshot else range(1000 + part, 1400, 4)
        state = append(state, SCHEMA, *created(part + 1, keys))
    whole = window(home.changes, BatchSlice(0, state.batch))
    parts = [whole.within(keys) for keys in whole.ranges(100)]
    counts = [sum(batch.num_rows for batch in part.rows(["op"])) for part in parts]
    assert len(parts) == 4
    assert sum(counts) == 400
    assert max(counts) <= 130
    assert [len(part.files) for part in parts] == ([1] * 4 if snapshot else [4] * 4)


def test_a_range_reads_only_row_groups_that_may_hold_its_keys(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, *created(1, range(1000, 1050)))
    whole = window(home.changes, BatchSlice(0, state.batch))
    part = whole.within(KeyRange("4:1010", "4:1012"))
    assert [batch.column(0).to_pylist() for batch in part.rows(["_key"])] == [["4:1010", "4:1011"]]
    assert list(whole.within(KeyRange("5:0", None)).rows(["_key"])) == []


def test_files_without_bounds_overlap_with_all_that_follow():
    known = [WindowFile(str(n), 1, 1, f"1:{n}", f"1:{n}") for n in range(3)]
    assert [len(group) for group in _overlapping(known)] == [1, 1, 1]
    assert [len(group) for group in _overlapping([*known, WindowFile("x", 1, 1)])] == [4]


def test_a_change_log_that_cannot_be_read_is_the_error_of_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, *created(1, range(40)))
    for file in Path(home.changes).glob("*.parquet"):
        file.unlink()
    monkeypatch.setattr(shares, "MOST_ROWS", 4)
    with pytest.raises(StorageError, match="cannot be read"):
        apply(home, state.batch)
