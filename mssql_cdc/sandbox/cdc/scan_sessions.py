"""The history behind `sys.dm_cdc_log_scan_sessions` and `sys.dm_cdc_errors`.

Consecutive scans that find nothing share one row and count up `empty_scan_count`; an empty scan's LSNs are shown with a
trailing NUL character [dbz]. Rules: §1.7 of the product documentation on the two views [doc].
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

KEPT = 32
EMPTY_LSN = "00000000:00000000:0000\0"
NO_LSN = "00000000:00000000:0000"


@dataclass(slots=True)
class ScanSession:
    """One scan of the log; times are `datetime` storage values, LSNs text."""

    session_id: int
    start_time: int
    end_time: int = 0
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
    failed: bool = False


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
    """The last scans and errors of one database."""

    sessions: deque[ScanSession] = field(default_factory=lambda: deque(maxlen=KEPT))
    errors: deque[ScanError] = field(default_factory=lambda: deque(maxlen=KEPT))
    last_id: int = 0

    def empty(self, time: int) -> None:
        """Note a scan which found nothing."""
        newest = self.sessions[-1] if self.sessions else None
        if newest is not None and newest.empty_scan_count:
            newest.empty_scan_count += 1
            newest.start_time = newest.end_time = time
            return
        session = self.begin(time)
        session.end_time = time
        session.empty_scan_count = 1

    def begin(self, time: int) -> ScanSession:
        """Open a row for a scan that has work to do."""
        self.last_id += 1
        session = ScanSession(self.last_id, time)
        self.sessions.append(session)
        return session

    def fail(self, time: int, number: int, severity: int, state: int, message: str, lsn: str = NO_LSN) -> None:
        """Note a scan which failed with an error."""
        session = self.begin(time)
        session.end_time, session.error_count, session.failed = time, 1, True
        self.errors.append(
            ScanError(session.session_id, 7, time, number, severity, state, message[:1024], lsn, lsn, NO_LSN)
        )
