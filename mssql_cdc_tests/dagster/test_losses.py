"""The sensor's handling of lost changes and restored sources, and the operator's options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import dagster as dg
import pytest

from mssql_cdc.defs.runs import SNAPSHOT_TAG
from mssql_cdc.lake.gaps import open_gaps
from mssql_cdc.lake.offset_commits import append_offsets, load_offsets
from mssql_cdc.schema import TableId
from mssql_cdc_tests.dagster.kit import Location, failures, metadata
from mssql_cdc_tests.dagster.sensing import ask, entry

pytestmark = [pytest.mark.spark]


def lose_changes(location: Location, names: Sequence[str] = ("orders", "people", "first_table")) -> None:
    """Let cleanup overtake the reader: it removes the first of two transactions, which need different commit times."""
    shop = location.shop
    shop.run("INSERT INTO dbo.orders VALUES (1, N'one')", "WAITFOR DELAY '00:00:00.050'")
    shop.run("INSERT INTO dbo.orders VALUES (2, N'two')")
    end = shop.scan().text.replace(":", "")
    for name in names:
        shop.run(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_{name}', 0x{end}, 100")


def test_lost_changes_are_reported_once_and_leave_the_check_red(streaming):
    lose_changes(streaming)
    result = streaming.tick()
    assert result.run_requests == []
    assert "LOST" in result.skip_message
    assert "snapshots asset" in result.skip_message
    assert streaming.checks("orders")[0] is False
    assert entry(streaming, "orders").status == "lost"
    assert "LOST" not in (streaming.tick().skip_message or "")


@pytest.mark.parametrize("mode", [pytest.param("no_data", marks=pytest.mark.long), "when_needed"])
def test_a_loss_is_recorded_by_a_window_that_is_materialized_by_hand(streaming, spark, mode):
    """The sensor was off for longer than CDC keeps changes: the run said that there was nothing to read."""
    location = streaming.reloaded(snapshot_mode=mode)
    lose_changes(location, ["orders"])
    before = len(location.materializations(location.key("orders")))
    for _ in range(2):
        done = location.materialize(location.key("orders"), location.key("people"), partition=location.window)
        assert not done.success
        (said,) = failures(done)
        remedy = {"no_data": "the asset snapshots, which", "when_needed": "mode=when_needed repairs it"}[mode]
        assert re.search(rf"1 table failed: \S+\.orders: CDC cleanup removed changes .*; .*{remedy}", said), said
        assert "people" not in said
        assert entry(location, "orders").status == "lost"
        assert len(location.materializations(location.key("orders"))) == before
        assert location.logged("people")["mssql_cdc/as_of"] is not None
        assert (location.checks("orders")[0], location.checks("people")[0]) == (False, True)
    (gap,) = open_gaps(location.database().layout)[entry_name(location, "orders")]
    assert "CDC cleanup removed changes" in gap.text


def test_the_loss_of_a_table_that_is_not_selected_is_left_to_the_stream(streaming, spark):
    lose_changes(streaming, ["people"])
    done = streaming.materialize(streaming.key("orders"), partition=streaming.window)
    assert done.success, failures(done)
    assert streaming.logged("orders")["mssql_cdc/inserts"] == 2
    assert entry(streaming, "people").status == "streaming"
    assert "LOST" in streaming.tick().skip_message
    assert streaming.checks("people")[0] is False


def test_a_loss_after_the_tick_is_recorded_by_the_run_that_reads_its_range(streaming, spark):
    streaming.shop.run("INSERT INTO dbo.people VALUES (1, N'Ann')")
    request = ask(streaming)
    lose_changes(streaming, ["orders"])
    before = len(streaming.materializations(streaming.key("orders")))
    streaming.run(request)
    assert entry(streaming, "orders").status == "lost"
    assert streaming.checks("orders")[0] is False
    assert len(streaming.materializations(streaming.key("orders"))) == before
    assert streaming.logged("people")["mssql_cdc/inserts"] == 1


def entry_name(location: Location, name: str) -> str:
    return TableId(location.shop.catalog, "dbo", name).text


def signal(location: Location, **config: object) -> dg.ExecuteInProcessResult:
    """Submit the launchpad of the signals asset."""
    ops = {"ops": {f"signals__{location.names.stem}": {"config": config}}}
    return location.materialize(location.names.extra_key("signals"), run_config=ops)


@pytest.mark.feature("BLK-01")
def test_a_repaired_table_stays_red_until_its_gap_is_acknowledged(streaming, spark):
    lose_changes(streaming)
    streaming.tick()
    assert signal(streaming, tables=["dbo.orders", "dbo.people", "dbo.first_table"]).success
    streaming.settle()
    streaming.shop.run("INSERT INTO dbo.orders VALUES (3, N'three')")
    streaming.settle()
    assert entry(streaming, "orders").status == "streaming"
    assert streaming.checks("orders")[0] is False
    assert streaming.logged("orders")["mssql_cdc/open_gaps"] == 1
    done = signal(streaming, tables=["dbo.orders"], action="acknowledge_gaps")
    assert done.success, failures(done)
    assert (streaming.checks("orders")[0], streaming.checks("people")[0]) == (True, False)


def test_acknowledging_judges_the_tables_that_it_is_about_and_that_have_begun(streaming, locate):
    """All checks were evaluated, and a table that waits for its first snapshot turned red."""
    lose_changes(streaming)
    streaming.tick()
    streaming.shop.create("later", "id int NOT NULL PRIMARY KEY")
    location = locate(snapshot_mode="no_data")
    people = len(location.evaluations("people"))
    assert signal(location, tables=["dbo.orders"], action="acknowledge_gaps").success
    assert len(location.evaluations("people")) == people
    assert signal(location, tables=[], action="acknowledge_gaps").success
    assert len(location.evaluations("people")) == people + 1
    assert location.evaluations("later") == []


@pytest.mark.feature("SNP-07")
def test_when_needed_requests_the_snapshot_that_repairs_a_loss(streaming, spark):
    location = streaming.reloaded(snapshot_mode="when_needed")
    lose_changes(location)
    assert "repairs them" in location.tick().skip_message
    location.settle()
    assert entry(location, "orders").status == "streaming"
    taken = location.materializations(location.snapshots)
    assert [metadata(e)["dagster/partition_row_count"] for e in taken if e.partition == "dbo.orders"] == [2, 0]
    assert location.checks("orders")[0] is False


def go_back(location: Location) -> None:
    """Make the lake remember a transaction that the source does not have, as after a restore."""
    database = location.database()
    seen = load_offsets(database.layout)
    assert seen.witness is not None
    cut = seen.last_cut()
    assert cut is not None
    row = replace(cut, tables={}, complete=False, kind="status", witness=replace(seen.witness, tran_id="ff"))
    append_offsets(database.layout, row, seen=seen)


def test_capture_resumes_after_a_restore_only_by_an_explicit_action(streaming, spark):
    streaming.shop.run("INSERT INTO dbo.orders VALUES (1, N'one')")
    streaming.settle()
    go_back(streaming)
    streaming.shop.run("INSERT INTO dbo.orders VALUES (2, N'two')")
    streaming.shop.scan()
    for _ in range(2):
        with pytest.raises(dg.Failure, match="go_on_after_restore"):
            streaming.tick()
    assert streaming.checks("orders")[:2] == [False, True]
    location = streaming.reloaded(snapshot_mode="initial")
    assert signal(location, tables=[], action="go_on_after_restore").success
    first = ask(location)
    assert first.tags[SNAPSHOT_TAG].startswith("e1.snapshot-")
    assert location.run(first).success
    location.shop.run("INSERT INTO dbo.orders VALUES (3, N'three')")
    runs = location.settle()
    assert runs
    assert location.logged("orders")["mssql_cdc/inserts"] >= 1
    assert location.checks("orders")[0] is True
