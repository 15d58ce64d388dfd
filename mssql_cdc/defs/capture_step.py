"""The capture step of one database: the multi-asset of change logs, current tables and the database's own assets.

A run requested by the sensor reads ranges as they come; an operator's run reads up to the end of the newest selected
window (architecture, section 5). `run/` decides what is read and written, `book.py` what is reported.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import dagster as dg

from mssql_cdc.capture.lag import captured_until
from mssql_cdc.capture.survey import Survey
from mssql_cdc.defs.asked import ask_source, judged, result_of
from mssql_cdc.defs.background import Background
from mssql_cdc.defs.book import Book
from mssql_cdc.defs.failures import Failures, is_fenced
from mssql_cdc.defs.handover import Handover
from mssql_cdc.defs.life import Pulse
from mssql_cdc.defs.recorder import Recorder
from mssql_cdc.defs.records_asset import END_SECONDS as RECORDS_END_SECONDS
from mssql_cdc.defs.records_asset import RecordsAsset
from mssql_cdc.defs.report import OwnTables
from mssql_cdc.defs.runs import AGAIN_TAG, ATTEMPT_TAG, RANGE_TAG, is_by_sensor, is_range
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.shown import shown
from mssql_cdc.defs.specs import capture_specs, check_specs
from mssql_cdc.defs.transactions_asset import NOTHING, TransactionsAsset
from mssql_cdc.defs.work import Work, not_captured
from mssql_cdc.errors import BusyOutputError, FencedError
from mssql_cdc.follow.transactions import Counted
from mssql_cdc.plan.decisions import Wait
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.known_lags import Captured
from mssql_cdc.run.lineage import reported
from mssql_cdc.run.requested import FENCED_ATTEMPTS
from mssql_cdc.run.standing import standings
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import CaptureHealth

TAKE_OVER_SECONDS = 30
RECORDER_END_SECONDS = 20
"""How long a run that captures keeps reporting at its end; an operator's run reports everything that was requested."""
ASK_AGAIN = timedelta(minutes=1)
"""How often a run that has nothing to read checks how far capture has progressed."""


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
    def capture(context: dg.AssetExecutionContext) -> Iterator[dg.AssetCheckResult]:
        with shown(setup.connector, context.log.info), Pulse(context.instance, context.run):
            yield from Step(context, setup).run()

    return capture


class Step:
    """One run of the step."""

    def __init__(self, context: dg.AssetExecutionContext, setup: Setup) -> None:
        tags = context.run.tags
        self.context, self.setup = context, setup
        self.spark = getattr(context.resources, setup.names.spark)
        self.background = Background(context, self.spark, setup.connector.redact)
        database = setup.open(spark=self.spark.lazy, run_id=context.run.run_id, log=self.background.log)
        self.by_sensor = is_by_sensor(context.run, setup)
        self.work = Work(setup, database, self.background, self.by_sensor)
        self.windows = self._windows()
        self.logs = [table for key, table in setup.log_keys.items() if key in context.selected_asset_keys]
        self.currents = [table for key, table in setup.current_keys.items() if key in context.selected_asset_keys]
        self.recorder = Recorder(context, self.background)
        self.book = Book(
            setup,
            database,
            self.recorder,
            only=None if self.by_sensor else {*self.logs, *self.currents},
            bound=None if self.by_sensor or not self.windows else self.windows[-1] + setup.windows.length,
            attempt=int(tags[ATTEMPT_TAG]) if ATTEMPT_TAG in tags else None,
        )
        self.transactions = TransactionsAsset(setup, self.recorder)
        self.output = RecordsAsset.of(setup, database, self.recorder, self.book.lags)
        self.own = OwnTables(setup, database)
        self.failures = Failures(setup.connector)
        self._cut: int | None = None
        self._counted = Counted()
        self._saw: Callable[[Survey], None] = lambda _: None

    def run(self) -> Iterator[dg.AssetCheckResult]:
        """Do the step's work; yield checks that were selected alone."""
        if self.by_sensor:
            self.recorder.turn = self._turn
        self.recorder.start()
        self.recorder.post(self._begin)
        reads = self.by_sensor or bool(self.logs or self.currents)
        try:
            with reported([self.work.database] if reads else []) as saw:
                self._saw = partial(self._tell, partial(saw, self.work.database))
                if self.by_sensor and (self.windows or RANGE_TAG in self.context.run.tags):
                    self._stream()  # Without a window if the loaded table list has none of the tables.
                elif not self.windows or not self.logs:
                    yield from self._without_window()
                else:
                    self._by_hand()
                self.failures.raise_if_any()
        finally:
            if self.output is not None:
                self.output.output.close(RECORDS_END_SECONDS)
                self.recorder.post(self.output.finish)
            if self.by_sensor:
                self.recorder.post(self.book.finish)
            self.recorder.post(self.transactions.report)
            self.recorder.post(self._own_tables)
            self.recorder.close(patience=RECORDER_END_SECONDS if self.by_sensor else None)
            self.background.drain()

    def _without_window(self) -> Iterator[dg.AssetCheckResult]:
        """Do work without a range, such as merging current tables up to the last cut and evaluating checks alone."""
        if self.currents:
            self.work.look()
            done = self.work.merge(self.currents)
            self._saw(done.seen)
            self._add(done, Captured(datetime.now(UTC), None))  # Nothing was read.
            self.recorder.post(self.book.currents)
        logs, database = self.setup.log_keys, self.work.database
        executed = [logs[key.asset_key] for key in self.context.selected_asset_check_keys if key.asset_key in logs]
        if executed:
            shown = self.background.run(lambda: ask_source(self.setup, database))
            for table in executed:
                yield result_of(judged(self.setup, database, table, shown))
        self._count_transactions()
        self._beat_once()
        self._catch_output_up()

    def _count_transactions(self) -> None:
        """Write what `_transactions` lacks, such as transactions from before it was enabled, if it was selected."""
        if self.setup.transactions_key in self.context.selected_asset_keys:
            self._counted += (counted := self.work.count_transactions())
            self.recorder.post(partial(self.transactions.add, counted))
            if not self._counted.transactions:
                self.context.log.info(NOTHING)

    def _beat_once(self) -> None:
        """If the heartbeat was selected, report it, or log why capture is not healthy."""
        if self.setup.heartbeat_key not in self.context.selected_asset_keys:
            return
        seen, health = self.work.survey(), self.work.health()
        if health.problem is not None:
            self.context.log.warning("There is no heartbeat: %s", self.setup.connector.redact(health.problem))
            return
        self.recorder.post(partial(self.book.asked, seen.offsets))
        self.recorder.post(self.book.heartbeat)

    def _catch_output_up(self) -> None:
        """Write the records that the output lacks, if the asset or its check was selected; a failure fails the step.

        A run that the sensor requested writes them while it reads (`_add`), and continues if that fails.
        """
        checks = {key.asset_key for key in self.context.selected_asset_check_keys}
        if self.output is None or self.setup.records_key not in {*self.context.selected_asset_keys, *checks}:
            return
        end = time.monotonic() + RECORDS_END_SECONDS
        written = self.background.run(self.output.output.write)
        while isinstance(written.error, BusyOutputError | FencedError) and time.monotonic() < end:
            time.sleep(1)  # A run that streams writes the same records, a batch at a time.
            written = self.background.run(self.output.output.write)
        problem = self.output.failure_text(written)
        if problem is not None:
            self.failures.output = f"The output of records cannot be written: {problem}"

    def _by_hand(self) -> None:
        """Read up to the end of the newest window that was selected, and report all selected windows."""
        assert self.book.bound is not None  # there are windows, and the sensor did not request them
        self.work.look()
        ends = [window + self.setup.windows.length for window in self.windows]
        health = self.work.scanned_past(ends)  # Before the read, which then includes what was captured.
        captured = Captured.of(health, datetime.now(UTC))
        done = self.work.until(self.book.bound, self.logs)
        for one in done:
            self._saw(one.seen)
            self._add(one, captured)
            self._say_why_not(one)
        if done:
            self.failures.add_absent(self.logs, self.setup, done[-1].seen)
        if not self.failures.any or health.problem is not None:
            self.recorder.post(partial(self.book.reached, health))
        if done:
            self.failures.add_lost(self.logs, done[-1].seen)  # The others were read: their windows are reported.
        read = any(one.range is not None for one in done)
        self.recorder.post(partial(self.book.selected, self.windows, read=read))
        self._count_transactions()
        if self.setup.heartbeat_key in self.context.selected_asset_keys:
            self.recorder.post(self.book.heartbeat)
        self.failures.whole = self._why_not_captured(health, ends)
        self._catch_output_up()

    def _why_not_captured(self, health: CaptureHealth, ends: Sequence[datetime]) -> str | None:
        """Return why windows of an operator's run are not reported although they were read; None: all of them are."""
        until, missing = captured_until(health), not_captured(health, ends)
        if health.problem is not None:
            return f"Not caught up: {health.problem}" if until is None or until < max(ends) else None
        if missing is None:
            return None
        reached = f"up to {until:%Y-%m-%d %H:%M} UTC" if until is not None else "to an unknown position"
        return (
            f"Not caught up: capture has scanned the log {reached}; materialize the window that ends at "
            f"{missing:%Y-%m-%d %H:%M} UTC again when it has passed that"
        )

    def _stream(self) -> None:
        """Read the range that the sensor requested, and then, for `dagster.max.run.seconds`, ranges as they come."""
        limit = self.setup.connector.dagster.max_run_seconds
        handover = Handover(self.context.instance, self.context.run, limit)
        wanted = self.context.run.tags.get(RANGE_TAG, "")
        if limit or is_range(wanted):
            self.spark.begin()  # While this run surveys the source.
        if limit:
            handover.begin()
            self._take_over(handover)
        if is_range(wanted):
            beyond = Captured(datetime.now(UTC), None)  # What is captured after the range is not read.
            for done in self.work.range(wanted, self.logs):
                self._saw(done.seen)
                self._add(done, beyond)
            if not limit:
                if AGAIN_TAG in self.context.run.tags:
                    for done in self.work.given_up(wanted):  # After the others, which do not wait for these.
                        self._saw(done.seen)
                        self._add(done, beyond)
                return
        follower = self.work.follower(lasting=bool(limit), saw=self._saw)
        try:
            self._follow(follower, handover)
        except BaseException:
            follower.close(patience=0)
            raise
        if limit:
            handover.end()
        self.background.run(follower.close)

    def _follow(self, follower: Follower, handover: Handover) -> None:
        """Take steps until the run is over: one, or as many as fit into `dagster.max.run.seconds`.

        A table that fails is retried while the others continue, and the run fails at its end.
        """
        limit = self.setup.connector.dagster.max_run_seconds
        captured, fences = self.work.captured(), 0
        while True:
            done = self.background.run(follower.attempt)
            self.recorder.post(partial(self.book.unavailable, follower.failure))
            if done is not None:
                self._add(done, captured)
            fences = fences + 1 if is_fenced(done, follower.failure) else 0
            if not limit and 0 < fences < FENCED_ATTEMPTS:
                continue  # Another run was faster: this one reads what is left, often nothing.
            if not limit and done is not None:
                done.raise_failure()
            elif not limit and follower.failure is not None:
                raise follower.failure
            ended = isinstance(follower.decision, Wait) and follower.decision.ended
            if not limit or ended or handover.is_over():
                break
            if done is None or done.idle:
                if datetime.now(UTC) - captured.at >= ASK_AGAIN:
                    captured = self.work.captured()
                follower.pause(follower.idle_seconds)

    def _take_over(self, handover: Handover) -> None:
        """Let the run that has streamed until now end when this one is ready."""
        if not handover.predecessors():
            return
        self.background.run(self.spark.lazy)
        runs = handover.take_over()
        self.context.log.info("taking over from %s", ", ".join(run[:8] for run in runs) or "no run")
        self._wait_for(lambda: handover.has_taken_over(runs))

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + TAKE_OVER_SECONDS
        while not condition() and time.monotonic() < end:
            time.sleep(0.25)

    # -- Helpers -----------------------------------------------------------------------------------------------

    def _tell(self, saw: Callable[[Survey], None], seen: Survey) -> None:
        """Report the tables that this run reads to OpenLineage."""
        saw(seen if self.by_sensor else seen.limited_to([*self.logs, *self.currents]))

    def _add(self, done: Done, captured: Captured | None = None) -> None:
        """Report a result, and remember what failed in it.

        Args:
            done: The result.
            captured: How far capture had progressed before the step began; None: that does not matter.
        """
        self.failures.add(done)
        for table, error in done.merged.errors.items():
            text = self.setup.connector.redact(f"{table}: the merge into the current table failed: {error}")
            self.context.log.error("%s", text)
        self.recorder.post(partial(self.book.add, done, captured))
        if done.transactions.transactions:
            self._counted += done.transactions
            self.recorder.post(partial(self.transactions.add, done.transactions))
        if self.by_sensor:
            self.recorder.post(partial(self._unloaded, self.work.unloaded(done.seen)))
        if done.range is not None:
            self.recorder.post_once(self._own_tables)
        if self.output is not None and self.by_sensor and self._cut != done.offsets.number:
            self._cut = done.offsets.number
            self.output.output.wake()

    def _turn(self) -> None:
        self.book.turn()
        self.transactions.turn()
        if self.output is not None:
            self.output.turn()

    def _begin(self) -> None:
        self.own.remember()
        if self.by_sensor:
            for event in self.own.unreported(self.recorder.instance):
                self.recorder.write(event)

    def _own_tables(self) -> None:
        for event in self.own.grown():
            self.recorder.write(event)

    def _unloaded(self, tables: Sequence[TableId]) -> None:
        for event in self.own.unloaded(tables):
            self.recorder.write(event)

    def _say_why_not(self, done: Done) -> None:
        """Log why a selected table is held back: its windows stay missing."""
        reasons = {
            "new": "it is waiting for its first snapshot",
            "snapshot": "it is being snapshotted; a later range contains its changes",
        }
        for table in self.logs:
            member = done.seen.member(table)
            if table.text in standings(done.seen, self.setup.listed).absent:
                continue  # The step fails with the reason, as it does for a table that lost changes.
            status = member.status if member is not None else "new"
            if status in reasons:
                self.context.log.warning("%s is not read: %s", table, reasons[status])

    def _windows(self) -> list[datetime]:
        """Return the starts of the run's windows. A run without windows only merges, or evaluates checks."""
        if self.context.has_partition_key or self.context.has_partition_key_range:
            return sorted(self.setup.windows.parse(key) for key in self.context.partition_keys)
        partitioned = {*self.setup.log_keys} & self.context.selected_asset_keys
        if partitioned:
            names = ", ".join(sorted(key.to_user_string() for key in partitioned))
            raise dg.Failure(
                f"No partition was selected for {names}. Select the latest window to read what is new; the sensor "
                "does so automatically",
                allow_retries=False,
            )
        return []
