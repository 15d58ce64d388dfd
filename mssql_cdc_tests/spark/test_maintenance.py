"""OPTIMIZE and VACUUM preserve rows, progress and fence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mssql_cdc.lake.files import FileTarget, write_files
from mssql_cdc.lake.log import refresh
from mssql_cdc.lake.maintenance import optimize, vacuum
from mssql_cdc.lake.read import read_table
from mssql_cdc.lake.retention import RETAIN_HOURS
from mssql_cdc.lake.tamper import verify_untouched
from mssql_cdc_tests.lake_kit import Change, append, change_log, home_in, neutral, orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_maintenance_keeps_rows_and_progress(spark: SparkSession, tmp_path: Path):
    home, schema = home_in(tmp_path), orders()
    state = change_log(home, schema)
    for number in (1, 2, 3):
        after = {"id": number, "name": "a", "note": None}
        state = append(state, schema, Change(number, "c", after=after))
    garbage = neutral(schema, Change(9, "c", after={"id": 9}))
    write_files([garbage], FileTarget(home.changes))
    assert optimize(spark, home.changes) == (3, 1)
    vacuum(spark, home.changes, retain_hours=RETAIN_HOURS)
    after_it = refresh(state)
    verify_untouched(after_it, table_id=state.table_id, delta_version=state.delta_version)
    assert (after_it.batch, after_it.to) == (state.batch, state.to)
    assert sorted(read_table(home.changes, columns=["_key"]).column("_key").to_pylist()) == ["1:1", "1:2", "1:3"]
