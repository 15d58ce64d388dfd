"""Restores of the source that no witness and no mark of a snapshot notices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from mssql_cdc.capture.range import capture_range
from mssql_cdc.capture.survey import survey
from mssql_cdc.plan.decisions import Range, Restored
from mssql_cdc.plan.planner import plan
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
    source.settled = source.number = 30
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
