"""What was read from a table is used again exactly as long as its log ends with the same commit."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from deltalake import DeltaTable

from mssql_cdc.errors import FencedError, StorageError
from mssql_cdc.events import to_change_log
from mssql_cdc.lake import known_states
from mssql_cdc.lake.current_logs import CurrentLogs
from mssql_cdc.lake.files import write_files
from mssql_cdc.lake.known_states import CaughtUp, KnownStates, KnownTables
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.log import TableState, commit
from mssql_cdc.lake.read import BatchSlice
from mssql_cdc.lake.storage import LOCAL
from mssql_cdc.lake.window import window
from mssql_cdc_tests.lake_kit import Change, append, change_log, home_in, lsn, neutral, orders

SCHEMA = orders()
COLUMNS = ["_batch", "_key", "op"]


def insert(state: TableState, number: int) -> TableState:
    return append(state, SCHEMA, Change(number, "c", after={"id": number, "name": "x", "note": None}))


def known_state(known: KnownStates, home: TableHome) -> TableState:
    state = known.load(home.changes, owner=home.app_id)
    assert state is not None
    return state


def test_a_state_is_opened_once_while_nothing_changes(tmp_path: Path):
    home, known = home_in(tmp_path), KnownStates()
    insert(change_log(home, SCHEMA), 1)
    assert known_state(known, home) is known_state(known, home)


def test_a_commit_of_another_run_is_seen(tmp_path: Path):
    home, known = home_in(tmp_path), KnownStates()
    state = insert(change_log(home, SCHEMA), 1)
    before = known_state(known, home)
    insert(state, 2)
    assert (before.batch, known_state(known, home).batch) == (1, 2)


def test_a_user_s_commit_is_seen(tmp_path: Path):
    home, known = home_in(tmp_path), KnownStates()
    insert(change_log(home, SCHEMA), 1)
    version = known_state(known, home).delta_version
    DeltaTable(home.changes).restore(0)
    assert known_state(known, home).delta_version == version + 1


def test_a_table_put_in_its_place_is_seen(tmp_path: Path):
    home, known = home_in(tmp_path), KnownStates()
    insert(change_log(home, SCHEMA), 1)
    before = known_state(known, home)
    shutil.rmtree(home.changes)
    insert(change_log(home, SCHEMA), 1)
    assert known_state(known, home).table_id != before.table_id


def test_a_table_that_is_gone_is_seen(tmp_path: Path):
    home, known = home_in(tmp_path), KnownStates()
    insert(change_log(home, SCHEMA), 1)
    known_state(known, home)
    shutil.rmtree(home.changes)
    assert known.load(home.changes, owner=home.app_id) is None


def test_a_log_that_went_back_is_seen(tmp_path: Path):
    home, known = home_in(tmp_path), KnownStates()
    state = insert(insert(change_log(home, SCHEMA), 1), 2)
    version = known_state(known, home).delta_version
    Path(home.changes, "_delta_log", f"{version:020}.json").unlink()
    assert known_state(known, home).batch == state.batch - 1


def test_a_kept_state_carries_the_next_commit(tmp_path: Path):
    home, known = home_in(tmp_path), KnownStates()
    change_log(home, SCHEMA)
    for number in (1, 2, 3):
        known.keep(insert(known_state(known, home), number))
    assert known_state(known, home).batch == 3


def test_a_state_whose_commit_failed_is_opened_anew(tmp_path: Path):
    home, known = home_in(tmp_path), KnownStates()
    rival = change_log(home, SCHEMA)
    state = known_state(known, home)
    insert(rival, 1)
    with pytest.raises(FencedError):
        insert(state, 1)
    insert(known_state(known, home), 2)
    assert known_state(known, home).batch == 2


def test_the_owner_is_checked_for_a_known_state_too(tmp_path: Path):
    home, known = home_in(tmp_path), KnownStates()
    insert(change_log(home, SCHEMA), 1)
    known_state(known, home)
    with pytest.raises(StorageError, match="belongs to"):
        known.load(home.changes, owner="mssql_cdc:another")


def test_a_value_is_loaded_again_after_each_commit_only(tmp_path: Path):
    home, known, loads = home_in(tmp_path), KnownTables(), list[int]()

    def load() -> int:
        loads.append(len(loads))
        return len(loads)

    assert (known.get(home.changes, load), known.get(home.changes, load)) == (1, 2)  # There is no table yet.
    state = change_log(home, SCHEMA)
    assert [known.get(home.changes, load) for _ in range(3)] == [3, 3, 3]
    insert(state, 1)
    assert [known.get(home.changes, load) for _ in range(3)] == [4, 4, 4]


def appended(home: TableHome, logs: CurrentLogs, count: int) -> TableState:
    """Commits of which the logs are told, as the capture of a range tells them."""
    state = change_log(home, SCHEMA)
    for number in range(1, count + 1):
        changes = [Change(number, "c", after={"id": number, "name": "x", "note": None})]
        rows = to_change_log(
            neutral(SCHEMA, *changes), table_schema=SCHEMA, batch_number=state.batch + 1, snapshot=None
        )
        files = write_files([rows], state.target)
        state = commit(state, files, {"to": lsn(number).text})
        logs.appended(state, files)
    return state


@pytest.mark.parametrize("after", [0, 1, 2, 3])
@pytest.mark.parametrize("up_to", [3, 4, 5])
def test_a_section_from_memory_is_that_of_the_log(tmp_path: Path, after: int, up_to: int):
    home, logs = home_in(tmp_path), CurrentLogs()
    appended(home, logs, 5)
    wanted = BatchSlice(after, up_to)
    remembered, read = logs.section(home.changes, wanted, LOCAL), window(home.changes, wanted)
    assert [b.to_pylist() for b in remembered.rows(COLUMNS)] == [b.to_pylist() for b in read.rows(COLUMNS)]
    assert (remembered.most_rows, remembered.size, remembered.certain) == (read.most_rows, read.size, read.certain)
    assert remembered.has_rows() == read.has_rows() == (after < up_to)


def test_a_section_with_commits_of_others_is_read_from_the_log(tmp_path: Path):
    home, logs = home_in(tmp_path), CurrentLogs()
    state = insert(appended(home, logs, 2), 3)
    wanted = BatchSlice(0, state.batch)
    batches = logs.section(home.changes, wanted, LOCAL).rows(COLUMNS)
    assert [row["_key"] for batch in batches for row in batch.to_pylist()] == ["1:1", "1:2", "1:3"]


def test_a_section_of_compacted_files_tells_whether_it_has_rows(tmp_path: Path):
    home, logs = home_in(tmp_path), CurrentLogs()
    state = appended(home, logs, 2)
    state = commit(state, [], {"to": "x"})
    state = insert(state, 4)
    DeltaTable(home.changes).optimize.compact()
    inside = window(home.changes, BatchSlice(2, 3))
    assert inside.files
    assert not inside.has_rows()
    assert window(home.changes, BatchSlice(2, 4)).has_rows()


def test_current_tables_that_got_every_row_in_one_step_are_looked_at_again_in_many(monkeypatch: pytest.MonkeyPatch):
    known, names = CaughtUp(), [f"/lake/shop/dbo/t{number}/current" for number in range(300)]
    now = known_states.time.monotonic()
    monkeypatch.setattr(known_states.time, "monotonic", lambda: now)
    for name in names:
        known.keep(name, SCHEMA, 5)
    left = [len(names)]
    for later in range(30, 62):
        monkeypatch.setattr(known_states.time, "monotonic", lambda later=later: now + later)
        left.append(sum(known.holds(name, SCHEMA, 5) for name in names))
    assert (left[1] > 0.9 * len(names), left[-1]) == (True, 0)
    assert max(before - after for before, after in pairwise(left)) <= 0.1 * len(names)


def test_a_current_table_that_has_every_row_is_not_looked_at_again_for_half_a_minute(monkeypatch: pytest.MonkeyPatch):
    known, widened = CaughtUp(), orders(version=2)
    known.keep("t", SCHEMA, 5)
    assert known.holds("t", SCHEMA, 4)
    assert known.holds("t", SCHEMA, 5)
    assert not known.holds("t", SCHEMA, 6), "it has new rows"
    assert not known.holds("t", widened, 5), "its structure is another one"
    assert not known.holds("u", SCHEMA, 5)
    later = known_states.time.monotonic() + 61
    monkeypatch.setattr(known_states.time, "monotonic", lambda: later)
    assert not known.holds("t", SCHEMA, 5)
