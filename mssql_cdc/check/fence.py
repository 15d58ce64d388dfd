"""Fences: ends of the source's log that the lake must have passed before it is judged.

Only while something seems to differ, or is repaired, does the check follow the database, as `mssql-cdc run` does, but
without merging. Every step is fenced, so a concurrent run does no harm. A source that went back in time is not
followed: beginning another epoch is up to a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.capture.survey import Survey
from mssql_cdc.errors import (
    DataLostError,
    FencedError,
    MssqlCdcError,
    SourceUnavailableError,
)
from mssql_cdc.lsn import Lsn
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.loop import goal_behind
from mssql_cdc.run.standing import restored
from mssql_cdc.schema import TableId
from mssql_cdc.source.protocol import CheckSession
from mssql_cdc.source.values import LogMark

T = TypeVar("T")
PATIENCE = 120.0
"""Seconds until a mark that capture has not passed is an error."""


@dataclass
class Fence:
    """Advances change logs of a database past marks in the source's log.

    `restored` is the error of a source that went back in time: positions in the lake say nothing about its log.
    """

    database: Database
    restored: MssqlCdcError | None = None

    def mark(self) -> LogMark:
        """The current end of the source's log."""
        with self.database.session() as session:
            return session.mark()

    def wait(self, mark: LogMark, member: LakeTable) -> None:
        """Follow the database until the table's change log holds everything that was committed below the mark.

        Args:
            mark: The mark.
            member: The table.

        Raises:
            SourceUnavailableError: it took too long.
            DataLostError: the table is no longer followed.
            SourceRestoredError, NotCaughtUpError: the source went back in time (`restored`).
        """
        if self.restored is not None:
            raise self.restored
        table, end = member.table, time.monotonic() + PATIENCE
        goal = self._until(lambda: goal_behind(self.database, mark), end, f"capture passes {mark.lsn}")
        self._follow(lambda: self._reached(member, goal), table, end, f"the change log of {table} holds {goal}")

    def wait_shown(self, session: CheckSession, member: LakeTable) -> None:
        """Wait until the rows that a session reads are no older than the lake's: a run may read a server that is ahead.

        Args:
            session: Reads the rows.
            member: The table.

        Raises:
            SourceUnavailableError: it took too long.
        """
        offsets = self.database.offsets()
        entry = member.entry_in(offsets)
        known = entry.to_in(offsets.epoch) if entry is not None and self.restored is None else None
        if known is not None:
            to, end = Lsn.parse(known), time.monotonic() + PATIENCE
            self._until(lambda: session.shows(to) or None, end, f"the server that is read shows {to}, as the lake does")

    def follow(self, until: Callable[[], bool], table: TableId, what: str) -> None:
        """Follow the database until a condition holds for a table.

        Args:
            until: Returns whether the condition holds.
            table: The table.
            what: The condition in words; completes "waiting until …".

        Raises:
            SourceUnavailableError: It took too long.
            MssqlCdcError: The table can no longer be followed.
        """
        self._follow(until, table, time.monotonic() + PATIENCE, what)

    def _follow(self, until: Callable[[], bool], table: TableId, end: float, what: str) -> None:
        follower = Follower(self.database, snapshots=False, merge=False, chunks=None, saw=_require_unrestored)

        def arrived() -> bool | None:
            if until():
                return True
            try:
                follower.step().raise_failure()
            except (FencedError, SourceUnavailableError):
                return None  # Another run is doing the same, or the source is unavailable: both pass.
            error: MssqlCdcError | None = follower.hopeless.get(table)
            if error is not None:
                raise error
            return until() or None

        self._until(arrived, end, what)

    def _reached(self, member: LakeTable, goal: Lsn) -> bool:
        # The table's newest entry may be under a former name, and the one under its name another table's (B15).
        offsets = self.database.offsets()
        entry = member.entry_in(offsets) or member.entry
        if entry is None or entry.status not in {"streaming", "failed"}:
            status = entry.status if entry else "unknown"
            raise DataLostError(f"{member.table} is not streaming: its status is {status}")
        to = entry.to_in(offsets.epoch)
        return to is not None and Lsn.parse(to) >= goal

    def _until(self, look: Callable[[], T | None], end: float, what: str) -> T:
        while True:
            found = look()
            if found is not None:
                return found
            if time.monotonic() > end:
                with self.database.session() as session:
                    why = session.held_back()
                raise SourceUnavailableError(
                    f"Timed out after {PATIENCE:g} s, waiting until {what}; "
                    f"{why or 'check that the capture job is running'}"
                )
            time.sleep(self.database.connector.streaming.poll_seconds)


def _require_unrestored(seen: Survey) -> None:
    error = restored(seen)
    if error is not None:
        raise error
