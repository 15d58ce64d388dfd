"""Turns what a step did into Dagster's events: materializations with metadata, one check per table, failures.

Nothing is read from the source here, and nothing is written but events.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from mssql_cdc.defs.metadata import event_metadata
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.specs import CHECK
from mssql_cdc.defs.work import RangeDone, Work
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.current import CurrentResult
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.schema import TableId
from mssql_cdc.snapshot.capture import Progress, SnapshotResult
from mssql_cdc.stream.after import Merged
from mssql_cdc.stream.capture import TableOutcome

OPERATIONS = {"r": "reads", "c": "inserts", "u": "updates", "d": "deletes"}
SHARES = (25, 50, 75)


@dataclass
class Reporter:
    """The events of one step; `failures` are the tables that failed, with their errors."""

    setup: Setup
    context: dg.AssetExecutionContext
    failures: dict[TableId, MssqlCdcError] = field(default_factory=dict)
    _done: set[dg.AssetKey] = field(default_factory=set)
    _seen_rows: dict[str, int] = field(default_factory=dict)
    _shown: int = 0

    @property
    def selected_logs(self) -> list[TableId]:
        """The tables whose change logs the run selected."""
        return [t for key, t in self.setup.log_keys.items() if key in self.context.selected_asset_keys]

    @property
    def selected_currents(self) -> list[TableId]:
        """The tables whose current tables the run selected."""
        return [t for key, t in self.setup.current_keys.items() if key in self.context.selected_asset_keys]

    # -- Ranges --------------------------------------------------------------------------------------------

    def range(self, key: str, done: RangeDone) -> Iterator[Any]:
        """Events of a range that the run was launched for."""
        for table in self.selected_logs:
            outcome = done.result.tables.get(table) if done.result else None
            if outcome is not None and outcome.error is not None:
                self.failures[table] = outcome.error
                yield self._check(table, outcome.error, key)
                continue
            position = done.seen.position(table)
            if outcome is None and (position is None or not self._was_there(done, table)):
                continue  # Held back by a snapshot, or not streaming: its partition stays missing.
            metadata = self._range_metadata(table, outcome, done)
            yield self._check(table, None, key)
            yield self._materialize(self.setup.names.log_key(table), key, metadata)
        yield from self._cut(key, done)
        yield from self.currents(done.merged)

    def further_range(self, key: str, done: RangeDone) -> Iterator[Any]:
        """Events of a range which the run went on with: the UI's grid fills while the run lives."""
        for table, outcome in (done.result.tables if done.result else {}).items():
            if outcome.error is not None:
                self.failures[table] = outcome.error
                continue
            yield dg.AssetMaterialization(
                self.setup.names.log_key(table), partition=key, metadata=self._range_metadata(table, outcome, done)
            )
        for table, result in done.merged.tables.items():
            yield dg.AssetMaterialization(self.setup.names.current_key(table), metadata=_merged_metadata(result))

    def _was_there(self, done: RangeDone, table: TableId) -> bool:
        member = next(member for member in done.seen.facts.members if member.table == table)
        return member.status == "streaming"

    def _cut(self, key: str, done: RangeDone) -> Iterator[Any]:
        key_of = self.setup.transactions_key
        complete = bool(done.result and done.result.row and done.result.row.complete)
        if key_of in self.context.selected_asset_keys and (complete or done.result is None):
            values = {"dagster/partition_row_count": done.transactions, "complete_cut": complete}
            yield self._materialize(key_of, key, event_metadata(values))

    def _range_metadata(self, table: TableId, outcome: TableOutcome | None, done: RangeDone) -> Mapping[str, Any]:
        if outcome is None:
            position = done.seen.position(table)
            note = "nothing to do: the table had been captured to the end of this range before"
            return event_metadata({"note": note, "to_lsn": position, "dagster/partition_row_count": 0})
        counts = {name: int(outcome.operations.get(op, 0)) for op, name in OPERATIONS.items() if op != "r"}
        last = datetime.fromisoformat(outcome.last) if outcome.last else None
        return event_metadata(
            {
                "dagster/partition_row_count": outcome.rows,
                **counts,
                "from_lsn": outcome.slice.from_.text,
                "to_lsn": outcome.slice.to.text,
                "capture_instance": outcome.slice.instance.name,
                "commit_time_min": datetime.fromisoformat(outcome.first) if outcome.first else None,
                "commit_time_max": last,
                "lag_seconds": (datetime.now(UTC) - last).total_seconds() if last else None,
                "delta_version": outcome.state.delta_version if outcome.state else None,
                "attempt": done.result.decision.attempt if done.result else 1,
            }
        )

    # -- Snapshots -----------------------------------------------------------------------------------------

    def snapshot(self, key: str, result: SnapshotResult) -> Iterator[Any]:
        """Events of a snapshot."""
        for table in self.selected_logs:
            error = result.failed.get(table)
            if error is not None:
                self.failures[table] = error
                yield self._check(table, error, key)
            elif table in result.rows:
                rows = result.rows[table]
                values = {"dagster/partition_row_count": rows, "reads": rows, "snapshot": result.id}
                yield self._check(table, None, key)
                yield self._materialize(self.setup.names.log_key(table), key, event_metadata(values))

    def progress(self, progress: Progress) -> None:
        """Shows a snapshot's progress: a run tag at every group, an observation at a quarter, half, three quarters."""
        share = 100 * progress.chunks_done // max(progress.chunks, 1)
        text = f"{share}% ({progress.chunks_done} of {progress.chunks} chunks, {progress.rows:,} rows)"
        self.context.instance.add_run_tags(self.context.run.run_id, {"mssql_cdc/progress": text})
        if any(self._shown < mark <= share for mark in SHARES):
            for table in self.selected_logs:
                self.context.instance.report_runless_asset_event(
                    dg.AssetObservation(
                        self.setup.names.log_key(table),
                        metadata=event_metadata({"snapshot_progress_percent": share, "rows": progress.rows}),
                    )
                )
        self._shown = share

    # -- Everything else -----------------------------------------------------------------------------------

    def currents(self, merged: Merged) -> Iterator[Any]:
        """Events of current tables; one whose merge failed is tried again by the next range, and said so."""
        for table, result in merged.tables.items():
            key = self.setup.names.current_key(table)
            if key in self.context.selected_asset_keys and key not in self._done:
                self._done.add(key)
                yield dg.MaterializeResult(key, metadata=_merged_metadata(result))
            else:
                yield dg.AssetMaterialization(key, metadata=_merged_metadata(result))
        for table, error in merged.errors.items():
            self.context.log.error("%s: the current table could not be merged: %s", table, error)

    def side_effects(self, work: Work) -> Iterator[Any]:
        """An event for each of the database's own assets whose table has grown since this step began."""
        for name in ("schema_history", "signals", "notifications"):
            rows = small_table(work.database.layout, name, work.database.storage).rows()
            mine = [row for row in rows if row["_batch"] > self._seen_rows.get(name, 0)]
            if name in self._seen_rows and mine:
                newest = {k: str(v) for k, v in mine[-1].items() if v is not None and k not in {"columns", "debezium"}}
                metadata = event_metadata({"rows": len(mine), "newest": dg.MetadataValue.json(newest)})
                yield dg.AssetMaterialization(self.setup.names.extra_key(name), metadata=metadata)
            self._seen_rows[name] = max((row["_batch"] for row in rows), default=0)

    def remember(self, work: Work) -> None:
        """Takes note of what the database's own tables held before the step."""
        for _ in self.side_effects(work):
            pass

    def add_partition(self, key: str) -> None:
        """A partition for a range that nobody launched (loop mode)."""
        self.context.instance.add_dynamic_partitions(self.setup.names.partitions, [key])

    def raise_failures(self) -> None:
        """The step fails at its end when a table failed; the others keep their materializations."""
        if self.failures:
            lines = "; ".join(f"{table}: {error}" for table, error in self.failures.items())
            raise dg.Failure(f"{len(self.failures)} tables failed: {lines}", allow_retries=False)

    def _materialize(self, key: dg.AssetKey, partition: str, metadata: Mapping[str, Any]) -> dg.MaterializeResult[Any]:
        if self.context.has_partition_key_range:
            self.context.add_asset_metadata(dict(metadata), asset_key=key, partition_key=partition)
        if key in self._done:  # A backfill over several keys: Dagster records one event per key by itself.
            return dg.AssetMaterialization(key, partition=partition, metadata=metadata)  # type: ignore[return-value]
        self._done.add(key)
        plain = {} if self.context.has_partition_key_range else dict(metadata)
        return dg.MaterializeResult(key, metadata=plain)

    def _check(self, table: TableId, error: MssqlCdcError | None, key: str) -> dg.AssetCheckResult:
        values = {"partition": key, "error": f"{type(error).__name__}: {error}" if error else None}
        return dg.AssetCheckResult(
            passed=error is None,
            asset_key=self.setup.names.log_key(table),
            check_name=CHECK,
            severity=dg.AssetCheckSeverity.ERROR,
            metadata=event_metadata(values),
        )


def _merged_metadata(result: CurrentResult) -> Mapping[str, Any]:
    return event_metadata({"merged_rows": result.rows, "delta_version": result.delta_version, "batch": result.batch})
