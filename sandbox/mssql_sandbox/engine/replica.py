"""A readable secondary: what connections with read-only intent see while one is simulated.

It shows the database as of an earlier commit: some seconds ago, or the moment when it stopped following. Rows come from
row versions, as on a real secondary, which maps every isolation level to snapshot isolation [doc]. What does not belong
here: definitions of objects, which are those of the primary.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from mssql_sandbox.engine.clock import Clock
from mssql_sandbox.engine.log import Log
from mssql_sandbox.engine.transaction_scopes import Snapshots


class Replica:
    """At most one secondary of a server; `lag_seconds` is None while it does not follow."""

    def __init__(self, manager: Snapshots, clock: Clock, is_reader: Callable[[int], bool]) -> None:
        self._manager = manager
        self._clock = clock
        self._is_reader = is_reader
        self._pinned: int | None = None
        self._commits: deque[tuple[int, int]] = deque()
        self._hardened: dict[Log, int] = {}
        self.lag_seconds: float | None = None

    @property
    def active(self) -> bool:
        """Whether there is a secondary."""
        return self._pinned is not None

    @property
    def behind_seconds(self) -> int:
        """The age of the oldest commit that the secondary does not show yet, in whole seconds."""
        self._advance()
        return (self._clock.now_ns() - self._commits[0][0]) // 1_000_000_000 if self._commits else 0

    def serves(self, spid: int) -> bool:
        """Whether the session of this id is connected to the secondary."""
        return self.active and self._is_reader(spid)

    def follow(self, lag_seconds: float) -> None:
        """Show commits once they are `lag_seconds` old; commits already shown stay visible."""
        self._pin()
        self._hardened = {}
        self.lag_seconds = lag_seconds

    def freeze(self) -> None:
        """Stop following."""
        self._pin()
        self._advance()
        self.lag_seconds = None

    def leave(self) -> None:
        """Remove the secondary: all connections read from the primary."""
        if self._pinned is not None:
            self._manager.drop_snapshot(self._pinned)
        self._pinned, self.lag_seconds = None, None
        self._commits.clear()
        self._hardened = {}

    def sequence(self) -> int:
        """The number of the newest commit that the secondary shows."""
        self._advance()
        assert self._pinned is not None, "asked only while active"
        return self._pinned

    def committed(self, sequence: int) -> None:
        """Record a commit of the primary."""
        if self._pinned is not None:
            self._commits.append((self._clock.now_ns(), sequence))
            self._advance()

    def disconnect(self, logs: Iterable[Log]) -> None:
        """Let nothing more reach the secondary: it hardens and shows no more, and capture reads no further [doc]."""
        self.freeze()
        self._hardened = {log: log.open_block for log in logs}

    def hardened_lsn(self, log: Log) -> int:
        """Where the secondary's copy of a database's log ends: the start of the block behind what it has on disk [doc].

        What it shows may be further behind.
        """
        return self._hardened.get(log, log.open_block)

    def _pin(self) -> None:
        if self._pinned is None:
            self._pinned = self._manager.take_snapshot()

    def _advance(self) -> None:
        """Advance to the newest commit that is old enough, and release older row versions."""
        if self.lag_seconds is None or self._pinned is None:
            return
        horizon = self._clock.now_ns() - int(self.lag_seconds * 1_000_000_000)
        reached = self._pinned
        while self._commits and self._commits[0][0] <= horizon:
            reached = self._commits.popleft()[1]
        if reached != self._pinned:
            self._manager.share_snapshot(reached)
            self._manager.drop_snapshot(self._pinned)
            self._pinned = reached
