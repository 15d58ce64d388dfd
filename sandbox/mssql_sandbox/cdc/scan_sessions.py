"""The history behind `sys.dm_cdc_log_scan_sessions` and `sys.dm_cdc_errors`.

Consecutive scans that find nothing share one row and increment `empty_scan_count`; the LSNs of an empty scan end with a
NUL character [dbz]. Rules: §1.7 of the product documentation on the two views [doc].
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

KEPT = 32
EMPTY_LSN = "00000000:00000000:0000\0"
NO_LSN = "00000000:00000000:0000"


_SUMMED = (
    "error_count", "tran_count", "log_record_count", "schema_change_count", "command_count", "empty_scan_count",
    "failed",
)  # fmt: skip
_NEWEST = (
    "current_lsn", "end_lsn", "last_commit_lsn", "last_commit_time", "last_commit_cdc_lsn", "last_commit_cdc_time",
    "latency",
)  # fmt: skip


@dataclass(slots=True)
class ScanSession:
    """One scan of the log; times are `datetime` storage values, LSNs text."""

    session_id: int
    start_time: int
    end_time: int | None = 0
    """None: the session is active [doc]."""
    phase: str = "Done"
    error_count: int = 0
    start_lsn: str = EMPTY_LSN
    current_lsn: str = EMPTY_LSN
    end_lsn: str = EMPTY_LSN
    tran_count: int = 0
    last_commit_lsn: str = EMPTY_LSN
    last_commit_time: int | None = None
    log_record_count: int = 0
    schema_change_count: int = 0
    command_count: int = 0
    first_begin_lsn: str = EMPTY_LSN
    last_commit_cdc_lsn: str = EMPTY_LSN
    last_commit_cdc_time: int | None = None
    latency: int = 0
    empty_scan_count: int = 0
    failed: int = 0

    def add(self, other: ScanSession) -> None:
        """Merge a later session: sums, and the LSNs and times of the newest that found anything."""
        self.end_time = self.end_time if other.end_time is None else other.end_time
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.start_lsn == EMPTY_LSN:
            return
        self.start_lsn = other.start_lsn if self.start_lsn == EMPTY_LSN else self.start_lsn
        for name in _NEWEST:
            setattr(self, name, getattr(other, name))


@dataclass(frozen=True, slots=True)
class ScanError:
    """One row of `sys.dm_cdc_errors`."""

    session_id: int
    phase: int
    time: int
    number: int
    severity: int
    state: int
    message: str
    start_lsn: str
    begin_lsn: str
    sequence_value: str


@dataclass(slots=True)
class ScanHistory:
    """The newest scans and errors of one database, and the sum of all scans before them."""

    sessions: deque[ScanSession] = field(default_factory=deque)
    older: ScanSession | None = None
    errors: deque[ScanError] = field(default_factory=lambda: deque(maxlen=KEPT))
    last_id: int = 0

    def empty(self, time: int) -> None:
        """Record a scan that found nothing."""
        newest = self.sessions[-1] if self.sessions else None
        if newest is not None and newest.empty_scan_count:
            newest.empty_scan_count += 1
            newest.start_time = newest.end_time = time
            return
        session = self.begin(time)
        session.end_time = time
        session.empty_scan_count = 1

    def begin(self, time: int) -> ScanSession:
        """Add a row for a scan that has work to do."""
        self.last_id += 1
        session = ScanSession(self.last_id, time)
        self.sessions.append(session)
        if len(self.sessions) > KEPT:
            self.older = summary([self.older, self.sessions.popleft()])
        return session

    def hang(self, time: int, records: int) -> None:
        """Leave a scan without an end; the one that hangs already goes on by so many log records."""
        newest = self.sessions[-1] if self.sessions else None
        session = newest if newest is not None and newest.end_time is None else self.begin(time)
        session.end_time, session.phase = None, "First scan, building hash table"
        session.log_record_count += records

    def let_go(self, time: int) -> None:
        """End the scan that hangs, if there is one."""
        newest = self.sessions[-1] if self.sessions else None
        if newest is not None and newest.end_time is None:
            newest.end_time, newest.phase = time, "Done"

    def fail(self, time: int, number: int, severity: int, state: int, message: str, lsn: str = NO_LSN) -> None:
        """Record a scan that failed."""
        session = self.begin(time)
        session.end_time, session.error_count, session.failed = time, 1, 1
        self.errors.append(
            ScanError(session.session_id, 7, time, number, severity, state, message[:1024], lsn, lsn, NO_LSN)
        )


def summary(sessions: Iterable[ScanSession | None]) -> ScanSession | None:
    """The row of session 0: all sessions since the server was started [doc]; None if there are none."""
    total: ScanSession | None = None
    for session in sessions:
        if session is None:
            continue
        if total is None:
            total = ScanSession(0, session.start_time, phase="Aggregate")
        total.add(session)
    return total
