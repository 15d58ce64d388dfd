"""Which rows of a table the lake was never meant to have: no snapshot has read them, and none has changed since.

The configuration says so: a statement that replaces the table, a mode that reads no rows, a take-over. Such rows are
counted and reported; they are not differences, and no repair adds them. A key that the change log has deleted is not
one of them. Where the log has every row of the table, each one that the lake lacks is a difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from mssql_cdc.capture.members import LakeTable
from mssql_cdc.capture.snapshot_extensions import policy
from mssql_cdc.check.compared import Compared
from mssql_cdc.check.looked import Looked
from mssql_cdc.check.multiset import Unread, digest_of
from mssql_cdc.check.result import TableCheck
from mssql_cdc.check.sides import image_texts
from mssql_cdc.check.story import ended_snapshots
from mssql_cdc.errors import StorageError
from mssql_cdc.lake.read import exists, scan
from mssql_cdc.lake.steps import IncrementalEnded
from mssql_cdc.lake.storage import Storage
from mssql_cdc.lsn import ZERO_LSN, cut_text
from mssql_cdc.source.values import Texts


def why_unread(looked: Looked, member: LakeTable) -> str | None:
    """Why there may be rows that the lake was never meant to have; None: every row was read.

    Args:
        looked: What is known about the database.
        member: The table.
    """
    versions, offsets = looked.versions(member), looked.offsets
    ended = [facts for _, facts in ended_snapshots(versions, member.folder, offsets)]
    wholes = [(one.number, one.table) in looked.whole_reads for one in ended if one.stopped is None]
    # The log of a table without a key counts from its last snapshot on (C21).
    if any(wholes if versions[-1].key_columns else wholes[-1:]) or _read_by_chunks(looked, member):
        return None
    connector, table = looked.database.connector, member.table
    if ended:
        statement = connector.snapshot.statement_for(*table.parts)
        return "its snapshots had a condition" if statement is None else "snapshot.select.statement.overrides"
    begun = policy(looked.database, offsets)
    return "it was taken over, or began in a mode that reads no rows" if begun.data else f"snapshot.mode={begun.mode}"


def _read_by_chunks(looked: Looked, member: LakeTable) -> bool:
    """Whether an incremental snapshot has read every row."""
    ends = ((row.epoch, row.facts) for row in looked.offsets.noted if isinstance(row.facts, IncrementalEnded))
    identity = member.captured.object_id
    return any(one.object_id == identity and epoch == looked.offsets.epoch for epoch, one in ends)


def unread_of(looked: Looked, member: LakeTable, compared: Compared) -> Unread:
    """Return a counter for the rows of a table with a key that the lake was never meant to have.

    Args:
        looked: What is known about the database.
        member: The table.
        compared: What is compared in the table.
    """
    deleted = _DeletedKeys(member.home.changes, compared, looked.offsets.epoch, looked.database.storage)
    return Unread(deleted.holds)


class _DeletedKeys:
    """The keys that the change log has deleted in this epoch, by their digests.

    A key that the log has added and not deleted is in the current table, or is a finding of `change_log`.
    """

    def __init__(self, uri: str, compared: Compared, epoch: int, storage: Storage) -> None:
        self._uri, self._storage, self._first = uri, storage, cut_text(epoch, ZERO_LSN)
        self._keys = replace(compared, schema=replace(compared.schema, columns=compared.schema.keys))
        self._known: np.ndarray | None = None

    def holds(self, key: Texts) -> bool:
        """Whether the key was deleted at some point."""
        if self._known is None:
            self._known = np.unique(np.fromiter(self._read(), np.uint64))
        place = int(np.searchsorted(self._known, np.uint64(_number(key))))
        return place < len(self._known) and int(self._known[place]) == _number(key)

    def _read(self) -> Iterator[int]:
        for batch in scan(self._uri, columns=["_pos", "op", "before", "_exact"], storage=self._storage):
            deletes = pc.and_(pc.equal(batch.column("op"), "d"), pc.greater(batch.column("_pos"), self._first))
            for texts in image_texts(batch.filter(deletes), "before", self._keys.columns):
                if texts is not None:
                    yield _number(self._keys.key(texts))


def _number(key: Texts) -> int:
    return int.from_bytes(digest_of(key, ())[:8], "big")


def nothing_read(looked: Looked, member: LakeTable, why: str) -> TableCheck | None:
    """The result for a table of which the lake has no row because none has changed; None: the lake has one.

    Args:
        looked: What is known about the database.
        member: A table that has no current table, or no key.
        why: Why no row was read.

    Raises:
        StorageError: Its change log is gone.
    """
    uri, storage = member.home.changes, looked.database.storage
    if exists(uri, storage):
        if any(batch.num_rows for batch in scan(uri, columns=["_pos"], storage=storage)):
            return None
    elif member.entry is not None and member.entry.batch:
        raise StorageError(f"There is no change log to compare with: {uri}")
    note = f"no row of it was ever read ({why}), and none has changed since: there is nothing to compare"
    return TableCheck(table=member.table, status="never read", lake_rows=0, notes=(note,))


def unread_note(rows: int, why: str | None) -> tuple[str, ...]:
    """What to say about the rows that were counted.

    Args:
        rows: How many there are.
        why: Why the lake does not have them.
    """
    return (f"{rows} rows of the source were never read ({why}), so they are not compared",) if rows else ()
