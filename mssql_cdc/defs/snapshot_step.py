"""The step that takes blocking snapshots: `snapshots`, one asset per database whose partitions are its tables.

The sensor requests snapshots that are due, several tables in one run; an operator materializes partitions.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import dagster as dg
from pydantic import Field

from mssql_cdc.capture.snapshot.progress import Progress
from mssql_cdc.capture.snapshot.take import SnapshotResult
from mssql_cdc.capture.survey import Survey
from mssql_cdc.check.verdict import judge
from mssql_cdc.defs.background import PROGRESS_TAG, Background
from mssql_cdc.defs.failures import Failures
from mssql_cdc.defs.judge import unreported
from mssql_cdc.defs.life import Pulse
from mssql_cdc.defs.metadata import event_metadata
from mssql_cdc.defs.newest_checks import newest_checks, value_of
from mssql_cdc.defs.recorder import Recorder, is_of_storage
from mssql_cdc.defs.report import ABSENT, ACKNOWLEDGE, OF_CAPTURE, TRY_AGAIN, OwnTables, evaluation
from mssql_cdc.defs.runs import SNAPSHOT_TAG, is_by_sensor
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.shown import shown, told
from mssql_cdc.defs.specs import snapshots_spec
from mssql_cdc.defs.work import Work
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.commit_counts import count_by_window
from mssql_cdc.lake.gaps import Gap
from mssql_cdc.lake.named_gaps import gaps_by_name
from mssql_cdc.lake.read import Commits
from mssql_cdc.plan.planner import new_snapshot_key
from mssql_cdc.run.lineage import reported
from mssql_cdc.schema import TableId

ALL_TAG = "mssql_cdc/snapshot_all"
"""With the value `true`, a run may read every table again even if none is missing."""
BACKFILL_TAG = "dagster/backfill"
SHARES = (25, 50, 75)
SKEW = timedelta(minutes=5)
"""How far behind the source's clock may be."""


class SnapshotRequest(dg.Config):
    """What the sensor requests; an operator selects partitions instead."""

    tables: list[str] = Field(default=[], description="Set by the sensor: the tables of the snapshot.")
    signal: str = Field(default="", description="Set by the sensor: the signal that requested the snapshot.")


def build_snapshots(setup: Setup) -> dg.AssetsDefinition:
    """Build the asset of one database."""

    @dg.multi_asset(
        name=f"snapshots__{setup.names.stem}",
        specs=[snapshots_spec(setup)],
        can_subset=True,
        pool=setup.names.snapshot_pool,
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys={setup.names.spark},
    )
    def snapshots(context: dg.AssetExecutionContext, config: SnapshotRequest) -> Iterator[dg.AssetMaterialization]:
        with shown(setup.connector, context.log.info), Pulse(context.instance, context.run):
            yield from SnapshotStep(context, setup).run(config)

    return snapshots


class SnapshotStep:
    """One run of the step."""

    def __init__(self, context: dg.AssetExecutionContext, setup: Setup) -> None:
        self.context, self.setup = context, setup
        spark = getattr(context.resources, setup.names.spark)
        self.background = Background(context, spark, setup.connector.redact)
        self.database = setup.open(spark=spark.lazy, run_id=context.run.run_id, log=self.background.log)
        self.by_sensor = is_by_sensor(context.run, setup)
        self.work = Work(setup, self.database, self.background, self.by_sensor)
        self.recorder = Recorder(context, self.background)
        self.own = OwnTables(setup, self.database)
        self.failures = Failures(setup.connector)
        self.begun = datetime.now(UTC) - SKEW
        self.shown: dict[TableId, int] = {}
        self.left: list[str] = []

    def run(self, config: SnapshotRequest) -> Iterator[dg.AssetMaterialization]:
        """Take the snapshots; the events of each are written when it is done."""
        if not config.tables and not (self.context.has_partition_key or self.context.has_partition_key_range):
            raise dg.Failure("No partition was selected: select the tables to read again", allow_retries=False)
        self.recorder.start()
        self.recorder.post(self.own.remember)
        try:
            with reported([self.database], currents=False) as saw:
                self._take(config, partial(saw, self.database))
                self.failures.raise_if_any()
        finally:
            self.recorder.post(self._own_tables)
            self.recorder.close(fails=not self.by_sensor)
            self.background.drain()
        self._cancel_if_left()
        yield from ()

    def _take(self, config: SnapshotRequest, saw: Callable[[Survey], None]) -> None:
        if not self.by_sensor:
            self.work.look()
        seen = self.work.survey()
        wanted = self._wanted(seen, config)
        asked = [one for tables in wanted.values() for one in tables]
        saw(seen.limited_to(asked))
        self.failures.add_absent(asked, self.setup, seen)
        for table in self.failures.tables:
            self.recorder.post(partial(self._red, table))
        for key, wished in wanted.items():
            tables = [table for table in wished if table not in self.failures.tables]
            if not tables:
                continue
            done = self.work.snapshot(key, tables, self._progress, signal=config.signal or None)
            self.failures.add(done)
            self._leave(done.snapshot)
            self.recorder.post(partial(self._report, done.snapshot or SnapshotResult(key)))

    def _leave(self, result: SnapshotResult | None) -> None:
        """Note what signals have kept this run from reading."""
        if result is None:
            return
        if result.paused:
            names = ", ".join(table.text for table in result.paused)
            self.left.append(f"the snapshot of {names} is paused; the action resume_snapshot of signals continues it")
        for table, signal in result.stopped.items():
            self.left.append(f"the snapshot of {table} was stopped by signal {signal}; the table streams on")

    def _cancel_if_left(self) -> None:
        """End as canceled if partitions were not read although nothing failed: like a run that is being canceled."""
        if self.left:
            said = self.setup.connector.redact("; ".join(self.left))
            self.context.instance.report_run_canceling(self.context.run, message=said)
            raise dg.DagsterExecutionInterruptedError(said)

    # -- What is read --------------------------------------------------------------------------------------------

    def _wanted(self, seen: Survey, config: SnapshotRequest) -> Mapping[str, Collection[TableId]]:
        """Return the snapshots to take or to resume: their ids and tables."""
        asked = self.context.run.tags.get(SNAPSHOT_TAG)
        if config.tables:
            return {asked or new_snapshot_key(seen.facts): self._named(seen, config.tables)}
        tables = [self.setup.snapshot_keys[key] for key in self.context.partition_keys]
        tables = self._allowed(seen, tables)
        fresh, found = asked or new_snapshot_key(seen.facts), dict[str, list[TableId]]()
        for table in tables:
            member = seen.member(table)
            begun = member.snapshot if member is not None and member.status == "snapshot" else None
            found.setdefault(begun or fresh, []).append(table)
        return found

    def _red(self, table: TableId) -> None:
        """Report a table that cannot be captured now."""
        problem = self.setup.connector.redact(str(self.failures.tables[table]))
        values = event_metadata({"problem": problem, "what_to_do": TRY_AGAIN, ABSENT: True})
        self.recorder.write(evaluation(self.setup, table, passed=False, metadata=values))

    def _named(self, seen: Survey, names: Collection[str]) -> list[TableId]:
        members = {member.table.text: member.table for member in seen.facts.members}
        listed = {table.text: table for table in self.setup.names.tables}
        gone = sorted(set(names) - set(members) - set(listed))
        if gone:
            raise ConfigurationError(f"{', '.join(gone)} cannot be snapshotted: the source no longer captures them")
        return [members.get(name) or listed[name] for name in names]

    def _allowed(self, seen: Survey, tables: list[TableId]) -> list[TableId]:
        """Return the tables to read. A click on "Materialize all" must not read every table of a database again."""
        whole = len(tables) == len(self.setup.tables) and (len(tables) > 1 or BACKFILL_TAG in self.context.run.tags)
        if not whole or self.context.run.tags.get(ALL_TAG) == "true":
            return tables
        states = {member.table: member.status for member in seen.facts.members}
        missing = [table for table in tables if states.get(table, "new") in {"new", "lost", "failed", "snapshot"}]
        if not missing:
            raise dg.Failure(
                "Every table has its snapshot. To read all of them again, launch the run with the tag "
                f"{ALL_TAG}=true; to read some of them again, select their partitions",
                allow_retries=False,
            )
        for table in tables:
            if table not in missing:
                self.context.log.info("%s has its snapshot, and is not read again", table)
        return missing

    # -- What is reported ------------------------------------------------------------------------------------------

    def _report(self, result: SnapshotResult) -> None:
        offsets, versions = self.database.offsets(), self.database.history().versions
        gaps = gaps_by_name(self.database.layout, offsets, versions, self.database.storage)
        failed, tables = dict[TableId, str](), dict.fromkeys([*result.rows, *result.failed, *result.notes])
        newest = newest_checks(self.setup, self.recorder.instance, tables)
        for table in tables:
            try:
                self._report_table(table, result, gaps.get(table.text, ()), newest.get(table))
            except Exception as error:
                if is_of_storage(error):
                    raise
                failed[table] = self.setup.connector.redact(told(error))
                self._evaluated(table, result, f"the snapshot could not be reported: {failed[table]}")
        unknown = [table for table in tables if table not in self.setup.names.tables]
        for event in self.own.unloaded(unknown):
            self.recorder.write(event)
        if failed:
            raise unreported(failed)

    def _report_table(
        self, table: TableId, result: SnapshotResult, gaps: Sequence[Gap], newest: dg.AssetCheckEvaluation | None
    ) -> None:
        """Report a table that was read, or that failed.

        Args:
            table: The table.
            result: The result of its snapshot.
            gaps: Its open gaps.
            newest: The last evaluation of its check: a snapshot does not fix everything.
        """
        error, open_ = result.failed.get(table), "; ".join(gap.text for gap in gaps)
        if error is not None:
            self._evaluated(table, result, f"{type(error).__name__}: {error}")
            return
        self._materialized(table, result)
        problem = open_ or None
        if newest is not None and not newest.passed and not open_:
            if value_of(newest, OF_CAPTURE):
                self.background.log(f"{table}: its check stays as it is: {value_of(newest, 'problem')}")
                return
            problem = "; ".join(judge(self.database, table).problems) or None
        self._evaluated(table, result, problem, ACKNOWLEDGE if open_ else None)

    def _evaluated(
        self, table: TableId, result: SnapshotResult, problem: str | None, advice: str | None = None
    ) -> None:
        values = {"snapshot": result.id, "problem": problem, "what_to_do": advice}  # `evaluation` redacts them.
        self.recorder.write(evaluation(self.setup, table, passed=problem is None, metadata=event_metadata(values)))

    def _materialized(self, table: TableId, result: SnapshotResult) -> None:
        rows, note = result.rows.get(table, 0), result.notes.get(table)
        values = {"dagster/partition_row_count": rows, "snapshot": result.id, "note": note}
        partition = self.setup.names.snapshot_key(table)
        if partition in self.setup.snapshot_keys:
            self._write(self.setup.snapshots_key, partition, values)
        entry = self.database.offsets().entry(table.text)
        home = self.database.layout.home(table, folder=entry.folder if entry is not None else None)
        windows = self.setup.windows
        commits = Commits(windows.start(self.begun), datetime.max.replace(tzinfo=UTC))
        counts = count_by_window(home.changes, windows.length, commits=commits, storage=self.database.storage)
        for window in sorted({*counts, windows.start(datetime.now(UTC))}):
            found = counts.get(window) or Counter[str]()
            operations = {"inserts": found["c"], "updates": found["u"], "deletes": found["d"], "reads": found["r"]}
            # Not complete: what was reported about older windows before may be unfinished, and is checked again.
            counted = {**values, "dagster/partition_row_count": found.total(), **operations, "complete": False}
            self._write(self.setup.names.log_key(table), windows.key(window), counted)

    def _write(self, key: dg.AssetKey, partition: str, values: Mapping[str, object]) -> None:
        self.recorder.write(dg.AssetMaterialization(key, partition=partition, metadata=event_metadata(values)))

    def _progress(self, progress: Progress) -> None:
        """Show a snapshot's progress.

        At every group of chunks: a log line and a tag of the run. At each quarter of a table: an observation.
        """
        self.background.log(f"snapshot: {progress.text}")
        self.recorder.post(partial(self._show, progress))

    def _show(self, progress: Progress) -> None:
        self.recorder.instance.add_run_tags(self.context.run.run_id, {PROGRESS_TAG: progress.text})
        for table, own in progress.tables.items():
            before = self.shown.get(table, 0)
            self.shown[table] = own.percent
            partition = self.setup.names.snapshot_key(table)
            known = partition in self.setup.snapshot_keys
            if known and any(before < mark <= own.percent < 100 for mark in SHARES):
                values = event_metadata(
                    {
                        "snapshot_progress_percent": own.percent,
                        "rows": own.rows,
                        "rows_per_second": round(progress.rows_per_second or 0),
                        "seconds_left": round(progress.seconds_left or 0),
                    }
                )
                key = self.setup.snapshots_key
                self.recorder.write(dg.AssetObservation(key, partition=partition, metadata=values))

    def _own_tables(self) -> None:
        for event in self.own.grown():
            self.recorder.write(event)
