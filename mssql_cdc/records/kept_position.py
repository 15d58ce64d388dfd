"""The one position that all records of a snapshot show, wherever each chunk was read.

A blocking snapshot shows the position of the stream, which does not move in the meantime (BLK-05). Any other shows the
lowest position of its rows: the stream continues after it, so whoever resumes there gets every change.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from mssql_cdc.records.envelope import SourceInfo
from mssql_cdc.records.rows import Changes
from mssql_cdc.records.snapshots import INITIAL, Block


def kept_position(block: Block, newest: SourceInfo | None) -> SourceInfo:
    """Return an event with the position that the records of a snapshot show.

    Args:
        block: The snapshot.
        newest: The newest event: of the stream, or a record of this snapshot, which already shows its position.
    """
    is_streamed = newest is not None and (newest.event_serial_no is not None or newest.snapshot == "incremental")
    if block.kind != INITIAL and newest is not None and is_streamed:
        return newest
    return SourceInfo("", "", "", None, commit_lsn=block.commit_lsn)


def moved_to(kept: SourceInfo, changes: Changes) -> Changes:
    """Return rows of a snapshot at the position that they show.

    Args:
        kept: The event with this position.
        changes: The rows.
    """
    count = len(changes)
    commit, change = (pa.repeat(pa.scalar(lsn, pa.string()), count) for lsn in (kept.commit_lsn, kept.change_lsn))
    return replace(changes, commit_lsn=commit, change_lsn=change)
