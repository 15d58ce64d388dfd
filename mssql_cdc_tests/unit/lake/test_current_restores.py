"""A user's RESTORE of a current table is noticed, and the table built again from the change log (correctness D)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from mssql_cdc.errors import FencedError, OvertakenError
from mssql_cdc.lake.checkpoints import checkpoint
from mssql_cdc.lake.current_logs import CurrentLogs
from mssql_cdc.lake.current_table import Vectors
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.table_log import refresh_log
from mssql_cdc_tests.lake_kit import Change, append, applied_batch, change_log, home_in
from mssql_cdc_tests.unit.lake.test_current_tables import SCHEMA, apply, created, newest, plan_of, rows


def commit_of(home: TableHome, operation: str, actions: list[dict[str, Any]]) -> None:
    """Another writer's commit."""
    info = {"commitInfo": {"timestamp": int(time.time() * 1000), "operation": operation}}
    path = Path(home.current, "_delta_log", f"{newest(home).version + 1:020}.json")
    path.write_text("\n".join(json.dumps(action) for action in [info, *actions]))


def restore(home: TableHome, earlier: Any) -> None:
    """RESTORE as Spark does it: the files of a version instead of those of the newest one; txns stay.

    Files of both stay: a commit must not remove and add the same one, and a checkpoint of `deltalake` would lose it.
    """
    now = newest(home)
    assert now.committed is not None
    removed = [file.remove(now.committed) for name, file in now.files.items() if name not in earlier.files]
    adds = [
        file.add(vector=file.vector, rows=file.rows) for name, file in earlier.files.items() if name not in now.files
    ]
    commit_of(home, "RESTORE", [*removed, *adds, {"metaData": earlier.metadata}])


@pytest.fixture(params=["auto", "true", "false"])
def vectors(request: pytest.FixtureRequest) -> Vectors:
    return request.param


@pytest.fixture
def home(tmp_path: Path, vectors: Vectors) -> TableHome:
    """A table of four versions that was restored to its second; all batches are applied."""
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, *created(1, range(100)))
    apply(home, state.batch, vectors)
    state = append(state, SCHEMA, *(Change(2, "d", {"id": n}, sequence=n + 1) for n in range(10)))
    apply(home, state.batch, vectors)
    earlier = newest(home)
    row = {"id": 50, "name": "b", "note": None}
    for at in (3, 4):
        state = append(
            state, SCHEMA, *created(at, range(100 * at, 100 * at + 5)), Change(at, "u", row, row, sequence=99)
        )
        apply(home, state.batch, vectors)
    restore(home, earlier)
    assert len(rows(home)) == 90
    return home


def whole(home: TableHome) -> bool:
    found = rows(home)
    wanted = {*range(10, 100), *range(300, 305), *range(400, 405)}
    return found.keys() == wanted and found[50][0] == "b" and newest(home).rows == len(wanted)


def test_a_restored_table_is_built_again_although_everything_was_applied(home: TableHome, vectors: Vectors):
    log = newest(home)
    assert log.restored == log.version
    done = apply(home, 4, vectors)
    assert (done.delta_version, done.batch, done.restored) == (log.version + 1, 4, log.version)
    assert whole(home)
    assert applied_batch(home, SCHEMA) == 4
    again = apply(home, 4, vectors)
    assert (again.delta_version, again.rows, again.restored) == (done.delta_version, 0, None)


def test_a_process_that_knows_the_log_notices_a_restore(tmp_path: Path, vectors: Vectors):
    home, logs = home_in(tmp_path), CurrentLogs()
    state = append(change_log(home, SCHEMA), SCHEMA, *created(1, range(100)))
    apply(home, state.batch, vectors, logs)
    earlier = newest(home)
    state = append(state, SCHEMA, *created(2, range(100, 110)))
    apply(home, state.batch, vectors, logs)
    restore(home, earlier)
    state = append(state, SCHEMA, *created(3, range(200, 210)))
    assert apply(home, state.batch, vectors, logs).restored == 2
    assert len(rows(home)) == 120
    state = append(state, SCHEMA, *created(4, range(300, 310)))
    assert apply(home, state.batch, vectors, logs).rows == 10
    assert len(rows(home)) == newest(home).rows == 130


def test_a_restore_with_deltalake_is_noticed(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, *created(1, range(100)))
    apply(home, state.batch)
    state = append(state, SCHEMA, *created(2, range(100, 110)))
    apply(home, state.batch)
    DeltaTable(home.current).restore(0)
    assert len(rows(home)) == 100
    assert apply(home, state.batch).restored == 2
    assert len(rows(home)) == 110


@pytest.mark.parametrize("others", [0, 3])
def test_a_checkpoint_after_a_restore_does_not_hide_it(home: TableHome, vectors: Vectors, others: int):
    """Spark and `deltalake` write checkpoints; these have no operations, but the commits stay for days."""
    restored = newest(home).version
    for _ in range(others):
        commit_of(home, "VACUUM END", [])
    checkpoint(home.current)
    assert newest(home).restored == restored
    assert apply(home, 4, vectors).restored == restored
    assert whole(home)
    checkpoint(home.current)
    assert newest(home).restored is None
    assert apply(home, 4, vectors).rows == 0


def test_a_restore_whose_commit_is_gone_is_not_noticed(home: TableHome):
    """The log keeps commits for seven days; docs/lake.md says that `check` finds the rows."""
    restored = newest(home).version
    commit_of(home, "VACUUM END", [])
    checkpoint(home.current)
    Path(home.current, "_delta_log", f"{restored:020}.json").unlink()
    assert newest(home).restored is None


def test_a_smaller_cut_does_not_take_progress_back(home: TableHome, vectors: Vectors):
    assert apply(home, 2, vectors).batch == 4
    assert whole(home)


def test_a_plan_from_before_a_restore_is_made_again(tmp_path: Path, vectors: Vectors):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, *created(1, range(100)))
    apply(home, state.batch, vectors)
    earlier = newest(home)
    state = append(state, SCHEMA, *created(2, range(100, 110)))
    apply(home, state.batch, vectors)
    state = append(state, SCHEMA, *created(3, range(200, 210)))
    late = plan_of(home, state.batch, vectors)
    restore(home, earlier)
    with pytest.raises(OvertakenError):
        late()
    assert apply(home, state.batch, vectors).restored == 2
    assert len(rows(home)) == newest(home).rows == 120


@pytest.mark.parametrize("rivals_cut", [4, 5])
def test_two_writers_build_a_restored_table_once(home: TableHome, vectors: Vectors, rivals_cut: int):
    append(change_log(home, SCHEMA), SCHEMA, *created(5, range(500, 505)))
    late = plan_of(home, 4, vectors)
    apply(home, rivals_cut, vectors)
    version, count = newest(home).version, len(rows(home))
    with pytest.raises(FencedError):
        late()
    assert (newest(home).version, len(rows(home))) == (version, count)


def test_a_commit_that_changes_nothing_does_not_disturb_the_rebuilding(home: TableHome, vectors: Vectors):
    late = plan_of(home, 4, vectors)
    commit_of(home, "VACUUM END", [])
    assert late().restored is not None
    assert whole(home)


def test_a_second_restore_while_the_table_is_built_again_is_noticed(home: TableHome, vectors: Vectors):
    known, late = newest(home), plan_of(home, 4, vectors)
    restore(home, known)
    with pytest.raises(OvertakenError, match=r"restored|rewritten|metadata"):
        late()
    assert refresh_log(known).restored == known.version + 1
    assert apply(home, 4, vectors).restored == known.version + 1
    assert whole(home)


def test_a_restore_to_an_empty_version_is_noticed(tmp_path: Path, vectors: Vectors):
    home = home_in(tmp_path)
    state = append(change_log(home, SCHEMA), SCHEMA, Change(1, "c", after={"id": 1, "name": "a"}))
    state = append(state, SCHEMA, Change(2, "d", {"id": 1}))
    apply(home, state.batch, vectors)
    earlier = newest(home)
    state = append(state, SCHEMA, *created(3, range(5)))
    apply(home, state.batch, vectors)
    restore(home, earlier)
    assert rows(home) == {}
    apply(home, state.batch, vectors)
    assert len(rows(home)) == 5
    assert newest(home).restored is None
