"""Two runs on one table, one of which changes its schema: rows are committed once (rule A3)."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from mssql_cdc.errors import FencedError, TamperedTableError
from mssql_cdc.lake.delta_columns import with_delta_columns
from mssql_cdc.lake.evolution import evolve
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.read import read_table
from mssql_cdc.lake.tamper import verify_untouched
from mssql_cdc.schema import change_log_schema
from mssql_cdc_tests.lake_kit import Change, append, change_log, column, home_in, orders

OLD = orders()
NEW = orders(*OLD.columns, column("price", "int"), version=2)
CONTINUED = replace(with_delta_columns(orders(OLD.columns[0], column("name", "int")), [OLD]), version=2)
OTHER = orders(*OLD.columns, column("weight", "int"), version=2)


def row(number: int) -> dict[str, object]:
    return {"id": number, "name": "a", "note": "n"}


def keys(uri: str) -> list[str]:
    return sorted(read_table(uri, columns=["_key"]).column("_key").to_pylist())


def test_evolving_after_another_run_added_rows_is_fenced(tmp_path: Path):
    home = home_in(tmp_path)
    late = change_log(home, OLD)
    append(change_log(home, OLD), OLD, Change(1, "c", after=row(1)))
    with pytest.raises(FencedError, match="Another run"):
        evolve(late, change_log_schema(NEW))
    assert keys(home.changes) == ["1:1"]


def test_evolving_after_the_snapshot_added_rows_is_fenced(tmp_path: Path):
    home = home_in(tmp_path)
    late = change_log(home, OLD)
    append(change_log(home, OLD, writer="snapshot"), OLD, Change(1, "r", after=row(1)))
    with pytest.raises(FencedError, match="Another run"):
        evolve(late, change_log_schema(NEW))


@pytest.mark.parametrize("theirs", [NEW, OTHER], ids=["the same column", "another column"])
def test_evolving_at_the_same_time_as_another_run_is_fenced(tmp_path: Path, theirs):
    home = home_in(tmp_path)
    late = change_log(home, OLD)
    evolve(change_log(home, OLD), change_log_schema(theirs))
    with pytest.raises(FencedError, match="Another run"):
        evolve(late, change_log_schema(NEW))
    state = append(evolve(change_log(home, OLD), change_log_schema(NEW)), NEW, Change(1, "c", after=row(1)))
    assert state.batch == 1


def test_committing_after_another_run_changed_the_schema_is_fenced(tmp_path: Path):
    home = home_in(tmp_path)
    late = change_log(home, OLD)
    mine = evolve(change_log(home, OLD), change_log_schema(NEW))
    append(mine, NEW, Change(1, "c", after=row(1)))
    with pytest.raises(FencedError):
        append(late, OLD, Change(1, "c", after=row(1)))
    assert keys(home.changes) == ["1:1"]


def test_evolving_without_concurrent_runs_keeps_the_fence(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, OLD), OLD, Change(1, "c", after=row(1)), run_id="mine")
    after = evolve(state, change_log_schema(NEW))
    assert (after.batch, after.own, after.table_id) == (state.batch, state.own, state.table_id)
    assert append(after, NEW, Change(2, "c", after=row(2))).batch == 2


def test_two_runs_of_which_one_continues_a_column_in_a_new_delta_column(tmp_path: Path):
    home = home_in(tmp_path)
    late = append(change_log(home, OLD), OLD, Change(1, "c", after=row(1)))
    late_too = change_log(home, OLD)
    mine = evolve(late, change_log_schema(CONTINUED))
    append(mine, CONTINUED, Change(2, "c", after={"id": 2, "name": 7}))
    with pytest.raises(FencedError):
        append(late, OLD, Change(2, "c", after=row(2)))
    with pytest.raises(FencedError, match="Another run"):
        evolve(late_too, change_log_schema(CONTINUED))
    again = evolve(change_log(home, OLD), change_log_schema(CONTINUED))
    append(again, CONTINUED, Change(3, "u", before={"id": 2, "name": 7}, after={"id": 2, "name": 8}))
    found = read_table(home.changes, columns=["_pos", "_schema", "after"]).sort_by("_pos").to_pylist()
    assert [(one["_schema"], one["after"]["name"], one["after"]["name_2"]) for one in found] == [
        (1, "a", None), (2, None, 7), (2, None, 8)
    ]  # fmt: skip


@pytest.mark.parametrize("commits", [1, 3])
def test_rows_that_another_program_adds_between_the_look_and_a_commit_are_noticed_at_the_next_look(
    tmp_path: Path, commits: int
):
    """They came before the recorded version, from which the next look went on."""
    home = home_in(tmp_path)
    state = append(change_log(home, OLD), OLD, Change(1, "c", after=row(1)))
    write_deltalake(home.changes, read_table(home.changes), mode="append")
    for number in range(commits):
        state = append(state, OLD, Change(2 + number, "c", after=row(2 + number)))
    with pytest.raises(TamperedTableError, match="was changed by WRITE in Delta version 2"):
        verify_untouched(change_log(home, OLD), table_id=state.table_id, delta_version=state.known_version)


def test_a_commit_without_others_before_it_is_the_version_that_the_next_look_goes_on_from(tmp_path: Path):
    home = home_in(tmp_path)
    state = append(change_log(home, OLD), OLD, Change(1, "c", after=row(1)))
    assert state.known_version == state.delta_version == 1


def streamed(home: TableHome, keys: range) -> TableState:
    state = change_log(home, OLD)
    for number in keys:
        state = append(state, OLD, Change(number, "c", after=row(number)))
    return state


def test_an_older_copy_is_noticed_when_harmless_commits_have_brought_it_to_the_recorded_version(tmp_path: Path):
    home = home_in(tmp_path)
    streamed(home, range(1, 4))
    shutil.copytree(home.changes, tmp_path / "copy")
    recorded = streamed(home, range(4, 6))
    shutil.rmtree(home.changes)
    shutil.copytree(tmp_path / "copy", home.changes)
    DeltaTable(home.changes).optimize.compact()
    DeltaTable(home.changes).alter.set_table_properties({"delta.logRetentionDuration": "interval 60 days"})
    found = change_log(home, OLD)
    assert (found.delta_version, found.batch) == (recorded.delta_version, recorded.batch - 2)
    with pytest.raises(TamperedTableError, match="lacks its newest commits: it ends with batch 3, expected 5"):
        verify_untouched(found, table_id=recorded.table_id, delta_version=recorded.delta_version, batch=recorded.batch)


def test_a_newest_commit_that_a_power_loss_has_emptied_is_noticed(tmp_path: Path):
    """It is opened as the version before, under the number of the empty one."""
    home = home_in(tmp_path)
    recorded = streamed(home, range(1, 4))
    Path(home.changes, "_delta_log", f"{recorded.delta_version:020}.json").write_bytes(b"")
    found = change_log(home, OLD)
    assert found.delta_version == recorded.delta_version
    with pytest.raises(TamperedTableError, match="it ends with batch 2, expected 3"):
        verify_untouched(found, table_id=recorded.table_id, delta_version=recorded.delta_version, batch=recorded.batch)


def test_a_log_that_goes_on_counting_after_a_restore_has_all_commits(tmp_path: Path):
    """The restore itself is noticed before; RESTORE keeps the counter."""
    home = home_in(tmp_path)
    recorded = streamed(home, range(1, 4))
    DeltaTable(home.changes).restore(1)
    after = streamed(home, range(4, 5))
    assert after.batch == recorded.batch + 1
    verify_untouched(after, table_id=after.table_id, delta_version=after.delta_version, batch=after.batch)
    verify_untouched(after, table_id=after.table_id, delta_version=after.delta_version, batch=recorded.batch)


@pytest.mark.parametrize(
    "operation",
    [
        "COMPUTE STATS",
        "DOMAIN METADATA CLEANUP",
        "DROP CONSTRAINT",
        "DROP FEATURE",
        "ROW TRACKING BACKFILL",
        "UNSET TBLPROPERTIES",
        "UPDATE FIELD METADATA",
        "UPDATE TABLE METADATA",
    ],
)
def test_an_operation_that_leaves_the_rows_as_they_are_is_no_tampering(tmp_path: Path, operation: str):
    home = home_in(tmp_path)
    state = streamed(home, range(1, 2))
    commit = {"commitInfo": {"timestamp": 0, "operation": operation, "operationParameters": {}}}
    Path(home.changes, "_delta_log", f"{state.delta_version + 1:020}.json").write_text(json.dumps(commit))
    after = change_log(home, OLD)
    assert after.delta_version == state.delta_version + 1
    verify_untouched(after, table_id=state.table_id, delta_version=state.delta_version, batch=state.batch)


@pytest.mark.parametrize("operation", ["UPDATE", "DELETE", "STREAMING UPDATE", "DROP COLUMNS", "TRUNCATE", "CLONE"])
def test_an_operation_that_may_change_rows_is_tampering(tmp_path: Path, operation: str):
    home = home_in(tmp_path)
    state = streamed(home, range(1, 2))
    commit = {"commitInfo": {"timestamp": 0, "operation": operation, "operationParameters": {}}}
    Path(home.changes, "_delta_log", f"{state.delta_version + 1:020}.json").write_text(json.dumps(commit))
    with pytest.raises(TamperedTableError, match=f"was changed by {operation} in Delta version 2"):
        verify_untouched(change_log(home, OLD), table_id=state.table_id, delta_version=state.delta_version)
