"""Turns the results of a step into Dagster events: materializations with metadata, one check per table, failures.

This module never reads the source and writes only events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from mssql_cdc.capture.range import TableOutcome
from mssql_cdc.capture.snapshot.progress import Progress
from mssql_cdc.capture.snapshot.take import SnapshotResult
from mssql_cdc.check.verdict import Verdict
from mssql_cdc.defs.background import PROGRESS_TAG
from mssql_cdc.defs.metadata import event_metadata
from mssql_cdc.defs.runs import ATTEMPT_TAG
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.specs import CHECK
from mssql_cdc.defs.work import RangeDone, Work
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.follow.current import Merged
from mssql_cdc.lake.gaps import Gap
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.plan.decisions import RESTORED_ADVICE, Lost, Restored
from mssql_cdc.run.execute import Done
from mssql_cdc.run.metrics import range_metrics
from mssql_cdc.schema import TableId

SHARES = (25, 50, 75)
ACKNOWLEDGE = "acknowledge the gap in the signals asset (action: acknowledge_gaps) or with `mssql-cdc acknowledge`"
RELOAD = "run `mssql-cdc discover` and reload the code location to add it to the asset graph"
StepEvent = dg.MaterializeResult[Any] | dg.AssetCheckResult | dg.AssetMaterialization | dg.AssetCheckEvaluation


@dataclass
class Reporter:
    """The events of one step.

    Attributes:
        setup: The database.
        context: The step's context.
        by_hand: Whether the run covers several partitions. Dagster would record all of them as soon as the step yields
            one, so each event is then logged separately when its partition is done. The same applies to further ranges
            of loop mode, and to assets that were not selected.
        failures: The tables that failed, with their errors.
        gaps: The open gaps by table.
    """

    setup: Setup
    context: dg.AssetExecutionContext
    by_hand: bool = False
    failures: dict[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    gaps: Mapping[str, Sequence[Gap]] = field(default_factory=dict[str, Sequence[Gap]])
    _done: set[object] = field(default_factory=set[object])
    _seen_rows: dict[str, int] = field(default_factory=dict[str, int])
    _shown: dict[TableId, int] = field(default_factory=dict[TableId, int])

    @property
    def selected_logs(self) -> list[TableId]:
        """The tables whose change logs the run selected."""
        return [t for key, t in self.setup.log_keys.items() if key in self.context.selected_asset_keys]

    @property
    def selected_currents(self) -> list[TableId]:
        """The tables whose current tables the run selected."""
        return [t for key, t in self.setup.current_keys.items() if key in self.context.selected_asset_keys]

    @property
    def selected_checks(self) -> list[TableId]:
        """The tables whose check the run selected."""
        chosen = {key.asset_key for key in self.context.selected_asset_check_keys}
        return [table for key, table in self.setup.log_keys.items() if key in chosen]

    # -- Ranges --------------------------------------------------------------------------------------------

    def range(self, key: str, done: RangeDone) -> Iterator[StepEvent]:
        """Yield the events of a range, for the selected tables and for other tables that it processed."""
        for table in dict.fromkeys([*self.selected_logs, *done.tables]):
            outcome, member = done.outcome(table), done.member(table)
            if outcome is not None and outcome.error is not None:
                self.failures[table] = outcome.error
                yield self._check(table, key, outcome.error)
            elif outcome is None and (member is None or member.status != "streaming"):
                self._say_why_not(table, member.status if member else "new")
            else:
                yield self._check(table, key, None, {"rows": outcome.rows if outcome else 0})
                values = _read(outcome) if outcome else _nothing(done, table)
                values |= {"attempt": self._attempt, "open_gaps": len(self.gaps.get(table.text, ())) or None}
                yield self._materialize(self.setup.names.log_key(table), key, values)

    def further(self, key: str, done: RangeDone) -> Iterator[StepEvent]:
        """Yield the events of a further range of the run.

        Only tables that changed or failed get an event because every event costs time.
        """
        self.by_hand = True
        self.context.instance.add_dynamic_partitions(self.setup.names.partitions, [key])
        for table in done.tables:
            outcome = done.outcome(table)
            if outcome is not None and outcome.error is not None:
                self.failures[table] = outcome.error
                yield self._check(table, key, outcome.error)
            elif outcome is not None and outcome.rows:
                yield self._materialize(self.setup.names.log_key(table), key, _read(outcome))

    def _say_why_not(self, table: TableId, status: str) -> None:
        """Log why a table is held back: its partition stays missing, and a later range contains its changes."""
        reasons = {
            "new": "it is waiting for its first snapshot",
            "snapshot": "it is being snapshotted; a later range contains its changes",
            "lost": "changes were lost; request a snapshot in the signals asset",
            "failed": "it failed too often; materialize any range of the table manually to retry it",
        }
        self.context.log.warning("%s is not part of this range: %s", table, reasons.get(status, status))

    def followed(self, key: str, done: RangeDone) -> Iterator[StepEvent]:
        """Yield the events of the steps that followed a range."""
        own = self.setup.transactions_key
        if done.complete or (not done.read and own in self.context.selected_asset_keys):
            enabled = self.setup.connector.records.transaction_metadata
            note = None if enabled else "provide.transaction.metadata is false: nothing is written"
            values = {"dagster/partition_row_count": done.transactions, "complete_cut": done.complete, "note": note}
            yield self._materialize(own, key, values)
        for part in done.results:
            yield from self.currents(part.merged)

    @property
    def _attempt(self) -> int:
        return int(self.context.run.tags.get(ATTEMPT_TAG, "1"))

    # -- Snapshots -----------------------------------------------------------------------------------------

    def snapshot(self, key: str, result: SnapshotResult) -> Iterator[StepEvent]:
        """Yield the events of a snapshot."""
        for table in dict.fromkeys([*self.selected_logs, *result.rows, *result.failed, *result.notes]):
            log_key = self.setup.names.log_key(table)
            error = result.failed.get(table)
            if error is not None:
                self.failures[table] = error
                yield self._check(table, key, error)
            elif table in result.rows:
                rows = result.rows[table]
                yield self._check(table, key, None, {"rows": rows})
                values = {"dagster/partition_row_count": rows, "reads": rows, "snapshot": result.id}
                yield self._materialize(log_key, key, values)
            elif table in result.notes:
                yield self._check(table, key, None, {"note": result.notes[table]})
                yield self._materialize(log_key, key, {"dagster/partition_row_count": 0, "note": result.notes[table]})

    def progress(self, progress: Progress) -> None:
        """Show a snapshot's progress: a tag of the run at every group, an observation of each table at each quarter."""
        total = progress.total
        text = f"{total.percent}% ({total.chunks_done} of {total.chunks} chunks, {total.rows:,} rows)"
        self.context.instance.add_run_tags(self.context.run.run_id, {PROGRESS_TAG: text})
        for table, own in progress.tables.items():
            before = self._shown.get(table, 0)
            self._shown[table] = own.percent
            if table in self.selected_logs and any(before < mark <= own.percent < 100 for mark in SHARES):
                values = event_metadata({"snapshot_progress_percent": own.percent, "rows": own.rows})
                self.context.log_event(
                    dg.AssetObservation(self.setup.names.log_key(table), partition=self._partition, metadata=values)
                )

    @property
    def _partition(self) -> str | None:
        return self.context.partition_key if self.context.has_partition_key else None

    # -- Other events --------------------------------------------------------------------------------------

    def currents(self, merged: Merged) -> Iterator[StepEvent]:
        """Yield the events of current tables; a failed merge fails the step, and the next range retries it."""
        for table, result in merged.tables.items():
            values = {"merged_rows": result.rows, "delta_version": result.delta_version, "batch": result.batch}
            yield self._materialize(self.setup.names.current_key(table), None, values)
        for table, error in merged.errors.items():
            self.context.log.error("%s: the merge into the current table failed: %s", table, error)
            self.failures.setdefault(table, error)

    def unloaded(self, tables: list[TableId]) -> Iterator[StepEvent]:
        """Yield a notification, once per step, about captured tables that the code location does not know."""
        if tables and "unloaded" not in self._done:
            self._done.add("unloaded")
            names = ", ".join(table.text for table in tables)
            self.context.log.warning("%s: captured, but not in the table list; %s", names, RELOAD)
            values = {"unknown_tables": names, "what_to_do": RELOAD}
            yield dg.AssetMaterialization(self.setup.names.extra_key("notifications"), metadata=event_metadata(values))

    def verdict(self, table: TableId, verdict: Verdict) -> dg.AssetCheckResult:
        """Return the result of a check that was run on its own."""
        values = {**verdict.facts, "problems": "; ".join(verdict.problems) or None}
        return self._result(table, passed=not verdict.problems, values=values)

    def side_effects(self, work: Work) -> Iterator[StepEvent]:
        """Yield an event for each of the database's own assets whose table has grown since this step began."""
        for name in ("schema_history", "signals", "notifications"):
            rows = small_table(work.database.layout, name, work.database.storage).rows()
            mine = [row for row in rows if row["_batch"] > self._seen_rows.get(name, 0)]
            if name in self._seen_rows and mine:
                newest = {k: str(v) for k, v in mine[-1].items() if v is not None and k not in {"columns", "debezium"}}
                metadata = event_metadata({"rows": len(mine), "newest": dg.MetadataValue.json(newest)})
                yield dg.AssetMaterialization(self.setup.names.extra_key(name), metadata=metadata)
            self._seen_rows[name] = max((row["_batch"] for row in rows), default=0)

    def remember(self, work: Work) -> None:
        """Record the contents of the database's own tables before the step."""
        for _ in self.side_effects(work):
            pass

    def raise_failures(self) -> None:
        """Fail the step at its end if a table failed; the other tables keep their materializations."""
        if self.failures:
            lines = "; ".join(f"{table}: {error}" for table, error in self.failures.items())
            word = "table" if len(self.failures) == 1 else "tables"
            text = self.setup.connector.redact(f"{len(self.failures)} {word} failed: {lines}")
            raise dg.Failure(text, allow_retries=False)

    def _materialize(self, key: dg.AssetKey, partition: str | None, values: Mapping[str, Any]) -> StepEvent:
        metadata = event_metadata(values)
        if self.by_hand or key in self._done or key not in self.context.selected_asset_keys:
            return dg.AssetMaterialization(key, partition=partition, metadata=metadata)
        self._done.add(key)
        version = values.get("to_lsn")
        return dg.MaterializeResult(
            asset_key=key, metadata=metadata, data_version=dg.DataVersion(str(version)) if version else None
        )

    def _check(
        self, table: TableId, partition: str, error: MssqlCdcError | None, values: Mapping[str, Any] | None = None
    ) -> dg.AssetCheckResult | dg.AssetCheckEvaluation:
        """Return the table's check: red if the table failed or the ledger contains an open gap (rule A9)."""
        gaps = "; ".join(gap.text for gap in self.gaps.get(table.text, ())) or None
        passed = error is None and gaps is None
        found = {
            "partition": partition,
            "error": f"{type(error).__name__}: {error}" if error else None,
            "open_gaps": gaps,
            "what_to_do": ACKNOWLEDGE if gaps else None,
        }
        result = self._result(table, passed=passed, values={**found, **(values or {})})
        if not self.by_hand and table in self.selected_checks and ("check", table) not in self._done:
            self._done.add(("check", table))
            return result
        return evaluation(self.setup, table, passed=passed, metadata=dict(result.metadata))

    def _result(self, table: TableId, *, passed: bool, values: Mapping[str, Any]) -> dg.AssetCheckResult:
        return dg.AssetCheckResult(
            passed=passed,
            asset_key=self.setup.names.log_key(table),
            check_name=CHECK,
            severity=dg.AssetCheckSeverity.ERROR,
            metadata=event_metadata(values),
        )


def evaluation(setup: Setup, table: TableId, *, passed: bool, metadata: Mapping[str, Any]) -> dg.AssetCheckEvaluation:
    """Return a table's check as a separate event.

    The sensor uses it, and steps that have already yielded their own result of the check.

    Args:
        setup: The database.
        table: The table.
        passed: Whether the check is green.
        metadata: The event's metadata.
    """
    return dg.AssetCheckEvaluation(
        asset_key=setup.names.log_key(table),
        check_name=CHECK,
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
    )


def losses(setup: Setup, done: Done) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield a red check for each table whose loss was detected now."""
    if isinstance(done.decision, Lost | Restored):
        reason = f"{done.decision.reason}; {loss_advice(done)}"
        for table in done.gaps:
            yield evaluation(setup, table, passed=False, metadata=event_metadata({"error": reason}))


def loss_advice(done: Done) -> str:
    """Return what an operator must do about a loss."""
    match done.decision:
        case Lost(repaired=True):
            mode = done.seen.facts.policy.mode
            return f"snapshot.mode={mode} repairs them with a snapshot; acknowledge the gap in the signals asset"
        case Lost():
            return "request a snapshot of these tables in the signals asset"
        case Restored(automatic=True):
            return "a new epoch begins, in which every table is re-snapshotted"
        case _:
            return RESTORED_ADVICE


def _read(outcome: TableOutcome) -> dict[str, Any]:
    values = range_metrics(outcome)
    return {"dagster/partition_row_count": values.pop("rows"), **values}


def _nothing(done: RangeDone, table: TableId) -> dict[str, Any]:
    there = "nothing to do: the table was already captured to the end of this range"
    member = done.member(table)
    return {
        "dagster/partition_row_count": 0,
        "to_lsn": member.position if member else None,
        "note": "no changes in this range" if done.moved(table) else there,
    }
