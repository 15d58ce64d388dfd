"""When a capture instance is reported as read to its end (EVO-06)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.capture.notifications import CAPTURE_INSTANCE
from mssql_cdc.capture.survey import survey
from mssql_cdc.follow.capture_instances import tell_read_instances
from mssql_cdc.lake.offset_commits import append_offsets
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import epoch_begun, positions_taken
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId
from mssql_cdc_tests.spark.model_lake import model_database
from mssql_cdc_tests.spark.model_source import ModelSource

ORDERS = TableId("shop", "dbo", "orders")


def reported(database: Database, tables: Mapping[TableId, LakeTable]) -> list[str]:
    tell_read_instances(database, tables, database.offsets())
    rows = small_table(database.layout, "notifications", database.storage).rows()
    return [row["type"] for row in rows if row["aggregate_type"] == CAPTURE_INSTANCE]


def test_an_instance_is_read_to_its_end_by_a_position_of_this_epoch_only(tmp_path: Path):
    """After a restore, LSNs begin again: the position of before lies beyond instances with unread changes."""
    database = model_database(ModelSource("orders"), None, tmp_path)  # type: ignore[arg-type]
    known = survey(database).tables[ORDERS]
    older = known.captured.newest
    later = Lsn.parse(older.start_lsn.text)
    for _ in range(5):
        later = later.increment()
    newer = replace(older, name="orders_2", object_id=older.object_id + 1, start_lsn=later)
    both = {ORDERS: replace(known, captured=replace(known.captured, instances=(older, newer)))}
    entry = replace(known.new_entry(), status="streaming", to=later.increment().text, instance=older.identity)

    def stream_in(epoch: int) -> None:
        row = positions_taken(
            database.stamp(epoch), {ORDERS.text: replace(entry, epoch=epoch)}, snapshot="s", witness=None
        )
        append_offsets(database.layout, row, seen=database.offsets())

    stream_in(0)
    append_offsets(
        database.layout, epoch_begun(database.stamp(1), restored="the storm", by=None), seen=database.offsets()
    )
    assert reported(database, both) == []
    stream_in(1)
    assert reported(database, both) == ["COMPLETED"]
