"""What a run reports about its tables, and when: windows of change logs with their counts, current tables, checks.

The functions run in the recorder's thread. A table's window is reported again when it has changed, at most every
`max(60 s, changed tables x 1 s)`; every table is reported when the run begins, when a window begins and when it ends.
A window that has not been read yet is not reported: Dagster then shows it as missing. Windows that were missed before
the run began come last, a few at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import Any

from mssql_cdc.capture.database import Database
from mssql_cdc.defs.accounts import NOTHING_OWED, Account, Accounts, owed_windows
from mssql_cdc.defs.asset_events import AssetEvents, Writer
from mssql_cdc.defs.judge import Judge
from mssql_cdc.defs.progress import Progress
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.table_states import TableStates, outcomes
from mssql_cdc.errors import FencedError, MssqlCdcError, SourceUnavailableError, StorageError
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import row_count
from mssql_cdc.run.execute import Done
from mssql_cdc.run.known_lags import Captured, KnownLags
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import CaptureHealth

REPORT_SECONDS = 60.0
OWED_SECONDS = 1.0
"""How long a turn reports windows that were missed before the run began: the heartbeat and new events come between."""
OWED_END_SECONDS = 10.0
"""How long the end of a run does so; the next run owes the rest."""
OWED_AT_ONCE = 50
"""How many windows of a table are counted in one read."""
NOT_YET = "not captured yet"
NO_ROWS = "no row has come yet: the first one creates the table"


@dataclass
class Book:
    """What a run has done so far, and how much of it was reported.

    Attributes:
        setup: The database.
        database: Where the lake is.
        writer: Stores the events.
        only: The tables that an operator selected; None: all tables.
        bound: The end of the windows that an operator selected: nothing is reported about the time after it.
        attempt: The number of the attempt, if it is not the first one.
        clock: The current time.
    """

    setup: Setup
    database: Database
    writer: Writer
    only: Collection[TableId] | None = None
    bound: datetime | None = None
    attempt: int | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _window: datetime | None = None
    _reported: datetime | None = None
    _beaten: datetime | None = None

    @cached_property
    def accounts(self) -> Accounts:
        """What is known about each table."""
        return Accounts(self.setup, self.database)

    @cached_property
    def events(self) -> AssetEvents:
        """Where the events are built."""
        return AssetEvents(self.setup, self.writer)

    @cached_property
    def lags(self) -> KnownLags:
        """The lags of the tables."""
        return KnownLags(self.database, self.clock)

    @cached_property
    def progress(self) -> Progress:
        """How far the run has read."""
        return Progress(self.setup.windows, self.lags, self.clock, self.bound)

    @cached_property
    def states(self) -> TableStates:
        """What is known about the tables' states."""
        return TableStates(self.setup, self.database, self.only)

    @cached_property
    def judge(self) -> Judge:
        """The tables' checks."""
        return Judge(self.events, self.progress, self.states)

    # -- What happened -----------------------------------------------------------------------------------------

    def add(self, done: Done, captured: Captured | None = None) -> None:
        """Record the result of a step, and judge the tables whose state it may have changed.

        Args:
            done: The result.
            captured: How far capture had progressed before the step began; None: it has captured nothing since.
        """
        before = self.judge.before()
        self.states.step(done)
        if done.gaps or self._reported is None:
            self.states.load_gaps()
        if not self.lags.asked:
            self.lags.ask(done.offsets)
        self.progress.step(done, captured)
        self._open_accounts(done)
        if self.only is None:
            self.events.sources(done)
        for table, outcome in outcomes(done).items():
            if outcome.rows and outcome.error is None and self.states.is_wanted(table):
                self.judge.count_apart(table, partial(self.accounts.count, table, outcome))
        self.accounts.merged(done, idle=self.progress.idle, through=self.progress.through, now=self.clock())
        self.judge.judge_since(before)

    def reached(self, health: CaptureHealth) -> None:
        """Note that an operator's run has read what was captured in the windows that it selected.

        Args:
            health: The health of the source's capture before: rows that were committed later may be missing.
        """
        self.progress.reached(health)

    def asked(self, offsets: Offsets) -> None:
        """Note the state of the source and the lake without a step: nothing is read."""
        self.states.offsets = offsets
        self.lags.ask(offsets)
        self.progress.asked()

    def unavailable(self, error: MssqlCdcError | None) -> None:
        """Note why no step could be taken: the source does not answer, or not as it should; None: one was taken.

        Nothing is noted if another run was faster: what that run has read is not late.
        """
        if error is None or isinstance(error, FencedError):
            return
        # Its subclasses are answers, such as that of a replica that does not show the end of the range yet.
        silent = type(error) is SourceUnavailableError
        what = "the source does not answer" if silent else "the last step is repeated"
        self.progress.late = self.setup.connector.redact(f"{what}: {error}")
        self.judge.judge()

    def _open_accounts(self, done: Done) -> None:
        states = self.states
        found = {t: lake for t, lake in done.seen.tables.items() if states.is_wanted(t) and states.streams(t)}
        opening = [table for table in found if self.only is None and table not in self.accounts.tables]
        owed = owed_windows(self.setup, self.writer.instance, opening, self.clock())
        for table, lake in found.items():
            take_in = partial(self.accounts.take_in, table, lake, owed.get(table, NOTHING_OWED))
            self.judge.count_apart(table, take_in)

    # -- What is written -----------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Report what is due now.

        Raises:
            dagster.Failure: A table could not be reported, which is new or has a new reason; the others were reported.
        """
        now = self.clock()
        if self.states.offsets is None:
            return
        urgent = self._turn_windows(now)
        changed = sum(bool(account.due) for account in self.accounts.tables.values())
        wait = timedelta(seconds=max(REPORT_SECONDS, float(changed)))
        is_due = urgent or self._reported is None or now - self._reported >= wait
        if is_due:
            self._reported = now
            self.states.load_gaps()
            self.lags.ask(self.states.offsets)
            self.judge.forget_milder(self.writer.instance)
            self.judge.judge()
        self._beat(now)
        if is_due:
            self.report()
        self._report_owed(OWED_SECONDS, again=is_due)
        self.judge.name_unreported()

    def _beat(self, now: datetime) -> None:
        beaten, looked = self._beaten, self.progress.looked
        alive = beaten is None or (looked is not None and looked > beaten)  # A hung loop sends none.
        if alive and (beaten is None or (now - beaten).total_seconds() >= REPORT_SECONDS):
            self.heartbeat()

    def _turn_windows(self, now: datetime) -> bool:
        """Make every table due when a window begins, and when it ends; return whether one did."""
        window, turned = self.setup.windows.start(now), False
        if self._window != window and self.progress.has_begun(window):
            turned, self._window = True, window
            self.accounts.add_due([window])
        for table, account in self.accounts.tables.items():
            ended = {one for one in account.open if self.progress.has_ended(one)}
            if ended and self.states.streams(table):
                turned = True
                account.due |= ended
        return turned

    def report(self) -> None:
        """Report the windows that are due and were read, and their current tables; for late tables, only the lag."""
        for table, account in self.accounts.tables.items():
            if not self.states.streams(table) or table in self.judge.uncounted:
                continue
            now = self.setup.windows.start(self.clock())
            written = [window for window in sorted(account.due) if self.progress.is_read(account, window, now)]
            if written:
                self.judge.report_apart(table, partial(self._logs, table, account, written, current=True))
            elif self.judge.is_late(table):
                self._late(table)

    def _report_owed(self, seconds: float, *, again: bool) -> None:
        """Report windows that were missed before the run began, the newest first, for a limited time.

        Args:
            seconds: The limit.
            again: Whether tables that could not be reported are retried.
        """
        if self.progress.through is None:
            return
        end, now = self.clock() + timedelta(seconds=seconds), self.setup.windows.start(self.clock())
        for table, account in self.accounts.tables.items():
            held = table in self.judge.uncounted or (table in self.judge.unreported and not again)
            if not account.owed or held or not self.states.streams(table):
                continue
            found = sorted((one for one in account.owed if self.progress.is_read(account, one, now)), reverse=True)
            for first in range(0, len(found), OWED_AT_ONCE):
                if self.clock() >= end:
                    return
                part = sorted(found[first : first + OWED_AT_ONCE])
                if not self.judge.report_apart(table, partial(self._logs, table, account, part)):
                    break

    def selected(self, windows: Iterable[datetime], *, read: bool) -> None:
        """Report the windows that an operator chose, as far as they were read.

        Args:
            windows: The starts of the windows.
            read: Whether the run read anything.

        Raises:
            dagster.Failure: A table could not be reported; the others were.
        """
        self.accounts.add_due(windows)
        if not read:
            for account in self.accounts.tables.values():
                account.metrics["note"] = "nothing to read"
        self.states.load_gaps()
        if self.states.offsets is not None:
            self.lags.ask(self.states.offsets)
        self.judge.judge()
        self.report()
        self.judge.name_unreported()

    def currents(self) -> None:
        """Report the current tables only.

        Raises:
            dagster.Failure: One could not be reported; the others were.
        """
        if self.states.offsets is not None:
            self.lags.ask(self.states.offsets)
        for table, account in self.accounts.tables.items():
            self.judge.report_apart(table, partial(self._current, table, account))
        self.judge.name_unreported()

    def finish(self) -> None:
        """Report what is still due at the end of the run."""
        if self.states.offsets is not None:
            self._reported = None
            self.turn()
            self._report_owed(OWED_END_SECONDS, again=False)

    def heartbeat(self) -> None:
        """Report that capture is running, even when nothing changes; not while the database is late."""
        if self.progress.late is None:
            self._beaten = self.clock()
            self.events.heartbeat({"as_of": self.progress.through, "lag_seconds": self.lags.largest()})

    def _logs(self, table: TableId, account: Account, windows: Sequence[datetime], *, current: bool = False) -> None:
        """Report these windows of a table, all of which were read, and its current table if `current` is set."""
        self.accounts.load_missing(account, windows)
        for window in windows:
            self._log(table, account, window)
        if current:
            self._current(table, account)

    def _log(self, table: TableId, account: Account, window: datetime) -> None:
        complete, counts = self.progress.has_ended(window), account.counts.get(window, Counter[str]())
        values: dict[str, Any] = {name: value for name, value in account.metrics.items() if name != "rows"}
        before = account.begun is not None and window + self.setup.windows.length <= account.begun
        values |= {
            "dagster/partition_row_count": counts.total(),
            "inserts": counts["c"],
            "updates": counts["u"],
            "deletes": counts["d"],
            "reads": counts["r"] or None,
            "to_lsn": self.states.entry(table).to,
            "as_of": self.progress.through,
            "lag_seconds": self.lags.log(table),
            "attempt": self.attempt,
            "open_gaps": len(self.states.gaps.get(table.text, ())) or None,
            "complete": complete,
            "note": NOT_YET if before and not counts else account.metrics.get("note"),
        }
        self.events.window(table, window, values)
        account.due.discard(window)
        account.owed.discard(window)
        if complete:
            if window in account.open:
                self.judge.evaluate(table, self.judge.verdict(table), window)
            account.open.discard(window)
            if window < self.setup.windows.start(self.clock()):
                account.counts.pop(window, None)
        else:
            account.open.add(window)

    def _current(self, table: TableId, account: Account) -> None:
        try:
            rows = self._rows(account.home.current)
        except StorageError:
            return  # Its update says what is wrong with it, and the check shows that.
        newest = self.states.newest(table)
        if rows is None and (newest is None or not newest.key_columns or account.as_of is None):
            return  # The table has no key, or its first merge is still to come.
        values = {
            "dagster/row_count": rows or 0,
            "as_of": account.as_of,
            "lag_seconds": self.lags.current(table, account.home, newest) if newest is not None else None,
            "note": NO_ROWS if rows is None else None,
            **account.merged,
        }
        self.events.current(table, values)

    def _rows(self, uri: str) -> int | None:
        """The row count of a current table from its log, or else from a query; None if there is no table."""
        log = self.lags.logs.newest(uri, self.database.storage)
        if log is None or log.counted is not None:
            return log.counted if log is not None else None
        return row_count(uri, self.database.storage)

    def _late(self, table: TableId) -> None:
        """Report how late a table is, although nothing of it was read."""
        newest = self.states.newest(table)
        home = self.accounts.tables[table].home
        current = self.lags.current(table, home, newest) if newest is not None and newest.key_columns else None
        self.events.late(table, self.clock(), log=self.lags.log(table), current=current)
