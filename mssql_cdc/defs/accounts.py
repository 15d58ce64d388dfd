"""What a run knows about its tables: the rows of each window, the windows to report, the state of the current table.

`book.py` decides what is reported when; `asset_events.py` writes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.capture.range import TableOutcome
from mssql_cdc.defs.asset_events import COMPLETE
from mssql_cdc.defs.setup import Setup
from mssql_cdc.lake.commit_counts import count_by_window
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.read import BatchSlice, Commits
from mssql_cdc.run.execute import Done
from mssql_cdc.run.metrics import range_metrics
from mssql_cdc.schema import TableId


@dataclass
class Account:
    """What is known about one table.

    Attributes:
        home: Its tables in the lake.
        batch: The newest Delta commit of the change log that is counted.
        counts: The rows of windows by operation.
        due: The windows to report.
        owed: The windows to report that were not reported before the run began; they can wait.
        open: The windows that were reported while they could still get rows.
        metrics: The metrics of the newest range with rows.
        newest: The commit time of the newest row that was read, even in a range that another table could not finish;
            for rows that another run has read, the start of their window.
        begun: When the change log was created.
        as_of: The commit time up to which the current table has every change.
        merged: The result of the last merge.
    """

    home: TableHome
    batch: int = 0
    counts: dict[datetime, Counter[str]] = field(default_factory=dict[datetime, "Counter[str]"])
    due: set[datetime] = field(default_factory=set[datetime])
    owed: set[datetime] = field(default_factory=set[datetime])
    open: set[datetime] = field(default_factory=set[datetime])
    metrics: dict[str, Any] = field(default_factory=dict[str, Any])
    newest: datetime | None = None
    begun: datetime | None = None
    as_of: datetime | None = None
    merged: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Owed:
    """The windows that a run has to report for a table when it begins.

    Attributes:
        missing: Those that were never reported; until they are, the next run finds the same.
        unfinished: The newest ones that were, but not after their end: they may show too few rows.
    """

    missing: frozenset[datetime] = frozenset()
    unfinished: frozenset[datetime] = frozenset()


NOTHING_OWED = Owed()


@dataclass
class Accounts:
    """The accounts of a run's tables.

    Attributes:
        setup: The database.
        database: Where the lake is.
        tables: The account of each table that streams.
    """

    setup: Setup
    database: Database
    tables: dict[TableId, Account] = field(default_factory=dict[TableId, Account])
    _behind: set[TableId] = field(default_factory=set[TableId])

    def take_in(self, table: TableId, lake: LakeTable, owed: Owed) -> None:
        """Open the table's account, or count what another run has committed since.

        Args:
            table: The table.
            lake: Its state in the lake.
            owed: The windows to report when the account is opened.
        """
        batch = lake.state.batch if lake.state is not None else 0
        if not lake.loaded and lake.entry is not None:
            batch = lake.entry.batch or 0
        account = self.tables.get(table)
        if account is None:
            account = self.tables[table] = Account(lake.home, batch, due=set(owed.unfinished), owed=set(owed.missing))
        elif account.home != lake.home:  # Another table has the name now: what was reported is about the former one.
            account = self.tables[table] = Account(lake.home, batch, due=account.due | account.open, owed=account.owed)
        elif batch > account.batch:
            found = self._counted(account, batches=BatchSlice(account.batch, batch))
            self._add(account, found, batch)
            account.newest = max([*found, *([account.newest] if account.newest else [])], default=None)
        if account.begun is None and lake.state is not None:
            account.begun = datetime.fromtimestamp(lake.state.created / 1000, UTC)

    def count(self, table: TableId, outcome: TableOutcome) -> None:
        """Add a range's rows to their windows, by commit time."""
        account, state = self.tables.get(table), outcome.state
        if account is None or state is None:
            return
        account.metrics = range_metrics(outcome)
        account.newest = datetime.fromisoformat(outcome.last) if outcome.last else account.newest
        if state.batch <= account.batch:
            return  # The change log was counted after this commit.
        first, last = (datetime.fromisoformat(text) for text in (outcome.first, outcome.last) if text)
        start = self.setup.windows.start(first)
        found: Mapping[datetime, Counter[str]] = {start: Counter(outcome.operations)}
        if start != self.setup.windows.start(last) or state.batch != account.batch + 1:
            found = self._counted(account, batches=BatchSlice(account.batch, state.batch))
        self._add(account, found, state.batch)

    def merged(self, done: Done, *, idle: bool, through: datetime | None, now: datetime) -> None:
        """Note up to which commit time each current table has every change.

        Args:
            done: The result of a step.
            idle: Nothing is left to read.
            through: The commit time up to which everything was read.
            now: The current time.
        """
        outcomes: Mapping[TableId, TableOutcome] = done.range.tables if done.range is not None else {}
        changed = {table for table, outcome in outcomes.items() if outcome.rows}
        self._behind |= {*done.seen.facts.behind, *changed}
        self._behind -= set(done.merged.tables)
        if idle and not done.seen.facts.behind:
            self._behind.clear()
        for table, result in done.merged.tables.items():
            if table in self.tables:
                account = self.tables[table]
                account.merged = {"merged_rows": result.rows, "delta_version": result.delta_version}
                account.due.add(self.setup.windows.start(now))
        complete = done.range is None or (done.range.row is not None and done.range.row.complete)
        for table, account in self.tables.items():
            if complete and table not in self._behind:
                account.as_of = through

    def load_missing(self, account: Account, windows: Sequence[datetime]) -> None:
        """Count the windows that are not in memory, all in one read."""
        missing = [window for window in windows if window not in account.counts]
        if not missing:
            return
        commits = Commits(missing[0], missing[-1] + self.setup.windows.length)
        found = self._counted(account, commits=commits, batches=BatchSlice(0, account.batch))
        account.counts |= {window: Counter(found.get(window, {})) for window in missing}

    def add_due(self, windows: Iterable[datetime]) -> None:
        """Make these windows of every table due."""
        found = set(windows)
        for account in self.tables.values():
            account.due |= found

    def _add(self, account: Account, found: Mapping[datetime, Counter[str]], batch: int) -> None:
        account.batch = batch
        for window, counts in found.items():
            if window in account.counts:
                account.counts[window] += counts
            account.due.add(window)  # A window that is not in memory is counted from the lake when it is reported.

    def _counted(self, account: Account, **what: Any) -> Mapping[datetime, Counter[str]]:
        length = self.setup.windows.length
        return count_by_window(account.home.changes, length, storage=self.database.storage, **what)


def owed_windows(
    setup: Setup, instance: dg.DagsterInstance, tables: Collection[TableId], now: datetime
) -> Mapping[TableId, Owed]:
    """Return the windows of each table that are missing, and the newest ones that were not reported after their end.

    All tables have the same windows: their keys are listed once, without Dagster, which runs croniter for each.

    Args:
        setup: The database.
        instance: The instance that has the earlier events.
        tables: The tables.
        now: The current time.
    """
    windows = setup.windows
    keys = {windows.key(one): one for one in windows.between(windows.since, now)} if tables else {}
    owed: dict[TableId, Owed] = {}
    for table in tables:
        key = setup.names.log_key(table)
        reported = instance.get_materialized_partitions(key)
        missing = frozenset(at for name, at in keys.items() if name not in reported)
        told = [name for name in reversed(keys) if name in reported]
        owed[table] = Owed(missing, frozenset(keys[name] for name in _unfinished(instance, key, told)))
    return owed


def _unfinished(instance: dg.DagsterInstance, key: dg.AssetKey, told: Iterable[str]) -> Iterator[str]:
    """Yield the newest of these windows, as long as each was last reported before its end.

    While capture is behind, there are several. What has since been reported about older ones does not matter.
    """
    for window in told:
        found = instance.fetch_materializations(dg.AssetRecordsFilter(key, asset_partitions=[window]), limit=1).records
        event = found[0].asset_materialization if found else None
        complete = event.metadata.get(COMPLETE) if event is not None else None
        if complete is not None and complete.value:
            return
        yield window
        if complete is None:
            return  # It predates this metadata: nothing is known about older ones either.
