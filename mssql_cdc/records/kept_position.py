"""The position that the records of a blocking snapshot show: the stream's, which stands still meanwhile (BLK-05).

An initial snapshot shows the position at which it read; nothing was streamed before it.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from mssql_cdc.records.envelope import SourceInfo
from mssql_cdc.records.rows import Changes
from mssql_cdc.records.snapshots import INITIAL, Block


def kept_position(block: Block, newest: SourceInfo | None) -> SourceInfo | None:
    """Return the event whose position the records of a snapshot show; None: they show their own.

    Args:
        block: The snapshot.
        newest: The newest event: of the stream, or a record of this snapshot, which shows its position already.
    """
    if block.kind == INITIAL or newest is None:
        return None
    return newest if newest.event_serial_no is not None or newest.snapshot == "incremental" else None


def moved_to(kept: SourceInfo | None, changes: Changes) -> Changes:
    """Return rows of a snapshot at the position that they show.

    Args:
        kept: The event with this position; None: the rows have their own.
        changes: The rows.
    """
    if kept is None:
        return changes
    count = len(changes)
    commit, change = (pa.repeat(pa.scalar(lsn, pa.string()), count) for lsn in (kept.commit_lsn, kept.change_lsn))
    return replace(changes, commit_lsn=commit, change_lsn=change)
