"""Restores of the source that no witness and no mark of a snapshot notices."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mssql_cdc.capture.range import capture_range, mark_status
from mssql_cdc.capture.survey import survey
from mssql_cdc.lake.gaps import load_gaps
from mssql_cdc.plan.decisions import Loss, Lost, Range, Restored
from mssql_cdc.plan.planner import plan
from mssql_cdc.run.loss import write_loss, write_restore
from mssql_cdc.schema import TableId
from mssql_cdc_tests.spark.model_lake import model_database
from mssql_cdc_tests.spark.model_source import ModelSource
from mssql_cdc_tests.unit.capture.test_members import stream


def test_transaction_below_an_idle_position_is_of_another_history(tmp_path: Path):
    """It would never be read: the table stands behind it (A7, A8)."""
    source = ModelSource("orders")
    database = model_database(source, None, tmp_path)  # type: ignore[arg-type]
    source.put("orders", 1, "one")
    source.capture()
    stream(database)
    for settled in (None, 30):  # The positions get a cut; then they advance.
        source.settled = settled
        source.number = settled or source.number
        seen = survey(database, now=datetime.now(UTC) + timedelta(days=1))
        idle = plan(seen.facts)
        assert isinstance(idle, Range)
        done = capture_range(database, seen, idle).row
        assert done is not None
        assert done.complete
    source.restore(to=20)
    source.settled = None
    assert survey(database).facts.restored is None
    source.put("orders", 2, "two")
    source.capture()
    assert isinstance(plan(survey(database).facts), Restored)


@pytest.mark.parametrize("what", ["disabled", "re-created"])
def test_a_restore_is_a_gap_of_tables_too_that_are_no_longer_captured(tmp_path: Path, what: str):
    """What the new history changed in them before they went is in no change log."""
    source = ModelSource("orders", "people")
    database = model_database(source, None, tmp_path)  # type: ignore[arg-type]
    source.put("orders", 1, "one")
    source.capture()
    position = stream(database).position(TableId("shop", "dbo", "people"))
    assert position is not None
    source.restores += 1
    source.history = dict.fromkeys(source.history, "another")
    if what == "disabled":
        source.tables["people"].enabled = False
    else:
        source.tables["people"].object_id += 50
    seen = survey(database)
    seen = replace(seen, facts=replace(seen.facts, restored="restored"))
    assert {table.name for table in write_restore(database, seen)} == {"orders", "people"}
    gaps = {gap.table: gap.from_ for gap in load_gaps(database.layout)}
    assert gaps["shop.dbo.people"] == position.text


def test_no_reason_that_is_kept_holds_a_secret(tmp_path: Path):
    """The reasons quote errors: those of users' code, of drivers and of stores."""
    source = ModelSource("orders", "people")
    database = model_database(source, None, tmp_path, database_password="sesame")  # type: ignore[arg-type]
    source.put("orders", 1, "one")
    source.capture()
    seen = stream(database)
    orders, people = (TableId("shop", "dbo", name) for name in ("orders", "people"))
    position = seen.position(orders)
    assert position is not None
    after = write_loss(database, seen, Lost((Loss(orders, position, "lost: the driver says sesame"),)))
    seen = replace(seen, offsets=after, facts=replace(seen.facts, restored="restored: the driver says sesame"))
    write_restore(database, seen)
    after = mark_status(database, seen, {people: "failed: the store says sesame"}, "failed")
    kept = [entry.reason for entry in after.entries.values()] + [gap.reason for gap in load_gaps(database.layout)]
    assert [text.endswith(" says ***") for text in kept if text] == [True] * 4
