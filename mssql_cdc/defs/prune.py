"""Which partitions may go: ranges that the source no longer holds, so that nobody can read them again.

What was captured of them stays in the lake, and their materializations in Dagster's log; only the lists get shorter.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from mssql_cdc.lsn import Lsn, LsnRange, parse_snapshot_key

MOST_AT_ONCE = 20
"""Dagster deletes keys one by one, 13 ms each; a tick must stay short."""
MOST_KEPT = 10_000
"""So many keys are kept at most, where cleanup is off: beyond that the UI gets slow."""
SNAPSHOTS_KEPT = timedelta(days=3)


def stale_keys(
    keys: Sequence[str], *, oldest: Lsn | None, epoch: int, now: datetime, in_use: Collection[str] = ()
) -> list[str]:
    """The keys to delete now, at most `MOST_AT_ONCE`, oldest additions first.

    Args:
        keys: all partition keys, in the order in which they were added.
        oldest: the smallest minimum LSN of the capture instances; None when it is not known.
        epoch: the present epoch; ranges of earlier ones can never be read again.
        now: the time.
        in_use: keys of runs, of open snapshots and of the pending range; never deleted.
    """
    surplus = max(len(keys) - MOST_KEPT, 0)
    found: list[str] = []
    for number, key in enumerate(keys):
        if key not in in_use and (number < surplus or _is_past(key, oldest, epoch, now)):
            found.append(key)
            if len(found) == MOST_AT_ONCE:
                break
    return found


def _is_past(key: str, oldest: Lsn | None, epoch: int, now: datetime) -> bool:
    taken = parse_snapshot_key(key)
    if taken is not None:
        return now - taken > SNAPSHOTS_KEPT
    try:
        known = LsnRange.parse(key)
    except ValueError:
        return False  # Somebody's own key: not ours to delete.
    return known.epoch < epoch or (oldest is not None and known.to < oldest)
