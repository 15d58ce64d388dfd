"""Invalid materializations: runs without a partition, and runs that cannot reach the source."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg
import pytest

from mssql_cdc.defs.build import build_definitions
from mssql_cdc_tests.dagster.kit import connector, failures, table


@pytest.fixture
def repository(tmp_path) -> dg.RepositoryDefinition:
    made = connector(delta_warehouse=tmp_path / "lake", database_port=1, driver_loginTimeout=1)
    return build_definitions(made, tables=[table("orders")]).get_repository_def()


def run(repository: dg.RepositoryDefinition, instance: dg.DagsterInstance, *path: str, **more) -> list[str]:
    job = repository.get_implicit_global_asset_job_def()
    found = job.execute_in_process(
        instance=instance, asset_selection=[dg.AssetKey(list(path))], raise_on_error=False, **more
    )
    assert not found.success
    assert instance.fetch_materializations(dg.AssetKey(list(path)), limit=1).records == []
    return failures(found)


def test_materializing_a_change_log_without_a_partition_is_rejected(repository, instance):
    (message,) = run(repository, instance, "server1", "shop", "dbo", "orders")
    assert "No partition was selected" in message


def test_a_heartbeat_of_a_source_that_is_down_fails(repository, instance):
    (message,) = run(repository, instance, "server1", "shop", "heartbeat")
    assert "SourceUnavailableError" in message


def test_taking_snapshots_without_a_partition_is_rejected(repository, instance):
    (message,) = run(repository, instance, "server1", "shop", "snapshots")
    assert "select the tables" in message


def test_a_source_that_is_down_fails_the_run_with_one_line(repository, instance):
    key = f"{datetime.now(UTC):%Y-%m-%d-%H}:00"
    (message,) = run(repository, instance, "server1", "shop", "dbo", "orders", partition_key=key)
    assert "SourceUnavailableError" in message
