"""How far a run has read, by commit time, and which windows of a change log that makes complete.

The windows of a table are in `accounts.py`; `book.py` decides what is reported about them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from mssql_cdc.capture.lag import SETTLING, captured_until
from mssql_cdc.defs.accounts import Account
from mssql_cdc.defs.windows import Windows
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.plan.decisions import Merge, Wait
from mssql_cdc.run.execute import Done
from mssql_cdc.run.known_lags import Captured, KnownLags
from mssql_cdc.source.values import CaptureHealth

ASK_SECONDS = 60.0
"""How often the state of capture is checked while nothing is read."""


@dataclass
class Progress:
    """How far everything was read.

    Attributes:
        windows: The windows of the change logs.
        lags: How far capture has come.
        clock: The current time.
        bound: The end of the windows that an operator selected: nothing is reported about the time after it.
        through: The commit time up to which everything was read; None: it is not known.
        idle: Whether the last step found nothing to read.
        looked: When the last step was taken.
        late: Why the whole database is late; None: it is not.
    """

    windows: Windows
    lags: KnownLags
    clock: Callable[[], datetime]
    bound: datetime | None = None
    through: datetime | None = None
    idle: bool = False
    looked: datetime | None = None
    late: str | None = None

    def step(self, done: Done, captured: Captured | None) -> None:
        """Advance by the result of a step.

        Args:
            done: The result.
            captured: How far capture had progressed before the step began; None: it has captured nothing since.
        """
        decision, now = done.decision, self.clock()
        self.looked = now
        self.idle = isinstance(decision, Wait) and not (decision.alarm or decision.ended) and decision.until is None
        merges = isinstance(decision, Merge) and done.seen.facts.policy.stream
        self.idle |= merges and done.seen.stalled is None  # A merge takes the place of a wait, if one is due.
        if isinstance(decision, Wait):
            self.late = decision.reason if decision.alarm else None
        else:
            self.late = done.seen.stalled  # It is checked if there is nothing to read, but perhaps to merge.
        if self.idle:
            known = captured or self._captured(done.offsets)
            self._read_through(known.until if known is not None else None)
        elif done.range is not None and done.range.row is not None and done.range.row.complete:
            ends = [outcome.last for outcome in done.range.tables.values() if outcome.last]
            self._read_through(max(map(datetime.fromisoformat, ends), default=None))

    def reached(self, health: CaptureHealth) -> None:
        """Advance through what was captured in the windows that an operator selected, all of which was read.

        Args:
            health: The health of the source's capture before: rows that were committed later may be missing.
        """
        self.looked = self.clock()
        self.idle = health.problem is None and (self.bound is None or self.bound > health.now)
        self.late = health.problem or self.late
        self._read_through(captured_until(health))

    def asked(self) -> None:
        """Move to the time that the source reports, without a step: nothing is read."""
        lag, captured = self.lags.largest(), self.lags.captured
        self.through = None
        if lag is not None and captured is not None and captured.until is not None:
            self.through = min(captured.until, self.clock() - max(timedelta(seconds=lag), SETTLING))

    def has_ended(self, window: datetime) -> bool:
        """Whether a window was read to its end."""
        return self.through is not None and window + self.windows.length <= self.through

    def is_idle_in(self, window: datetime) -> bool:
        """Whether the last step found nothing to read, and was taken in this window or later."""
        return self.idle and self.looked is not None and self.looked >= window

    def has_begun(self, window: datetime) -> bool:
        """Whether anything is known about a window: it was read, or there is nothing to read in it yet."""
        return self.is_idle_in(window) or (self.through is not None and self.through >= window)

    def is_read(self, account: Account, window: datetime, now: datetime) -> bool:
        """Whether a window was read to its end, or, if it is the current one, up to now.

        Args:
            account: The account of its table.
            window: The window.
            now: The current window.
        """
        if window != now:
            return self.has_ended(window)
        through = self.through if self.late is None else None  # What was committed since a late scan is not known.
        return self.is_idle_in(window) or any(at is not None and at >= window for at in (through, account.newest))

    def _captured(self, offsets: Offsets) -> Captured | None:
        """How far capture has progressed."""
        known = self.lags.captured
        if known is None or self.clock() - known.at >= timedelta(seconds=ASK_SECONDS):
            self.lags.ask(offsets)
        return self.lags.captured

    def _read_through(self, at: datetime | None) -> None:
        if at is None:
            return
        at = min(at, self.bound or at)
        if self.through is None or at > self.through:
            self.through = at
