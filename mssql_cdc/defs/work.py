"""What a step does with one partition key, in terms of `run/`; returns their results untouched.

How results look in Dagster is decided in `report.py`. Blocking calls run beside the main thread (`background.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.range import RangeResult, TableOutcome, capture
from mssql_cdc.capture.snapshot.run import Progress
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.defs.background import Background
from mssql_cdc.defs.setup import Setup
from mssql_cdc.follow.after import Merged, merge_current
from mssql_cdc.follow.sweeps import sweep_due
from mssql_cdc.lsn import LsnRange
from mssql_cdc.plan.decisions import Range
from mssql_cdc.plan.facts import Member
from mssql_cdc.plan.planner import plan
from mssql_cdc.plan.requested import requested
from mssql_cdc.run.quiet_look import quiet_look
from mssql_cdc.run.steps import Asked, Followed, SnapshotDone, follow, take_snapshot
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class RangeDone:
    """A range as it was done: no results when every table had been there before, several at an instance switch."""

    seen: Survey
    results: Sequence[RangeResult] = ()

    @property
    def complete(self) -> bool:
        """Whether the range's end is a complete cut now."""
        return bool(self.results and self.results[-1].row and self.results[-1].row.complete)

    @property
    def tables(self) -> list[TableId]:
        """The tables that were read."""
        return list(dict.fromkeys(table for result in self.results for table in result.tables))

    def outcome(self, table: TableId) -> TableOutcome | None:
        """What was done for a table, all parts together; None when nothing was read of it."""
        parts = [result.tables[table] for result in self.results if table in result.tables]
        if not parts:
            return None
        operations: Counter[str] = Counter()
        for part in parts:
            operations.update(part.operations)
        return replace(
            parts[-1],
            slice=replace(parts[-1].slice, from_=parts[0].slice.from_),
            rows=sum(part.rows for part in parts),
            operations=dict(operations),
            first=next((part.first for part in parts if part.first), None),
        )

    def member(self, table: TableId) -> Member | None:
        """How the table stood before it was read."""
        return next((member for member in self.seen.facts.members if member.table == table), None)

    def moved(self, table: TableId) -> bool:
        """Whether the table had nothing to read and was only taken along."""
        return any(table in result.decision.idle for result in self.results)


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one run on one database.

    `by_sensor` runs also carry tables which the loaded list does not know yet; an operator's run tries again what was
    given up. `signal` is the signal that asked for the run's snapshot.
    """

    setup: Setup
    database: Database
    background: Background
    by_sensor: bool
    signal: str | None = None

    def range(self, key: str, tables: Collection[TableId]) -> RangeDone:
        """Reads what is left of the range for these tables into their change logs."""
        return self.background.run(lambda: self._range(key, tables))

    def follow(self, done: RangeDone) -> Followed:
        """What follows a range: signals, transactions, current tables, sweeps."""
        return self.background.run(lambda: self._follow(done))

    def snapshot(self, key: str, tables: Collection[TableId], progress: Callable[[Progress], None]) -> SnapshotDone:
        """Begins the snapshot of these tables, or goes on with it."""
        return self.background.run(lambda: self._snapshot(key, tables, progress))

    def merge_now(self, tables: Collection[TableId]) -> Merged:
        """Brings these tables' current tables to the last complete cut, due or not."""
        return self.background.run(lambda: self._merge_now(tables))

    def further(self) -> tuple[str, RangeDone] | None:
        """The range that the planner asks for now, read; None when there is none."""
        return self.background.run(self._further)

    def unloaded(self, seen: Survey) -> list[TableId]:
        """Captured tables that the loaded table list does not know."""
        return [member.table for member in seen.facts.members if member.table not in self.setup.names.tables]

    def _range(self, key: str, tables: Collection[TableId]) -> RangeDone:
        # A person who asks for a table that was given up wants it tried again; the sensor does not.
        seen = survey(self.database, retry_failed=not self.by_sensor)
        wanted = {*tables, *(self.unloaded(seen) if self.by_sensor else ())}
        results: list[RangeResult] = []
        decision = requested(seen.facts, key, wanted)
        while decision is not None:
            results.append(capture(self.database, seen, decision))
            if results[-1].failed or decision.range.to >= LsnRange.parse(key).to:
                break
            # A table changed its capture instance inside the range (rule B14): the rest of it comes now.
            seen = survey(self.database, retry_failed=not self.by_sensor)
            decision = requested(seen.facts, key, wanted)
        return RangeDone(seen, results)

    def _further(self) -> tuple[str, RangeDone] | None:
        wait, _ = quiet_look(self.database)
        if wait is not None:
            return None
        seen = survey(self.database)
        decision = plan(seen.facts)
        if not isinstance(decision, Range):
            return None
        return decision.key, RangeDone(seen, [capture(self.database, seen, decision)])

    def _follow(self, done: RangeDone) -> Followed:
        offsets = done.results[-1].offsets if done.results else done.seen.offsets
        return follow(self.database, done.seen, offsets, ranged=bool(done.results))

    def _snapshot(self, key: str, tables: Collection[TableId], progress: Callable[[Progress], None]) -> SnapshotDone:
        seen = survey(self.database)
        members = {member.table: member for member in seen.facts.members}
        more = [t for t in self.unloaded(seen) if self.by_sensor and _belongs(seen, members[t], key)]
        asked = Asked(key, [*tables, *more], self.signal, by_hand=not self.by_sensor)
        return take_snapshot(self.database, seen, asked, progress)

    def _merge_now(self, tables: Collection[TableId]) -> Merged:
        seen = survey(self.database)
        members = {table: member for table, member in seen.members.items() if table in tables}
        merged = merge_current(self.database, members, seen.offsets, due_only=False)
        sweep_due(self.database, members, seen.offsets)
        return merged


def _belongs(seen: Survey, member: Member, key: str) -> bool:
    """Whether a table that the code location does not know belongs to the snapshot that the sensor asked for."""
    repaired = member.status == "lost" and seen.facts.policy.on_data_error
    return member.status == "new" or repaired or (member.status == "snapshot" and member.snapshot == key)


def range_keys(keys: Iterable[str]) -> list[str]:
    """Range keys in the order of their ends; the UI lists partitions in insertion order."""
    return sorted(keys, key=lambda key: (LsnRange.parse(key).epoch, LsnRange.parse(key).to))
