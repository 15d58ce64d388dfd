"""How long a retry waits after a failure."""

from __future__ import annotations

from datetime import datetime, timedelta

from mssql_cdc.plan.facts import Facts, Outcome


def is_held_back(facts: Facts, earlier: Outcome) -> bool:
    """Whether the wait after the last of the earlier failures has not ended."""
    if earlier.failed_at is None:
        return False
    return facts.now < earlier.failed_at + backoff(facts.limits.retry_wait, earlier.failures)


def retry_at(facts: Facts) -> datetime:
    """Return when the pending range may be tried again."""
    return facts.cursor.not_before or facts.now + backoff(facts.limits.retry_wait, facts.cursor.attempt)


def backoff(first: timedelta, failures: int) -> timedelta:
    """Return the wait after this many failures: doubling from `first`, at most ten minutes."""
    return min(first * 2 ** min(max(failures - 1, 0), 10), timedelta(minutes=10))
