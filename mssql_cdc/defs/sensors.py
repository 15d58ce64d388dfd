"""The sensor of one database: looks, decides by `stream.plan`, asks for at most one range and one snapshot.

Nothing here starts Spark. A tick on a quiet database reads `_offsets` and asks the source one question.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import dagster as dg

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.range import mark_status
from mssql_cdc.capture.requests import free_key
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.defs.capture_step import SIGNAL_TAG
from mssql_cdc.defs.memory import Memory
from mssql_cdc.defs.metadata import event_metadata
from mssql_cdc.defs.prune import stale_keys
from mssql_cdc.defs.report import evaluation
from mssql_cdc.defs.runs import MERGE_TAG, Runs
from mssql_cdc.defs.setup import DENSE_GRID, Setup
from mssql_cdc.errors import FencedError, MssqlCdcError
from mssql_cdc.follow.after import behind_current
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.plan.decisions import Lost, Range, Restored, Snapshot, Wait
from mssql_cdc.plan.facts import Cursor, Facts
from mssql_cdc.plan.planner import backoff, next_cursor, plan
from mssql_cdc.run.heartbeat import beat
from mssql_cdc.run.loss import GO_ON, begin_epoch, write_loss, write_restore
from mssql_cdc.run.quiet_look import quiet_look
from mssql_cdc.run.starting import snapshot_at_start
from mssql_cdc.schema import TableId

POOL_SLOTS = 2
LOOK_AGAIN = timedelta(seconds=60)
"""So often even a quiet database is looked at thoroughly: for tables that were put under CDC."""
MAX_SNAPSHOT_SECONDS = 24 * 3600
SENSORS_VARIABLE = "MSSQL_CDC_SENSORS"
"""`running` lets the sensors of a new instance start by themselves, as the demo wants it."""


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
        tick = Tick(setup, setup.open(), Runs(context.instance, setup, job.name), Memory.from_json(context.cursor))
        try:
            tick.start(context.last_sensor_start_time)
            _ensure_pool(context.instance, setup)
            return tick.result()
        except MssqlCdcError as error:
            line = f"{type(error).__name__}: {error}"
            if error.retriable or isinstance(error, FencedError):
                return dg.SkipReason(line)  # The next tick tries again.
        # A red tick, where somebody has to do something; the trace would not say more than the message.
        raise dg.Failure(line)

    return sensor


@dataclass
class Tick:
    """One evaluation of the sensor."""

    setup: Setup
    database: Database
    runs: Runs
    memory: Memory

    def start(self, at: float | None) -> None:
        """What is due when the sensor was switched on: then, and not when a daemon comes up again."""
        if at is not None and at != self.memory.started:
            snapshot_at_start(self.database)
            self.memory = replace(self.memory, started=at)

    def result(self) -> dg.SensorResult:
        """What to ask for now, or why nothing."""
        now = datetime.now(UTC)
        running = self.runs.activities()
        self.memory = replace(self.memory, beaten=beat(self.database, self.memory.beaten, now))
        looked = self.memory.looked
        if not running and looked is not None and now - looked < LOOK_AGAIN:
            wait, offsets = quiet_look(self.database)
            cut = offsets.last_cut()
            if wait is not None and cut is not None and self.memory.merged == cut.number:
                return self._skip(wait.reason)
        seen = survey(self.database, cursor=self.memory.cursor, running=running, now=now, quick=True)
        facts = self._with_failures(self._without_done(seen.facts), seen.offsets)
        decision = plan(facts)
        # A wait leaves the pending key in place: `_offsets` is then known to say it all (`survey(quick=True)`).
        cursor = next_cursor(facts if isinstance(decision, Range) else seen.facts, decision)
        self.memory = replace(self.memory, cursor=cursor, looked=now)
        match decision:
            case Wait():
                return self._wait(seen, decision)
            case Lost():
                return self._lost(seen, decision)
            case Restored():
                return self._restored(seen, decision)
            case Snapshot():
                return self._snapshot(seen, decision)
            case Range():
                return self._range(seen, decision)

    # -- Decisions -----------------------------------------------------------------------------------------

    def _range(self, seen: Survey, decision: Range) -> dg.SensorResult:
        events = []
        if decision.give_up:
            reason = f"given up after {self.setup.connector.dagster.max_attempts} attempts"
            mark_status(self.database, seen, decision.give_up, "failed", reason)
            events = [self._red(table, f"{reason}; materialize any range of it by hand") for table in decision.give_up]
        attempt = max(decision.attempt, self.runs.attempts(decision.key) + 1)
        self.memory = replace(self.memory, cursor=replace(self.memory.cursor, attempt=attempt))
        request = dg.RunRequest(
            run_key=f"{decision.key}#{attempt}",
            partition_key=decision.key,
            asset_selection=self._selection(seen.facts, decision),
        )
        return self._ask(request, decision.key, seen, events)

    def _snapshot(self, seen: Survey, decision: Snapshot) -> dg.SensorResult:
        key = decision.id
        if all(member.snapshot != key for member in seen.facts.members):
            # Not begun yet. The key of new tables comes from the clock; one that failed so early keeps its own.
            begun = seen.offsets.partitions
            kept = self.memory.snapshot if decision.signal is None else None
            key = kept if kept is not None and kept not in begun else free_key(key, seen.offsets)
        attempt = max(decision.attempt, self.runs.attempts(key) + 1)
        self.memory = replace(self.memory, snapshot=key)
        known = [self.setup.names.log_key(table) for table in decision.tables if table in self.setup.names.tables]
        request = dg.RunRequest(
            run_key=f"{key}#{attempt}",
            partition_key=key,
            # Of tables that the code location does not know yet the step itself takes care.
            asset_selection=known or [self.setup.transactions_key],
            tags={
                "dagster/max_runtime": str(MAX_SNAPSHOT_SECONDS),
                **({SIGNAL_TAG: decision.signal} if decision.signal else {}),
            },
        )
        return self._ask(request, key, seen, [])

    def _lost(self, seen: Survey, decision: Lost) -> dg.SensorResult:
        write_loss(self.database, seen, decision)
        advice = "ask for a snapshot of these tables in the signals asset"
        if decision.repaired:
            advice = (
                f"snapshot.mode={seen.facts.policy.mode} goes on with them; acknowledge the gap in the signals asset"
            )
        events = [self._red(table, f"{decision.reason}; {advice}") for table in decision.tables]
        return self._skip(f"LOST: {decision.reason}; {advice}", events)

    def _restored(self, seen: Survey, decision: Restored) -> dg.SensorResult:
        if not decision.automatic:
            for table in write_restore(self.database, seen):
                # A red tick carries no events.
                self.runs.instance.report_runless_asset_event(self._red(table, decision.reason))
            raise dg.Failure(f"LOST: {decision.reason}. {GO_ON}")
        begin_epoch(self.database, seen, by=None)
        events = [self._red(member.table, decision.reason) for member in seen.facts.members if member.position]
        return self._skip(f"LOST: {decision.reason}; a new epoch begins, in which every table begins anew", events)

    def _wait(self, seen: Survey, decision: Wait) -> dg.SensorResult:
        """A quiet database: nothing new to read, but perhaps current tables that waited for their interval."""
        cut = seen.offsets.last_cut()
        if cut is None or decision.until is not None or seen.facts.running or self.memory.merged == cut.number:
            return self._skip(decision.reason)
        behind = behind_current(self.database, seen.members, seen.offsets)
        keys = [self.setup.names.current_key(table) for table in behind if table in self.setup.names.tables]
        if not keys:
            self.memory = replace(self.memory, merged=cut.number)
            return self._skip(decision.reason)
        mark = str(cut.number)
        failures, failed_at = self.runs.undone(mark, tag=MERGE_TAG)
        if failed_at is not None and seen.facts.now < failed_at + backoff(seen.facts.limits.retry_wait, failures):
            return self._skip(f"{decision.reason}; current tables could not be merged, which is tried again soon")
        request = dg.RunRequest(
            run_key=f"merge-{mark}#{self.runs.attempts(mark, tag=MERGE_TAG) + 1}",
            asset_selection=keys,
            tags={MERGE_TAG: mark},
        )
        return dg.SensorResult(run_requests=[request], cursor=self.memory.to_json())

    # -- Pieces --------------------------------------------------------------------------------------------

    def _selection(self, facts: Facts, decision: Range) -> list[dg.AssetKey]:
        """Small connectors select everything, so that the grid has no holes; retries only what is unfinished."""
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
        in_use = {key, self.memory.snapshot, self.memory.cursor.pending_key}
        in_use |= {run.key for run in seen.facts.running} | {member.snapshot for member in seen.facts.members}
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

    def _without_done(self, facts: Facts) -> Facts:
        """The facts without a pending range whose first run did everything that it was asked for.

        Tables behind it have come from a snapshot since: the next range takes them along, nothing has to be retried.
        """
        key, attempt = facts.cursor.pending_key, facts.cursor.attempt
        if key is None or attempt != 1 or facts.running or not self.runs.succeeded(key):
            return facts
        return replace(facts, cursor=Cursor())

    def _with_failures(self, facts: Facts, offsets: Offsets) -> Facts:
        """How often the snapshot that is due has failed, by its runs: its retry waits longer each time."""
        open_ = min((member.snapshot for member in facts.members if member.snapshot), default=None)
        begun = offsets.partitions
        key = open_ or (self.memory.snapshot if self.memory.snapshot not in begun else None)
        if key is None:
            return facts
        failures, failed_at = self.runs.undone(key)
        return replace(facts, snapshot_failures=failures, snapshot_failed_at=failed_at)


def _ensure_pool(instance: dg.DagsterInstance, setup: Setup) -> None:
    """One range and one snapshot at a time. A new pool has no limit in its first burst unless it is made before."""
    storage = instance.event_log_storage
    if storage.supports_global_concurrency_limits and setup.names.pool not in storage.get_concurrency_keys():
        storage.set_concurrency_slots(setup.names.pool, POOL_SLOTS)
