"""Snapshots requested by signal: filters, unknown names, the signal table itself (BLK-01 to BLK-04, SIG-09)."""

from __future__ import annotations

import json

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.requests import REQUESTED, SignalRow, note_signal
from mssql_cdc.capture.survey import survey
from mssql_cdc.lake.steps import SnapshotEnded
from mssql_cdc.run.follower import Follower
from mssql_cdc_tests.spark.model_lake import changes, model_database, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def source() -> ModelSource:
    made = ModelSource("orders", "people", "signals")
    made.switch("signals")  # A signal table has three columns.
    return made


@pytest.fixture
def database(source, spark, tmp_path) -> Database:
    made = model_database(source, spark, tmp_path, signal_data_collection="shop.dbo.signals")
    write_some(source)
    settled(made, source)
    return made


def ask(database: Database, **data: object) -> None:
    """Request a blocking snapshot through a channel other than the signal table."""
    text = json.dumps({"type": "blocking", **data})
    note_signal(database, SignalRow("s1", "execute-snapshot", text), "test", REQUESTED, "")


def reads(database: Database, name: str) -> list[int | None]:
    return [key for op, key, _ in changes(database, name) if op == "r"]


@pytest.mark.feature("BLK-04")
def test_a_filtered_snapshot_reads_the_selected_rows_and_sweeps_nothing(database, source):
    filters = [{"data-collection": "shop.dbo.orders", "filter": "SELECT * FROM dbo.orders WHERE id IN (2, 3)"}]
    ask(database, **{"data-collections": ["shop.dbo.orders", "shop.dbo.people"], "additional-conditions": filters})
    settled(database, source)
    same(database, source)
    assert reads(database, "orders") == [0, 1, 2, 3, 2, 3]
    assert reads(database, "people") == [0, 1, 2, 3] * 2
    ended = [row.facts for row in survey(database).offsets.noted if isinstance(row.facts, SnapshotEnded)]
    assert not [facts for facts in ended if facts.table == "shop.dbo.orders" and facts.sweep]


@pytest.mark.feature("BLK-04")
def test_a_table_that_lost_changes_is_read_in_full_despite_a_filter(database, source):
    source.put("orders", 1, None)
    source.capture()
    source.tables["orders"].minimum = source.number + 1
    Follower(database).step()
    filters = [{"data-collection": "shop.dbo.orders", "filter": "SELECT * FROM dbo.orders WHERE id IN (2, 3)"}]
    ask(database, **{"data-collections": ["shop.dbo.orders"], "additional-conditions": filters})
    source.put("orders", 2, "two")
    settled(database, source)
    same(database, source)


@pytest.mark.feature("SNP-27")
def test_a_snapshot_request_for_the_signal_table_skips_none_of_its_changes(database, source):
    ask(database, **{"data-collections": ["shop.dbo.signals"]})
    source.put("signals", 1, "x", extra=1)
    settled(database, source)
    assert not survey(database).facts.asked
    assert [key for op, key, _ in changes(database, "signals") if op == "c"] == [1]
