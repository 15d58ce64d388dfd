"""The server's clock: real by default; it can be set, advanced and frozen, and sleeping tasks follow it.

Everything in the sandbox that reads the time or waits uses a `Clock`, so that a test can let days pass at once. What
does not belong here: formatting times and SQL date arithmetic.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from datetime import datetime, timedelta, timezone

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - reads the same as the type used below
EPOCH_TICKS = 621_355_968_000_000_000
"""100-ns ticks from 0001-01-01 to 1970-01-01."""
_DATETIME_EPOCH_TICKS = 599_266_080_000_000_000


class Clock:
    """UTC time in nanoseconds, with the server's fixed zone offset in minutes for its local time."""

    def __init__(self, *, offset_minutes: int = 0) -> None:
        self.offset_minutes = offset_minutes
        self._frozen_at: int | None = None
        self._shift = 0
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._counter = itertools.count()

    @property
    def frozen(self) -> bool:
        """Whether time stands still until `advance`, `set` or `resume`."""
        return self._frozen_at is not None

    def now_ns(self) -> int:
        """Nanoseconds since 1970-01-01 UTC."""
        return time.time_ns() + self._shift if self._frozen_at is None else self._frozen_at

    def now(self) -> datetime:
        """The time as an aware UTC datetime (microseconds)."""
        return EPOCH + timedelta(microseconds=self.now_ns() // 1000)

    def utc_ticks(self) -> int:
        """100-ns ticks since 0001-01-01 UTC: SYSUTCDATETIME in storage form."""
        return EPOCH_TICKS + self.now_ns() // 100

    def local_ticks(self) -> int:
        """100-ns ticks since 0001-01-01 in server local time: SYSDATETIME in storage form."""
        return self.utc_ticks() + self.offset_minutes * 600_000_000

    def local_datetime(self) -> int:
        """Local time in 1/300 s since 1900-01-01: GETDATE in storage form."""
        return self.to_datetime(self.local_ticks())

    @staticmethod
    def to_datetime(ticks: int) -> int:
        """A datetime2 tick count as 1/300 s since 1900-01-01, rounded to nearest."""
        return ((ticks - _DATETIME_EPOCH_TICKS) * 300 + 5_000_000) // 10_000_000

    def freeze(self) -> None:
        """Stop the clock."""
        self._frozen_at = self.now_ns()

    def resume(self) -> None:
        """Let the clock run on from its current time."""
        if self._frozen_at is not None:
            self._shift = self._frozen_at - time.time_ns()
            self._frozen_at = None
            self._rearm()

    def set(self, moment: datetime) -> None:
        """Jump to an aware datetime, forwards or backwards; due sleepers wake up."""
        self._jump(int((moment - EPOCH) / timedelta(microseconds=1)) * 1000 - self.now_ns())

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass at once."""
        self._jump(int(seconds * 1_000_000_000))

    def _jump(self, nanoseconds: int) -> None:
        if self._frozen_at is None:
            self._shift += nanoseconds
        else:
            self._frozen_at += nanoseconds
        self._rearm()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` on this clock; with a frozen clock, when it is advanced."""
        future = asyncio.get_running_loop().create_future()
        due = self.now_ns() + int(seconds * 1_000_000_000)
        heapq.heappush(self._sleepers, (due, next(self._counter), future))
        self._rearm()
        await future

    def _rearm(self) -> None:
        now = self.now_ns()
        while self._sleepers and (self._sleepers[0][0] <= now or self._sleepers[0][2].done()):
            future = heapq.heappop(self._sleepers)[2]
            if not future.done():
                future.get_loop().call_soon(_wake, future)
        if self._sleepers and self._frozen_at is None:
            due, _, future = self._sleepers[0]
            future.get_loop().call_later((due - now) / 1e9, self._rearm)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
