"""Tables that a survey does not show, or cannot use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mssql_cdc.capture.absent_tables import unfit_tables
from mssql_cdc.capture.survey import survey
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.steps import epoch_begun, positions_taken
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId
from mssql_cdc_tests.spark.model_lake import model_database
from mssql_cdc_tests.spark.model_source import ModelSource

ORDERS = TableId("shop", "dbo", "orders")


@pytest.mark.parametrize("restored", [False, True])
def test_an_unfit_table_has_its_position_of_this_epoch_only(tmp_path: Path, *, restored: bool):
    database = model_database(ModelSource("orders"), None, tmp_path)  # type: ignore[arg-type]
    known = survey(database).tables[ORDERS]
    to = known.captured.newest.start_lsn
    entry = replace(known.new_entry(), status="streaming", to=to.text)
    taken = positions_taken(database.stamp(0), {ORDERS.text: entry}, snapshot="s", witness=None)
    append_offsets(database.layout, taken, seen=database.offsets())
    if restored:
        begun = epoch_begun(database.stamp(1), restored="the storm", by=None)
        append_offsets(database.layout, begun, seen=database.offsets())
    (absent,) = unfit_tables(database.offsets(), {ORDERS: "a column cannot be read"})
    assert absent.position == (None if restored else Lsn.parse(to.text))
