"""A system that has caught up has no asset without an event: nothing in its graph looks like work that is left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mssql_cdc_tests.dagster.kit import Location, metadata
from mssql_cdc_tests.sandbox_source.kit import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def without_event(location: Location) -> list[str]:
    """The assets of the graph that were never materialized."""
    keys = location.repository.asset_graph.get_all_asset_keys()
    return sorted(key.to_user_string() for key in keys if not location.materializations(key))


def test_signals_are_reported_before_the_first_one(shop: Shop, locate: Callable[..., Location]):
    shop.create("orders", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT INTO dbo.orders VALUES (1)")
    location = locate()
    location.settle()
    assert without_event(location) == []
    (event,) = location.materializations(location.names.extra_key("signals"))
    assert metadata(event)["mssql_cdc/signals"].records == []


def test_an_instance_that_begins_anew_is_told_of_what_the_lake_has(shop: Shop, locate: Callable[..., Location]):
    shop.create("orders", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT INTO dbo.orders VALUES (1)")
    location = locate()
    location.settle()
    for name in ("schema_history", "notifications", "signals"):
        location.instance.wipe_assets([location.names.extra_key(name)])
    shop.run("INSERT INTO dbo.orders VALUES (2)")
    location.settle()
    assert without_event(location) == []
