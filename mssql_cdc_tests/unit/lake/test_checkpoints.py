"""Tables that are written in the same steps get their checkpoints in different ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NoReturn

import pytest
from deltalake import DeltaTable

from mssql_cdc.errors import StorageError
from mssql_cdc.lake.checkpoints import checkpoint, is_due
from mssql_cdc.lake.log import commit, load_state
from mssql_cdc.lake.table_log import load_log
from mssql_cdc_tests.lake_kit import change_log, home_in, lsn, orders

INTERVAL = 50


def checkpoints(uri: str) -> list[int]:
    return sorted(int(path.name[:20]) for path in Path(uri, "_delta_log").glob("*.checkpoint.parquet"))


def turn(uri: str) -> int:
    """The version of a table's first checkpoint."""
    return next(version for version in range(1, INTERVAL + 1) if is_due(uri, version - 1, version, INTERVAL))


def test_of_fifty_tables_few_take_their_turn_in_the_same_step():
    turns = [turn(f"/lake/shop/dbo/t{number}/current") for number in range(50)]
    assert max(turns.count(one) for one in turns) <= 5


def test_a_table_takes_its_turn_once_in_an_interval_wherever_the_lake_lies():
    first = turn("/lake/shop/dbo/orders/changes")
    assert first == turn("s3://bucket/lake/shop/dbo/orders/changes/")
    due = [version for version in range(1, 201) if is_due("/l/dbo/orders/changes", version - 1, version, INTERVAL)]
    assert due == list(range(first, 201, INTERVAL))


def test_a_turn_that_another_writer_s_commit_has_taken_is_made_up_for():
    uri = "/lake/shop/dbo/orders/changes"
    assert is_due(uri, turn(uri) - 1, turn(uri) + 3, INTERVAL)
    assert not is_due(uri, turn(uri), turn(uri) + 3, INTERVAL)


def test_a_change_log_has_checkpoints_at_its_turns_and_at_no_others(tmp_path: Path):
    home = home_in(tmp_path)
    state = change_log(home, orders())
    while state.delta_version < 2 * INTERVAL:
        state = commit(state, [], {"to": lsn(state.batch + 1).text})
    first = turn(home.changes)
    assert checkpoints(home.changes) == [version for version in (first, first + INTERVAL) if version <= 2 * INTERVAL]
    assert state == load_state(home.changes, owner=home.app_id)
    assert DeltaTable(home.changes).version() == state.delta_version


def test_a_table_that_cannot_be_opened_for_its_checkpoint_keeps_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def unreachable(*_: object, **__: object) -> NoReturn:
        raise StorageError("the store does not answer")

    home = home_in(tmp_path)
    state = change_log(home, orders())
    monkeypatch.setattr("mssql_cdc.lake.checkpoints.open_table", unreachable)
    while state.delta_version < INTERVAL:
        state = commit(state, [], {"to": lsn(state.batch + 1).text})
    monkeypatch.undo()
    assert checkpoints(home.changes) == []
    assert state == load_state(home.changes, owner=home.app_id)


@pytest.mark.parametrize(("value", "kept"), [("false", True), ("False", True), ("TRUE", False), (None, False)])
def test_a_checkpoint_leaves_the_log_of_a_table_whose_user_keeps_it(tmp_path: Path, value: str | None, *, kept: bool):
    home = home_in(tmp_path)
    change_log(home, orders())
    found = load_log(home.changes)
    assert found is not None
    wanted = {"delta.logRetentionDuration": "interval 1 days"}
    wanted |= {} if value is None else {"delta.enableExpiredLogCleanup": value}
    metadata = {**found.metadata, "configuration": {**found.properties, **wanted}}
    log = Path(home.changes, "_delta_log")
    commits = [log / f"{version:020}.json" for version in range(3)]
    info = {"commitInfo": {"timestamp": 0, "operation": "SET TBLPROPERTIES"}}
    commits[1].write_text("\n".join(map(json.dumps, [info, {"metaData": metadata}])))
    commits[2].write_text(json.dumps(info))
    for path in commits:
        os.utime(path, (0, 0))
    checkpoint(home.changes)
    assert checkpoints(home.changes) == [2]
    assert commits[0].exists() == kept
