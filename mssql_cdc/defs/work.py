"""The work of one run on one database, delegated to `run/`; `report.py` decides how Dagster shows the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.range import TableOutcome
from mssql_cdc.capture.snapshot.progress import Progress
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.defs.background import Background
from mssql_cdc.defs.setup import Setup
from mssql_cdc.lsn import LsnRange
from mssql_cdc.plan.decisions import Merge, Range, Snapshot
from mssql_cdc.plan.facts import Member
from mssql_cdc.run.execute import Done, execute
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.requested import read_range
from mssql_cdc.schema import TableId


@dataclass(frozen=True, slots=True)
class RangeDone:
    """The combined result of a range; it has several parts if a table switched its capture instance within it."""

    results: Sequence[Done]

    @property
    def seen(self) -> Survey:
        """The survey before the last part of the range."""
        return self.results[-1].seen

    @property
    def read(self) -> bool:
        """Whether anything was read or advanced."""
        return any(done.range is not None for done in self.results)

    @property
    def complete(self) -> bool:
        """Whether the range's end is now a complete cut."""
        last = self.results[-1].range
        return last is not None and last.row is not None and last.row.complete

    @property
    def transactions(self) -> int:
        """The number of transactions in the range."""
        return sum(done.transactions for done in self.results)

    @property
    def tables(self) -> list[TableId]:
        """The tables that were read."""
        return list(dict.fromkeys(table for done in self.results if done.range for table in done.range.tables))

    def outcome(self, table: TableId) -> TableOutcome | None:
        """Return the result of a table over all parts, or None if nothing was read from it."""
        parts = [done.range.tables[table] for done in self.results if done.range and table in done.range.tables]
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
        """Return the table's state before the read."""
        return self.seen.member(table)

    def moved(self, table: TableId) -> bool:
        """Whether the table had nothing to read and only its position was advanced."""
        decisions = (done.decision for done in self.results)
        return any(isinstance(decision, Range) and table in decision.idle for decision in decisions)


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one run on one database, outside Dagster's main thread.

    A run `by_sensor` also processes tables that the loaded table list does not contain yet; an operator's run retries
    tables with status `failed`. `signal` is the signal that requested the run's snapshot.
    """

    setup: Setup
    database: Database
    background: Background
    by_sensor: bool
    signal: str | None = None

    def range(self, key: str, tables: Collection[TableId]) -> RangeDone:
        """Read the unread rest of the range for these tables."""

        def choose(seen: Survey) -> Collection[TableId]:
            return {*tables, *(self.unloaded(seen) if self.by_sensor else ())}

        read = self.background.run(lambda: read_range(self.database, key, choose, retry_failed=not self.by_sensor))
        return RangeDone(read)

    def snapshot(self, key: str, tables: Collection[TableId], progress: Callable[[Progress], None]) -> Done:
        """Start or resume the snapshot of these tables.

        Args:
            key: The snapshot's partition key.
            tables: The tables that the run selected.
            progress: Called with the progress after every group of chunks.
        """

        def take() -> Done:
            seen = survey(self.database, currents=False)
            more = [t for t in self.unloaded(seen) if self.by_sensor and _belongs(seen, t, key)]
            decision = Snapshot(key, (*tables, *more), signal=self.signal, by_hand=not self.by_sensor)
            return execute(self.database, seen, decision, progress=progress)

        return self.background.run(take)

    def merge(self, tables: Collection[TableId]) -> Done:
        """Merge these tables' current tables up to the last complete cut, whether due or not."""

        def merge() -> Done:
            seen = survey(self.database)
            return execute(self.database, seen, Merge(tuple(tables), seen.facts.cut_number, "requested"))

        return self.background.run(merge)

    def follower(self) -> Follower:
        """Return a follower for this run; separate runs take snapshots."""
        return Follower(self.database, snapshots=False)

    def unloaded(self, seen: Survey) -> list[TableId]:
        """Return the captured tables that the loaded table list does not contain."""
        return [member.table for member in seen.facts.members if member.table not in self.setup.names.tables]


def _belongs(seen: Survey, table: TableId, key: str) -> bool:
    """Whether a table that the code location does not know belongs to the snapshot that the sensor requested."""
    member = seen.member(table)
    if member is None:
        return False
    repaired = member.status == "lost" and seen.facts.policy.on_data_error
    return member.status == "new" or repaired or (member.status == "snapshot" and member.snapshot == key)


def range_keys(keys: Iterable[str]) -> list[str]:
    """Return the range keys ordered by their ends; the UI lists partitions in insertion order."""
    return sorted(keys, key=lambda key: (LsnRange.parse(key).epoch, LsnRange.parse(key).to))
