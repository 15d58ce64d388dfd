"""The assets `transactions`, which shows what was written, and `heartbeat`, which shows that capture runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest

from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.transactions_asset import NOTHING, TransactionsAsset
from mssql_cdc.follow.transactions import Counted
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc_tests.dagster.kit import Location, connector, failures, metadata, table
from mssql_cdc_tests.dagster.watching import Written

SPARK = [pytest.mark.spark, pytest.mark.usefixtures("spark")]
BOTH = (
    "BEGIN TRAN; INSERT INTO dbo.orders VALUES (1, N'one'), (2, N'two'); "
    "INSERT INTO dbo.people VALUES (7, N'Ann'); UPDATE dbo.orders SET id = 3 WHERE id = 2; COMMIT"
)


@pytest.fixture
def telling(streaming: Location) -> Location:
    """Two streaming tables, with transaction metadata."""
    return streaming.reloaded(provide_transaction_metadata="true")


def reported(location: Location) -> list[dict[str, Any]]:
    return [metadata(event) for event in location.materializations(location.setup.transactions_key)]


def beats(location: Location) -> list[dict[str, Any]]:
    return [metadata(event) for event in location.materializations(location.setup.heartbeat_key)]


def rows(location: Location) -> list[dict[str, Any]]:
    return small_table(location.setup.layout, "transactions").rows()


class TestRuns:
    pytestmark = SPARK

    @pytest.mark.feature("TXN-04", "TXN-07")
    def test_transactions_are_materialized_when_there_are_rows_and_the_heartbeat_always(self, telling: Location):
        telling.shop.run(BOTH)
        telling.settle()
        (found,) = reported(telling)
        begin, end = rows(telling)
        assert found["dagster/row_count"] == 2
        assert (found["mssql_cdc/transactions"], found["mssql_cdc/events"]) == (1, 5)
        assert found["mssql_cdc/first_commit_lsn"] == found["mssql_cdc/last_commit_lsn"] == begin["commit_lsn"]
        assert found["mssql_cdc/as_of"] == end["commit_ts"].timestamp()
        name = f"{telling.shop.catalog}.dbo"
        assert dict(end["data_collections"]) == {f"{name}.orders": 4, f"{name}.people": 1}
        (event,) = telling.materializations(telling.setup.transactions_key)
        assert event.partition is None
        before = len(beats(telling))
        telling.cursor = None  # A run is requested for the window, which finds nothing to read.
        assert telling.settle()
        assert len(reported(telling)) == 1, "nothing was written"
        assert len(beats(telling)) > before
        assert beats(telling)[0]["mssql_cdc/lag_seconds"] == 0

    def test_transactions_selected_alone_write_what_is_missing_and_otherwise_do_nothing(self, streaming: Location):
        streaming.shop.run(BOTH)
        streaming.settle()
        location = streaming.reloaded(provide_transaction_metadata="true")
        done = location.materialize(location.setup.transactions_key)
        assert done.success, failures(done)
        assert NOTHING not in location.said(done)
        assert [found["mssql_cdc/events"] for found in reported(location)] == [5]
        again = location.materialize(location.setup.transactions_key)
        assert again.success, failures(again)
        assert NOTHING in location.said(again)
        assert len(reported(location)) == 1
        assert len(rows(location)) == 2

    @pytest.mark.parametrize("is_selected", [True, False])
    def test_a_hand_launched_run_reports_the_transactions_that_it_writes(self, telling: Location, *, is_selected: bool):
        telling.shop.run(BOTH)
        telling.shop.scan()
        keys = list(telling.setup.log_keys)  # A cut is complete when every table has taken part.
        keys += [telling.setup.transactions_key] if is_selected else []
        done = telling.materialize(*keys, partition=telling.window)
        assert done.success, failures(done)
        assert [found["mssql_cdc/transactions"] for found in reported(telling)] == [1]
        assert NOTHING not in telling.said(done)
        again = telling.materialize(*keys, partition=telling.window)
        assert again.success, failures(again)
        assert len(reported(telling)) == 1
        assert (NOTHING in telling.said(again)) == is_selected

    def test_the_heartbeat_can_be_asked_for_and_is_missing_while_capture_stands_still(self, streaming: Location):
        before = len(beats(streaming))
        done = streaming.materialize(streaming.setup.heartbeat_key)
        assert done.success, failures(done)
        assert len(beats(streaming)) == before + 1
        newest = beats(streaming)[0]
        assert newest["mssql_cdc/lag_seconds"] == 0
        assert newest["mssql_cdc/as_of"] < datetime.now(UTC).timestamp()
        streaming.shop.run("EXEC sandbox.agent_stop", "EXEC sandbox.advance_clock @seconds = 300")
        late = streaming.materialize(streaming.setup.heartbeat_key)
        streaming.shop.run("EXEC sandbox.agent_start")
        assert late.success, failures(late)
        assert "There is no heartbeat: capture has not scanned since" in streaming.said(late)
        assert len(beats(streaming)) == before + 1


def test_reports_are_bounded_by_time_not_by_cuts_and_tell_of_everything(instance: dg.DagsterInstance, tmp_path):
    made = connector(delta_warehouse=tmp_path, provide_transaction_metadata=True)
    written, now = Written(instance), datetime(2026, 1, 2, tzinfo=UTC)
    asset = TransactionsAsset(Setup.of(made, "shop", (table("orders"),)), written, clock=lambda: now)
    first = Counted(2, 5, "a", "b", now)
    for number in range(50):
        asset.add(replace(first, first=f"a{number:02}", last=f"b{number:02}", as_of=now + timedelta(seconds=number)))
        asset.turn()
    assert written.take() == []
    now += timedelta(seconds=60)
    asset.turn()
    asset.turn()
    (event,) = written.take()
    assert isinstance(event, dg.AssetMaterialization)
    found = {name.removeprefix("mssql_cdc/"): value for name, value in metadata(event).items()}
    assert (found["transactions"], found["events"]) == (100, 250)
    assert (found["first_commit_lsn"], found["last_commit_lsn"]) == ("a00", "b49")
    now += timedelta(seconds=60)
    asset.turn()
    asset.report()
    assert written.take() == []
