"""Ranges and snapshots against a model source: the lake always ends equal to the source."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from deltalake import DeltaTable, QueryBuilder

import mssql_cdc.capture.range as capture
from mssql_cdc.capture.database import Database
from mssql_cdc.capture.range import capture_range
from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.capture.snapshot import begin
from mssql_cdc.capture.survey import survey
from mssql_cdc.errors import DataLostError, MssqlCdcError, SourceError
from mssql_cdc.follow.current import merge_now
from mssql_cdc.plan.decisions import Range
from mssql_cdc.plan.planner import plan
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.loop import catch_up
from mssql_cdc_tests.spark.model_lake import changes, current, model_database, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_snapshot_and_stream_end_equal_to_the_source(database, source):
    for key in range(5):
        source.put("orders", key, f"o{key}")
    source.capture()
    catch_up([database], timeout=120)
    same(database, source)
    source.put("orders", 1, "changed")
    source.put("orders", 2, None)
    source.put("people", 1, "Ann")
    source.capture()
    catch_up([database], timeout=120)
    same(database, source)
    assert [op for op, _, _ in changes(database, "orders")] == ["r"] * 5 + ["u", "d"]


def test_current_table_of_a_quiet_database_opens_right_after_its_snapshot(database, source):
    source.put("orders", 1, "one")
    source.capture()
    source.enable("late")
    source.scans = 5
    follower = Follower(database)
    follower.step()
    source.scans += 1
    for _ in range(3):
        follower.step()
    assert current(database, "orders") == {1: "one"}
    assert current(database, "late") == {}


@pytest.mark.parametrize(("most", "jobs"), [(5 * 8, 0), (5 * 8 - 1, 1)])
def test_a_range_of_many_rows_is_a_spark_job_and_a_row_of_unlimited_size_counts_as_five(database, source, most, jobs):
    write_some(source)
    settled(database, source)
    write_some(source)  # Four updates of each of two tables; the model's readers share no connection.
    source.capture()
    with (
        patch.object(capture, "LITTLE_ROWS", most),
        patch.object(capture, "run_tasks", wraps=capture.run_tasks) as begun,
    ):
        settled(database, source)
    assert begun.call_count == jobs
    same(database, source)


def test_table_that_fails_keeps_its_position_and_the_others_continue(database, source):
    write_some(source)
    settled(database, source)
    write_some(source)
    source.capture()
    source.faults["orders"] = "the disk is full"
    follower = Follower(database)
    follower.step()
    assert not survey(database).offsets.history.rows[-1].complete
    assert survey(database).offsets.history.rows[-1].tables.keys() == {"shop.dbo.people"}
    source.faults.clear()
    write_some(source)
    settled(database, source)
    same(database, source)


def test_table_that_cannot_be_read_is_named_and_does_not_delay_the_others(database, source):
    write_some(source)
    settled(database, source)
    write_some(source)
    source.faults["orders"] = "the disk is full"
    with pytest.raises(SourceError, match="orders: the disk is full"):
        settled(database, source)
    assert [op for op, _, _ in changes(database, "people")].count("u") == 4


def test_table_whose_folder_cannot_be_made_does_not_hold_the_others_back(database, source):
    in_the_way = Path(database.layout.root, "dbo", "orders")
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("a file")
    write_some(source)
    with pytest.raises(MssqlCdcError, match=r"orders.* cannot be written to: Not a directory"):
        settled(database, source)
    assert current(database, "people") == source.tables["people"].rows
    in_the_way.unlink()
    write_some(source)
    settled(database, source)
    same(database, source)


def test_table_excluded_and_included_again_misses_nothing(database, source, spark, tmp_path):
    write_some(source)
    settled(database, source)
    write_some(source)
    source.capture()
    without = model_database(source, spark, tmp_path, table_exclude_list="dbo.people")
    catch_up([without], timeout=120)
    settled(database, source)
    same(database, source)


@pytest.mark.feature("STR-15")
def test_table_whose_cdc_was_switched_off_is_a_finding_until_a_snapshot(database, source):
    write_some(source)
    settled(database, source)
    source.tables["people"].enabled = False
    write_some(source)
    source.capture()
    with pytest.raises(DataLostError, match="people: CDC is no longer enabled"):
        catch_up([database], timeout=120)
    assert current(database, "orders") == source.tables["orders"].rows
    source.tables["people"].enabled = True
    with pytest.raises(DataLostError, match="people"):
        settled(database, source)
    ask_for_snapshot(database, "mend", ["shop.dbo.people"], channel="test")
    settled(database, source)
    same(database, source)


def test_cleanup_that_overtakes_a_read_is_reported_as_a_loss_of_that_table(database, source):
    write_some(source)
    settled(database, source)
    write_some(source)
    source.capture()
    source.tables["people"].minimum = source.number
    with pytest.raises(DataLostError, match="people"):
        catch_up([database], timeout=60)
    assert current(database, "orders") == source.tables["orders"].rows


def test_random_actions_end_equal_to_the_source(database, source):
    dice = random.Random(7)
    for _ in range(6):
        for _ in range(dice.randint(1, 8)):
            name, key = dice.choice(sorted(source.tables)), dice.randint(0, 3)
            source.put(name, key, dice.choice([None, "x", "y", "z"]))
        source.capture(source.number - dice.randint(0, 3))
        Follower(database).step()
    settled(database, source)
    same(database, source)


@pytest.mark.feature("BLK-02", "SNP-07")
def test_lost_table_is_repaired_by_a_snapshot_that_sweeps_deleted_rows(database, source):
    write_some(source)
    settled(database, source)
    source.put("orders", 1, None)
    source.put("orders", 9, "nine")
    source.capture()
    source.tables["orders"].minimum = source.number + 1
    with pytest.raises(DataLostError, match="orders"):
        catch_up([database], timeout=60)
    source.put("orders", 2, "two")
    ask_for_snapshot(database, "mend", ["shop.dbo.orders"], channel="test")
    settled(database, source)
    same(database, source)
    uri = database.layout.root + "/dbo/orders/changes"
    sql = "SELECT op, before.id AS id, _snapshot AS s FROM t WHERE _snapshot LIKE 'sweep:%'"
    found = QueryBuilder().register("t", DeltaTable(uri)).execute(sql).read_all()
    assert (found["op"].to_pylist(), found["id"].to_pylist()) == (["d"], [1])
    assert not survey(database).facts.asked


def test_requested_snapshot_is_taken_once(database, source):
    write_some(source)
    settled(database, source)
    ask_for_snapshot(database, "again", ["dbo.people"], channel="test")
    source.put("people", 2, "changed")
    settled(database, source)
    settled(database, source)
    same(database, source)
    assert [op for op, _, _ in changes(database, "people")].count("r") == 8


def test_re_created_table_starts_a_new_incarnation(database, source):
    write_some(source)
    settled(database, source)
    source.tables["orders"].rows.clear()
    source.tables["orders"].object_id += 50
    source.number += 1
    source.tables["orders"].start = source.tables["orders"].minimum = source.number
    source.put("orders", 3, "new three")
    settled(database, source)
    same(database, source)
    entry = survey(database).offsets.entry("shop.dbo.orders")
    assert entry is not None
    assert entry.incarnation == 2


def test_cleanup_that_overtakes_a_table_without_changes_is_found(database, source):
    """Rule A9: a reader checks its own table; that of a table without rows is checked behind the others."""
    write_some(source)
    settled(database, source)
    source.put("orders", 1, "changed")
    source.capture()

    def cleanup() -> None:
        source.tables["people"].minimum = source.number + 5

    source.before_read = cleanup
    seen = survey(database)
    decision = plan(seen.facts)
    assert isinstance(decision, Range)
    result = capture_range(database, seen, decision)
    assert {table.name: type(error) for table, error in result.failed.items()} == {"people": DataLostError}
    assert result.row is not None
    assert result.row.tables.keys() == {"shop.dbo.orders"}


def test_a_sweep_waits_until_the_rows_of_its_snapshot_are_merged(source, spark, tmp_path):
    """Rule C19: before that, rows that were read again look like rows that are gone."""
    database = model_database(source, spark, tmp_path, delta_current_interval="3600")
    write_some(source)
    settled(database, source)
    before = dict(source.tables["people"].rows)
    ask_for_snapshot(database, "again", ["dbo.people"], channel="test")
    source.put("people", 1, None)
    source.capture()
    follower = Follower(database)
    for _ in range(5):
        follower.step()
    assert survey(database).offsets.closed_tables == {}
    assert current(database, "people") == before
    assert [op for op, _, _ in changes(database, "people")].count("d") == 1
    settled(database, source)
    same(database, source)


def test_a_sweep_leaves_changes_beyond_the_last_complete_cut_to_the_next_one(database, source):
    """Rule A1: a range that failed in another table is no cut, so nothing of it may be in a current table."""
    write_some(source)
    settled(database, source)
    del source.tables["orders"].rows[1]  # Only a sweep can delete it: its deletion was never captured.
    ask_for_snapshot(database, "again", ["dbo.orders"], channel="test")
    source.put("people", 0, "in the cut that opens the table")
    source.capture()
    streams = Follower(database, merge=False)
    for _ in range(4):
        streams.step()
    seen = survey(database)
    assert (seen.offsets.closed_tables, seen.offsets.ends_with_cut) == ({}, True)
    merge_now(database, seen.tables, seen.offsets, seen.history)
    for name in ("orders", "people"):
        source.put(name, 2, "beyond the cut")
    source.capture()
    source.faults["people"] = "the disk is full"
    before = [current(database, name)[2] for name in ("orders", "people")]
    follower = Follower(database)
    follower.step()
    assert not survey(database).offsets.ends_with_cut
    assert [current(database, name)[2] for name in ("orders", "people")] == before, "rows of two moments"

    source.faults.clear()
    settled(database, source)
    same(database, source)
    assert [op for op, _, _ in changes(database, "orders")].count("d") == 1, "swept once"


@pytest.mark.feature("EVO-01", "EVO-02", "EVO-09")
def test_second_capture_instance_is_read_from_its_start_with_its_columns(database, source):
    write_some(source)
    settled(database, source)
    source.put("orders", 0, "under the old instance")
    source.switch("orders")
    source.put("orders", 1, "under the new instance", extra=11)
    source.put("orders", 7, "seven", extra=77)
    settled(database, source)
    same(database, source)
    uri = database.layout.root + "/dbo/orders/current"
    found = QueryBuilder().register("t", DeltaTable(uri)).execute("SELECT id, extra FROM t ORDER BY id").read_all()
    assert found["extra"].to_pylist() == [None, 11, None, None, 77]
    schemas = QueryBuilder().register("t", DeltaTable(uri.replace("current", "changes")))
    rows = schemas.execute("SELECT _schema AS s FROM t WHERE op <> 'r' ORDER BY _pos").read_all()
    assert rows["s"].to_pylist() == [1, 2, 2]


@pytest.mark.feature("STR-19")
def test_quiet_weekend_is_not_data_loss(database, source):
    write_some(source)
    settled(database, source)
    source.settled = 500
    seen = survey(database, now=datetime.now(UTC) + timedelta(hours=12))
    decision = plan(seen.facts)
    assert isinstance(decision, Range)
    result = capture_range(database, seen, decision)
    assert result.row is not None
    assert (result.row.kind, result.row.complete, result.rows) == ("idle", True, 0)
    source.cleanup(400)
    source.number = 600
    source.put("people", 1, "after the weekend")
    settled(database, source)
    same(database, source)


@pytest.mark.feature("STR-19")
def test_idle_tables_are_advanced_in_time_for_the_retention_of_the_server(database, source):
    write_some(source)
    settled(database, source)
    source.settled = 500
    soon = datetime.now(UTC) + timedelta(minutes=20)
    assert not isinstance(plan(survey(database, now=soon).facts), Range)
    source.retention = timedelta(hours=2)
    decision = plan(survey(database, now=soon).facts)
    assert isinstance(decision, Range)
    assert len(decision.idle) == 2


def test_storage_without_atomic_commits_causes_a_warning_when_a_snapshot_begins(
    database: Database, source: ModelSource, monkeypatch: pytest.MonkeyPatch
):
    # No shared folder or object store is available here, so the test injects its warning.
    monkeypatch.setattr(begin, "storage_warning", lambda uri: f"{uri} is shared")
    said: list[str] = []
    for _ in range(2):
        write_some(source)
        settled(replace(database, log=said.append), source)
    assert said.count(f"{database.layout.warehouse} is shared") == 1
