"""Incremental snapshots, step by step alongside the ranges: signals, emission of staged chunks, then the next chunks.

If a run ends between two steps, a chunk that was not emitted is repeated, and nothing else. A chunk that cannot be read
never stops the ranges. `incremental_step.py` takes a step.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.state import State
from mssql_cdc.capture.incremental.store import load
from mssql_cdc.capture.survey import Survey
from mssql_cdc.errors import FencedError, MssqlCdcError, StaleStructureError
from mssql_cdc.follow.incremental_budget import Budget, Clock
from mssql_cdc.follow.incremental_control import begin_anew, obey
from mssql_cdc.follow.incremental_step import Step, unseen
from mssql_cdc.follow.incremental_thread import GroupThread
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.offsets import Offsets

REST_SECONDS = 10.0
AWAY_SECONDS = 60.0
"""How long the table being read may be out of sight before the queued ones are read first."""
MOST_FAILURES = 5
"""How often a table may have columns other than its stream's before it is left."""


@dataclass(frozen=True, slots=True)
class Advanced:
    """What a step did: whether a snapshot is due (running and not paused), whether it moved; the offsets afterwards."""

    offsets: Offsets
    is_due: bool = False
    moved: bool = False


@dataclass
class IncrementalSnapshots:
    """The incremental snapshots of one database, as one run works on them; everything that has to last is in the lake.

    Attributes:
        clock: The clock that the budget for their reads depends on.
        thread: Reads groups of chunks while the stream continues; None: a step reads its own.
    """

    clock: Clock = field(default_factory=Clock)
    thread: GroupThread | None = None
    _budget: Budget | None = None
    _resting: float = 0.0
    _failures: int = 0
    _said: str = ""
    _away: float | None = None

    def advance(self, database: Database, seen: Survey, offsets: Offsets, history: SchemaHistory) -> Advanced:
        """Take the next step, if one is due. What another run has done meanwhile is found by the next step.

        Args:
            database: The database.
            seen: The survey of this step.
            offsets: All offsets.
            history: The structures of its tables.
        """
        stored = load(database, now=self.clock.now())
        if stored.failed:
            failed = ", ".join(map(str, stored.failed))
            self._say(database, f"{failed} was given up; it continues when a run can read it again")
        if not stored.is_due or seen.facts.restored:
            return Advanced(offsets)
        gives_way = self._is_away(seen, stored.state)
        work = Step(database, seen, offsets, history, self._budgeted(database), self.thread, gives_way)
        try:
            work.follow_names()
            if stored.lost:
                begin_anew(work, stored)
            if stored.commands:
                obey(work, stored)
            if not self.rests:
                work.take()
                self._failures = 0 if work.has_read else self._failures
        except FencedError:
            work.moved = False
        except MssqlCdcError as error:
            with suppress(FencedError):
                self._failed(work, error)
        with suppress(FencedError):
            work.end()
        return Advanced(work.offsets, work.store.state.is_due and stored.open, work.moved)

    @property
    def rests(self) -> bool:
        """Whether a step failed a moment ago."""
        return time.monotonic() < self._resting

    def _is_away(self, seen: Survey, state: State) -> bool:
        """Whether the table being read has not been seen for so long that others come first: it starts over then."""
        reading = state.reading
        if reading is None or unseen(seen, reading.wanted.table) is None:
            self._away = None
            return False
        self._away = time.monotonic() if self._away is None else self._away
        return time.monotonic() - self._away >= AWAY_SECONDS

    def _budgeted(self, database: Database) -> Budget:
        self._budget = self._budget or Budget(database.connector.snapshot.incremental, self.clock, database.log)
        return self._budget

    def _say(self, database: Database, reason: str) -> None:
        """Log why the snapshot waits, unless that was logged last."""
        if reason != self._said:
            database.log(f"the incremental snapshot waits: {reason}")
        self._said = reason

    def _failed(self, work: Step, error: MssqlCdcError) -> None:
        """Leave the table, or rest if waiting may help."""
        self._failures += isinstance(error, StaleStructureError)
        if error.retriable and self._failures < MOST_FAILURES:
            self._resting = time.monotonic() + REST_SECONDS
            self._say(work.database, str(error))
            return
        self._failures = 0
        work.leave("SQL_EXCEPTION", str(error))
