"""`build_definitions`: builds the Dagster definitions of a connector; use it in your own projects, too."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import dagster as dg

from mssql_cdc.config import Connector
from mssql_cdc.defs.capture_step import build_capture
from mssql_cdc.defs.maintenance import build_maintenance, nightly
from mssql_cdc.defs.memory import Refusals
from mssql_cdc.defs.resources import SparkResource
from mssql_cdc.defs.sensors import build_sensor
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.signals import build_signals
from mssql_cdc.defs.snapshot_step import build_snapshots
from mssql_cdc.defs.specs import event_specs, source_specs
from mssql_cdc.run.start import guard
from mssql_cdc.schema import TableSchema

MAX_RUNTIME_SECONDS = 3600
MAX_SNAPSHOT_SECONDS = 24 * 3600


def build_definitions(
    connector: Connector, *, tables: Sequence[TableSchema], warehouse: str | None = None, since: datetime | None = None
) -> dg.Definitions:
    """Build the assets, checks, job, sensor and Spark resource of every database of the connector.

    The caller provides the executor because `Definitions.merge` rejects two of them. Runs have a single step, so
    `in_process_executor` starts them fastest.

    Args:
        connector: The configuration (`mssql_cdc.config.load_connector`).
        tables: The stored table list (`mssql-cdc discover` writes it, `run.discover.read_table_list` reads it).
        warehouse: Overrides `delta.warehouse`.
        since: When capture was set up (`run.discover.read_since`); Dagster shows no earlier windows. None: it
            shows the windows of `dagster.window.days`.

    Raises:
        ConfigurationError: There are more tables than `guardrail.collections.max` allows, and the guardrail's action is
            to fail.
    """
    guard(connector, len(tables), warn=dg.get_dagster_logger().warning)
    spark, refusals = SparkResource(settings=connector.spark), Refusals()
    parts = [
        _database(Setup.of(connector, name, tuple(tables), warehouse=warehouse, since=since), spark, refusals)
        for name in connector.databases
    ]
    return dg.Definitions.merge(*parts)


def _database(setup: Setup, spark: SparkResource, refusals: Refusals) -> dg.Definitions:
    capture, snapshots = build_capture(setup), build_snapshots(setup)
    job = dg.define_asset_job(  # pyright: ignore[reportUnknownMemberType] (Dagster's own signature)
        f"{setup.names.stem}__stream",
        selection=dg.AssetSelection.assets(*capture.keys),
        executor_def=dg.in_process_executor,
        tags={
            "mssql_cdc/connector": setup.connector.topic_prefix,
            # The sensor requests the same range again; with a Dagster retry, a later range could overtake it.
            "dagster/max_retries": "0",
            "dagster/max_runtime": str(MAX_RUNTIME_SECONDS + setup.connector.dagster.max_run_seconds),
        },
        description=f"Captures the changes of {setup.database}.",
    )
    snapshot_job = dg.define_asset_job(  # pyright: ignore[reportUnknownMemberType] (Dagster's own signature)
        f"{setup.names.stem}__snapshot",
        selection=dg.AssetSelection.assets(*snapshots.keys),
        executor_def=dg.in_process_executor,
        tags={
            "mssql_cdc/connector": setup.connector.topic_prefix,
            "dagster/max_retries": "0",
            "dagster/max_runtime": str(MAX_SNAPSHOT_SECONDS),
        },
        description=f"Takes snapshots of tables in {setup.database}.",
    )
    maintenance = build_maintenance(setup)
    return dg.Definitions(
        assets=[*source_specs(setup), capture, snapshots, *event_specs(setup), build_signals(setup)],
        jobs=[job, snapshot_job, maintenance],
        schedules=[nightly(maintenance)],
        sensors=[build_sensor(setup, job, snapshot_job, refusals)],
        resources={setup.names.spark: spark},
    )
