"""The capture step of one database: the multi-asset that materializes change logs, current tables and transactions.

One step processes a range or a snapshot for all tables that the run selected (architecture §5). It turns results into
materializations and checks; `run/` decides what is read and written.
"""

import time
from collections.abc import Iterator

import dagster as dg

from mssql_cdc.capture.snapshot.take import SnapshotResult
from mssql_cdc.check.verdict import judge
from mssql_cdc.defs.background import Background
from mssql_cdc.defs.report import Reporter, StepEvent, losses
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.specs import capture_specs, check_specs
from mssql_cdc.defs.work import RangeDone, Work, range_keys
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.gaps import open_gaps
from mssql_cdc.lsn import parse_snapshot_key
from mssql_cdc.plan.decisions import Merge, Range, Wait

SENSOR_TAG = "dagster/sensor_name"
SIGNAL_TAG = "mssql_cdc/signal"


def build_capture(setup: Setup) -> dg.AssetsDefinition:
    """Build the multi-asset of one database."""

    @dg.multi_asset(
        name=f"capture__{setup.names.stem}",
        specs=capture_specs(setup),
        check_specs=check_specs(setup),
        can_subset=True,
        pool=setup.names.pool,
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys={setup.names.spark},
    )
    def capture(context: dg.AssetExecutionContext) -> Iterator[StepEvent]:
        yield from _capture(context, setup)

    return capture


def _capture(context: dg.AssetExecutionContext, setup: Setup) -> Iterator[StepEvent]:
    spark = getattr(context.resources, setup.names.spark)
    background = Background(context, spark)
    database = setup.open(spark=spark.start, run_id=context.run.run_id, log=background.log)
    by_sensor = SENSOR_TAG in context.run.tags
    work = Work(setup, database, background, by_sensor, signal=context.run.tags.get(SIGNAL_TAG))
    for line in setup.connector.notices:
        context.log.info("%s", line)
    keys = _partition_keys(context, setup)
    reporter = Reporter(setup, context, by_hand=len(keys) > 1)
    try:
        if not keys:
            yield from _without_partition(work, reporter)
        else:
            reporter.remember(work)
        for key in keys:
            yield from _one_key(work, reporter, key)
        if by_sensor and keys and parse_snapshot_key(keys[0]) is None:
            yield from _loop_mode(work, reporter, started=time.monotonic())
    except MssqlCdcError as error:
        text = setup.connector.redact(f"{type(error).__name__}: {error}")
        raise dg.Failure(text, allow_retries=False) from (error if text.endswith(str(error)) else None)
    reporter.raise_failures()


def _one_key(work: Work, reporter: Reporter, key: str) -> Iterator[StepEvent]:
    if parse_snapshot_key(key) is not None:
        done = work.snapshot(
            key, reporter.selected_logs, lambda found: work.background.post(lambda: reporter.progress(found))
        )
        reporter.gaps = open_gaps(work.database.layout, work.database.storage)
        result = done.snapshot or SnapshotResult(key)
        yield from reporter.snapshot(key, result)
        carried = [*result.rows, *result.failed, *result.notes]
        yield from reporter.unloaded([table for table in carried if table not in work.setup.names.tables])
    else:
        ranged = work.range(key, reporter.selected_logs)
        reporter.gaps = open_gaps(work.database.layout, work.database.storage)
        yield from reporter.range(key, ranged)
        yield from reporter.followed(key, ranged)
        yield from reporter.unloaded(work.unloaded(ranged.seen))
    yield from reporter.side_effects(work)


def _without_partition(work: Work, reporter: Reporter) -> Iterator[StepEvent]:
    """Merge current tables up to the last cut, and evaluate checks that were run on their own from the lake."""
    if reporter.selected_currents:
        yield from reporter.currents(work.merge(reporter.selected_currents).merged)
    for table in reporter.selected_checks:
        yield reporter.verdict(table, judge(work.database, table))


def _loop_mode(work: Work, reporter: Reporter, *, started: float) -> Iterator[StepEvent]:
    """Process further ranges in the same run while `dagster.max.run.seconds` allows; a failure ends the loop."""
    limit = work.setup.connector.dagster.max_run_seconds
    follower = work.follower() if limit else None
    while follower is not None and time.monotonic() - started < limit and not reporter.failures:
        done = work.background.run(follower.step)
        if isinstance(done.decision, Range):
            found = RangeDone([done])
            yield from reporter.further(done.decision.key, found)
            yield from reporter.followed(done.decision.key, found)
            yield from reporter.side_effects(work)
            continue
        yield from reporter.currents(done.merged)
        yield from losses(work.setup, done)
        done.raise_failure()
        if not isinstance(done.decision, Wait | Merge):
            return
        time.sleep(work.setup.connector.streaming.poll_seconds)


def _partition_keys(context: dg.AssetExecutionContext, setup: Setup) -> list[str]:
    """Return the run's partition keys: snapshots first, then ranges ordered by their ends.

    A run without partition keys only merges.
    """
    if context.has_partition_key or context.has_partition_key_range:
        keys = list(context.partition_keys)
        snapshots = [key for key in keys if parse_snapshot_key(key) is not None]
        try:
            return [*sorted(snapshots), *range_keys(key for key in keys if key not in snapshots)]
        except ValueError as error:
            raise dg.Failure(
                f"{error}, or the key of a snapshot: snapshot-20261121T080509", allow_retries=False
            ) from None
    partitioned = {*setup.log_keys, setup.transactions_key} & context.selected_asset_keys
    if partitioned:
        names = ", ".join(sorted(key.to_user_string() for key in partitioned))
        raise dg.Failure(
            f"No partition was selected for {names}. Select a range, or add a partition snapshot-<time>, "
            "for example snapshot-20261121T080509; the sensor requests ranges automatically",
            allow_retries=False,
        )
    return []
