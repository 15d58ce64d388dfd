"""Selects partitions to delete: ranges that the source no longer holds, so that they can never be read again.

The captured rows stay in the lake, and the materializations stay in Dagster's event log; only the lists get shorter.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from mssql_cdc.lsn import Lsn, LsnRange, parse_snapshot_key

MOST_AT_ONCE = 20
"""Dagster deletes keys one by one, 13 ms each; a tick must stay short."""
MOST_KEPT = 10_000
"""The maximum number of keys to keep if CDC cleanup is off; with more, the UI gets slow."""
SNAPSHOTS_KEPT = timedelta(days=3)


def stale_keys(
    keys: Sequence[str], *, oldest: Lsn | None, epoch: int, now: datetime, in_use: Collection[str] = ()
) -> list[str]:
    """Return the keys to delete now, at most `MOST_AT_ONCE`, oldest first.

    Args:
        keys: All partition keys, in the order in which they were added.
        oldest: The smallest minimum LSN of the capture instances; None if unknown.
        epoch: The current epoch; ranges of earlier epochs can never be read again.
        now: The current time.
        in_use: Keys of runs, of open snapshots and of the pending range; never deleted.
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
        return False  # A user-defined key; do not delete it.
    return known.epoch < epoch or (oldest is not None and known.to < oldest)
