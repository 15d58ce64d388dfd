"""An update in shares is the same table as one in a single task, whatever the ranges of keys and groups of files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mssql_cdc.errors import StorageError
from mssql_cdc.lake import apply_task, current, look_up, section_rows, shares
from mssql_cdc.lake.apply_task import ApplyTask
from mssql_cdc.lake.arrow_fold import Folded, OldRows, fold_rows
from mssql_cdc.lake.current import CurrentRequest, CurrentTables
from mssql_cdc.lake.current_table import Vectors
from mssql_cdc.lake.fold import FoldPlan
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


# -- More plain bytes than one array takes ----------------------------------------------------------


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each section that is folded at once, of which few are allowed."""
    sizes: list[int] = []

    def spied(rows: pa.RecordBatch, plan: FoldPlan) -> Folded:
        sizes.append(rows.nbytes)
        return fold_rows(rows, plan)

    monkeypatch.setattr(apply_task, "fold_rows", spied)
    limit(monkeypatch, 20_000)
    return sizes


def limit(patch: pytest.MonkeyPatch, size: int) -> None:
    patch.setattr(section_rows, "MOST_PLAIN_BYTES", size)
    patch.setattr("mssql_cdc.lake.look_up.MOST_PLAIN_BYTES", size)


def padded(at: int, keys: Sequence[int], note: str = " " * 1000, op: str = "c") -> list[Change]:
    """Changes with a text that takes little space in a file, and much in memory."""
    rows = ({"id": n, "name": f"{at}", "note": note} for n in keys)
    return [Change(at, op, row, row, sequence=place) for place, row in enumerate(rows, start=1)]


def test_rows_that_are_too_many_bytes_are_folded_in_parts_by_their_keys(tmp_path: Path, folded: list[int]):
    """As char(4000) is, whose blanks take 18 bytes a row: 540,000 rows had more than Arrow's texts may have."""
    home = home_in(tmp_path)
    state = change_log(home, SCHEMA)
    for at in range(1, 7):
        state = append(state, SCHEMA, *padded(at, range(at, 60, 6)))
    result = apply(home, state.batch)
    assert result.rows == 59
    assert rows(home) == {n: (f"{1 + (n - 1) % 6}", " " * 1000) for n in range(1, 60)}
    assert len(folded) > 2
    assert max(folded) <= 20_000


def test_of_many_changes_of_one_row_only_those_are_held_that_decide(tmp_path: Path, folded: list[int]):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, *padded(1, [1, 2]))
    for at in range(2, 52):
        state = append(state, SCHEMA, *padded(at, [1], op="u"))
    unknown = {"id": 1, "name": "last", "note": None}
    state = append(state, SCHEMA, Change(60, "u", unknown, unknown, unavailable=["note"]))
    result = apply(home, state.batch)
    assert result.rows == 53
    assert rows(home) == {1: ("last", " " * 1000), 2: ("1", " " * 1000)}
    assert max(folded) <= 20_000


def test_rows_beside_one_that_has_most_of_the_changes_are_folded_in_parts(tmp_path: Path, folded: list[int]):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, *padded(1, [1]))
    for at in range(2, 32):
        state = append(state, SCHEMA, *padded(at, [1] * 8, op="u"), *padded(at, [8 * at + n for n in range(2)]))
    apply(home, state.batch)
    found = rows(home)
    assert found.pop(1) == ("31", " " * 1000)
    assert found == {8 * at + n: (f"{at}", " " * 1000) for at in range(2, 32) for n in range(2)}
    assert max(folded) <= 20_000


def test_one_row_that_is_too_many_bytes_is_folded_nevertheless(tmp_path: Path, folded: list[int]):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, *padded(1, [1], note="x" * 30_000), *padded(2, range(2, 8)))
    apply(home, state.batch)
    assert {number: len(note or "") for number, (_, note) in rows(home).items()} == {
        1: 30_000, **dict.fromkeys(range(2, 8), 1000)
    }  # fmt: skip


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_old_values_that_are_too_many_bytes_are_taken_over_in_parts(
    tmp_path: Path, vectors: Vectors, monkeypatch: pytest.MonkeyPatch
):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, *padded(1, range(60)))
    apply(home, state.batch, vectors)
    taken: list[int] = []

    def spied(folded: Folded, found: look_up.Found, *, bounded: bool = True) -> OldRows | None:
        old = look_up.old_rows(folded, found, bounded=bounded)
        taken.append(old.rows.nbytes if old is not None else 0)
        return old

    monkeypatch.setattr(apply_task, "old_rows", spied)
    limit(monkeypatch, 20_000)
    after = ({"id": n, "name": "b", "note": None} for n in range(60))
    updates = [Change(2, "u", row, row, unavailable=["note"], sequence=n) for n, row in enumerate(after, start=1)]
    state = append(state, SCHEMA, *updates)
    apply(home, state.batch, vectors)
    assert rows(home) == dict.fromkeys(range(60), ("b", " " * 1000))
    assert newest(home).rows == 60
    assert max(taken) <= 20_000


@pytest.mark.long
@FORCED
@given(
    seed=st.integers(0, 2**32),
    modes=st.lists(st.sampled_from(["auto", "true", "false"]), min_size=1, max_size=6),
    size=st.sampled_from([1, 500, 3_000]),
    shared=st.booleans(),
)
def test_any_history_in_parts_is_the_model(
    tmp_path_factory: pytest.TempPathFactory, seed: int, modes: list[Vectors], size: int, *, shared: bool
):
    random_, model = random.Random(seed), Model()
    home = home_in(tmp_path_factory.mktemp("lake"))
    state = change_log(home, SCHEMA)
    with pytest.MonkeyPatch.context() as patch:
        limit(patch, size)
        if shared:
            patch.setattr(shares, "MOST_ROWS", 4)
            patch.setattr(shares, "LOOK_UP_SECONDS", 1e-9)
        for at, vectors in enumerate(modes, start=1):
            for part in range(random_.randint(1, 3)):
                state = append(state, SCHEMA, *mutate(random_, model, 10 * at + part, random_.randint(1, 30)))
            apply(home, state.batch, vectors)
            assert rows(home) == model
            assert newest(home).rows == len(model)
