"""One run at a snapshot: what was loaded, what has been done so far, how its steps report.

What the steps do is in `begin`, `read` and `finish`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from mssql_cdc.capture.context import Database
from mssql_cdc.capture.tables import Member
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.snapshot.notify import Notifier
from mssql_cdc.snapshot.plan import GroupDone, SnapshotPlan
from mssql_cdc.source.sqlserver.source import SqlServerSession


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a snapshot has come."""

    chunks_done: int
    chunks: int
    rows: int


@dataclass
class Run:
    """One run at a snapshot: what was loaded, and what has been done so far."""

    database: Database
    session: SqlServerSession
    plan: SnapshotPlan
    members: dict[TableId, Member]
    schemas: dict[TableId, TableSchema]
    states: dict[TableId, TableState]
    done: dict[TableId, list[GroupDone]]
    epoch: int
    offsets: Offsets
    notifier: Notifier
    rows: dict[TableId, int]
    read_at: dict[TableId, datetime]
    failed: dict[TableId, MssqlCdcError] = field(default_factory=dict)


def fail(run: Run, table: TableId, error: MssqlCdcError) -> None:
    """The table keeps the status `snapshot` and is tried again; the others go on."""
    run.failed[table] = error
    run.notifier.scanned(table.text, None)
    run.database.log(f"snapshot of {table} failed: {error}")


def progress_of(run: Run) -> Progress:
    """How far this run's tables have come."""
    done = sum(len({n for group in groups for n in group.chunks}) for groups in run.done.values())
    return Progress(done, sum(len(t.chunks) for t in run.plan.tables), sum(run.rows.values()))
