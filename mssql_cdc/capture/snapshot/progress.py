"""One run of a snapshot: its loaded state, its progress, and the reports of its steps.

`begin`, `chunk_groups` and `finish` implement the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.capture.notifications import Notifier
from mssql_cdc.capture.snapshot.chunk_plan import GroupDone, SnapshotPlan
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.protocol import SourceSession, TableLock


@dataclass(frozen=True, slots=True)
class TableProgress:
    """The progress of a snapshot for one table; `rows` are those of this run."""

    chunks_done: int
    chunks: int
    rows: int

    @property
    def percent(self) -> int:
        """The share of its chunks that are committed."""
        return 100 * self.chunks_done // max(self.chunks, 1)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a snapshot; `signal` is the id of the signal that requested it."""

    tables: Mapping[TableId, TableProgress]
    signal: str | None = None

    @property
    def total(self) -> TableProgress:
        """All tables together."""
        all_ = self.tables.values()
        return TableProgress(sum(t.chunks_done for t in all_), sum(t.chunks for t in all_), sum(t.rows for t in all_))


@dataclass
class Run:
    """One run at a snapshot: what was loaded, and what has been done so far.

    `lock` holds all tables with a key, when `snapshot.isolation.mode=exclusive` asks for it. `is_little`: the rows are
    read in this process. `committed` says when each table's last group was, in seconds of a monotonic clock.
    """

    database: Database
    session: SourceSession
    plan: SnapshotPlan
    tables: dict[TableId, LakeTable]
    schemas: dict[TableId, TableSchema]
    states: dict[TableId, TableState]
    done: dict[TableId, list[GroupDone]]
    epoch: int
    offsets: Offsets
    notifier: Notifier
    rows: dict[TableId, int]
    read_at: dict[TableId, datetime]
    failed: dict[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    committed: dict[TableId, float] = field(default_factory=dict[TableId, float])
    lock: TableLock | None = None
    is_little: bool = False


def fail(run: Run, table: TableId, error: MssqlCdcError) -> None:
    """Record a failure: the table keeps the status `snapshot` and is retried; the others continue.

    Args:
        run: The run of the snapshot.
        table: The table that failed.
        error: The reason.
    """
    run.failed[table] = error
    run.notifier.scanned(table.text, None)
    run.database.log(f"snapshot of {table} failed: {error}")


def progress_of(run: Run) -> Progress:
    """Return the progress of this run's tables."""
    return Progress(
        {
            plan.table: TableProgress(
                len({number for group in run.done.get(plan.table, ()) for number in group.chunks}),
                len(plan.chunks),
                run.rows.get(plan.table, 0),
            )
            for plan in run.plan.tables
        },
        run.plan.signal,
    )
