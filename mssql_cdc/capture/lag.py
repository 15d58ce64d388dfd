"""The lag of change logs and current tables, in seconds: a pure function of what source and lake report.

A table's lag is the age of the oldest change that it may lack. It is 0 if the table contains every change that was
captured and capture scans the log. While capture is stalled, or scans rarely, nothing is known about the time since its
last scan; while it works through a backlog, nothing about the time since the changes that its last scan found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mssql_cdc.lsn import Lsn
from mssql_cdc.source.values import CaptureHealth

BACKLOG = timedelta(seconds=30)
"""Changes that a scan finds this late are a backlog: the capture job scans every 5 s, Azure SQL Database every 20 s."""
SETTLING = timedelta(minutes=2)
"""What was committed this long ago is captured, if capture scans as often as it does by default."""
_MARGIN = timedelta(seconds=30)
"""A scan reads up to the end of the log as of some moment, which may be shortly before the scan itself ends."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The lags of one table in seconds; None: unknown, or the table does not exist."""

    log: float | None = None
    current: float | None = None


def lag_of(position: Lsn | None, unmerged: datetime | None, health: CaptureHealth, *, has_current: bool = True) -> Lag:
    """Return a table's lags.

    Args:
        position: Up to where the change log has been read; None before the table streams.
        unmerged: The commit time of the oldest row of the change log that the current table lacks.
        health: How capture is doing, with the first unread transaction after `position`.
        has_current: Whether the table has a current table, which needs a key.
    """
    if position is None:
        return Lag()
    known = [health.unread.get(position), health.scanned if _is_silent(health) else None, _backlog(health)]
    log = _age(known, health.now)
    return Lag(log, max(log, _age([unmerged], health.now)) if has_current else None)


def unread_lag(position: Lsn | None, health: CaptureHealth) -> float | None:
    """Return the lag by which a change log is judged: a capture job that scans rarely does so by design.

    Args:
        position: Up to where the change log has been read; None before the table streams.
        health: How capture is doing, with the first unread transaction after `position`.
    """
    judged = health if health.problem is not None else replace(health, scanned=None)
    return lag_of(position, None, judged).log


def captured_until(health: CaptureHealth) -> datetime | None:
    """Return the commit time up to which capture has every change, by the source's clock; None: unknown.

    While the very first scan is running, it counts as a scan of this moment, and may be far from the log's end.

    Args:
        health: How capture is doing. What is read must have been read after this was queried.
    """
    if health.scanned is None or health.scanned >= health.now:
        return None
    return min(health.now - SETTLING, health.scanned - max(health.behind, _MARGIN))


def without_answer(last: CaptureHealth, elapsed: timedelta) -> CaptureHealth:
    """What is known if the source has not answered for some time: nothing about the time since its last answer."""
    scanned = last.scanned if _is_silent(last) else last.now
    problem = last.problem or "the source does not answer"
    return replace(last, now=last.now + elapsed, scanned=scanned, problem=problem)


def _is_silent(health: CaptureHealth) -> bool:
    """Whether the last scan was so long ago that changes may be waiting for the next one."""
    if health.problem is not None:
        return True
    return health.scanned is not None and health.now - health.scanned >= SETTLING


def _backlog(health: CaptureHealth) -> datetime | None:
    """The time up to which a capture job with a backlog has progressed; None: it has none."""
    return health.now - health.behind if health.behind > BACKLOG else None


def _age(since: list[datetime | None], now: datetime) -> float:
    return max((round((now - at).total_seconds(), 3) for at in since if at is not None and at < now), default=0.0)
