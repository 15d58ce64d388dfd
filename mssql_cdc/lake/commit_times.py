"""Commit times of a change log's rows: of the newest row, and of the oldest row that a current table lacks.

They come from the files' statistics; if a file has rows on both sides of the bound, the rows after the bound are read.
If a file lacks statistics, all rows are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow.compute as pc

from mssql_cdc.lake.add_actions import add_actions
from mssql_cdc.lake.opened import open_table
from mssql_cdc.lake.read import BatchSlice, exists, scan
from mssql_cdc.lake.storage import LOCAL, Storage

_STATISTICS = ("min._batch", "max._batch", "min._commit_ts", "max._commit_ts")


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """The commit time of the newest row, and of the oldest row after a `_batch`; None: there is no such row."""

    newest: datetime | None = None
    oldest_after: datetime | None = None


def commit_times(uri: str, *, after: int, storage: Storage = LOCAL) -> CommitTimes:
    """Return the commit times of a change log.

    Args:
        uri: Its folder; there may be no table.
        after: The `_batch` that the current table has reached.
        storage: How to reach the folder.
    """
    if not exists(uri, storage):
        return CommitTimes()
    actions = add_actions(open_table(uri, storage))
    if not actions.num_rows:
        return CommitTimes()  # There is no file yet.
    names = set(actions.column_names)
    if any(name not in names or actions.column(name).null_count for name in _STATISTICS):
        return _of_rows(uri, after, storage)  # A user may choose the columns with statistics, and compact without any.
    later = actions.filter(pc.greater(actions.column("max._batch"), after))
    whole = later.filter(pc.greater(later.column("min._batch"), after))
    found = [_instant(pc.min(whole.column("min._commit_ts")).as_py())]
    if whole.num_rows < later.num_rows:
        batches = BatchSlice(after, pc.max(later.column("max._batch")).as_py())
        for batch in scan(uri, batches=batches, columns=["_commit_ts"], storage=storage):
            found.append(_instant(pc.min(batch.column("_commit_ts")).as_py()))
    newest = _instant(pc.max(actions.column("max._commit_ts")).as_py())
    return CommitTimes(newest, min((at for at in found if at is not None), default=None))


def _of_rows(uri: str, after: int, storage: Storage) -> CommitTimes:
    """The same, computed from all rows."""
    newest, oldest = list[datetime | None](), list[datetime | None]()
    for batch in scan(uri, columns=["_batch", "_commit_ts"], storage=storage):
        later = batch.filter(pc.greater(batch.column("_batch"), after))
        newest.append(_instant(pc.max(batch.column("_commit_ts")).as_py()))
        oldest.append(_instant(pc.min(later.column("_commit_ts")).as_py()))
    found, lacking = ([at for at in times if at is not None] for times in (newest, oldest))
    return CommitTimes(max(found, default=None), min(lacking, default=None))


def _instant(at: datetime | None) -> datetime | None:
    return at if at is None or at.tzinfo is not None else at.replace(tzinfo=UTC)
