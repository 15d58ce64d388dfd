"""What a run reports about its tables, and when: windows of change logs with their counts, current tables, checks.

The functions run in the recorder's thread. A table's window is reported again when it has changed, at most every
`max(60 s, changed tables x 1 s)`; every table is reported when the run begins, when a window begins and when it ends.
A window that was not read yet is not reported: Dagster then shows it as missing. What was missed before the run began
comes last, a few windows at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import Any

import dagster as dg

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.lag import SETTLING, captured_until
from mssql_cdc.capture.range import TableOutcome
from mssql_cdc.capture.survey import DEFAULT_RETENTION, RETENTION_SHARE
from mssql_cdc.defs.accounts import NOTHING_OWED, Account, Accounts, owed_windows
from mssql_cdc.defs.asset_events import AssetEvents, Writer
from mssql_cdc.defs.failures import without_fences
from mssql_cdc.defs.newest_checks import mildness, newest_checks
from mssql_cdc.defs.recorder import is_of_storage
from mssql_cdc.defs.report import try_again
from mssql_cdc.defs.setup import Setup
from mssql_cdc.defs.shown import told
from mssql_cdc.defs.verdicts import Condition, Verdict, verdict_of
from mssql_cdc.errors import FencedError, MssqlCdcError, SourceUnavailableError, StorageError
from mssql_cdc.lake.gaps import Gap, open_gaps
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.named_gaps import named, names_by_folder
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.read import row_count
from mssql_cdc.lake.steps import Entry
from mssql_cdc.plan.decisions import Merge, Wait
from mssql_cdc.run.execute import Done
from mssql_cdc.run.known_lags import Captured, KnownLags
from mssql_cdc.run.standing import standings
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import CaptureHealth

REPORT_SECONDS = 60.0
OWED_SECONDS = 1.0
"""So long a turn reports windows that were missed before the run began: the heartbeat and new events come between."""
OWED_END_SECONDS = 10.0
"""So long the end of a run does; the next run owes the rest."""
OWED_AT_ONCE = 50
"""Windows of a table that are counted in one read."""
NOT_YET = "not captured yet"
NO_ROWS = "no row has come yet: the first one creates the table"


@dataclass(frozen=True, slots=True)
class _JudgedBy:
    """What verdicts depend on: of the whole database, of tables by their names, and errors by tables."""

    whole: tuple[object, ...]
    named: tuple[Mapping[str, object], ...]
    errors: tuple[Mapping[TableId, MssqlCdcError], ...]


@dataclass
class Book:
    """What a run has done so far, and what of it was reported.

    Attributes:
        setup: The database.
        database: Where the lake is.
        writer: Stores the events.
        only: The tables that an operator selected; None: all tables.
        bound: The end of the windows that an operator selected: nothing is said about the time after it.
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
    history: SchemaHistory | None = None
    offsets: Offsets | None = None
    through: datetime | None = None
    idle: bool = False
    looked: datetime | None = None
    late: str | None = None
    retention: timedelta = DEFAULT_RETENTION
    gaps: Mapping[str, Sequence[Gap]] = field(default_factory=dict[str, Sequence[Gap]])
    absent: Mapping[str, str] = field(default_factory=dict[str, str])
    errors: dict[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    unmerged: dict[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    _uncounted: dict[TableId, str] = field(default_factory=dict[TableId, str])
    _unreported: dict[TableId, str] = field(default_factory=dict[TableId, str])
    _named: Mapping[TableId, str] = field(default_factory=dict[TableId, str])
    _verdicts: dict[TableId, Verdict] = field(default_factory=dict[TableId, Verdict])
    _ledger: tuple[Mapping[str, list[Gap]], Mapping[str | None, str]] | None = None
    _window: datetime | None = None
    _reported: datetime | None = None
    _beaten: datetime | None = None

    @cached_property
    def accounts(self) -> Accounts:
        """What is known of each table."""
        return Accounts(self.setup, self.database)

    @cached_property
    def events(self) -> AssetEvents:
        """Where the events are built."""
        return AssetEvents(self.setup, self.writer)

    @cached_property
    def lags(self) -> KnownLags:
        """The lags of the tables."""
        return KnownLags(self.database, self.clock)

    # -- What happened -----------------------------------------------------------------------------------------

    def add(self, done: Done, captured: Captured | None = None) -> None:
        """Take over the result of a step, and judge the tables whose state it may have changed.

        Args:
            done: The result.
            captured: How far capture had come before the step began; None: it has captured nothing since.
        """
        before = self._judged_by()
        self.offsets, self.history = done.offsets, done.history
        read = _outcomes(done)
        self.errors = {table: error for table, error in self.errors.items() if table not in read}
        self.errors |= without_fences(done.failed)
        merged = done.merged
        self.unmerged = {one: error for one, error in self.unmerged.items() if one not in merged.tables}
        self.unmerged |= without_fences(merged.errors)
        self.absent = standings(done.seen, self.setup.listed).absent
        self.retention = done.seen.facts.limits.idle_advance * RETENTION_SHARE
        if done.gaps or self._reported is None:
            self._load_gaps()
        if not self.lags.asked:
            self.lags.ask(done.offsets)
        self._advance(done, captured)
        self._open_accounts(done)
        if self.only is None:
            self.events.sources(done)
        for table, outcome in read.items():
            if outcome.rows and outcome.error is None and self._wanted(table):
                self._apart(table, partial(self.accounts.count, table, outcome), self._uncounted)
        self.accounts.merged(done, idle=self.idle, through=self.through, now=self.clock())
        self._judge(self._changed_since(before))

    def reached(self, health: CaptureHealth) -> None:
        """Note that an operator's run has read what was captured of the windows that it selected.

        Args:
            health: How the source's capture did before: of what was committed later, rows may be missing.
        """
        self.looked = self.clock()
        self.idle = health.problem is None and (self.bound is None or self.bound > health.now)
        self.late = health.problem or self.late
        self._read_through(captured_until(health))

    def asked(self, offsets: Offsets) -> None:
        """Note what the source and the lake say without a step: nothing is read."""
        self.offsets = offsets
        self.lags.ask(offsets)
        lag, captured = self.lags.largest(), self.lags.captured
        self.through = None
        if lag is not None and captured is not None and captured.until is not None:
            self.through = min(captured.until, self.clock() - max(timedelta(seconds=lag), SETTLING))

    def unavailable(self, error: MssqlCdcError | None) -> None:
        """Note why no step could be taken: the source does not answer, or not as it should; None: one was.

        That another run was faster is nothing to note: what it has read is not late.
        """
        if error is None or isinstance(error, FencedError):
            return
        # Its subclasses are answers, such as that of a replica which does not show the end of the range yet.
        silent = type(error) is SourceUnavailableError
        what = "the source does not answer" if silent else "the last step is repeated"
        self.late = self.setup.connector.redact(f"{what}: {error}")
        self._judge()

    def _advance(self, done: Done, captured: Captured | None) -> None:
        """Move the commit time up to which everything was read."""
        decision, now = done.decision, self.clock()
        self.looked = now
        self.idle = isinstance(decision, Wait) and not decision.alarm and decision.until is None
        self.idle |= isinstance(decision, Merge) and done.seen.stalled is None  # Instead of a wait, if one is due.
        if isinstance(decision, Wait):
            self.late = decision.reason if decision.alarm else None
        else:
            self.late = done.seen.stalled  # It is asked if there is nothing to read, but perhaps to merge.
        if self.idle:
            known = captured or self._captured(done.offsets)
            self._read_through(known.until if known is not None else None)
        elif done.range is not None and done.range.row is not None and done.range.row.complete:
            ends = [outcome.last for outcome in done.range.tables.values() if outcome.last]
            self._read_through(max(map(datetime.fromisoformat, ends), default=None))

    def _captured(self, offsets: Offsets) -> Captured | None:
        """How far capture has come; it is asked once a minute."""
        known = self.lags.captured
        if known is None or self.clock() - known.at >= timedelta(seconds=REPORT_SECONDS):
            self.lags.ask(offsets)
        return self.lags.captured

    def _read_through(self, at: datetime | None) -> None:
        if at is None:
            return
        at = min(at, self.bound or at)
        if self.through is None or at > self.through:
            self.through = at

    def _open_accounts(self, done: Done) -> None:
        found = {t: lake for t, lake in done.seen.tables.items() if self._wanted(t) and self._streams(t)}
        opening = [table for table in found if self.only is None and table not in self.accounts.tables]
        owed = owed_windows(self.setup, self.writer.instance, opening, self.clock())
        for table, lake in found.items():
            take_in = partial(self.accounts.take_in, table, lake, owed.get(table, NOTHING_OWED))
            self._apart(table, take_in, self._uncounted)

    # -- What is written -----------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Report what is due now.

        Raises:
            dagster.Failure: A table could not be reported, or for another reason than before; the others were.
        """
        now = self.clock()
        if self.offsets is None:
            return
        urgent = self._turn_windows(now)
        changed = sum(bool(account.due) for account in self.accounts.tables.values())
        wait = timedelta(seconds=max(REPORT_SECONDS, float(changed)))
        is_due = urgent or self._reported is None or now - self._reported >= wait
        if is_due:
            self._reported = now
            self._load_gaps()
            self.lags.ask(self.offsets)
            self._forget_milder()
            self._judge()
        self._beat(now)
        if is_due:
            self.report()
        self._report_owed(OWED_SECONDS, again=is_due)
        self._name_unreported()

    def _beat(self, now: datetime) -> None:
        beaten = self._beaten
        alive = beaten is None or (self.looked is not None and self.looked > beaten)  # A loop that hangs sends none.
        if alive and (beaten is None or (now - beaten).total_seconds() >= REPORT_SECONDS):
            self.heartbeat()

    def _turn_windows(self, now: datetime) -> bool:
        """Let every table be reported when a window begins, and when it ends; whether one did."""
        window, turned = self.setup.windows.start(now), False
        if self._window != window and (self._idle_in(window) or (self.through is not None and self.through >= window)):
            turned, self._window = True, window
            self.accounts.add_due([window])
        for table, account in self.accounts.tables.items():
            ended = {one for one in account.open if self._has_ended(one)}
            if ended and self._streams(table):
                turned = True
                account.due |= ended
        return turned

    def report(self) -> None:
        """Report the windows that are due and were read, and their current tables; of late tables only the lag."""
        for table, account in self.accounts.tables.items():
            if not self._streams(table) or table in self._uncounted:
                continue
            now = self.setup.windows.start(self.clock())
            written = [window for window in sorted(account.due) if self._is_read(account, window, now)]
            verdict = self._verdicts.get(table)
            if written:
                self._apart(table, partial(self._logs, table, account, written, current=True), self._unreported)
            elif verdict is not None and verdict.late:
                self._late(table)

    def _report_owed(self, seconds: float, *, again: bool) -> None:
        """Report windows that were missed before the run began, the newest first, as long as they take no longer.

        Args:
            seconds: How long that is.
            again: Whether tables that could not be reported are tried again.
        """
        if self.through is None:
            return
        end, now = self.clock() + timedelta(seconds=seconds), self.setup.windows.start(self.clock())
        for table, account in self.accounts.tables.items():
            held = table in self._uncounted or (table in self._unreported and not again)
            if not account.owed or held or not self._streams(table):
                continue
            found = sorted((one for one in account.owed if self._is_read(account, one, now)), reverse=True)
            for first in range(0, len(found), OWED_AT_ONCE):
                if self.clock() >= end:
                    return
                part = sorted(found[first : first + OWED_AT_ONCE])
                if not self._apart(table, partial(self._logs, table, account, part), self._unreported):
                    break

    def _apart(self, table: TableId, report: Callable[[], None], errors: dict[TableId, str]) -> bool:
        """Do what reports one table, and note its error, so that those behind it are reported; whether it worked."""
        try:
            report()
        except Exception as error:
            if is_of_storage(error):
                raise
            errors[table] = self.setup.connector.redact(told(error))
            return False
        errors.pop(table, None)
        return True

    def _name_unreported(self) -> None:
        """Let the checks say which tables could not be reported.

        Raises:
            dagster.Failure: There is one of which that was not said yet.
        """
        before, now = self._named, {**self._unreported, **self._uncounted}
        changed = [table for table in {**before, **now} if before.get(table) != now.get(table)]
        self._judge(changed)
        self._named = now
        found = {table: now[table] for table in changed if table in now}
        if found:
            raise unreported(found)

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
        self._load_gaps()
        if self.offsets is not None:
            self.lags.ask(self.offsets)
        self._judge()
        self.report()
        self._name_unreported()

    def currents(self) -> None:
        """Report the current tables only.

        Raises:
            dagster.Failure: One could not be reported; the others were.
        """
        if self.offsets is not None:
            self.lags.ask(self.offsets)
        for table, account in self.accounts.tables.items():
            self._apart(table, partial(self._current, table, account), self._unreported)
        self._name_unreported()

    def finish(self) -> None:
        """Report what is still due at the end of the run."""
        if self.offsets is not None:
            self._reported = None
            self.turn()
            self._report_owed(OWED_END_SECONDS, again=False)

    def heartbeat(self) -> None:
        """Report that capture runs, also when nothing changes; not while the database is late."""
        if self.late is None:
            self._beaten = self.clock()
            self.events.heartbeat({"as_of": self.through, "lag_seconds": self.lags.largest()})

    def _logs(self, table: TableId, account: Account, windows: Sequence[datetime], *, current: bool = False) -> None:
        """Report these windows of a table, all of which were read, and its current table if that is wanted."""
        self.accounts.load_missing(account, windows)
        for window in windows:
            self._log(table, account, window)
        if current:
            self._current(table, account)

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
            "lag_seconds": self.lags.log(table),
            "attempt": self.attempt,
            "open_gaps": len(self.gaps.get(table.text, ())) or None,
            "complete": complete,
            "note": NOT_YET if before and not counts else account.metrics.get("note"),
        }
        self.events.window(table, window, values)
        account.due.discard(window)
        account.owed.discard(window)
        if complete:
            if window in account.open:
                self._evaluate(table, self._verdict(table), window)
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
        newest = self.history.newest(table) if self.history is not None else None
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
        """The rows of a current table by its log, or else by a query; None if there is no table."""
        log = self.lags.logs.newest(uri, self.database.storage)
        if log is None or log.counted is not None:
            return log.counted if log is not None else None
        return row_count(uri, self.database.storage)

    def _late(self, table: TableId) -> None:
        """Report how late a table is, although nothing of it was read."""
        newest = self.history.newest(table) if self.history is not None else None
        home = self.accounts.tables[table].home
        current = self.lags.current(table, home, newest) if newest is not None and newest.key_columns else None
        self.events.late(table, self.clock(), log=self.lags.log(table), current=current)

    def _judged_by(self) -> _JudgedBy:
        entries: Mapping[str, Entry] = self.offsets.entries if self.offsets is not None else dict[str, Entry]()
        whole = self.late, self.retention, self.lags.asked
        return _JudgedBy(whole, (entries, self.gaps, self.absent), (self.errors, self.unmerged))

    def _changed_since(self, before: _JudgedBy) -> Collection[TableId]:
        """The tables whose verdict may be another one."""
        now, tables = self._judged_by(), self.setup.names.tables
        if now.whole != before.whole:
            return tables
        changed = {name for one, other in zip(before.named, now.named, strict=True) for name in _differing(one, other)}
        failing = {table for one, other in zip(before.errors, now.errors, strict=True) for table in one.keys() ^ other}
        failing |= {table for one in now.errors for table in one}
        return [table for table in tables if table.text in changed or table in failing]

    def _judge(self, tables: Collection[TableId] | None = None) -> None:
        """Evaluate the checks whose verdict has changed, of these tables or of all."""
        for table in self.setup.names.tables if tables is None else tables:
            if self.offsets is None or not self._wanted(table):
                continue
            if self.offsets.entry(table.text) is None and table.text not in self.absent:
                continue  # It waits for its first snapshot.
            verdict = self._verdict(table)
            if self._entry(table).status == "snapshot" and (verdict.passed or verdict.of_capture):
                continue  # The run that takes the snapshot says how that does: it may have failed.
            if self._verdicts.get(table) != verdict:
                self._evaluate(table, verdict, None)

    def _forget_milder(self) -> None:
        """Let what is wrong be said again of tables that a snapshot or an operator has judged more mildly since."""
        wrong = {table: verdict for table, verdict in self._verdicts.items() if not verdict.passed}
        for table, newest in newest_checks(self.setup, self.writer.instance, wrong).items():
            said = mildness(passed=False, severity=wrong[table].severity)
            if mildness(passed=newest.passed, severity=newest.severity) > said:
                del self._verdicts[table]

    def _verdict(self, table: TableId) -> Verdict:
        found = Condition(
            entry=self._entry(table),
            gaps=self.gaps.get(table.text, ()),
            error=self.errors.get(table),
            unmerged=self.unmerged.get(table),
            unreported=self._uncounted.get(table) or self._unreported.get(table),
            late=self.late,
            lag=timedelta(seconds=self.lags.unread(table) or 0),
            retention=self.retention,
            absent=self.absent.get(table.text),
            try_again=try_again(self.setup),
        )
        return verdict_of(found, self.setup.connector.redact)

    def _evaluate(self, table: TableId, verdict: Verdict, window: datetime | None) -> None:
        values = {
            "open_gaps": len(self.gaps.get(table.text, ())) or None,
            "to_lsn": self._entry(table).to,
            "as_of": self.through,
        }
        self.events.check(table, verdict, values, window)
        self._verdicts[table] = verdict

    # -- Helpers -----------------------------------------------------------------------------------------------------

    def _load_gaps(self) -> None:
        database = self.database
        offsets = self.offsets if self.offsets is not None else database.offsets()
        history = self.history if self.history is not None else database.history()
        ledger = open_gaps(database.layout, database.storage), names_by_folder(offsets, history.versions)
        if ledger != self._ledger:  # Which rows of `_offsets` they belong to is looked up once: all are read for it.
            self.gaps, self._ledger = named(ledger[0], offsets, ledger[1]) if ledger[0] else {}, ledger

    def _has_ended(self, window: datetime) -> bool:
        return self.through is not None and window + self.setup.windows.length <= self.through

    def _is_read(self, account: Account, window: datetime, now: datetime) -> bool:
        """Whether the window was read to its end, or, if it is the current one, up to now."""
        if window != now:
            return self._has_ended(window)
        through = self.through if self.late is None else None  # What was committed since a late scan is not known.
        return self._idle_in(window) or any(at is not None and at >= window for at in (through, account.newest))

    def _idle_in(self, window: datetime) -> bool:
        """Whether the last step found nothing to read, and was taken in this window or later."""
        return self.idle and self.looked is not None and self.looked >= window

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
        if table.text in self.absent:
            return False
        cut = self.offsets.last_cut()
        return cut is None or cut.to is None or entry.epoch > cut.epoch or entry.to >= cut.to


def unreported(tables: Mapping[TableId, str]) -> dg.Failure:
    """Return the failure that names the tables which could not be reported.

    Args:
        tables: What went wrong, by table, without secrets.
    """
    word = "table" if len(tables) == 1 else "tables"
    texts = "; ".join(f"{table}: {text}" for table, text in tables.items())
    return dg.Failure(f"{len(tables)} {word} could not be reported: {texts}", allow_retries=False)


def _differing(before: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    """The keys whose values are not the same; a step keeps the values of the tables that it does not touch."""
    yield from before.keys() - now.keys()
    for name, value in now.items():
        other = before.get(name)
        if other is not value and other != value:
            yield name


def _outcomes(done: Done) -> Mapping[TableId, TableOutcome]:
    """The tables that a step read."""
    return done.range.tables if done.range is not None else {}
