"""How long a retry waits after a failure.

No wait is longer than its own length, even if the clock has been set back since the failure.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mssql_cdc.plan.facts import Facts, Outcome


def is_held_back(facts: Facts, earlier: Outcome) -> bool:
    """Whether the wait after the last of the earlier failures has not ended."""
    return waits_after(earlier, facts.limits.retry_wait, facts.now)


def waits_after(earlier: Outcome, first: timedelta, now: datetime) -> bool:
    """Whether the wait after the last of the earlier failures has not ended.

    Args:
        earlier: The outcome of the earlier runs.
        first: The wait after one failure.
        now: The current time.
    """
    return earlier.failed_at is not None and abs(now - earlier.failed_at) < backoff(first, earlier.failures)


def retry_at(facts: Facts) -> datetime:
    """Return when the pending range may be tried again."""
    wait, planned = backoff(facts.limits.retry_wait, facts.cursor.attempt), facts.cursor.not_before
    if planned is None:
        return facts.now + wait
    return planned if planned <= facts.now + wait else facts.now


def backoff(first: timedelta, failures: int) -> timedelta:
    """Return the wait after this many failures: doubling from `first`, at most ten minutes."""
    return min(first * 2 ** min(max(failures - 1, 0), 10), timedelta(minutes=10))
