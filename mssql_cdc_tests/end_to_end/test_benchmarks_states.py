"""What the demo's benchmark takes for an asset that is not green, from answers of Dagster's webserver."""

from __future__ import annotations

from typing import Any

import pytest

from mssql_cdc_tests.benchmarks.states import faults

GREEN: dict[str, Any] = {
    "materialized": [{"runId": "r2"}],
    "windows": {"numMaterialized": 3, "numMaterializing": 0, "numPartitions": 3, "numFailed": 0},
    "checks": [{"name": "captured_faithfully", "executionForLatestMaterialization": {"status": "SUCCEEDED"}}],
    "run": {"id": "r2", "status": "SUCCESS"},
    "stale": "FRESH",
    "fresh": "HEALTHY",
}


def answers(**found: Any) -> dict[str, str]:
    """The faults of one asset, which is green but for what is given."""
    one, key = GREEN | found, {"assetKey": {"path": ["shop", "orders"]}}
    node = {
        "assetMaterializations": one["materialized"],
        "partitionStats": one["windows"],
        "assetChecksOrError": {"checks": one["checks"]},
    }
    fresh = one["fresh"] and {"freshnessStatus": one["fresh"]}
    return faults(
        {"assetNodes": [key | node], "assetsLatestInfo": [key | {"latestRun": one["run"]}]},
        {"assetNodes": [key | {"staleStatus": one["stale"]}]},
        {"assetNodes": [key | {"freshnessStatusInfo": fresh}]},
    )


def windows(materialized: int, *, materializing: int = 0, failed: int = 0) -> dict[str, int]:
    """What Dagster counts of three windows."""
    return {
        "numMaterialized": materialized,
        "numMaterializing": materializing,
        "numPartitions": 3,
        "numFailed": failed,
    }


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"windows": None},
        {"windows": windows(2, materializing=1)},
        {"checks": [{"name": "captured_faithfully", "executionForLatestMaterialization": None}]},
        {"run": None},
        {"run": {"id": "r3", "status": "STARTED"}},
        {"run": {"id": "r3", "status": "CANCELED"}},
        {"fresh": None},
        {"fresh": "NOT_APPLICABLE"},
    ],
)
def test_a_healthy_asset_is_green(found: dict[str, Any]):
    assert answers(**found) == {}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"materialized": []}, "missing"),
        ({"windows": windows(1)}, "missing 2 partitions"),
        ({"windows": windows(1, materializing=1)}, "missing 1 partitions"),
        ({"windows": windows(2, failed=1)}, "failed in 1 partitions"),
        ({"run": {"id": "r3", "status": "FAILURE"}}, "failed"),
        ({"stale": "STALE"}, "stale"),
        ({"fresh": "WARNING"}, "overdue"),
        ({"fresh": "UNKNOWN"}, "of unknown freshness"),
        ({"fresh": "DEGRADED", "stale": "STALE"}, "stale and overdue"),
        (
            {"checks": [{"name": "captured_faithfully", "executionForLatestMaterialization": {"status": "FAILED"}}]},
            "failed in the check captured_faithfully",
        ),
    ],
)
def test_an_unhealthy_asset_is_not_green(found: dict[str, Any], said: str):
    assert answers(**found) == {"shop/orders": said}


def test_a_run_that_failed_after_it_materialized_the_asset_leaves_it_green():
    assert answers(run={"id": "r2", "status": "FAILURE"}) == {}
