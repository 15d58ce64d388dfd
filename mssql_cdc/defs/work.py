"""What a step does with one partition key, in terms of `stream/` and `snapshot/`; returns their results untouched.

How results look in Dagster is decided in `report.py`. Blocking calls run beside the main thread (`background.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from mssql_cdc.capture.context import Database
from mssql_cdc.defs.background import Background
from mssql_cdc.defs.setup import Setup
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lsn import LsnRange
from mssql_cdc.schema import TableId
from mssql_cdc.snapshot import capture as snapshots
from mssql_cdc.snapshot.capture import Progress, SnapshotResult
from mssql_cdc.stream.after import Merged, count_transactions, merge_current, take_signals
from mssql_cdc.stream.capture import RangeResult, capture
from mssql_cdc.stream.decisions import Range
from mssql_cdc.stream.gather import Survey, survey
from mssql_cdc.stream.plan import plan
from mssql_cdc.stream.requested import requested
from mssql_cdc.stream.sweep import sweep_due


@dataclass(frozen=True, slots=True)
class RangeDone:
    """A range as it was done: `result` is None when every table had been there before."""

    seen: Survey
    result: RangeResult | None
    merged: Merged = field(default_factory=Merged)
    transactions: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one run on one database."""

    setup: Setup
    database: Database
    background: Background
    by_operator: bool

    def range(self, key: str, tables: Collection[TableId]) -> RangeDone:
        """Reads what is left of the range for these tables, then everything that follows a complete cut."""
        return self.background.run(lambda: self._range(key, tables))

    def snapshot(self, key: str, tables: Collection[TableId], progress: Callable[[Progress], None]) -> SnapshotResult:
        """Begins the snapshot of these tables, or goes on with it."""
        return self.background.run(lambda: self._snapshot(key, tables, progress))

    def merge_now(self, tables: Collection[TableId]) -> Merged:
        """Brings these tables' current tables to the last complete cut, due or not."""
        return self.background.run(lambda: self._merge_now(tables))

    def next_key(self) -> str | None:
        """The key of the range that the planner would ask for now, if any."""
        decision = plan(self.background.run(lambda: survey(self.database)).facts)
        return decision.key if isinstance(decision, Range) else None

    def _range(self, key: str, tables: Collection[TableId]) -> RangeDone:
        # A person who asks for a table that was given up wants it tried again; the sensor does not.
        seen = survey(self.database, retry_failed=self.by_operator)
        decision = requested(seen.facts, key, tables)
        if decision is None:
            merged = merge_current(self.database, seen.members, seen.offsets)
            return RangeDone(seen, None, merged)
        result = capture(self.database, seen, decision)
        take_signals(self.database, seen, result.offsets)
        transactions = count_transactions(self.database, result.offsets, seen.members)
        merged = merge_current(self.database, seen.members, result.offsets)
        sweep_due(self.database, seen.members, result.offsets)
        return RangeDone(seen, result, merged, transactions)

    def _snapshot(self, key: str, tables: Collection[TableId], progress: Callable[[Progress], None]) -> SnapshotResult:
        seen = survey(self.database)
        known = {member.table for member in seen.facts.members}
        gone = [table.text for table in tables if table not in known]
        if gone:
            raise ConfigurationError(
                f"{', '.join(sorted(gone))} cannot be snapshotted: the source no longer captures them. "
                "Run `mssql-cdc discover` and reload the code location"
            )
        signal = next((asked.signal for asked in seen.facts.asked if asked.key == key), None)
        data = [table for table in tables if self._has_data(seen, table)]
        bare = [table for table in tables if table not in data]
        if bare:
            snapshots.take_positions(self.database, bare, id_=key, epoch=seen.facts.epoch)
        if not data:
            return SnapshotResult(key, dict.fromkeys(bare, 0), {})
        done = snapshots.capture(self.database, data, id_=key, epoch=seen.facts.epoch, signal=signal, progress=progress)
        return SnapshotResult(key, {**dict.fromkeys(bare, 0), **done.rows}, done.failed)

    def _has_data(self, seen: Survey, table: TableId) -> bool:
        """Whether rows are read: not the signal table's (SNP-27), of new tables only as the mode says (SNP-05, -25)."""
        name = (table.catalog or "", table.schema, table.name)
        if self.setup.connector.filters.tables.is_signal_table(*name):
            return False
        member = next(member for member in seen.facts.members if member.table == table)
        return member.status != "new" or (
            seen.facts.policy.data and self.setup.connector.snapshot.collections.matches(*name)
        )

    def _merge_now(self, tables: Collection[TableId]) -> Merged:
        seen = survey(self.database)
        members = {table: member for table, member in seen.members.items() if table in tables}
        return merge_current(self.database, members, seen.offsets, due_only=False)


def range_keys(keys: Iterable[str]) -> list[str]:
    """Range keys in the order of their ends; the UI lists partitions in insertion order."""
    return sorted(keys, key=lambda key: (LsnRange.parse(key).epoch, LsnRange.parse(key).to))
