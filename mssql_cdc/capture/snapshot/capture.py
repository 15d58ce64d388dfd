"""Carries a snapshot out (case B of correctness C): groups of chunks, each one Spark job and a commit per table.

A snapshot that was interrupted goes on where its commits say (rule A6). While it runs its tables have the status
`snapshot` in `_offsets`; all others stream on (rule C22). A table without a key is read whole under a lock (C21).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import versioned
from mssql_cdc.capture.snapshot.begin import Wanted, begin, loaded_members
from mssql_cdc.capture.snapshot.plan import low_mark
from mssql_cdc.capture.snapshot.read import read_groups, read_locked_tables
from mssql_cdc.capture.snapshot.run import Progress
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.offsets import OffsetRow, Offsets, append_offsets
from mssql_cdc.schema import TableId

CHUNK_ROWS = 200_000
GROUP_CHUNKS = 8


@dataclass(frozen=True, slots=True)
class SnapshotResult:
    """What a snapshot did: rows per table, and the tables that failed with their errors (they keep the status)."""

    id: str
    rows: Mapping[TableId, int]
    failed: Mapping[TableId, MssqlCdcError]

    def raise_failure(self) -> None:
        """Raise the first table's error."""
        for table, error in self.failed.items():
            raise type(error)(f"snapshot of {table}: {error}") from error


def take_positions(database: Database, tables: Collection[TableId], *, id_: str, epoch: int = 0) -> Offsets:
    """Let these tables stream from now on without reading their rows (snapshot modes without data, SNP-05)."""
    with database.session() as session:
        captured = session.captured()
        members, offsets = loaded_members(database, session)
    entries = {}
    for table in tables:
        member = members[table]
        start = member.captured.newest.start_lsn
        to = low_mark(captured, start) if captured else start
        entries[table.text] = member.new_entry(status="streaming", to=to.text, epoch=epoch)
    row = OffsetRow(
        kind="snapshot",
        at=datetime.now(UTC),
        tables=entries,
        epoch=epoch,
        partition=id_,
        run_id=database.run_id,
        facts=json.dumps({"snapshot": id_, "data": False}),
    )
    after = append_offsets(database.layout, row, seen=offsets, storage=database.storage)
    versioned(database, {t: (members[t].captured.newest, members[t].incarnation) for t in tables})
    return after


def capture(
    database: Database,
    tables: Collection[TableId],
    *,
    id_: str,
    epoch: int = 0,
    signal: str | None = None,
    filters: Mapping[TableId, str] | None = None,
    chunk_rows: int | None = None,
    group_chunks: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> SnapshotResult:
    """Begin the snapshot, or go on with it, until every table is read or has failed.

    Args:
        database: where to read and to write.
        tables: what to read.
        id_: the snapshot's partition key.
        epoch: the present epoch.
        signal: the id of the signal that asked for it.
        filters: SELECT statements that stand for tables (BLK-04); they win over configured ones.
        chunk_rows: rows per chunk.
        group_chunks: chunks per Spark job.
        progress: is told after every group.

    Raises:
        SourceUnavailableError, SourceError: the source could not be asked; what was committed stays.
        FencedError: another run holds these tables.
    """
    with database.session() as session:
        run = begin(database, session, Wanted(id_, tables, chunk_rows or CHUNK_ROWS, epoch, signal, filters or {}))
        try:
            read_locked_tables(run)
            read_groups(run, group_chunks or GROUP_CHUNKS, progress)
        finally:
            run.notifier.flush()
    return SnapshotResult(id_, run.rows, run.failed)
