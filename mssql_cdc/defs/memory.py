"""The state that the sensor keeps in its cursor between ticks. It holds hints: losing it costs time, never a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from mssql_cdc.errors import LoginRefusedError
from mssql_cdc.plan.facts import Cursor
from mssql_cdc.plan.waits import backoff

_ASKED_AGAIN = timedelta(minutes=2)
"""The first wait. There are at most eight logins in 15 minutes: an attempt is one to the database, one to `master`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The planner's cursor and the sensor's own state.

    `looked` is the time of the last full survey, `beaten` that of the last heartbeat, `started` when the sensor was
    turned on, `window` the window of the last run that it requested, `signals` when it polled the
    channels of signals, `absent` the tables (`TableId.text`) that could not be captured at the last survey.
    """

    v: int = 3
    cursor: Cursor = Cursor()
    looked: datetime | None = None
    beaten: datetime | None = None
    started: float | None = None
    window: str | None = None
    signals: datetime | None = None
    absent: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Serialize for Dagster's cursor."""
        return _memories().dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str | None) -> Memory:
        """Parse a cursor; an empty, outdated or unreadable one yields a fresh state."""
        try:
            found: Memory = _memories().validate_json(text or "{}")
        except ValidationError:
            return cls()
        return found if found.v == cls().v else cls()


@dataclasses.dataclass(slots=True)
class Kept:
    """What failed ticks have done, for the next one: Dagster keeps only the cursor of ticks that succeed.

    The process keeps it, like the source shared by all ticks. What a tick has seen is not kept, unless the tick failed
    only to be noticed: the next one surveys again.
    """

    _cursor: str | None = None
    _memory: Memory | None = None

    def memory(self, cursor: str | None) -> Memory:
        """Return the state with which a tick begins.

        Args:
            cursor: Dagster's; if it has changed, earlier failed ticks do not count.
        """
        return self._memory if self._memory is not None and cursor == self._cursor else Memory.from_json(cursor)

    def keep(self, cursor: str | None, found: Memory, *, whole: bool = False) -> None:
        """Note the state of a tick that fails.

        Args:
            cursor: The cursor with which it began.
            found: Its state.
            whole: The tick was decided completely and fails only to be noticed: what it has seen is kept, too.
        """
        known = Memory.from_json(cursor)
        done = replace(known, beaten=found.beaten, started=found.started, signals=found.signals)
        self._cursor, self._memory = cursor, found if whole else done


@dataclasses.dataclass(slots=True)
class Refusals:
    """The refused logins of a connector, which the sensors of its databases share.

    The server counts each attempt, and locks the account that capture itself uses. So ticks repeat the answer for a
    growing time, until a login succeeds or a sensor is turned on.

    Attributes:
        error: The last refusal; None: the last tick met none.
        at: When that was.
        count: The refusals in a row.
    """

    error: LoginRefusedError | None = None
    at: datetime | None = None
    count: int = 0

    @contextmanager
    def heeded(self, started: float | None) -> Generator[None]:
        """Run a tick, unless the server has refused the login a moment ago.

        Args:
            started: When the tick's sensor was turned on, in seconds since 1970.

        Raises:
            LoginRefusedError: The server has, or it does so now.
        """
        if self.error is not None and self.at is not None:
            rest = backoff(_ASKED_AGAIN, self.count) - abs(datetime.now(UTC) - self.at)
            if rest > timedelta(0) and (started is None or started < self.at.timestamp()):
                raise LoginRefusedError(
                    f"{self.error}; each attempt may lock the account: the next one is in {rest.total_seconds():.0f} "
                    "s, or when you turn the sensor off and on"
                )
        try:
            yield
        except LoginRefusedError as error:
            self.error, self.at, self.count = error, datetime.now(UTC), self.count + 1
            raise
        self.error, self.at, self.count = None, None, 0


@cache
def _memories() -> TypeAdapter[Any]:
    return TypeAdapter(Memory)
