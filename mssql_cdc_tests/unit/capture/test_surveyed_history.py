"""A range counts only in the history of the source that was surveyed (A7)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.range import RangeResult, capture_range
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.errors import SourceRestoredError, StaleReaderError
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.steps import snapshot_begun
from mssql_cdc.plan.decisions import Range
from mssql_cdc.plan.planner import plan
from mssql_cdc.schema import TableId
from mssql_cdc_tests.spark.model_lake import model_database
from mssql_cdc_tests.spark.model_source import ModelSource
from mssql_cdc_tests.unit.capture.test_members import stream
from mssql_cdc_tests.unit.source.raw import lsn

IDLE = 30


@pytest.fixture
def source() -> ModelSource:
    return ModelSource("orders")


@pytest.fixture
def database(source: ModelSource, tmp_path: Path) -> Database:
    """A lake that has one transaction, in a cut."""
    found = model_database(source, None, tmp_path)  # type: ignore[arg-type]
    source.put("orders", 1, "one")
    source.capture()
    stream(found)
    taken(found, look(found))
    return found


def look(database: Database) -> Survey:
    """A survey of a day later: an idle table is due to advance."""
    return survey(database, now=datetime.now(UTC) + timedelta(days=1))


def taken(database: Database, seen: Survey) -> RangeResult:
    decision = plan(seen.facts, snapshots=False)
    assert isinstance(decision, Range)
    return capture_range(database, seen, decision)


def be_idle(source: ModelSource) -> None:
    source.settled = source.number = IDLE


def restore(source: ModelSource, *, below: int) -> None:
    """Restore a backup of before the idle time; then transactions use its numbers again."""
    source.restore(to=20)
    source.settled = None
    key = 2
    while source.number < below:
        source.put("orders", key, "of the new history")
        key += 1
    source.capture()


def test_a_transaction_that_comes_below_an_idle_advance_is_read(source: ModelSource, database: Database):
    """The source was restored between the survey and the step; nothing that the lake has went."""
    be_idle(source)
    seen = look(database)
    restore(source, below=21)
    with pytest.raises(StaleReaderError, match="below"):
        taken(database, seen)
    done = taken(database, look(database))
    assert (done.rows, done.decision.range.to) == (1, lsn(21))


def test_transactions_that_come_below_a_cut_during_a_range_are_of_another_history(
    source: ModelSource, database: Database
):
    """The witness of the range would hide them from each look that follows."""
    be_idle(source)
    taken(database, look(database))
    source.put("orders", 2, "two")
    source.capture()
    seen = look(database)
    restore(source, below=source.number)
    with pytest.raises(SourceRestoredError):
        taken(database, seen)
    assert look(database).facts.restored


def test_a_restore_during_a_range_after_a_snapshots_mark_is_another_history(source: ModelSource, database: Database):
    """The recovery fork alone tells that what it has read, and was not captured yet, may be gone."""
    source.enable("people")
    before = look(database)
    with database.session() as session:
        mark = session.mark()
    people = before.tables[TableId("shop", "dbo", "people")]
    row = snapshot_begun(
        database.stamp(0),
        {people.table.text: people.new_entry(status="snapshot")},
        snapshot="snapshot-1", number=1, signal=None, mark=mark, signals=0, witness=None,
    )  # fmt: skip
    append_offsets(database.layout, row, seen=before.offsets)
    source.put("orders", 2, "two")
    source.capture()
    seen = look(database)
    source.restores += 1
    with pytest.raises(SourceRestoredError):
        taken(database, seen)
