"""Changes lost at the source: the ledger, repairs, and a source that went back in time (rules A7, A9)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from deltalake import DeltaTable, QueryBuilder

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.range import capture_range
from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.capture.survey import survey
from mssql_cdc.errors import ConfigurationError, DataLostError, SourceRestoredError
from mssql_cdc.lake.gaps import load_gaps, open_gaps
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.plan.decisions import Range, Snapshot
from mssql_cdc.plan.planner import plan
from mssql_cdc.run.execute import execute
from mssql_cdc.run.loop import catch_up
from mssql_cdc.run.loss import acknowledge, go_on_after_restore
from mssql_cdc_tests.lake_kit import lsn
from mssql_cdc_tests.spark.model_lake import changes, model_database, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def lose(database: Database, source: ModelSource) -> None:
    """Clean up changes of orders before they are read, up to the newest transaction: cleanup never goes beyond it."""
    write_some(source)
    settled(database, source)
    source.put("orders", 1, None)
    source.put("orders", 9, "nine")
    source.put("people", 4, "kept")
    source.capture()
    source.tables["orders"].minimum = source.number


def test_lost_changes_are_in_the_ledger_until_they_are_acknowledged(database, source):
    lose(database, source)
    for _ in range(2):
        with pytest.raises(DataLostError, match="orders"):
            catch_up([database], timeout=60)
    (gap,) = load_gaps(database.layout)
    assert (gap.table, gap.from_, gap.to) == ("shop.dbo.orders", lsn(20).text, None)
    assert "CDC cleanup removed" in gap.reason
    source.put("orders", 2, "two")
    ask_for_snapshot(database, "mend", ["shop.dbo.orders"], channel="test")
    settled(database, source)
    same(database, source)
    (repaired,) = load_gaps(database.layout)
    assert repaired == replace(gap, to=repaired.to, at=repaired.at)
    assert repaired.to is not None
    assert list(open_gaps(database.layout)) == ["shop.dbo.orders"]
    done = acknowledge(database, None, by="somebody")
    assert done.gaps == [replace(repaired, status="acknowledged", by="somebody")]
    assert open_gaps(database.layout) == {}
    assert acknowledge(database, None, by="somebody").lines == []


@pytest.mark.feature("SNP-07")
def test_when_needed_repairs_a_loss_automatically_and_leaves_the_gap_open(source, spark, tmp_path):
    database = model_database(source, spark, tmp_path, snapshot_mode="when_needed")
    lose(database, source)
    catch_up([database], timeout=120)
    same(database, source)
    assert list(open_gaps(database.layout)) == ["shop.dbo.orders"]


@pytest.mark.feature("SNP-11")
def test_when_needed_no_data_resumes_after_a_loss_without_reading_rows(source, spark, tmp_path):
    database = model_database(source, spark, tmp_path, snapshot_mode="when_needed_no_data")
    lose(database, source)
    catch_up([database], timeout=120)
    source.put("orders", 3, "after")
    settled(database, source)
    assert [op for op, _, _ in changes(database, "orders")].count("r") == 0
    assert changes(database, "orders")[-1] == ("u", 3, "after")


@pytest.fixture
def gone_back(database, source) -> Database:
    """Restore the source: two of the lake's transactions never happened there, and others took their numbers."""
    write_some(source)
    settled(database, source)
    source.put("orders", 7, "never happened")
    source.put("orders", 1, "never happened either")
    settled(database, source)
    source.restore(20)
    source.put("people", 2, "other history")
    source.put("people", 8, None)
    source.put("people", 3, None)
    source.capture()
    return database


def test_a_source_that_went_back_in_time_stops_until_an_operator_decides(gone_back):
    for _ in range(2):
        with pytest.raises(SourceRestoredError, match="acknowledge --restored"):
            catch_up([gone_back], timeout=60)
    assert [gap.table for gap in load_gaps(gone_back.layout)] == ["shop.dbo.orders", "shop.dbo.people"]
    assert len(changes(gone_back, "people")) == 4


def test_a_manual_snapshot_cannot_mix_two_histories(gone_back):
    seen = survey(gone_back)
    tables = tuple(member.table for member in seen.facts.members)
    with pytest.raises(SourceRestoredError, match="acknowledge --restored"):
        execute(gone_back, seen, Snapshot("snapshot-20261121T080509", tables, by_hand=True))


def test_resuming_after_a_restore_begins_an_epoch_and_ends_equal_to_the_source(gone_back, source):
    after = go_on_after_restore(gone_back, by="somebody")
    assert after.epoch == 1
    assert open_gaps(gone_back.layout) == {}
    catch_up([gone_back], timeout=120)
    same(gone_back, source)
    source.put("orders", 2, "in the new epoch")
    settled(gone_back, source)
    same(gone_back, source)
    seen = survey(gone_back)
    assert all(row.partition.startswith("e1.") for row in seen.offsets.history.rows if row.epoch == 1 and row.partition)
    cut = seen.offsets.last_cut()
    assert cut is not None
    assert cut.epoch == 1
    uri = gone_back.layout.root + "/dbo/orders/changes"
    sql = "SELECT _pos AS pos, op, after.name AS name FROM t ORDER BY _pos"
    found = QueryBuilder().register("t", DeltaTable(uri)).execute(sql).read_all()
    assert found["pos"].to_pylist()[-1].startswith("0001-")
    assert found["name"].to_pylist()[-1] == "in the new epoch"


def test_when_needed_resumes_after_a_restore_automatically(gone_back, source, spark, tmp_path):
    database = model_database(source, spark, tmp_path, snapshot_mode="when_needed")
    catch_up([database], timeout=120)
    same(database, source)
    assert set(open_gaps(database.layout)) == {"shop.dbo.orders", "shop.dbo.people"}


def test_snapshots_requested_in_a_later_epoch_have_its_keys(gone_back, source):
    go_on_after_restore(gone_back, by="somebody")
    catch_up([gone_back], timeout=120)
    ask_for_snapshot(gone_back, "again", ["shop.dbo.orders"], channel="test")
    settled(gone_back, source)
    same(gone_back, source)
    keys = [row.partition for row in survey(gone_back).offsets.snapshot_rows if row.epoch == 1]
    assert len(set(keys)) == 2
    assert all(str(key).startswith("e1.snapshot-") for key in keys)


def test_a_run_that_was_planned_before_an_epoch_began_writes_no_offsets(database, source):
    write_some(source)
    settled(database, source)
    write_some(source)
    source.capture()
    late = survey(database)
    decision = plan(late.facts)
    assert isinstance(decision, Range)
    source.restore(18)
    go_on_after_restore(database, by="somebody")
    for key in range(8):
        source.put("orders", key, "history of its own")
    source.capture()
    with pytest.raises(SourceRestoredError, match="is another one"):
        capture_range(database, late, decision)
    assert load_offsets(database.layout).history.rows[-1].kind == "epoch"
    settled(database, source)
    same(database, source)


def test_an_epoch_begins_only_if_the_source_went_back_in_time(database, source):
    write_some(source)
    settled(database, source)
    with pytest.raises(ConfigurationError, match="no epoch to begin"):
        go_on_after_restore(database, by="somebody")


def test_cleanup_of_changes_during_a_snapshot_is_recorded_in_the_ledger(database, source, monkeypatch):
    write_some(source)
    settled(database, source)
    source.put("orders", 1, None)
    source.capture()
    ask_for_snapshot(database, "again", ["shop.dbo.orders"], channel="test")

    def cleanup() -> None:
        source.before_read = lambda: None
        source.tables["orders"].minimum = source.number + 1

    source.before_read = cleanup
    source.put("orders", 2, "two")
    settled(database, source)
    same(database, source)
    (gap,) = load_gaps(database.layout)
    assert (gap.from_, gap.status) == (lsn(20).text, "open")
    assert "its rows replace them" in gap.reason
