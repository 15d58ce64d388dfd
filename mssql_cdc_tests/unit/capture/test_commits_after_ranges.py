"""A commit that another writer puts right behind a range's own, before that is read back, is not taken for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.range import RangeResult, capture_range
from mssql_cdc.capture.survey import survey
from mssql_cdc.follow.current import merge_now, merge_table
from mssql_cdc.lake import log
from mssql_cdc.plan.decisions import Range
from mssql_cdc.plan.planner import plan
from mssql_cdc.schema import TableId
from mssql_cdc_tests.lake_kit import Change, append, change_log
from mssql_cdc_tests.spark.model_lake import current, model_database
from mssql_cdc_tests.spark.model_source import ModelSource
from mssql_cdc_tests.unit.capture.test_members import stream

ORDERS = TableId("shop", "dbo", "orders")
RIVALS = {"id": 9, "name": "of another writer"}


def taken(database: Database) -> RangeResult:
    seen = survey(database)
    decision = plan(seen.facts, snapshots=False)
    assert isinstance(decision, Range)
    return capture_range(database, seen, decision)


def merged(database: Database) -> None:
    seen = survey(database)
    assert not merge_now(database, seen.tables, seen.offsets, seen.history).errors


def with_a_commit_behind(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a repair commit a row to the change log right behind its next commit."""
    seen = survey(database)
    home, schema = seen.tables[ORDERS].home, seen.history.versions[ORDERS.text][-1]
    put = log.append
    raced: list[bool] = []

    def raced_put(*arguments: Any, **more: Any) -> int | None:
        version = put(*arguments, **more)
        if not raced:
            raced.append(True)
            append(change_log(home, schema, writer="repair"), schema, Change(1, "r", after=RIVALS), kind="repair")
        return version

    monkeypatch.setattr(log, "append", raced_put)


def test_rows_that_another_writer_commits_after_a_range_reach_the_current_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source = ModelSource("orders")
    database = model_database(source, None, tmp_path)  # type: ignore[arg-type]
    stream(database)
    with_a_commit_behind(database, monkeypatch)
    source.put("orders", 1, "one")
    source.capture()
    done = taken(database)
    assert done.row is not None
    assert done.row.tables[ORDERS.text].batch == 1, "the range's own commit; the other's rows are in no cut"
    seen = survey(database)
    merge_table(database.apart(), seen.tables[ORDERS], seen.history, 1)  # by another process
    source.put("orders", 2, "two")
    source.capture()
    done = taken(database)
    assert done.row is not None
    assert done.row.tables[ORDERS.text].batch == 3
    merged(database)
    assert current(database, "orders") == {1: "one", 2: "two", RIVALS["id"]: RIVALS["name"]}
