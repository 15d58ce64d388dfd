"""Concurrent runs: late ones add nothing, rows are committed once, a range and a snapshot do not interfere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mssql_cdc.capture.range import capture_range
from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.capture.survey import survey
from mssql_cdc.errors import DataLostError, FencedError
from mssql_cdc.lsn import LsnRange
from mssql_cdc.plan.decisions import Range
from mssql_cdc.plan.facts import Activity, Runs
from mssql_cdc.plan.planner import plan, plan_partition
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.loop import catch_up
from mssql_cdc_tests.lake_kit import lsn
from mssql_cdc_tests.spark.model_lake import changes, same, settled, write_some

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_late_run_adds_nothing(database, source):
    write_some(source)
    settled(database, source)
    write_some(source)
    source.capture()
    late = survey(database)
    decision = plan(late.facts)
    assert isinstance(decision, Range)
    write_some(source)
    settled(database, source)
    result = capture_range(database, late, decision)
    assert result.failed
    assert all(isinstance(error, FencedError) for error in result.failed.values())
    assert result.row is None
    same(database, source)


def test_two_concurrent_runs_commit_each_row_once(database, source):
    write_some(source)
    settled(database, source)
    write_some(source)
    source.capture()
    rival = Follower(database.named("rival"), merge=False)

    def overtake() -> None:
        source.before_read = lambda: None
        write_some(source)
        source.capture()
        rival.step()

    source.before_read = overtake
    with pytest.raises(FencedError):
        Follower(database).step().raise_failure()
    settled(database, source)
    same(database, source)
    for name in source.tables:
        positions = [key for op, key, _ in changes(database, name) if op != "r"]
        assert len(positions) == sum(1 for n, t, _ in source.log if t == name and n > 20)


def test_concurrent_range_and_snapshot_do_not_interfere(database, source):
    write_some(source)
    settled(database, source)
    source.enable("late")
    source.put("late", 7, "seven")
    write_some(source)
    source.capture()
    rival = Follower(database.named("rival"))

    def range_meanwhile() -> None:
        source.before_read = lambda: None
        write_some(source)
        source.put("late", 8, "eight")
        source.capture()
        seen = survey(database.named("rival"))
        busy = Runs((Activity("snapshot", "snapshot-x", "other"),))
        decision = plan(replace(seen.facts, runs=busy))
        assert isinstance(decision, Range)
        capture_range(rival.database, seen, decision)

    source.before_read = range_meanwhile
    Follower(database).step()
    settled(database, source)
    same(database, source)


def test_restored_change_log_is_rejected_by_name(database, source, spark):
    write_some(source)
    settled(database, source)
    write_some(source)
    settled(database, source)
    uri = database.layout.root + "/dbo/orders/changes"
    spark.sql(f"RESTORE TABLE delta.`{uri}` TO VERSION AS OF 1").collect()
    with pytest.raises(DataLostError, match=r"orders: .* was changed by RESTORE"):
        catch_up([database], timeout=60)
    ask_for_snapshot(database, "mend", ["shop.dbo.orders"], channel="test")
    settled(database, source)
    same(database, source)


def test_requesting_an_old_partition_again_does_nothing(database, source):
    write_some(source)
    settled(database, source)
    write_some(source)
    settled(database, source)
    seen = survey(database)
    before = changes(database, "orders")
    result = capture_range(database, seen, plan_partition(seen.facts, LsnRange(lsn(12), lsn(20))))
    assert (result.row, result.tables) == (None, {})
    assert changes(database, "orders") == before
