"""`build_definitions`: one connector as Dagster definitions; the one factory, also for users' own projects."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from mssql_cdc.config import Connector
from mssql_cdc.defs.capture_step import build_capture
from mssql_cdc.defs.maintenance import build_maintenance, nightly
from mssql_cdc.defs.resources import SparkResource
from mssql_cdc.defs.sensors import build_sensor
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.signals import build_signals
from mssql_cdc.defs.specs import event_specs, source_specs
from mssql_cdc.run.start import guard
from mssql_cdc.schema import TableSchema

MAX_RUNTIME_SECONDS = 3600


def build_definitions(
    connector: Connector, *, tables: Sequence[TableSchema], warehouse: str | None = None
) -> dg.Definitions:
    """Assets, checks, job, sensor and Spark resource of every database of the connector.

    Args:
        connector: the configuration (`mssql_cdc.config.load_connector`).
        tables: the stored table list (`mssql-cdc discover` writes it, `run.discover.read_table_list` reads it).
        warehouse: wins over `delta.warehouse`.

    Raises:
        ConfigurationError: there are more tables than `guardrail.collections.max` allows, and it is to fail.

    The executor is left to the caller: `Definitions.merge` refuses two of them. A single step needs none but its own
    process, so `in_process_executor` starts runs fastest.
    """
    guard(connector, len(tables), warn=dg.get_dagster_logger().warning)
    spark = SparkResource(settings=connector.spark)
    parts = [
        _database(Setup.of(connector, name, tuple(tables), warehouse=warehouse), spark) for name in connector.databases
    ]
    return dg.Definitions.merge(*parts)


def _database(setup: Setup, spark: SparkResource) -> dg.Definitions:
    capture = build_capture(setup)
    job = dg.define_asset_job(  # pyright: ignore[reportUnknownMemberType] (Dagster's own signature)
        f"{setup.names.stem}__stream",
        selection=dg.AssetSelection.assets(*capture.keys),
        executor_def=dg.in_process_executor,
        tags={
            "mssql_cdc/connector": setup.connector.topic_prefix,
            # The sensor asks again for the same range; a retry by Dagster would let a later range overtake it.
            "dagster/max_retries": "0",
            "dagster/max_runtime": str(MAX_RUNTIME_SECONDS + setup.connector.dagster.max_run_seconds),
        },
        description=f"Captures ranges and snapshots of {setup.database}.",
    )
    maintenance = build_maintenance(setup)
    return dg.Definitions(
        assets=[*source_specs(setup), capture, *event_specs(setup), build_signals(setup)],
        jobs=[job, maintenance],
        schedules=[nightly(maintenance)],
        sensors=[build_sensor(setup, job)],
        resources={setup.names.spark: spark},
    )
