"""The sensor of one database: translates the planner's decision into run requests.

This module neither starts Spark nor makes decisions. A tick on a quiet database reads `_offsets` and sends the source
one query.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache

import dagster as dg

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.store import load
from mssql_cdc.capture.range import mark_status
from mssql_cdc.capture.requests import open_requests
from mssql_cdc.capture.snapshot.unread_requests import answer_unread_requests
from mssql_cdc.capture.snapshot_controls import load_controls, paused_snapshots
from mssql_cdc.capture.snapshot_extensions import policy
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.defs.asked import report_absent
from mssql_cdc.defs.handover import STATE_TAG, STREAMING, lead_seconds
from mssql_cdc.defs.life import Lives
from mssql_cdc.defs.memory import Kept, Memory, Refusals
from mssql_cdc.defs.metadata import event_metadata
from mssql_cdc.defs.report import evaluation, loss_advice, losses, try_again
from mssql_cdc.defs.runs import AGAIN_TAG, ATTEMPT_TAG, MERGE_TAG, RANGE_TAG, SNAPSHOT_TAG, RunRecords, Stream
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.shown import described, say_notices, shown
from mssql_cdc.errors import FencedError, MssqlCdcError
from mssql_cdc.follow.polled_signals import PolledSignals
from mssql_cdc.follow.signal_actions import run_actions
from mssql_cdc.follow.signals import record_signals
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.plan.decisions import Decision, Lost, Merge, Range, Restored, Snapshot, Wait
from mssql_cdc.plan.facts import Facts, merge_key
from mssql_cdc.plan.planner import next_cursor, plan
from mssql_cdc.plan.waits import waits_after
from mssql_cdc.run.execute import Done, execute
from mssql_cdc.run.follower import LOOK_AGAIN
from mssql_cdc.run.heartbeat import beat
from mssql_cdc.run.quiet_look import quiet_look
from mssql_cdc.run.recovery import require_recoverable
from mssql_cdc.run.start import look, snapshot_at_start
from mssql_cdc.schema import TableId
from mssql_cdc.source.protocol import Source

POOL_SLOTS = 3
"""A run that streams, its successor, and a manually launched one."""
SNAPSHOT_SLOTS = 1
QUEUED_SECONDS = 300.0
"""A run begins within seconds. If one that is to stream is queued for this long, nothing streams."""
RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"
SENSORS_VARIABLE = "MSSQL_CDC_SENSORS"
"""Environment variable; `running` starts the sensors of a new instance automatically, which the demo needs."""


def build_sensor(
    setup: Setup,
    job: dg.UnresolvedAssetJobDefinition,
    snapshot_job: dg.UnresolvedAssetJobDefinition,
    refusals: Refusals,
) -> dg.SensorDefinition:
    """Build the sensor, which keeps the streaming job running and requests snapshots.

    Args:
        setup: The database.
        job: The streaming job.
        snapshot_job: The job that takes snapshots.
        refusals: What the sensors of the connector know about refused logins.
    """
    running = os.environ.get(SENSORS_VARIABLE, "").lower() == "running"
    kept = Kept()
    lives = Lives()
    tables = KnownTables()  # The state of `_offsets` is read once by the code server, and not by every tick.

    @cache
    def source() -> Source:
        """The source shared by all ticks: a hung capture is noticed by checking twice."""
        return setup.open().source

    @dg.sensor(  # pyright: ignore[reportUnknownMemberType] (Dagster's own signature)
        name=setup.names.sensor,
        jobs=[job, snapshot_job],
        minimum_interval_seconds=_tick_seconds(setup),
        default_status=dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED,
        description=f"Keeps a run going that captures the changes of {setup.database}, and requests due snapshots.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        # A tick fails if an operator must act.
        with shown(setup.connector), refusals.heeded(context.last_sensor_start_time):
            runs = RunRecords(context.instance, setup, job.name, snapshot_job.name)
            database = setup.open(source=source(), log=context.log.info)
            tick = Tick(setup, replace(database, tables=tables), runs, kept.memory(context.cursor), lives)
            try:
                tick.start(context.last_sensor_start_time)
                _ensure_pools(context.instance, setup)
                return tick.result()
            except Exception as error:
                kept.keep(context.cursor, tick.memory, whole=tick.decided)
                if not isinstance(error, MssqlCdcError):
                    raise
                if error.retriable or isinstance(error, FencedError):
                    return dg.SkipReason(described(setup.connector, error))  # The next tick retries.
                raise

    return sensor


@dataclass
class Tick:
    """One evaluation of the sensor."""

    setup: Setup
    database: Database
    runs: RunRecords
    memory: Memory
    lives: Lives
    decided: bool = False
    absent: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()

    def start(self, at: float | None) -> None:
        """Do what is due when the sensor was turned on; a restart of the daemon does not count."""
        if at is not None and at != self.memory.started:
            say_notices(self.setup.connector, self.database.log)
            look(self.database)
            require_recoverable(self.database)
            snapshot_at_start(self.database)
            self.memory = replace(self.memory, started=at)

    def result(self) -> dg.SensorResult:
        """Return the run request of this tick, or the reason to skip it."""
        now = datetime.now(UTC)
        self._miss_signs_of_life()
        streaming = self.runs.streaming() if self._continuous else []
        stuck = bool(streaming) and all(one.queued >= QUEUED_SECONDS for one in streaming)
        result = self._looked(now, streaming, streams=bool(streaming) and not stuck)
        if result.run_requests or not (stuck or self.silent):
            return result
        for event in result.asset_events:
            self.runs.instance.report_runless_asset_event(event)  # A failed tick carries no events.
        self.decided = True
        reason = self._why_stuck(streaming) if stuck else result.skip_reason and result.skip_reason.skip_message
        raise dg.Failure(reason)  # A red tick: "a run streams the changes" would look healthy.

    def _miss_signs_of_life(self) -> None:
        """Count runs without a sign of life as ended, and say what an operator has to do."""
        runs = {run.run_id: run for run in self.runs.at_work()}
        found = self.lives.silent(self.runs.instance, runs.values())
        self.runs = replace(self.runs, silent=found)
        self.silent = tuple(
            f"run {name[:8]} has shown no sign of life for {seconds / 60:.0f} min, as if its host or its container had "
            f"ended; the sensor continues without it, but it holds a slot of the pool {self.runs.pool(runs[name])}: "
            "end it in the UI (Runs: Terminate, Force termination immediately)"
            for name, seconds in found.items()
        )
        for line in self.silent:
            self.database.log(line)

    def _looked(self, now: datetime, streaming: Sequence[Stream], *, streams: bool) -> dg.SensorResult:
        """Check the source, and return the run request or the reason to wait.

        Args:
            now: The current time.
            streaming: The continuous runs.
            streams: Whether one of them streams, or will in a moment.
        """
        if not streams:  # A run that streams sends the heartbeat itself.
            self.memory = replace(self.memory, beaten=beat(self.database, self.memory.beaten, now))
            self._signals(now)
        if len(streaming) == 1 and streaming[0].seconds >= self._continuous - lead_seconds(self._continuous):
            key = f"after {streaming[0].run_id}"
            if not self._is_held_back(key):
                return self._ask(self._request(key, list(self.setup.names.tables), 1))
        quiet = self._quiet(now, streams=bool(streaming))
        if quiet is not None:
            able = bool(streaming) or policy(self.database, self.database.offsets()).stream
            return self._wait(quiet, able=able)
        seen, facts, decision = self._decide(now, quick=True)
        if isinstance(decision, Range) and seen.offsets.has_cut(decision.key):
            # This cut has not advanced some table: its log, which a quick survey does not read, may say why.
            seen, facts, decision = self._decide(now, quick=False)
        is_signal_table = self.setup.connector.filters.tables.is_signal_table
        if all(is_signal_table(*member.table.parts) for member in seen.facts.members):
            look(self.database)
        if not streams:  # A run that streams reports it itself.
            absent = report_absent(self.setup, self.database, self.runs.instance, seen, self.memory.absent)
            self.absent = tuple(absent.values())
            self.memory = replace(self.memory, absent=tuple(absent))
        self.memory = replace(self.memory, cursor=next_cursor(facts, decision), looked=now)
        match decision:
            case Wait():
                able = facts.policy.stream and any(
                    member.status == "streaming" or (member.status == "failed" and member.position is not None)
                    for member in facts.members
                )
                return self._wait(decision.because_of(seen.stalled), able=able)
            case Merge():
                return self._keep_running() if self._continuous else self._merge(decision)
            case Snapshot():
                return self._snapshot(decision)
            case Range():
                return self._range(seen, decision)
            case Lost() | Restored():
                return self._loss(execute(self.database, seen, decision))

    def _decide(self, now: datetime, *, quick: bool) -> tuple[Survey, Facts, Decision]:
        seen = survey(self.database, cursor=self.memory.cursor, now=now, quick=quick)
        if answer_unread_requests(self.database, seen):
            seen = survey(self.database, cursor=self.memory.cursor, now=now, quick=quick)
        facts = replace(seen.facts, runs=self.runs.facts(seen.facts.keys))
        return seen, facts, plan(facts)

    def _signals(self, now: datetime) -> None:
        """Take signals from the channels other than the signal table; a run that streams does so itself."""
        settings, looked_at = self.setup.connector.signals, self.memory.signals
        interval = timedelta(milliseconds=settings.poll_interval_ms)
        if not settings.polled or (looked_at is not None and abs(now - looked_at) < interval):
            return
        self.memory = replace(self.memory, signals=now)
        looked = PolledSignals().look(self.database)
        if looked is not None:
            seen = survey(self.database, cursor=self.memory.cursor, now=now, quick=True)
            said = record_signals(self.database, looked, seen.tables, seen.offsets)
            for line in (*said, *run_actions(self.database)):
                self.database.log(line)
        self.database.extensions.close(self.database.log)

    def _why_stuck(self, streaming: Sequence[Stream]) -> str:
        names = ", ".join(one.run_id[:8] for one in streaming)
        queue = self.runs.instance.get_concurrency_config().run_queue_config
        limit = queue.max_concurrent_runs if queue is not None else "?"
        minutes = max(one.queued for one in streaming) / 60
        reason = (
            f"no run streams: {names} has been queued for {minutes:.0f} min; end runs "
            f"that are in its way, or raise the limit (concurrency.runs.max_concurrent_runs: {limit}, or the slots of "
            f"the pool {self.setup.names.pool}); if there is room, Dagster's daemon does not start runs"
        )
        return self._with_the_rest(reason)

    @property
    def _continuous(self) -> int:
        return self.setup.connector.dagster.max_run_seconds

    def _quiet(self, now: datetime, *, streams: bool) -> Wait | None:
        """Return the reason to wait if the source has captured nothing and no current table is behind.

        Args:
            now: The current time.
            streams: Whether a run streams: then the sensor only handles snapshots.
        """
        looked, merged = self.memory.looked, self.memory.cursor.merged
        if looked is None or abs(now - looked) >= LOOK_AGAIN:
            return None
        active = self.runs.active()
        if streams:
            offsets = self.database.offsets()
            taken = any(run.kind == "snapshot" for run in active)
            begun: frozenset[str] = frozenset(() if taken else offsets.begun_snapshots.values())
            due = begun and begun - paused_snapshots(offsets, load_controls(self.database), self.setup.names.tables)
            return None if due or open_requests(self.database, offsets) else Wait("a run streams the changes")
        if active:
            return None
        wait, offsets = quiet_look(self.database)
        cut = offsets.last_cut()
        return wait if cut is not None and merged == cut.number else None

    def _wait(self, decision: Wait, *, able: bool) -> dg.SensorResult:
        """Skip, unless a run is needed although there is nothing to read.

        A run is needed to follow the source, for a new window, or for chunks of an incremental snapshot.

        Args:
            decision: Why there is nothing to read.
            able: Whether a table streams, or was given up and is retried.
        """
        if decision.alarm:
            raise dg.Failure("; ".join((decision.reason, *self.silent)))  # A red tick: "no changes" would look healthy.
        wanted = able and bool(self._continuous or self.memory.window != self._window or load(self.database).is_due)
        busy = any(run.kind != "snapshot" or not self._continuous for run in self.runs.active())
        if wanted and decision.until is None and not busy:
            return self._keep_running(decision.reason)
        return self._skip(decision.reason)

    def _keep_running(self, reason: str = "current tables are behind") -> dg.SensorResult:
        """Request a run that begins with nothing to read, unless the last one failed a moment ago."""
        key = f"from {self._window}"
        if self._is_held_back(key):
            return self._skip(f"{reason}; the last run failed and is requested again soon")
        return self._ask(self._request(key, list(self.setup.names.tables), 1))

    def _is_held_back(self, key: str) -> bool:
        """Whether the wait after the last failure of a run with this key has not ended."""
        wait = timedelta(milliseconds=self.setup.connector.streaming.retry_wait_ms)
        return waits_after(self.runs.outcome(key), wait, datetime.now(UTC))

    @property
    def _window(self) -> str:
        return self.setup.windows.key(datetime.now(UTC))

    # -- Decisions -----------------------------------------------------------------------------------------

    def _range(self, seen: Survey, decision: Range) -> dg.SensorResult:
        events = []
        if decision.give_up:
            reason = f"gave up after {self.setup.connector.dagster.max_attempts} attempts"
            mark_status(self.database, seen, dict.fromkeys(decision.give_up, reason), "failed")
            events = [self._red(table, f"{reason}; {try_again(self.setup)}") for table in decision.give_up]
        given_up = [m for m in seen.facts.members if m.status == "failed" and m.position is not None]
        # A run that streams retries them anyway.
        again = bool(given_up) and not self._continuous and self.memory.window != self._window
        tables = self._selection(seen.facts, decision)
        return self._ask(self._request(decision.key, tables, decision.attempt, again=again), events)

    def _snapshot(self, decision: Snapshot) -> dg.SensorResult:
        """Request the snapshot. Its step also reads tables that the code location does not know yet."""
        known = sorted(self.setup.names.snapshot_key(one) for one in decision.tables if one in self.setup.names.tables)
        order = sorted(self.setup.snapshot_keys)
        adjacent = bool(known) and order.index(known[-1]) - order.index(known[0]) + 1 == len(known)
        several = {RANGE_START_TAG: known[0], RANGE_END_TAG: known[-1]} if adjacent and len(known) > 1 else {}
        config = {"tables": [table.text for table in decision.tables], "signal": decision.signal or ""}
        request = dg.RunRequest(
            job_name=self.runs.snapshot_job_name,
            partition_key=known[0] if known and not several else None,
            run_config={"ops": {f"snapshots__{self.setup.names.stem}": {"config": config}}},
            tags={SNAPSHOT_TAG: decision.id, **several, **_attempt(decision.attempt)},
        )
        return self._ask(request)

    def _merge(self, decision: Merge) -> dg.SensorResult:
        keys = [self.setup.names.current_key(table) for table in decision.tables if table in self.setup.names.tables]
        if not keys:
            # The code location does not know these tables; they are merged together with ranges.
            self.memory = replace(self.memory, cursor=replace(self.memory.cursor, merged=decision.cut))
            return self._skip(decision.reason)
        tags = {MERGE_TAG: merge_key(decision.cut)}
        request = dg.RunRequest(job_name=self.runs.job_name, asset_selection=keys, tags=tags)
        return dg.SensorResult(run_requests=[request], cursor=self.memory.to_json())

    def _loss(self, done: Done) -> dg.SensorResult:
        events = list(losses(self.setup, done))
        if done.error is not None:
            for event in events:
                # A failed tick carries no events.
                self.runs.instance.report_runless_asset_event(event)
            raise dg.Failure("; ".join((f"LOST: {done.error}", *self.silent)))
        reason = done.decision.reason if isinstance(done.decision, Lost | Restored) else ""
        return self._skip(f"LOST: {reason}; {loss_advice(done)}", events)

    # -- Helpers -------------------------------------------------------------------------------------------

    def _request(self, key: str, tables: Sequence[TableId], attempt: int, *, again: bool = False) -> dg.RunRequest:
        """Return the request of a run for these tables in the current window.

        Tables that the code location does not know cannot be selected; the step reads them all the same.

        Args:
            key: The range that the run begins with, or what distinguishes runs that begin without one.
            tables: The tables.
            attempt: The number of the attempt at the range.
            again: Whether the run also retries the tables that were given up.
        """
        self.memory = replace(self.memory, window=self._window)
        currents = {table: asset for asset, table in self.setup.current_keys.items()}
        logs = [self.setup.names.log_key(table) for table in tables]
        assets = [*logs, *(currents[table] for table in tables if table in currents), self.setup.heartbeat_key]
        if self.setup.has_transactions:
            assets.append(self.setup.transactions_key)
        if self.setup.connector.delta.records_output:
            assets.append(self.setup.records_key)
        state = {STATE_TAG: STREAMING} if self._continuous else {}
        more = {AGAIN_TAG: "given up"} if again else {}
        return dg.RunRequest(
            job_name=self.runs.job_name,
            partition_key=self._window if logs else None,  # Dagster rejects a window for assets that have none.
            asset_selection=assets,
            tags={RANGE_TAG: key, **state, **more, **_attempt(attempt)},
        )

    def _selection(self, facts: Facts, decision: Range) -> list[TableId]:
        """Select every table that streams; in retries, and in ranges beside one, only those that are to be read."""
        wanted = {*decision.tables, *decision.idle} or {member.table for member in facts.members}
        if decision.attempt == 1 and not decision.beside:
            wanted = {member.table for member in facts.members}
        streaming = {m.table for m in facts.members if m.status == "streaming"} - set(decision.give_up)
        return [table for table in self.setup.names.tables if table in wanted & streaming]

    def _ask(self, request: dg.RunRequest, events: Sequence[dg.AssetCheckEvaluation] = ()) -> dg.SensorResult:
        return dg.SensorResult(run_requests=[request], asset_events=events, cursor=self.memory.to_json())

    def _skip(self, reason: str, events: Sequence[dg.AssetCheckEvaluation] = ()) -> dg.SensorResult:
        reason = self._with_the_rest(reason)
        return dg.SensorResult(skip_reason=reason, asset_events=events, cursor=self.memory.to_json())

    def _with_the_rest(self, reason: str) -> str:
        """The reason, and what else an operator should know about this database."""
        return self.setup.connector.redact("; ".join((reason, *self.absent, *self.silent)))

    def _red(self, table: TableId, reason: str) -> dg.AssetCheckEvaluation:
        return evaluation(self.setup, table, passed=False, metadata=event_metadata({"problem": reason}))


def _tick_seconds(setup: Setup) -> int:
    """The pause between two ticks, no longer than that between two polls for signals."""
    pause, signals = setup.connector.streaming.tick_seconds, setup.connector.signals
    return min(pause, -(-signals.poll_interval_ms // 1000)) if signals.polled else pause


def _attempt(number: int) -> dict[str, str]:
    """Return the tag of a retry. A first attempt has none because the UI shows only a few tags."""
    return {ATTEMPT_TAG: str(number)} if number > 1 else {}


def _ensure_pools(instance: dg.DagsterInstance, setup: Setup) -> None:
    """Limit the pools of runs that capture changes and of snapshots; a limit that an operator has set is kept.

    A new pool has no limit in its first burst of runs unless it is created beforehand.
    """
    storage = instance.event_log_storage
    if not storage.supports_global_concurrency_limits:
        return
    known = {one.name: one.limit for one in storage.get_pool_limits() if not one.from_default}
    if setup.names.pool not in known:
        storage.set_concurrency_slots(setup.names.pool, POOL_SLOTS)
    if setup.names.snapshot_pool not in known:
        storage.set_concurrency_slots(setup.names.snapshot_pool, SNAPSHOT_SLOTS)
