"""The sensor of one database: translates the planner's decision into run requests.

This module neither starts Spark nor makes decisions. A tick on a quiet database reads `_offsets` and sends the source
one query.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import dagster as dg

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.range import mark_status
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.defs.capture_step import SIGNAL_TAG
from mssql_cdc.defs.memory import Memory
from mssql_cdc.defs.metadata import event_metadata
from mssql_cdc.defs.prune import stale_keys
from mssql_cdc.defs.report import evaluation, loss_advice, losses
from mssql_cdc.defs.runs import ATTEMPT_TAG, MERGE_TAG, RunRecords
from mssql_cdc.defs.setup import DENSE_GRID, Setup
from mssql_cdc.errors import FencedError, MssqlCdcError
from mssql_cdc.plan.decisions import Lost, Merge, Range, Restored, Snapshot, Wait
from mssql_cdc.plan.facts import Facts, merge_key
from mssql_cdc.plan.planner import next_cursor, plan
from mssql_cdc.run.execute import Done, execute
from mssql_cdc.run.follower import LOOK_AGAIN
from mssql_cdc.run.heartbeat import beat
from mssql_cdc.run.quiet_look import quiet_look
from mssql_cdc.run.start import look, snapshot_at_start
from mssql_cdc.schema import TableId

POOL_SLOTS = 2
MAX_SNAPSHOT_SECONDS = 24 * 3600
SENSORS_VARIABLE = "MSSQL_CDC_SENSORS"
"""Environment variable; `running` starts the sensors of a new instance automatically, which the demo needs."""


def build_sensor(setup: Setup, job: dg.UnresolvedAssetJobDefinition) -> dg.SensorDefinition:
    """Build the sensor, which targets the streaming job."""
    running = os.environ.get(SENSORS_VARIABLE, "").lower() == "running"

    @dg.sensor(  # pyright: ignore[reportUnknownMemberType] (Dagster's own signature)
        name=f"{setup.names.stem}__sensor",
        job=job,
        minimum_interval_seconds=setup.connector.streaming.tick_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED,
        description=f"Requests the next LSN range of {setup.database} and snapshots that are due.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        runs, memory = RunRecords(context.instance, setup, job.name), Memory.from_json(context.cursor)
        tick = Tick(setup, setup.open(log=context.log.info), runs, memory)
        try:
            tick.start(context.last_sensor_start_time)
            _ensure_pool(context.instance, setup)
            return tick.result()
        except MssqlCdcError as error:
            line = setup.connector.redact(f"{type(error).__name__}: {error}")
            if error.retriable or isinstance(error, FencedError):
                return dg.SkipReason(line)  # The next tick retries.
        # Fail the tick because an operator must act. The traceback would add nothing to the message.
        raise dg.Failure(line)

    return sensor


@dataclass
class Tick:
    """One evaluation of the sensor."""

    setup: Setup
    database: Database
    runs: RunRecords
    memory: Memory

    def start(self, at: float | None) -> None:
        """Do what is due when the sensor was turned on; a restart of the daemon does not count."""
        if at is not None and at != self.memory.started:
            for line in self.setup.connector.notices:
                self.database.log(line)
            look(self.database)
            snapshot_at_start(self.database)
            self.memory = replace(self.memory, started=at)

    def result(self) -> dg.SensorResult:
        """Return the run request of this tick, or the reason to skip it."""
        now = datetime.now(UTC)
        self.memory = replace(self.memory, beaten=beat(self.database, self.memory.beaten, now))
        quiet = self._quiet(now)
        if quiet is not None:
            return self._wait(quiet)
        seen = survey(self.database, cursor=self.memory.cursor, now=now, quick=True)
        if not seen.facts.members:
            look(self.database)
        facts = replace(seen.facts, runs=self.runs.facts(seen.facts.keys))
        decision = plan(facts)
        self.memory = replace(self.memory, cursor=next_cursor(facts, decision), looked=now)
        match decision:
            case Wait():
                return self._wait(decision.because_of(seen.stalled))
            case Merge():
                return self._merge(decision)
            case Snapshot():
                return self._snapshot(seen, decision)
            case Range():
                return self._range(seen, decision)
            case Lost() | Restored():
                return self._loss(execute(self.database, seen, decision))

    def _quiet(self, now: datetime) -> Wait | None:
        """Return the reason to wait if the source has captured nothing and no current table is behind."""
        looked, merged = self.memory.looked, self.memory.cursor.merged
        if looked is None or now - looked >= LOOK_AGAIN or self.runs.active():
            return None
        wait, offsets = quiet_look(self.database)
        cut = offsets.last_cut()
        return wait if cut is not None and merged == cut.number else None

    def _wait(self, decision: Wait) -> dg.SensorResult:
        if decision.alarm:
            raise dg.Failure(decision.reason)  # A red tick: "no changes" would look healthy.
        return self._skip(decision.reason)

    # -- Decisions -----------------------------------------------------------------------------------------

    def _range(self, seen: Survey, decision: Range) -> dg.SensorResult:
        events = []
        if decision.give_up:
            reason = f"gave up after {self.setup.connector.dagster.max_attempts} attempts"
            mark_status(self.database, seen, dict.fromkeys(decision.give_up, reason), "failed")
            advice = "materialize any range of the table manually to retry it"
            events = [self._red(table, f"{reason}; {advice}") for table in decision.give_up]
        request = dg.RunRequest(
            partition_key=decision.key,
            asset_selection=self._selection(seen.facts, decision),
            tags=_attempt(decision.attempt),
        )
        return self._ask(request, decision.key, seen, events)

    def _snapshot(self, seen: Survey, decision: Snapshot) -> dg.SensorResult:
        known = [self.setup.names.log_key(table) for table in decision.tables if table in self.setup.names.tables]
        request = dg.RunRequest(
            partition_key=decision.id,
            # The step itself adds tables that the code location does not know yet.
            asset_selection=known or [self.setup.transactions_key],
            tags={
                **_attempt(decision.attempt),
                "dagster/max_runtime": str(MAX_SNAPSHOT_SECONDS),
                **({SIGNAL_TAG: decision.signal} if decision.signal else {}),
            },
        )
        return self._ask(request, decision.id, seen, [])

    def _merge(self, decision: Merge) -> dg.SensorResult:
        keys = [self.setup.names.current_key(table) for table in decision.tables if table in self.setup.names.tables]
        if not keys:
            # The code location does not know these tables; they are merged together with ranges.
            self.memory = replace(self.memory, cursor=replace(self.memory.cursor, merged=decision.cut))
            return self._skip(decision.reason)
        request = dg.RunRequest(asset_selection=keys, tags={MERGE_TAG: merge_key(decision.cut)})
        return dg.SensorResult(run_requests=[request], cursor=self.memory.to_json())

    def _loss(self, done: Done) -> dg.SensorResult:
        events = list(losses(self.setup, done))
        if done.error is not None:
            for event in events:
                # A failed tick carries no events.
                self.runs.instance.report_runless_asset_event(event)
            raise dg.Failure(f"LOST: {done.error}")
        reason = done.decision.reason if isinstance(done.decision, Lost | Restored) else ""
        return self._skip(f"LOST: {reason}; {loss_advice(done)}", events)

    # -- Helpers -------------------------------------------------------------------------------------------

    def _selection(self, facts: Facts, decision: Range) -> list[dg.AssetKey]:
        """Select everything in small connectors, so that the partition grid has no holes; in retries only the rest."""
        wanted = {*decision.tables, *decision.idle} or {member.table for member in facts.members}
        if decision.attempt == 1 and len(self.setup.tables) <= DENSE_GRID:
            wanted = {member.table for member in facts.members}
        streaming = {m.table for m in facts.members if m.status == "streaming"} - set(decision.give_up)
        chosen = [table for table in self.setup.names.tables if table in wanted & streaming]
        currents = {table: key for key, table in self.setup.current_keys.items()}
        keys = [self.setup.names.log_key(table) for table in chosen]
        return [*keys, *(currents[table] for table in chosen if table in currents), self.setup.transactions_key]

    def _ask(
        self, request: dg.RunRequest, key: str, seen: Survey, events: Sequence[dg.AssetCheckEvaluation]
    ) -> dg.SensorResult:
        keys = self.runs.instance.get_dynamic_partitions(self.setup.names.partitions)
        changes: list[dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest] = []
        if key not in keys:
            changes.append(self.setup.partitions.build_add_request([key]))
        minima = [i.min_lsn for member in seen.facts.members for i in member.instances if i.min_lsn]
        cursor = self.memory.cursor
        in_use = {key, cursor.snapshot_key, cursor.pending_key}
        in_use |= {run.key for run in self.runs.active()} | {member.snapshot for member in seen.facts.members}
        old = stale_keys(
            keys,
            oldest=min(minima, default=None),
            epoch=seen.facts.epoch,
            now=seen.facts.now,
            in_use={one for one in in_use if one},
        )
        if old:
            changes.append(self.setup.partitions.build_delete_request(old))
        return dg.SensorResult(
            run_requests=[request],
            dynamic_partitions_requests=changes,
            asset_events=events,
            cursor=self.memory.to_json(),
        )

    def _skip(self, reason: str, events: Sequence[dg.AssetCheckEvaluation] = ()) -> dg.SensorResult:
        return dg.SensorResult(skip_reason=reason, asset_events=events, cursor=self.memory.to_json())

    def _red(self, table: TableId, reason: str) -> dg.AssetCheckEvaluation:
        return evaluation(self.setup, table, passed=False, metadata=event_metadata({"error": reason}))


def _attempt(number: int) -> dict[str, str]:
    """Return the tag of a retry. A first attempt has none because the UI shows only a few tags."""
    return {ATTEMPT_TAG: str(number)} if number > 1 else {}


def _ensure_pool(instance: dg.DagsterInstance, setup: Setup) -> None:
    """Limit the pool to one range and one snapshot at a time.

    A new pool has no limit in its first burst of runs unless it is created beforehand.
    """
    storage = instance.event_log_storage
    if storage.supports_global_concurrency_limits and setup.names.pool not in storage.get_concurrency_keys():
        storage.set_concurrency_slots(setup.names.pool, POOL_SLOTS)
