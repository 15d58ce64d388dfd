"""What a run knows about the states of its tables, from the lake, the source and its own errors.

`judge.py` derives the checks from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.range import TableOutcome
from mssql_cdc.capture.survey import DEFAULT_RETENTION, RETENTION_SHARE
from mssql_cdc.defs.failures import without_fences
from mssql_cdc.defs.setup import Setup
from mssql_cdc.errors import MssqlCdcError
from mssql_cdc.lake.gaps import Gap, open_gaps
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.named_gaps import named, names_by_folder
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry
from mssql_cdc.run.execute import Done
from mssql_cdc.run.standing import standings
from mssql_cdc.schema import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class Seen:
    """What was known at one moment: values by table name, and errors by table."""

    named: tuple[Mapping[str, object], ...]
    errors: tuple[Mapping[TableId, MssqlCdcError], ...]


@dataclass
class TableStates:
    """The states of a database's tables.

    Attributes:
        setup: The database.
        database: Where the lake is.
        only: The tables that an operator selected; None: all tables.
        offsets: The rows of `_offsets`; None: no step has been taken yet.
        history: The structures of the tables.
        gaps: The open gaps, by `TableId.text`.
        absent: Why tables cannot be captured now (`run/standing`), by `TableId.text`.
        errors: The errors of the last reads.
        unmerged: The errors of the last updates of current tables.
        retention: How long the source keeps changes.
        captures: Whether changes are read after snapshots.
    """

    setup: Setup
    database: Database
    only: Collection[TableId] | None = None
    offsets: Offsets | None = None
    history: SchemaHistory | None = None
    gaps: Mapping[str, Sequence[Gap]] = field(default_factory=dict[str, Sequence[Gap]])
    absent: Mapping[str, str] = field(default_factory=dict[str, str])
    errors: dict[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    unmerged: dict[TableId, MssqlCdcError] = field(default_factory=dict[TableId, MssqlCdcError])
    retention: timedelta = DEFAULT_RETENTION
    captures: bool = True
    _ledger: tuple[Mapping[str, list[Gap]], Mapping[str | None, str]] | None = None

    def step(self, done: Done) -> None:
        """Record the result of a step, except for gaps."""
        self.offsets, self.history = done.offsets, done.history
        read = outcomes(done)
        self.errors = {table: error for table, error in self.errors.items() if table not in read}
        self.errors |= without_fences(done.failed)
        merged = done.merged
        self.unmerged = {one: error for one, error in self.unmerged.items() if one not in merged.tables}
        self.unmerged |= without_fences(merged.errors)
        self.absent = standings(done.seen, self.setup.listed).absent
        self.retention = done.seen.facts.limits.idle_advance * RETENTION_SHARE
        self.captures = done.seen.facts.policy.stream

    def load_gaps(self) -> None:
        """Load the open gaps of the lake."""
        database = self.database
        offsets = self.offsets if self.offsets is not None else database.offsets()
        history = self.history if self.history is not None else database.history()
        ledger = open_gaps(database.layout, database.storage), names_by_folder(offsets, history.versions)
        if ledger != self._ledger:  # Which rows of `_offsets` they belong to is looked up once: that reads all rows.
            self.gaps, self._ledger = named(ledger[0], offsets, ledger[1]) if ledger[0] else {}, ledger

    def entry(self, table: TableId) -> Entry:
        """The newest entry of a table; if it has none, that of a table that streams from the beginning."""
        entry = self.offsets.entry(table.text) if self.offsets is not None else None
        return entry or Entry("streaming")

    def newest(self, table: TableId) -> TableSchema | None:
        """The newest structure of a table; None: it is not known."""
        return self.history.newest(table) if self.history is not None else None

    def is_wanted(self, table: TableId) -> bool:
        """Whether the run is about the table."""
        return self.only is None or table in self.only

    def streams(self, table: TableId) -> bool:
        """Whether the table has been read as far as the others: otherwise its windows are missing, visibly."""
        entry = self.entry(table)
        if self.offsets is None or entry.status != "streaming" or entry.to is None or table in self.errors:
            return False
        if table.text in self.absent:
            return False
        cut = self.offsets.last_cut()
        return cut is None or cut.to is None or entry.epoch > cut.epoch or entry.to >= cut.to

    def seen(self) -> Seen:
        """What is known now."""
        entries: Mapping[str, Entry] = self.offsets.entries if self.offsets is not None else dict[str, Entry]()
        return Seen((entries, self.gaps, self.absent), (self.errors, self.unmerged))

    def changed_since(self, before: Seen) -> Collection[TableId]:
        """The tables about which the known facts have changed, or that have an error."""
        now = self.seen()
        changed = {name for one, other in zip(before.named, now.named, strict=True) for name in _differing(one, other)}
        failing = {table for one, other in zip(before.errors, now.errors, strict=True) for table in one.keys() ^ other}
        failing |= {table for one in now.errors for table in one}
        return [table for table in self.setup.names.tables if table.text in changed or table in failing]


def outcomes(done: Done) -> Mapping[TableId, TableOutcome]:
    """The tables that a step read."""
    return done.range.tables if done.range is not None else {}


def _differing(before: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    """The keys whose values are not the same; a step keeps the values of the tables that it does not touch."""
    yield from before.keys() - now.keys()
    for name, value in now.items():
        other = before.get(name)
        if other is not value and other != value:
            yield name
