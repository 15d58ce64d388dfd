"""SNP-03: with `snapshot.mode=initial_only`, nothing runs or is reported behind the snapshot."""

from __future__ import annotations

import pytest

from mssql_cdc.defs.specs import HEARTBEAT
from mssql_cdc_tests.dagster.kit import Location, failures
from mssql_cdc_tests.dagster.sensing import ask

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark"), pytest.mark.feature("SNP-03")]


def begun(shop, locate, seconds: int) -> Location:
    """A database whose snapshot was taken, and opened by a run that could go on for so long."""
    shop.create("orders", "id int NOT NULL PRIMARY KEY")
    location = locate(snapshot_mode="initial_only", dagster_max_run_seconds=seconds)
    assert location.run(ask(location)).success
    shop.run("INSERT INTO dbo.orders VALUES (0)")
    done = location.run(ask(location))
    assert done.success, failures(done)
    return location


@pytest.mark.parametrize("seconds", [0, 3600])
def test_no_run_is_requested_after_the_snapshot_and_its_own_run_ends(shop, locate, seconds):
    location = begun(shop, locate, seconds)
    for looked in (location.cursor, None):
        location.cursor = looked
        assert location.tick().run_requests == []
    shop.run("INSERT INTO dbo.orders VALUES (1)")
    shop.scan()
    for looked in (location.cursor, None):
        location.cursor = looked
        assert location.tick().run_requests == []


def test_windows_after_the_snapshot_are_not_reported(shop, locate):
    location = begun(shop, locate, 0).reloaded(dagster_max_run_seconds=3600)
    request = ask(location.reloaded(snapshot_mode="initial"))
    shop.run("INSERT INTO dbo.orders VALUES (1)")
    shop.scan()
    before = len(location.materializations(location.key("orders")))
    done = location.run(request)
    assert done.success, failures(done)
    assert len(location.materializations(location.key("orders"))) == before


def test_nothing_is_overdue_where_nothing_streams(shop, locate):
    location = locate(snapshot_mode="initial_only", dagster_max_run_seconds=3600)
    policies = [spec.freshness_policy for spec in location.definitions.resolve_all_asset_specs()]
    assert HEARTBEAT not in policies
    assert HEARTBEAT in [
        spec.freshness_policy for spec in locate(dagster_max_run_seconds=3600).definitions.resolve_all_asset_specs()
    ]
