"""Tables that the loaded table list lacks are snapshotted, streamed and retried until `discover` names them."""

from __future__ import annotations

import dagster as dg
import pytest

from mssql_cdc.defs.runs import RANGE_TAG
from mssql_cdc_tests.dagster.kit import failures
from mssql_cdc_tests.dagster.sensing import ask, attempt, entry

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.mark.parametrize("seconds", [0, 2])
def test_a_database_without_listed_tables_streams(shop, locate, seconds):
    """It was added to `database.names`, and nobody ran `discover`: each tick failed with a CheckError."""
    shop.create("orders", "id int NOT NULL PRIMARY KEY")
    location = locate(known=[], dagster_max_run_seconds=seconds)
    assert location.run(ask(location)).success
    shop.run("INSERT INTO dbo.orders VALUES (1)")
    request = ask(location)
    assert request.partition_key is None
    done = location.run(request)
    assert done.success, failures(done)
    assert entry(location, "orders").rows == 1


def test_an_unlisted_table_is_retried_alone(shop, locate):
    """All tables stood still, and the attempts were not counted."""
    shop.create("orders", "id int NOT NULL PRIMARY KEY")
    shop.create("people", "id int NOT NULL PRIMARY KEY")
    location = locate(known=["orders"], snapshot_mode="no_data", dagster_max_attempts=2)
    location.settle()
    shop.run("INSERT INTO dbo.orders VALUES (1)", "INSERT INTO dbo.people VALUES (1)")
    shop.run("EXEC sandbox.fail_statement @pattern = N'SELECT TOP.*dbo_people_CT', @number = 208, @times = 1000")
    first = ask(location)
    assert not location.run(first).success
    location.tick_past_the_wait()
    (second,) = location.requests
    assert (second.tags[RANGE_TAG], attempt(second), second.partition_key) == (first.tags[RANGE_TAG], 2, None)
    assert {*second.asset_selection} == {location.setup.heartbeat_key}
    assert not location.run(second).success
    shop.run("INSERT INTO dbo.orders VALUES (2)")
    assert location.run(ask(location)).success
    assert (entry(location, "people").status, entry(location, "orders").rows) == ("failed", 1)
    shop.run("EXEC sandbox.clear_faults")


def test_a_run_of_heartbeats_by_hand_streams_nothing(streaming):
    done = streaming.materialize(streaming.setup.heartbeat_key)
    assert done.success
    assert [event for event in done.all_events if event.event_type == dg.DagsterEventType.STEP_FAILURE] == []
