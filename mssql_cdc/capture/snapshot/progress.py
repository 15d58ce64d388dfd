"""One run of a snapshot: its loaded state, its progress, and the reports of its steps.

`begin`, `chunk_groups` and `finish` implement the steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from time import monotonic

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.capture.snapshot.chunk_plan import GroupDone, SnapshotPlan, TablePlan
from mssql_cdc.capture.snapshot.notes import SnapshotNotes
from mssql_cdc.errors import FencedError, MssqlCdcError
from mssql_cdc.lake.log import TableState
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.protocol import SourceSession, TableLock
from mssql_cdc.source.values import Witness


@dataclass(frozen=True, slots=True)
class TableProgress:
    """The progress of a snapshot for one table.

    Attributes:
        chunks_done: The chunks that are committed.
        chunks: All chunks: an estimate until they are all planned, which happens while they are read.
        rows: The rows that were read.
        expected: The rows of the table as the source estimates them; 0: unknown.
        before: The rows that earlier runs have read.
        ended: Whether the table is read to its end, and streams.
        is_planned: Whether the number of chunks is known.
    """

    chunks_done: int
    chunks: int
    rows: int
    expected: int = 0
    before: int = 0
    ended: bool = False
    is_planned: bool = True

    @property
    def percent(self) -> int:
        """The share of its chunks that are committed."""
        return 100 * self.chunks_done // max(self.chunks, 1)

    @property
    def chunks_text(self) -> str:
        """How many chunks are committed, of how many."""
        return f"{self.chunks_done} of {'' if self.is_planned else 'about '}{self.chunks} chunks"


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a snapshot.

    Attributes:
        tables: The progress of each table.
        signal: The id of the signal that requested it.
        seconds: For how long this run has been reading.
    """

    tables: Mapping[TableId, TableProgress]
    signal: str | None = None
    seconds: float = 0.0

    @property
    def total(self) -> TableProgress:
        """All tables together."""
        all_ = self.tables.values()
        return TableProgress(
            sum(t.chunks_done for t in all_),
            sum(t.chunks for t in all_),
            sum(t.rows for t in all_),
            sum(t.expected for t in all_),
            sum(t.before for t in all_),
            is_planned=all(t.is_planned for t in all_),
        )

    @property
    def rows_left(self) -> int:
        """The rows that are left, as the source estimates them: chunks of small tables have few."""
        return sum(t.expected * (t.chunks - t.chunks_done) // max(t.chunks, 1) for t in self.tables.values())

    @property
    def percent(self) -> int:
        """The share of all rows that is read; if the source does not know how many there are, of all chunks."""
        expected = self.total.expected
        return 100 * (expected - self.rows_left) // expected if expected else self.total.percent

    @property
    def rows_per_second(self) -> float | None:
        """The rate of this run; None: it has not read anything yet."""
        rows = self.total.rows - self.total.before
        return rows / self.seconds if self.seconds and rows else None

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the rate of this run; None: unknown."""
        rate = self.rows_per_second
        return self.rows_left / rate if rate and self.total.expected else None

    @property
    def text(self) -> str:
        """One line: percent, rows, rate, time left."""
        total, rate, left = self.total, self.rows_per_second, self.seconds_left
        said = [f"{self.percent}%", f"{total.rows:,} rows", total.chunks_text]
        said += [f"{rate:,.0f} rows/s"] if rate is not None else []
        said += [f"{_duration(left)} left"] if left else []
        return ", ".join(said)


@dataclass
class Run:
    """One run of a snapshot: what was loaded, and what has been done so far.

    `lock` holds all tables with a key, if `snapshot.isolation.mode=exclusive` requires it. `is_little`: the rows are
    read in this process. `chunk_rows` is the approximate number of rows in a planned chunk. `committed` is when each
    table's last group was committed, in seconds of a monotonic clock, `begun` when this run began. `rows` are the
    numbers of rows read from each table, `before` those that earlier runs have read, `expected` the source's estimates
    of all. Control signals after row `heard` of `_signals` concern the snapshot: `stopped` are the tables that it gave
    up, with the id of the signal, `refused` those that it did not; `paused`: it ends before it is complete. `witness`
    is of the history that was read (A7).
    """

    database: Database
    session: SourceSession
    plan: SnapshotPlan
    tables: dict[TableId, LakeTable]
    schemas: dict[TableId, TableSchema]
    states: dict[TableId, TableState]
    done: dict[TableId, list[GroupDone]]
    epoch: int
    chunk_rows: int
    offsets: Offsets
    notes: SnapshotNotes
    rows: dict[TableId, int]
    read_at: dict[TableId, datetime]
    failed: dict[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    committed: dict[TableId, float] = field(default_factory=dict[TableId, float])
    lock: TableLock | None = None
    is_little: bool = False
    begun: float = field(default_factory=monotonic)
    expected: Mapping[TableId, int] = field(default_factory=dict[TableId, int])
    before: Mapping[TableId, int] = field(default_factory=dict[TableId, int])
    heard: int | None = None
    stopped: dict[TableId, str] = field(default_factory=dict[TableId, str])
    refused: set[TableId] = field(default_factory=set[TableId])
    paused: bool = False
    witness: Witness | None = None


def fail(run: Run, table: TableId, error: MssqlCdcError) -> None:
    """Record a failure: the table keeps the status `snapshot` and is retried; the others continue.

    Args:
        run: The run of the snapshot.
        table: The table that failed.
        error: The reason.
    """
    run.failed[table] = error
    if not isinstance(error, FencedError):
        run.notes.failed(table)
    run.database.log(f"snapshot of {table} failed: {error}")


def progress_of(run: Run) -> Progress:
    """Return the progress of this run's tables."""
    tables = {plan.table: table_progress(run, plan) for plan in run.plan.tables}
    return Progress(tables, run.plan.signal, monotonic() - run.begun)


def table_progress(run: Run, plan: TablePlan) -> TableProgress:
    """Return the progress of a table; until its last chunk is planned, at least one more is to come.

    Args:
        run: The run of the snapshot.
        plan: The plan of the table.
    """
    table, planned, numbers = plan.table, len(plan.chunks), {*plan.numbers}
    expected = run.expected.get(table, 0)
    return TableProgress(
        len({number for group in run.done.get(table, ()) for number in group.chunks if number in numbers}),
        planned if plan.is_whole else max(planned + 1, ceil(expected / run.chunk_rows)),
        run.rows.get(table, 0),
        expected,
        run.before.get(table, 0),
        table not in run.tables,
        plan.is_whole,
    )


def _duration(seconds: float) -> str:
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {left} s" if minutes else f"{left} s"


def require_held(tables: Iterable[LakeTable], before: Offsets, now: Offsets) -> None:
    """Raise FencedError if a row between these offsets has an entry for one of the tables: another run has it now (A3).

    Args:
        tables: Tables that are in a snapshot.
        before: The offsets after this run's own row.
        now: Newer offsets.
    """
    for one in tables:
        name, number = one.table.text, one.captured.object_id
        if before.places(name, number) != now.places(name, number):
            raise FencedError(f"Another run has taken over the snapshot of {name} since this run began")
