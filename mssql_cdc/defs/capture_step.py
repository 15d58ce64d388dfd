"""The capture step of one database: the multi-asset that materializes change logs, current tables and transactions.

One step does a range or a snapshot for all the tables that the run selected (architecture §5). It turns results into
materializations and checks; what is read and written is decided in `stream/` and `snapshot/`.
"""

import time
from collections.abc import Iterator

import dagster as dg

from mssql_cdc.defs.background import Background
from mssql_cdc.defs.report import Reporter
from mssql_cdc.defs.resources import SparkResource
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.specs import capture_specs, check_specs
from mssql_cdc.defs.work import Work, range_keys
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lsn import parse_snapshot_key

SENSOR_TAG = "dagster/sensor_name"
StepEvent = dg.MaterializeResult | dg.AssetCheckResult | dg.AssetMaterialization | dg.AssetCheckEvaluation


def build_capture(setup: Setup) -> dg.AssetsDefinition:
    """The multi-asset of one database."""

    @dg.multi_asset(
        name=f"capture__{setup.names.stem}",
        specs=capture_specs(setup),
        check_specs=check_specs(setup),
        can_subset=True,
        pool=setup.names.pool,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def capture(context: dg.AssetExecutionContext, spark: SparkResource):
        yield from _capture(context, spark, setup)

    return capture


def _capture(context: dg.AssetExecutionContext, spark: SparkResource, setup: Setup) -> Iterator[StepEvent]:
    background = Background(context, spark)
    database = setup.open(spark=spark.start, run_id=context.run.run_id, log=background.log)
    work = Work(setup, database, background, by_operator=SENSOR_TAG not in context.run.tags)
    reporter = Reporter(setup, context)
    keys = _partition_keys(context, setup)
    reporter.remember(work)
    try:
        if not keys:
            yield from reporter.currents(work.merge_now(reporter.selected_currents))
            return
        for key in keys:
            yield from _one_key(work, reporter, key)
        yield from _loop_mode(work, reporter, started=time.monotonic())
    except MssqlCdcError as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    reporter.raise_failures()


def _one_key(work: Work, reporter: Reporter, key: str) -> Iterator[StepEvent]:
    if parse_snapshot_key(key) is not None:
        yield from reporter.snapshot(key, work.snapshot(key, reporter.selected_logs, reporter.progress))
    else:
        yield from reporter.range(key, work.range(key, reporter.selected_logs))
    yield from reporter.side_effects(work)


def _loop_mode(work: Work, reporter: Reporter, *, started: float) -> Iterator[StepEvent]:
    """Further ranges in the same run while `dagster.max.run.seconds` allows; a failing one ends the loop."""
    limit = work.setup.connector.dagster.max_run_seconds
    while time.monotonic() - started < limit and not reporter.failures:
        key = work.next_key()
        if key is None:
            time.sleep(work.setup.connector.streaming.poll_interval_ms / 1000)
            continue
        reporter.add_partition(key)
        yield from reporter.further_range(key, work.range(key, reporter.selected_logs))
        yield from reporter.side_effects(work)


def _partition_keys(context: dg.AssetExecutionContext, setup: Setup) -> list[str]:
    """The run's partition keys, snapshots first, ranges in the order of their ends; a run without any merges only."""
    if context.has_partition_key or context.has_partition_key_range:
        keys = list(context.partition_keys)
        snapshots = [key for key in keys if parse_snapshot_key(key) is not None]
        return [*sorted(snapshots), *range_keys(key for key in keys if key not in snapshots)]
    logs = setup.log_keys.keys() & context.selected_asset_keys
    if logs:
        names = ", ".join(sorted(key.to_user_string() for key in logs))
        raise dg.Failure(
            f"{names} were asked for without a partition. Choose a range, or add a partition snapshot-<time>; "
            "the sensor asks for ranges by itself",
            allow_retries=False,
        )
    return []
