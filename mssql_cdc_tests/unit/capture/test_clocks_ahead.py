"""Times that another host wrote may lie ahead of this host's clock; nothing waits until it has come to them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mssql_cdc.capture.current_tables import is_due
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.range import capture_range
from mssql_cdc.capture.survey import survey
from mssql_cdc.follow.current import merge_now
from mssql_cdc.plan.decisions import Range
from mssql_cdc.plan.planner import plan
from mssql_cdc.run.quiet_look import quiet_look
from mssql_cdc.schema import TableId
from mssql_cdc_tests.spark.model_lake import model_database
from mssql_cdc_tests.spark.model_source import ModelSource
from mssql_cdc_tests.unit.capture.test_members import stream
from mssql_cdc_tests.unit.source.raw import lsn

ORDERS = TableId("shop", "dbo", "orders")
IDLE = 30


class Ahead(datetime):
    """The clock of another host, which is a day ahead."""

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + timedelta(days=1)


@pytest.fixture
def source() -> ModelSource:
    return ModelSource("orders")


def captured(source: ModelSource, folder: Path, **properties: str) -> Database:
    """A lake that has one transaction, in a cut."""
    found = model_database(source, None, folder, **properties)  # type: ignore[arg-type]
    source.put("orders", 1, "one")
    source.capture()
    stream(found)  # from here on
    source.put("orders", 2, "two")
    source.capture()
    seen = survey(found)
    decision = plan(seen.facts, snapshots=False)
    assert isinstance(decision, Range)
    capture_range(found, seen, decision)
    return found


@pytest.mark.parametrize(("ahead", "due"), [(-7200, True), (-60, False), (0, False), (600, True)])
def test_a_current_table_whose_newest_commit_lies_ahead_is_due(
    source: ModelSource, tmp_path: Path, ahead: int, *, due: bool
):
    database = captured(source, tmp_path, delta_current_interval="3600")
    seen = survey(database)
    assert ORDERS in merge_now(database, seen.tables, seen.offsets, seen.history).tables
    table = seen.tables[ORDERS]
    stamp = int((datetime.now(UTC) + timedelta(seconds=ahead)).timestamp() * 1000)
    info = {"timestamp": stamp, "operation": "OPTIMIZE", "operationParameters": {}}
    commit = Path(table.home.current, "_delta_log", f"{1:020}.json")
    commit.write_text(json.dumps({"commitInfo": info}) + "\n")
    database.current_logs.newest(table.home.current, database.storage)
    assert is_due(database, table) is due


def test_idle_tables_advance_although_the_newest_cut_lies_ahead(
    source: ModelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Otherwise they fall behind the retention, and changes that never were count as lost."""
    with monkeypatch.context() as there:
        there.setattr("mssql_cdc.capture.database.datetime", Ahead)
        database = captured(source, tmp_path)
    source.settled = source.number = IDLE
    assert quiet_look(database)[0] is None
    seen = survey(database)
    decision = plan(seen.facts, snapshots=False)
    assert isinstance(decision, Range)
    assert decision.range.to == lsn(IDLE)
    capture_range(database, seen, decision)
    assert quiet_look(database)[0] is not None, "it is quiet by the clock of this host"
