"""Runs that capture, snapshots and operators write the same check: none turns it green that has mended nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import dagster as dg
import pytest

from mssql_cdc.defs.specs import CHECK
from mssql_cdc.run.follower import Follower
from mssql_cdc_tests.dagster.kit import Location, failures
from mssql_cdc_tests.dagster.sensing import entry
from mssql_cdc_tests.dagster.watching import Watch, watched

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]
UNMERGED = "the current table is not updated"


def execute(location: Location, name: str) -> None:
    """Do what the Execute button of a table's check does."""
    job = location.repository.get_implicit_global_asset_job_def()
    check = dg.AssetCheckKey(location.key(name), CHECK)
    chosen = job.get_subset(asset_selection=set(), asset_check_selection={check})
    assert chosen.execute_in_process(instance=location.instance, raise_on_error=False).success


def test_a_failed_snapshot_stays_red_until_one_succeeds(streaming: Location, spark: Any):
    """The next run that streamed wrote green: it knew nothing of the failure."""
    shop = streaming.shop
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.settle()
    shop.run(r"EXEC sandbox.fail_statement @pattern = N'name.*FROM \[dbo\]\.\[orders\]', @number = 208, @times = 1000")
    done = streaming.materialize(streaming.snapshots, partition="dbo.orders")
    assert not done.success
    assert entry(streaming, "orders").status == "snapshot"
    passed, severity, problem = streaming.verdict("orders")
    assert (passed, severity) == (False, "ERROR")
    evaluated = len(streaming.evaluations("orders"))
    watch = watched(streaming, spark)
    watch.follower = Follower(watch.book.database, ready=True, snapshots=False)
    shop.run("INSERT INTO dbo.people VALUES (1, N'Ann')")
    shop.scan()
    for minutes in (0, 2):
        watch.ahead = timedelta(minutes=minutes)
        watch.step()
        watch.book.turn()
    assert streaming.checks("people")[0] is True
    assert streaming.verdict("orders")[2] == problem
    assert len(streaming.evaluations("orders")) == evaluated
    execute(streaming, "orders")
    assert streaming.verdict("orders") == (False, "WARN", "late: its snapshot has not ended")
    shop.run("EXEC sandbox.clear_faults")
    done = streaming.materialize(streaming.snapshots, partition="dbo.orders")
    assert done.success, failures(done)
    assert streaming.checks("orders")[0] is True


@pytest.fixture
def unmerged(streaming: Location, spark: Any) -> Watch:
    """The current table of `orders` cannot be updated, as its book has said."""
    location = streaming.reloaded(delta_current_dbo_orders_partition_by="nonsense")
    watch = watched(location, spark)
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.shop.scan()
    watch.settle()
    watch.book.turn()
    assert location.checks("orders")[0] is False
    assert UNMERGED in location.verdict("orders")[2]
    return watch


def test_a_snapshot_leaves_red_what_it_does_not_mend(unmerged: Watch, streaming: Location):
    location = streaming.reloaded(delta_current_dbo_orders_partition_by="nonsense")
    done = location.materialize(location.snapshots, partition="dbo.orders")
    assert done.success, failures(done)
    assert location.logged("orders")["mssql_cdc/reads"] == 1
    assert unmerged.book.states.unmerged
    assert location.checks("orders")[0] is False
    assert UNMERGED in location.verdict("orders")[2]
    assert "its check stays as it is: the current table is not updated" in location.said(done)


def test_a_run_says_again_what_an_operator_has_judged_more_mildly(unmerged: Watch, streaming: Location):
    """It compared with what it had said itself, and never said it again."""
    execute(streaming, "orders")
    assert streaming.checks("orders")[0] is True
    unmerged.ahead = timedelta(minutes=2)
    unmerged.book.turn()
    assert streaming.checks("orders")[0] is False
    assert UNMERGED in streaming.verdict("orders")[2]
    evaluated = len(streaming.evaluations("orders"))
    unmerged.ahead = timedelta(minutes=4)
    unmerged.book.turn()
    assert len(streaming.evaluations("orders")) == evaluated, "once is enough"
