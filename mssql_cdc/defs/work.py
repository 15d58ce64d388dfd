"""The work of one run on one database, delegated to `run/`; `book.py` decides how Dagster shows the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.lag import captured_until
from mssql_cdc.capture.snapshot.progress import Progress
from mssql_cdc.capture.survey import Survey, survey
from mssql_cdc.defs.background import Background
from mssql_cdc.defs.setup import Setup
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.follow.incremental_thread import GroupThread
from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.follow.transactions import Counted, count_transactions
from mssql_cdc.plan.decisions import Merge, Snapshot
from mssql_cdc.run.execute import Done, execute
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.known_lags import Captured
from mssql_cdc.run.requested import read_given_up, read_range, read_until
from mssql_cdc.run.snapshots import take_snapshot
from mssql_cdc.run.start import look
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import CaptureHealth

PATIENCE_SECONDS = 180.0
"""How long an operator's run waits for capture to scan past a window that has just ended: it takes two minutes."""
ASK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one run on one database, outside Dagster's main thread.

    A run `by_sensor` also processes tables that the loaded table list does not contain yet. Tables with status `failed`
    are retried by an operator's run, by one that streams and, where a run reads one range, by a window's first run.
    """

    setup: Setup
    database: Database
    background: Background
    by_sensor: bool

    def range(self, key: str, tables: Collection[TableId]) -> list[Done]:
        """Read the unread rest of the range that the sensor requested for these tables."""

        def choose(seen: Survey) -> Collection[TableId]:
            return {*tables, *self.unloaded(seen)}

        return self.background.run(lambda: read_range(self.database, key, choose, retry_failed=False))

    def given_up(self, key: str) -> list[Done]:
        """Retry the tables that were given up, up to the end of this range."""
        return self.background.run(lambda: read_given_up(self.database, key))

    def until(self, end: datetime, tables: Collection[TableId]) -> list[Done]:
        """Read these tables up to a commit time; another run that reads them at the same time does part of it."""
        return self.background.run(lambda: read_until(self.database, end, lambda _: tables))

    def snapshot(
        self, key: str, tables: Collection[TableId], progress: Callable[[Progress], None], *, signal: str | None
    ) -> Done:
        """Start or resume the snapshot of these tables, even if another run advances them meanwhile.

        Args:
            key: The snapshot's id.
            tables: The tables.
            progress: Called with the progress after every group of chunks.
            signal: The signal that requested the snapshot.
        """
        decision = Snapshot(key, tuple(tables), signal=signal, by_hand=not self.by_sensor)
        return self.background.run(lambda: take_snapshot(self.database, decision, progress=progress))

    def look(self) -> None:
        """Report what is wrong with the connection, the database or the configuration, as the command line does."""
        self.background.run(lambda: look(self.database))

    def health(self) -> CaptureHealth:
        """Return the health of the source's capture."""

        def ask() -> CaptureHealth:
            with self.database.session() as session:
                return session.capture_health(())

        return self.background.run(ask)

    def captured(self) -> Captured:
        """Return how far capture has progressed: what a step that begins now reads. Unknown if the source is gone.

        The source's error is not raised: the step meets it, too.
        """
        at = datetime.now(UTC)
        try:
            return Captured.of(self.health(), at)
        except MssqlCdcError:
            return Captured(at, None)

    def scanned_past(self, ends: Collection[datetime]) -> CaptureHealth:
        """Wait until capture has everything of the windows that have ended, if that is soon; return its health.

        Args:
            ends: The ends of the windows.
        """
        begun, told = time.monotonic(), False
        while True:
            health = self.health()
            missing = not_captured(health, ends)
            if missing is None or health.problem is not None or time.monotonic() - begun >= PATIENCE_SECONDS:
                return health
            until = captured_until(health)
            if until is not None and (missing - until).total_seconds() > PATIENCE_SECONDS:
                return health  # It scans on a schedule, or works through a backlog.
            if not told:
                self.database.log(f"waiting until capture has scanned the log up to {missing:%Y-%m-%d %H:%M} UTC")
                told = True
                self.background.drain()
            time.sleep(ASK_SECONDS)

    def survey(self) -> Survey:
        """Survey the source and the lake, without current tables."""
        return self.background.run(lambda: survey(self.database, currents=False))

    def count_transactions(self) -> Counted:
        """Write the transactions of complete cuts that `_transactions` lacks."""

        def count() -> Counted:
            seen = survey(self.database, currents=False)
            return count_transactions(self.database, seen.offsets, seen.tables.values(), seen.history)

        return self.background.run(count)

    def merge(self, tables: Collection[TableId]) -> Done:
        """Merge these tables' current tables up to the last complete cut, whether due or not."""

        def merge() -> Done:
            seen = survey(self.database)
            return execute(self.database, seen, Merge(tuple(tables), seen.facts.cut_number, "requested"))

        return self.background.run(merge)

    def follower(self, *, lasting: bool, saw: Callable[[Survey], None]) -> Follower:
        """Return a follower for this run, to be closed at its end; separate runs take snapshots.

        A `lasting` run reads ranges while Spark merges and while chunks are read; a run of one range waits for that.
        `saw` receives surveys.
        """
        return Follower(
            self.database,
            snapshots=False,
            ready=True,
            slow=SlowWork() if lasting else None,
            chunks=IncrementalSnapshots(thread=GroupThread() if lasting else None),
            saw=saw,
        )

    def unloaded(self, seen: Survey) -> list[TableId]:
        """Return the captured tables that the loaded table list does not contain."""
        return [member.table for member in seen.facts.members if member.table not in self.setup.names.tables]


def not_captured(health: CaptureHealth, ends: Collection[datetime]) -> datetime | None:
    """Return the newest end of a window that is over, if capture may still find changes in the window; else None.

    Args:
        health: The health of capture.
        ends: The ends of the windows.
    """
    newest = max((end for end in ends if end <= health.now), default=None)
    until = captured_until(health)
    return newest if newest is not None and (until is None or until < newest) else None
