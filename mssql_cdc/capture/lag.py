"""The lag of change logs and current tables, in seconds: a pure function over what source and lake tell.

A table's lag is the age of the oldest change that it may lack. It is 0 if the table contains every change that was
captured and capture scans the log. While capture stands still, nothing is known of the time since its last scan; while
it works off a backlog, nothing of the time since the changes that its last scan found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mssql_cdc.lsn import Lsn
from mssql_cdc.source.values import CaptureHealth

BACKLOG = timedelta(seconds=30)
"""Changes that a scan finds so late are a backlog: the capture job scans every 5 s, Azure SQL Database every 20 s."""


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
        health: How capture does, with the first unread transaction behind `position`.
        has_current: Whether the table has a current table, which needs a key.
    """
    if position is None:
        return Lag()
    captured = health.now - health.behind if health.behind > BACKLOG else None
    known = [health.unread.get(position), health.scanned if health.problem is not None else None, captured]
    log = _age(known, health.now)
    return Lag(log, max(log, _age([unmerged], health.now)) if has_current else None)


def without_answer(last: CaptureHealth, elapsed: timedelta) -> CaptureHealth:
    """What is known if the source has not answered for some time: nothing about the time since its last answer."""
    scanned = last.scanned if last.problem is not None else last.now
    problem = last.problem or "the source does not answer"
    return replace(last, now=last.now + elapsed, scanned=scanned, problem=problem)


def _age(since: list[datetime | None], now: datetime) -> float:
    return max((round((now - at).total_seconds(), 3) for at in since if at is not None and at < now), default=0.0)
