"""The sensor of one database: looks, decides by `stream.plan`, asks for at most one range and one snapshot.

Its cursor is a hint; losing it costs a retry count, never a row. Nothing here starts Spark.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import dagster as dg

from mssql_cdc.defs.setup import DENSE_GRID, Setup
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lsn import parse_snapshot_key
from mssql_cdc.schema import TableId
from mssql_cdc.stream.after import behind_current
from mssql_cdc.stream.capture import mark_status
from mssql_cdc.stream.decisions import Decision, Lost, Range, Snapshot, Wait
from mssql_cdc.stream.facts import Activity, Cursor, Facts
from mssql_cdc.stream.gather import Survey, survey
from mssql_cdc.stream.plan import next_cursor, plan
from mssql_cdc.stream.signals import free_key

POOL_SLOTS = 2
SENSORS_VARIABLE = "MSSQL_CDC_SENSORS"
"""`running` lets the sensors of a new instance start by themselves, as the demo wants it."""
PARTITION_TAG = "dagster/partition"
RANGE_START_TAG = "dagster/asset_partition_range_start"
IN_PROGRESS = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def build_sensor(setup: Setup, job: dg.UnresolvedAssetJobDefinition) -> dg.SensorDefinition:
    """The sensor; it targets the streaming job."""
    running = os.environ.get(SENSORS_VARIABLE, "").lower() == "running"

    @dg.sensor(
        name=f"{setup.names.stem}__sensor",
        job=job,
        minimum_interval_seconds=5,
        default_status=dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED,
        description=f"Asks for the next LSN range of {setup.database} and for snapshots that are due.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        try:
            return _tick(context, setup, job.name)
        except MssqlCdcError as error:
            # A sensor that raises shows a trace; one line says more, and the next tick tries again.
            return dg.SkipReason(f"{type(error).__name__}: {error}")

    return sensor


def _tick(context: dg.SensorEvaluationContext, setup: Setup, job_name: str) -> dg.SensorResult | dg.SkipReason:
    _ensure_pool(context.instance, setup)
    database = setup.open()
    cursor = Cursor.from_json(context.cursor)
    running = activities(context.instance, setup, job_name)
    seen = survey(database, cursor=cursor, running=running)
    facts = _with_failures(context.instance, seen.facts, setup)
    decision = plan(facts)
    if isinstance(decision, Lost):
        if not facts.restored:
            mark_status(database, seen, decision.tables, "lost", decision.reason)
        return dg.SkipReason(f"LOST: {decision.reason}. Ask for a snapshot of these tables in the signals asset.")
    if isinstance(decision, Wait):
        behind = behind_current(database, seen.members, seen.offsets) if not running else []
        if behind and decision.until is None:
            return dg.SensorResult(run_requests=[_merge_request(setup, behind, seen)], cursor=cursor.to_json())
        return _skip(decision, next_cursor(facts, decision), context)
    return _request(context, setup, seen, decision, next_cursor(facts, decision))


def _request(
    context: dg.SensorEvaluationContext, setup: Setup, seen: Survey, decision: Decision, cursor: Cursor
) -> dg.SensorResult:
    assert isinstance(decision, Range | Snapshot)
    if isinstance(decision, Range):
        key, tables = decision.key, [*decision.tables, *decision.idle]
        keys = _range_selection(setup, tables or [m.table for m in seen.facts.members], decision.attempt)
    else:
        begun = any(row.partition == decision.id for row in seen.offsets.rows if row.kind == "snapshot")
        key = decision.id if begun else free_key(decision.id, seen.offsets)
        keys = [setup.names.log_key(table) for table in decision.tables if table in setup.names.tables]
    new = not context.instance.has_dynamic_partition(setup.names.partitions, key)
    request = dg.RunRequest(
        run_key=f"{key}#{decision.attempt}",
        partition_key=key,
        asset_selection=keys,
        tags={"mssql_cdc/connector": setup.connector.topic_prefix},
    )
    return dg.SensorResult(
        run_requests=[request],
        dynamic_partitions_requests=[setup.partitions.build_add_request([key])] if new else [],
        cursor=cursor.to_json(),
    )


def _range_selection(setup: Setup, tables: Sequence[TableId], attempt: int) -> list[dg.AssetKey]:
    """Small connectors select everything, so that the grid has no holes; retries only what is unfinished."""
    chosen = [t for t in tables if t in setup.names.tables]
    if attempt == 1 and len(setup.tables) <= DENSE_GRID:
        chosen = list(setup.names.tables)
    currents = {table: key for key, table in setup.current_keys.items()}
    keys = [setup.names.log_key(table) for table in chosen]
    return [*keys, *(currents[t] for t in chosen if t in currents), setup.transactions_key]


def _merge_request(setup: Setup, behind: Sequence[TableId], seen: Survey) -> dg.RunRequest:
    """A quiet database: nothing new to read, but current tables that wait for their interval to pass."""
    keys = [setup.names.current_key(table) for table in behind if table in setup.names.tables]
    cut = seen.offsets.last_cut()
    return dg.RunRequest(run_key=f"merge#{cut.number if cut else 0}", asset_selection=keys)


def _skip(decision: Wait, cursor: Cursor, context: dg.SensorEvaluationContext) -> dg.SkipReason:
    context.update_cursor(cursor.to_json())
    return dg.SkipReason(decision.reason)


def activities(instance: dg.DagsterInstance, setup: Setup, job_name: str) -> list[Activity]:
    """Runs at work on this database, also those launched in the UI, which know no job of ours."""
    ours = setup.log_keys.keys() | setup.current_keys.keys()
    found = []
    for record in instance.get_run_records(dg.RunsFilter(statuses=IN_PROGRESS)):
        run = record.dagster_run
        if run.job_name != job_name and not (set(run.asset_selection or ()) & ours):
            continue
        key = run.tags.get(PARTITION_TAG) or run.tags.get(RANGE_START_TAG) or ""
        kind = "snapshot" if parse_snapshot_key(key) is not None else "range"
        seconds = (datetime.now(UTC) - record.create_timestamp).total_seconds()
        found.append(Activity(kind, key, run.run_id, seconds))
    return found


def _with_failures(instance: dg.DagsterInstance, facts: Facts, setup: Setup) -> Facts:
    """How often the open snapshot has failed, by its runs: its retry waits longer each time."""
    open_ = next((member.snapshot for member in facts.members if member.snapshot), None)
    if open_ is None:
        return facts
    wanted = dg.RunsFilter(tags={PARTITION_TAG: open_}, statuses=[dg.DagsterRunStatus.FAILURE])
    ours = setup.log_keys.keys()
    failed = [
        record for record in instance.get_run_records(wanted) if set(record.dagster_run.asset_selection or ()) & ours
    ]
    newest = max((record.update_timestamp for record in failed), default=None)
    return replace(facts, snapshot_failures=len(failed), snapshot_failed_at=newest)


def _ensure_pool(instance: dg.DagsterInstance, setup: Setup) -> None:
    """One range and one snapshot at a time. A new pool has no limit in its first burst unless it is made before."""
    storage = instance.event_log_storage
    if storage.supports_global_concurrency_limits and setup.names.pool not in storage.get_concurrency_keys():
        storage.set_concurrency_slots(setup.names.pool, POOL_SLOTS)
