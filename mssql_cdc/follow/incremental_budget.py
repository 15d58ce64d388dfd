"""The budget of incremental snapshots: rows per second, hours of the day, the lag of the stream and of replicas.

It says whether the next chunks may be read now. What was read is emitted in any case.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from mssql_cdc.capture.lag import unread_lag
from mssql_cdc.config.snapshot_settings import IncrementalSettings
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lsn import Lsn
from mssql_cdc.source.protocol import SourceSession

MOST_REST = timedelta(minutes=1)
"""No rest is longer: it follows one group, which has the rows of one second."""
LAG_SECONDS = 5.0
"""How long a measured lag is used: measuring it costs the source some queries."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of day, and a monotonic clock in seconds."""

    now: Callable[[], datetime] = _now
    seconds: Callable[[], float] = time.monotonic


@dataclass
class Budget:
    """What a run may read; the state of the snapshots says until when they rest, whichever run has read last.

    Attributes:
        settings: The limits.
        clock: The times.
        log: Receives a line when reading has to wait for the stream, or for a secondary replica.
    """

    settings: IncrementalSettings
    clock: Clock
    log: Callable[[str], None]
    _lag: tuple[float, tuple[float, str]] | None = field(default=None)
    _waits: bool = False

    @property
    def most_rows(self) -> int | None:
        """The maximum number of rows in one group, which is that of one second; None: no limit."""
        return self.settings.max_rows_per_second or None

    def rest_after(self, rows: int) -> datetime | None:
        """Return until when the limit makes the next rows wait because these were read; None: it does not.

        Args:
            rows: The number of rows.
        """
        return None if self.most_rows is None else self.clock.now() + timedelta(seconds=rows / self.most_rows)

    def allows(self, session: SourceSession, offsets: Offsets, *, rest: datetime | None) -> bool:
        """Whether chunks may be read now.

        Args:
            session: A session on the source.
            offsets: All offsets.
            rest: Until when reading rests.
        """
        now = self.clock.now()
        # A rest that ends later was noted by a clock that was ahead.
        rests = self.most_rows is not None and rest is not None and now < rest <= now + MOST_REST
        if not self.settings.is_open(now) or rests:
            return False
        most = self.settings.max_lag_s
        if not most:
            return True
        lag, what = self._known_lag(session, offsets)
        if lag > most and not self._waits:
            self.log(f"the incremental snapshot waits: {what} is {lag:.0f} s behind")
        self._waits = lag > most
        return not self._waits

    def _known_lag(self, session: SourceSession, offsets: Offsets) -> tuple[float, str]:
        """The largest lag in seconds, as of the last query, and what has it."""
        now = self.clock.seconds()
        if self._lag is None or now >= self._lag[0] + LAG_SECONDS:
            entries = [one for one in offsets.present.values() if one.status == "streaming"]
            positions = {Lsn.parse(to) for one in entries if (to := one.to_in(offsets.epoch)) is not None}
            health = session.capture_health(positions)
            unread = (unread_lag(one, health) or 0.0 for one in positions)
            stream = max(health.behind.total_seconds(), *unread)
            replica = session.replica_lag().total_seconds()
            self._lag = now, max((stream, "the stream"), (replica, "a secondary replica"))
        return self._lag[1]
