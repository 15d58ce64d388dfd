"""What a run reports about its tables, and when: windows of change logs with their counts, current tables, checks.

The functions run in the recorder's thread. A table's window is reported again when it has changed, at most every
`max(60 s, changed tables x 1 s)`; every table is reported when the run begins, when a window begins and when it ends.
A window that was not read yet is not reported: Dagster then shows it as missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import dagster as dg

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.capture.range import TableOutcome
from mssql_cdc.capture.survey import DEFAULT_RETENTION, RETENTION_SHARE, Survey
from mssql_cdc.defs.metadata import event_metadata, source_columns
from mssql_cdc.defs.recorder import Event
from mssql_cdc.defs.report import ACKNOWLEDGE, evaluation
from mssql_cdc.defs.setup import Setup
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.commit_counts import count_by_window
from mssql_cdc.lake.gaps import Gap, open_gaps
from mssql_cdc.lake.layout import TableHome
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import BatchSlice, Commits, row_count
from mssql_cdc.lake.steps import Entry
from mssql_cdc.plan.decisions import Wait
from mssql_cdc.run.execute import Done
from mssql_cdc.run.metrics import range_metrics
from mssql_cdc.schema import TableId

REPORT_SECONDS = 60.0
SETTLING = timedelta(minutes=2)
"""A source that captures nothing new for so long has captured everything before: capture scans at least that often."""
LATE = timedelta(minutes=5)
NOT_YET = "not captured yet"
COMPLETE = "mssql_cdc/complete"
STRUCTURE = "mssql_cdc/structure"
_ERROR = dg.AssetCheckSeverity.ERROR


class Writer(Protocol):
    """Where the events go (`recorder.py`)."""

    @property
    def instance(self) -> dg.DagsterInstance:
        """The instance that has the earlier events."""
        ...

    def write(self, event: Event, *, of_run: bool = True) -> None:
        """Store an event."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of a table's check."""

    passed: bool
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
    problem: str | None = None
    what_to_do: str | None = None


@dataclass
class Account:
    """What is known of one table.

    Attributes:
        home: Its tables in the lake.
        batch: The newest Delta commit of the change log that is counted.
        counts: The rows of windows by operation.
        due: The windows to report.
        open: The windows that were reported while they could still get rows.
        metrics: The metrics of the newest range with rows.
        newest: The commit time of the newest row that was read, also in a range that another table could not finish.
        begun: When the change log was created.
        as_of: The commit time up to which the current table has every change.
        merged: The result of the last merge.
    """

    home: TableHome
    batch: int = 0
    counts: dict[datetime, Counter[str]] = field(default_factory=dict[datetime, "Counter[str]"])
    due: set[datetime] = field(default_factory=set[datetime])
    open: set[datetime] = field(default_factory=set[datetime])
    metrics: dict[str, Any] = field(default_factory=dict[str, Any])
    newest: datetime | None = None
    begun: datetime | None = None
    as_of: datetime | None = None
    merged: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class Book:
    """The accounts of a run.

    Attributes:
        setup: The database.
        database: Where the lake is.
        recorder: Writes the events.
        only: The tables that an operator selected; None: all tables.
        bound: The end of the windows that an operator selected: nothing is said about the time after it.
        attempt: The number of the attempt, if it is not the first one.
        clock: The current time.
    """

    setup: Setup
    database: Database
    recorder: Writer
    only: Collection[TableId] | None = None
    bound: datetime | None = None
    attempt: int | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    accounts: dict[TableId, Account] = field(default_factory=dict[TableId, Account])
    offsets: Offsets | None = None
    through: datetime | None = None
    idle: bool = False
    late: str | None = None
    retention: timedelta = DEFAULT_RETENTION
    transactions: int = 0
    gaps: Mapping[str, Sequence[Gap]] = field(default_factory=dict[str, Sequence[Gap]])
    errors: dict[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    _verdicts: dict[TableId, Verdict] = field(default_factory=dict[TableId, Verdict])
    _window: datetime | None = None
    _reported: datetime | None = None
    _beaten: datetime | None = None
    _structures: dict[TableId, str] = field(default_factory=dict[TableId, str])
    _behind: set[TableId] = field(default_factory=set[TableId])

    # -- What happened -----------------------------------------------------------------------------------------

    def add(self, done: Done) -> None:
        """Take over the result of a step."""
        self.offsets = done.offsets
        read = _outcomes(done)
        self.errors = {table: error for table, error in self.errors.items() if table not in read} | done.failed
        self.retention = done.seen.facts.limits.idle_advance * RETENTION_SHARE
        self.transactions += done.transactions
        if done.gaps or self._reported is None:
            self._load_gaps()
        self._advance(done)
        self._open_accounts(done.seen)
        if self.only is None:
            self._report_sources(done)
        for table, outcome in read.items():
            if outcome.rows and outcome.error is None and self._wanted(table):
                self._count(table, outcome)
        self._merged(done)
        self._judge_all()

    def reached(self) -> None:
        """Note that an operator's run has read everything that was committed in the windows that it selected."""
        now = self.clock()
        self.idle = self.bound is None or self.bound > now
        self._read_through(now - SETTLING if self.idle else self.bound)

    def unavailable(self, error: MssqlCdcError | None) -> None:
        """Note that the source does not answer; None: it does."""
        if error is not None:
            self.late = self.setup.connector.redact(f"the source does not answer: {error}")
            self._judge_all()

    def _advance(self, done: Done) -> None:
        """Move the commit time up to which everything was read."""
        decision, now = done.decision, self.clock()
        self.idle = isinstance(decision, Wait) and not decision.alarm and decision.until is None
        self.late = decision.reason if isinstance(decision, Wait) and decision.alarm else None
        if self.idle:
            self._read_through(now - SETTLING)
        elif done.range is not None and done.range.row is not None and done.range.row.complete:
            ends = [outcome.last for outcome in done.range.tables.values() if outcome.last]
            self._read_through(max(map(datetime.fromisoformat, ends), default=None))

    def _read_through(self, at: datetime | None) -> None:
        if at is None:
            return
        at = min(at, self.bound or at)
        if self.through is None or at > self.through:
            self.through = at

    def _open_accounts(self, seen: Survey) -> None:
        for table, lake in seen.tables.items():
            if not self._wanted(table) or not self._streams(table):
                continue
            batch = lake.state.batch if lake.state is not None else 0
            account = self.accounts.get(table)
            if account is None:
                self.accounts[table] = self._opened(table, lake, batch)
            elif batch > account.batch:
                self._add(account, self._counted(account, batches=BatchSlice(account.batch, batch)), batch)

    def _opened(self, table: TableId, lake: LakeTable, batch: int) -> Account:
        """Return the account of a table with the windows that Dagster does not show yet."""
        account = Account(lake.home, batch)
        if lake.state is not None:
            account.begun = datetime.fromtimestamp(lake.state.table.metadata().created_time / 1000, UTC)
        if self.only is None:
            account.due |= self._owed(table)
        return account

    def _owed(self, table: TableId) -> set[datetime]:
        """The windows that are missing, and the newest one unless it was reported after its end."""
        windows, key = self.setup.windows, self.setup.names.log_key(table)
        reported = self.recorder.instance.get_materialized_partitions(key)
        owed = {one for one in windows.between(windows.since, self.clock()) if windows.key(one) not in reported}
        event = self.recorder.instance.get_latest_materialization_event(key)
        newest = event.asset_materialization if event is not None else None
        if newest is not None and newest.partition in reported:
            complete = newest.metadata.get(COMPLETE)
            with_end = complete is not None and bool(complete.value)
            known = newest.partition in windows.definition.get_partition_keys(current_time=self.clock())
            if known and not with_end:
                owed.add(windows.parse(newest.partition))
        return owed

    def _report_sources(self, done: Done) -> None:
        """Report a source table when it is first seen, and when its structure has changed."""
        for table, lake in done.seen.tables.items():
            newest, instances = done.history.newest(table), [one.name for one in lake.captured.instances]
            structure = f"version {newest.version if newest is not None else 1}, {', '.join(instances)}"
            if self._structures.get(table) == structure:
                continue
            key = self.setup.names.source_key(table)
            event = self.recorder.instance.get_latest_materialization_event(key)
            last = event.asset_materialization if event is not None else None
            known = last is not None and last.metadata.get(STRUCTURE) == dg.MetadataValue.text(structure)
            if not known:
                columns = source_columns(newest or lake.captured.newest.schema)
                values = {"structure": structure, "dagster/column_schema": dg.MetadataValue.table_schema(columns)}
                self.recorder.write(dg.AssetMaterialization(key, metadata=event_metadata(values)), of_run=False)
            self._structures[table] = structure

    def _count(self, table: TableId, outcome: TableOutcome) -> None:
        """Add a range's rows to their windows, by commit time."""
        account, state = self.accounts.get(table), outcome.state
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

    def _add(self, account: Account, found: Mapping[datetime, Counter[str]], batch: int) -> None:
        account.batch = batch
        for window, counts in found.items():
            if window in account.counts:
                account.counts[window] += counts
            account.due.add(window)  # A window that is not in memory is counted from the lake when it is reported.

    def _counted(self, account: Account, **what: Any) -> Mapping[datetime, Counter[str]]:
        length = self.setup.windows.length
        return count_by_window(account.home.changes, length, storage=self.database.storage, **what)

    def _merged(self, done: Done) -> None:
        """Note up to which commit time each current table has every change."""
        changed = {table for table, outcome in _outcomes(done).items() if outcome.rows}
        self._behind |= {*done.seen.facts.behind, *changed}
        self._behind -= set(done.merged.tables)
        if self.idle and not done.seen.facts.behind:
            self._behind.clear()
        for table, result in done.merged.tables.items():
            if table in self.accounts:
                account = self.accounts[table]
                account.merged = {"merged_rows": result.rows, "delta_version": result.delta_version}
                account.due.add(self.setup.windows.start(self.clock()))
        complete = done.range is None or (done.range.row is not None and done.range.row.complete)
        for table, account in self.accounts.items():
            if complete and table not in self._behind:
                account.as_of = self.through

    # -- What is written -----------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Report what is due now."""
        now = self.clock()
        if self.offsets is None:
            return
        urgent = self._turn_windows(now)
        changed = sum(bool(account.due) for account in self.accounts.values())
        wait = timedelta(seconds=max(REPORT_SECONDS, float(changed)))
        if urgent or self._reported is None or now - self._reported >= wait:
            self._reported = now
            self._load_gaps()
            self._judge_all()
            self.report()
        if self.late is None and (self._beaten is None or (now - self._beaten).total_seconds() >= REPORT_SECONDS):
            self._beaten = now
            self.heartbeat()

    def _turn_windows(self, now: datetime) -> bool:
        """Let every table be reported when a window begins, and when it ends; whether one did."""
        window, turned = self.setup.windows.start(now), False
        if self._window != window and (self.idle or (self.through is not None and self.through >= window)):
            turned, self._window = True, window
            for account in self.accounts.values():
                account.due.add(window)
        for table, account in self.accounts.items():
            ended = {one for one in account.open if self._has_ended(one)}
            if ended and self._streams(table):
                turned = True
                account.due |= ended
        return turned

    def _has_ended(self, window: datetime) -> bool:
        return self.through is not None and window + self.setup.windows.length <= self.through

    def report(self) -> None:
        """Report the windows that are due and were read, and their current tables."""
        for table, account in self.accounts.items():
            if not self._streams(table):
                continue
            now = self.setup.windows.start(self.clock())
            written = [window for window in sorted(account.due) if self._is_read(account, window, now)]
            self._load_missing(account, written)
            for window in written:
                self._log(table, account, window)
            if written:
                self._current(table, account)

    def selected(self, windows: Iterable[datetime], *, read: bool) -> None:
        """Report the windows that an operator chose, as far as they were read.

        Args:
            windows: The starts of the windows.
            read: Whether the run read anything.
        """
        for account in self.accounts.values():
            account.due |= set(windows)
            if not read:
                account.metrics["note"] = "nothing to read"
        self._load_gaps()
        self._judge_all()
        self.report()

    def currents(self) -> None:
        """Report the current tables only."""
        for table, account in self.accounts.items():
            self._current(table, account)

    def finish(self) -> None:
        """Report what is still due at the end of the run."""
        if self.offsets is not None:
            self._reported = None
            self.turn()

    def heartbeat(self, window: datetime | None = None) -> None:
        """Report the transactions, also when there are none; by default for the current window."""
        enabled = self.setup.connector.records.transaction_metadata
        values = {
            "dagster/partition_row_count": self.transactions,
            "as_of": self.through,
            "lag_seconds": self._lag(self.through),
            "note": None if enabled else "provide.transaction.metadata is false: nothing is written",
        }
        key, partition = self.setup.transactions_key, self.setup.windows.key(window or self.clock())
        self.recorder.write(dg.AssetMaterialization(key, partition=partition, metadata=event_metadata(values)))

    def _is_read(self, account: Account, window: datetime, now: datetime) -> bool:
        """Whether the window was read to its end, or, if it is the current one, up to now."""
        if window != now:
            return self._has_ended(window)
        return self.idle or any(at is not None and at >= window for at in (self.through, account.newest))

    def _load_missing(self, account: Account, windows: Sequence[datetime]) -> None:
        """Count the windows that are not in memory, all in one read."""
        missing = [window for window in windows if window not in account.counts]
        if not missing:
            return
        commits = Commits(missing[0], missing[-1] + self.setup.windows.length)
        found = self._counted(account, commits=commits, batches=BatchSlice(0, account.batch))
        account.counts |= {window: Counter(found.get(window, {})) for window in missing}

    def _log(self, table: TableId, account: Account, window: datetime) -> None:
        complete, counts = self._has_ended(window), account.counts.get(window, Counter[str]())
        values: dict[str, Any] = {name: value for name, value in account.metrics.items() if name != "rows"}
        before = account.begun is not None and window + self.setup.windows.length <= account.begun
        values |= {
            "dagster/partition_row_count": counts.total(),
            "inserts": counts["c"],
            "updates": counts["u"],
            "deletes": counts["d"],
            "reads": counts["r"] or None,
            "to_lsn": self._entry(table).to,
            "as_of": self.through,
            "lag_seconds": self._lag(self.through),
            "attempt": self.attempt,
            "open_gaps": len(self.gaps.get(table.text, ())) or None,
            "complete": complete,
            "note": NOT_YET if before and not counts else account.metrics.get("note"),
        }
        key, partition = self.setup.names.log_key(table), self.setup.windows.key(window)
        self.recorder.write(dg.AssetMaterialization(key, partition=partition, metadata=event_metadata(values)))
        account.due.discard(window)
        if complete:
            if window in account.open:
                self._evaluate(table, self._verdict(table), window)
            account.open.discard(window)
            if window < self.setup.windows.start(self.clock()):
                account.counts.pop(window, None)
        else:
            account.open.add(window)

    def _current(self, table: TableId, account: Account) -> None:
        rows = row_count(account.home.current, self.database.storage)
        if rows is None:
            return  # The table has no key, or its first merge is still to come.
        values = {
            "dagster/row_count": rows,
            "as_of": account.as_of,
            "lag_seconds": self._lag(account.as_of),
            **account.merged,
        }
        key = self.setup.names.current_key(table)
        self.recorder.write(dg.AssetMaterialization(key, metadata=event_metadata(values)))

    def _lag(self, as_of: datetime | None) -> float | None:
        """The age of the newest change that was read, in seconds; 0 when there is nothing newer."""
        if as_of is None:
            return None
        caught_up = self.idle and as_of == self.through
        return 0.0 if caught_up else max(round((self.clock() - as_of).total_seconds(), 3), 0.0)

    # -- Checks ----------------------------------------------------------------------------------------------------

    def _judge_all(self) -> None:
        """Evaluate the checks whose verdict has changed."""
        for table in self.setup.names.tables:
            if self.offsets is None or self.offsets.entry(table.text) is None or not self._wanted(table):
                continue
            verdict = self._verdict(table)
            if self._verdicts.get(table) != verdict:
                self._evaluate(table, verdict, None)

    def _verdict(self, table: TableId) -> Verdict:
        entry, error = self._entry(table), self.errors.get(table)
        warning = dg.AssetCheckSeverity.WARN
        gaps = "; ".join(gap.text for gap in self.gaps.get(table.text, ()))
        if gaps:
            return Verdict(passed=False, problem=gaps, what_to_do=ACKNOWLEDGE)
        if entry.status in {"lost", "failed"}:
            return Verdict(passed=False, problem=f"the table is {entry.status}: {entry.reason}")
        if error is not None:
            text = self.setup.connector.redact(f"{type(error).__name__}: {error}")
            return Verdict(passed=False, severity=warning if error.retriable else _ERROR, problem=text)
        if self.late is not None:
            return Verdict(passed=False, severity=warning, problem=f"late: {self.late}")
        behind = timedelta(seconds=self._lag(self.through) or 0)
        if behind > self.retention * 3 / 4:
            problem = "late: the source keeps changes only a little longer than this table is behind"
            return Verdict(passed=False, severity=warning, problem=problem)
        if behind > LATE:
            return Verdict(passed=False, severity=warning, problem="late: capture catches up")
        return Verdict(passed=True)

    def _evaluate(self, table: TableId, verdict: Verdict, window: datetime | None) -> None:
        self._verdicts[table] = verdict
        values = {
            "problem": verdict.problem,
            "what_to_do": verdict.what_to_do,
            "open_gaps": len(self.gaps.get(table.text, ())) or None,
            "to_lsn": self._entry(table).to,
            "as_of": self.through,
        }
        event = evaluation(
            self.setup,
            table,
            passed=verdict.passed,
            severity=verdict.severity,
            partition=self.setup.windows.key(window) if window is not None else None,
            metadata=event_metadata(values),
        )
        self.recorder.write(event)

    # -- Helpers -----------------------------------------------------------------------------------------------------

    def _load_gaps(self) -> None:
        self.gaps = open_gaps(self.database.layout, self.database.storage)

    def _wanted(self, table: TableId) -> bool:
        return self.only is None or table in self.only

    def _entry(self, table: TableId) -> Entry:
        entry = self.offsets.entry(table.text) if self.offsets is not None else None
        return entry or Entry("streaming")

    def _streams(self, table: TableId) -> bool:
        """Whether the table has been read as far as the others: otherwise its windows are missing, visibly."""
        entry = self._entry(table)
        if self.offsets is None or entry.status != "streaming" or entry.to is None or table in self.errors:
            return False
        cut = self.offsets.last_cut()
        return cut is None or cut.to is None or entry.epoch > cut.epoch or entry.to >= cut.to


def _outcomes(done: Done) -> Mapping[TableId, TableOutcome]:
    """The tables that a step read."""
    return done.range.tables if done.range is not None else {}
