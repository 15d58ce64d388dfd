"""A source implemented as a Python list, with controllable commits, capture lag, cleanup and faults.

It implements `source.protocol`, and its readers run in Spark tasks, so every interleaving of runs can be
tested with the real planner, the real commits and the real MERGE. It does not model SQL Server itself.
"""

# ruff: noqa: ARG002 - the signatures are those of the protocol; the model does not need every argument

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from mssql_cdc.errors import DataLostError, SourceError, SourceRestoredError, SourceUnavailableError
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.schema import Column, TableId, TableSchema, TableStructure, UniqueKey
from mssql_cdc.source.protocol import ChunkRead
from mssql_cdc.source.sqlserver.positions import require_held, require_minimum
from mssql_cdc.source.values import (
    Absence,
    Bound,
    CapturedTable,
    CaptureHealth,
    CaptureInstance,
    Chunk,
    LogMark,
    Standing,
    Volume,
    Witness,
)
from mssql_cdc_tests.lake_kit import Change, column, lsn, neutral

AT = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - the server's clock has no zone


def number_of(value: Lsn) -> int:
    return int.from_bytes(value.raw, "big")


@dataclass
class ModelTable:
    """One table: its current rows, its capture instance, and the keys that its indexes make."""

    name: str
    start: int
    object_id: int
    rows: dict[int, str] = field(default_factory=dict)
    minimum: int = 0
    enabled: bool = True
    second: int | None = None
    keys: tuple[tuple[str, ...], ...] = (("id",),)

    def captured(self) -> CapturedTable:
        instances = [self._instance("dbo_", self.start, 1000)]
        if self.second is not None:
            instances.append(self._instance("new_", self.second, 2000, column("extra", "int")))
        return CapturedTable(TableId("shop", "dbo", self.name), self.object_id, tuple(instances))

    def _instance(self, prefix: str, start: int, ids: int, *more: Column) -> CaptureInstance:
        columns = (column("id", "int"), column("name", "nvarchar", length=50), *more)
        schema = TableSchema(
            TableId("shop", "dbo", self.name),
            columns,
            self.keys[0] if self.keys else (),
            object_id=self.object_id,
            capture_object_id=self.object_id + ids,
            instance=f"{prefix}{self.name}",
            from_lsn=lsn(start).text,
        )
        return CaptureInstance(
            f"{prefix}{self.name}", self.object_id + ids, ("cdc", f"{prefix}{self.name}_CT"), self.object_id, AT,
            lsn(start), schema, tuple(range(1, len(columns) + 1)), keys=tuple(map(UniqueKey, self.keys)),
        )  # fmt: skip


def _play(rows: dict[int, str], change: Change) -> None:
    """Apply the change to the rows."""
    if change.before is not None:
        rows.pop(change.before["id"], None)
    if change.after is not None:
        rows[change.after["id"]] = change.after["name"]


def within(chunk: Chunk, key: int) -> bool:
    """Whether a chunk has the row of this key.

    Args:
        chunk: The chunk.
        key: The key.
    """
    low, high = (None if bound is None else int(str(bound[0])) for bound in (chunk.lower, chunk.upper))
    return (low is None or key > low) and (high is None or key <= high)


@dataclass(frozen=True)
class ModelReader:
    """Yields the rows that existed when the reader was created, or raises `fault`."""

    schema: TableSchema
    changes: tuple[Change, ...]
    fault: str | None = None

    def read(self) -> Iterator[pa.RecordBatch]:
        if self.fault:
            raise SourceError(self.fault)
        if self.changes:
            yield neutral(self.schema, *self.changes)


class ModelSource:
    """The source. The log is a list of (number, table, op, before, after); numbers grow by one."""

    def __init__(self, *names: str) -> None:
        self.tables: dict[str, Any] = {}
        self.log: list[tuple[int, str, Change]] = []
        self.number = 10
        self.captured = 10
        self.scans = 0
        self.faults: dict[str, str] = {}
        self.problems: dict[str, str] = {}
        self.down = False
        self.settled: int | None = None
        self.retention: timedelta | None = None
        self.history: dict[int, str] = {}
        self.more: dict[tuple[str, int], dict[str, int]] = {}
        self.restores = 0
        self.statements: dict[str, str | None] = {}
        self.before_read: Callable[[], None] = lambda: None
        for name in names:
            self.enable(name)

    # -- application writes ---------------------------------------------------------------------------------

    def enable(self, name: str) -> None:
        self.number += 1
        self.tables[name] = ModelTable(name, self.number, 100 + len(self.tables))
        self.tables[name].minimum = self.number

    def switch(self, name: str) -> None:
        """A second capture instance with one more column."""
        self.number += 1
        self.tables[name].second = self.number

    def put(self, name: str, key: int, value: str | None, **more: int) -> None:
        """Insert, update or (None) delete a row in its own transaction; `more` are columns of the new image."""
        table = self.tables[name]
        old = table.rows.get(key)
        before = None if old is None else {"id": key, "name": old}
        after = None if value is None else {"id": key, "name": value, **more}
        if before is None and after is None:
            return
        op = "c" if before is None else "d" if after is None else "u"
        self.number += 1
        self.log.append((self.number, name, Change(self.number, op, before, after)))
        self.history[self.number] = f"{self.restores}.{self.number}"
        if value is None:
            del table.rows[key]
        else:
            table.rows[key] = value
        self.more[name, key] = more

    def capture(self, upto: int | None = None) -> None:
        """Run the capture job (up to a commit)."""
        self.captured = max([n for n, _, _ in self.log if upto is None or n <= upto], default=self.captured)
        self.scans += 1

    def restore(self, to: int) -> None:
        """Restore a backup from that time: later commits never happened, and their numbers are reused."""
        self.log = [entry for entry in self.log if entry[0] <= to]
        self.history = {number: tran for number, tran in self.history.items() if number <= to}
        self.number, self.restores = to, self.restores + 1
        for name, table in self.tables.items():
            table.rows.clear()
            for _, changed, change in self.log:
                if changed == name:
                    _play(table.rows, change)
        self.captured = min(self.captured, to)

    def cleanup(self, below: int) -> None:
        for table in self.tables.values():
            table.minimum = max(table.minimum, below)

    # -- the source's protocol ------------------------------------------------------------------------------

    @contextmanager
    def session(self, catalog: str) -> Iterator[ModelSession]:
        if self.down:
            raise SourceUnavailableError("the model is down")
        yield ModelSession(self)

    def change_reader(self, catalog: str, instance: CaptureInstance, wanted: LsnRange, **more: Any) -> ModelReader:
        self.before_read()
        name = instance.schema.table_id.name
        if lsn(self.tables[name].minimum) > wanted.from_.increment():
            raise DataLostError(f"{name}: cleaned up")
        found = tuple(replace(c, epoch=wanted.epoch) for n, t, c in self.log if t == name and lsn(n) in wanted)
        return ModelReader(instance.schema, found, self.faults.get(name))

    def shares(self, reader: Any) -> bool:
        """Whether the reader reads over a connection that it shares with others: there are no connections."""
        return False

    def share(self, readers: Any) -> Any:
        raise AssertionError(f"`shares` accepts none of {readers}")

    def notices(self) -> Sequence[str]:
        return ()

    def chunk_reader(self, catalog: str, wanted: ChunkRead) -> ModelReader:
        name, statement = wanted.schema.table_id.name, wanted.statement
        self.statements[name] = statement
        found = [
            Change(
                number_of(wanted.position),
                "r",
                None,
                {"id": key, "name": value, **self.more.get((name, key), {})},
                sequence=n,
                snapshot=wanted.snapshot_number,
                chunk=chunk.number,
                epoch=wanted.epoch,
            )
            for chunk in wanted.chunks
            for n, (key, value) in enumerate(sorted(self.tables[name].rows.items()))
            if statement is None or str(key) in statement
            if within(chunk, key)
        ]
        self.before_read()
        return ModelReader(wanted.schema, tuple(found), self.faults.get(name))

    def shown_key(self, schema: TableSchema, bound: Bound) -> Bound:
        return bound

    @contextmanager
    def locked(self, catalog: str, schemas: Sequence[TableSchema]) -> Iterator[ModelLock]:
        yield ModelLock()

    def signal_table(self, catalog: str, tables: Sequence[CapturedTable]) -> CapturedTable | None:
        return None


@dataclass(frozen=True)
class ModelLock:
    """Only `before_read` changes the model while a chunk is read."""

    def require_held(self, doing: str) -> None:
        """Always ready."""


@dataclass(frozen=True)
class ModelSession:
    source: ModelSource

    def require_ready(self) -> str:
        return "shop"

    def require_visible(self, to: Lsn) -> None:
        """The model's readers always see everything (rule A2)."""

    def require_minimum(self, instance: str, minimum: Lsn | None) -> Lsn:
        return require_minimum(instance, minimum)

    def require_held(self, instance: str, minimum: Lsn | None, from_: Lsn) -> None:
        require_held(instance, minimum, from_)

    def window(self) -> AbstractContextManager[None]:
        return nullcontext()

    def run_statement(self, statement: str, *, doing: str) -> None:
        raise AssertionError(f"The model knows no statements: {statement}")

    def nth_transaction(self, after: Lsn, count: int, to: Lsn) -> Lsn | None:
        commits = sorted({n for n, _, _ in self.source.log if after < lsn(n) <= to})
        return lsn(commits[count - 1]) if len(commits) >= count else to

    def tables(self) -> list[CapturedTable]:
        return [t.captured() for t in self.source.tables.values() if t.enabled and t.name not in self.source.problems]

    def unreadable(self) -> dict[TableId, str]:
        return {TableId("shop", "dbo", name): problem for name, problem in self.source.problems.items()}

    def left_out(self) -> list[str]:
        return []

    def structures(self) -> list[TableStructure]:
        return []

    def hidden(self) -> list[str]:
        return []

    def unstarted(self) -> list[str]:
        return []

    def concealed(self) -> str | None:
        """The model conceals nothing."""

    def has_table(self, name: str) -> bool:
        return name.rpartition(".")[2].strip("[]") in self.source.tables

    def capture_health(self, positions: Collection[Lsn]) -> CaptureHealth:
        at, captured = AT.replace(tzinfo=UTC), lsn(self.source.captured)
        return CaptureHealth(at, at, unread=dict.fromkeys((one for one in positions if one < captured), at))

    def shows_fork(self) -> bool:
        return True

    def stalled(self) -> str | None:
        """The model's capture moves when a test says so."""

    def held_back(self) -> str | None:
        """Nothing but the log holds the model's capture back."""

    def is_primary(self) -> bool:
        """The model has no secondary."""
        return True

    def replica_lag(self) -> timedelta:
        """The model has no secondary."""
        return timedelta(0)

    def absences(self, tables: Mapping[TableId, int | None]) -> dict[TableId, Absence]:
        return {table: Absence("CDC is no longer enabled on it", lost=True) for table in tables}

    def minima(self) -> dict[str, Lsn | None]:
        held = {f"dbo_{t.name}": t.minimum for t in self.source.tables.values() if t.enabled}
        held |= {f"new_{t.name}": max(t.minimum, t.second) for t in self.source.tables.values() if t.second}
        return {name: lsn(minimum) for name, minimum in held.items()}

    def catalog_minima(self) -> dict[str, Lsn | None]:
        return self.minima()

    def captured(self) -> Lsn | None:
        return lsn(self.source.captured)

    def captured_before(self, at: datetime) -> Lsn:
        raise AssertionError(f"The model's commits have no times: {at}")

    def standing(self) -> Standing:
        return Standing(self.captured(), lsn(self.source.settled) if self.source.settled else None, self.captured())

    def mark(self) -> LogMark:
        return LogMark(lsn(self.source.number), 1, self.source.scans, str(self.source.restores))

    def require_complete(self, to: Lsn, known: Witness | None) -> None:
        found = self.witness(to)
        if found is not None and (known is None or found.start_lsn > known.start_lsn):
            raise SourceRestoredError(f"{found.start_lsn.text} has come below {to.text}")

    def require_mark(self, known: LogMark) -> None:
        if known.fork not in {None, str(self.source.restores)}:
            raise SourceRestoredError(f"Restored behind {known.lsn.text}")

    def passed(self, known: LogMark) -> bool:
        done = number_of(known.lsn) <= self.source.captured
        idle = not any(n > self.source.captured for n, _, _ in self.source.log)
        return done or (self.source.scans > known.empty_scans and idle)

    def newest_passed(self, known: Collection[LogMark]) -> Lsn | None:
        return max((mark.lsn for mark in known if self.passed(mark)), default=None)

    def witness(self, to: Lsn) -> Witness | None:
        number = max((n for n in self.source.history if n <= number_of(to)), default=None)
        return None if number is None else Witness(lsn(number), self.source.history[number], "0", "then")

    def require_witness(self, known: Witness) -> None:
        if self.source.history.get(number_of(known.start_lsn)) != known.tran_id:
            raise SourceRestoredError(f"Transaction {known.start_lsn.text} is another one")

    def retention(self) -> timedelta | None:
        return self.source.retention

    def server_time(self) -> datetime:
        return AT.replace(tzinfo=UTC)

    def newest_before(self, lsns: Sequence[Lsn]) -> dict[Lsn, Lsn | None]:
        commits = [lsn(n) for n, _, _ in self.source.log if n <= self.source.captured]
        return {position: max((c for c in commits if c < position), default=None) for position in lsns}

    def count_rows(self, parts: Sequence[tuple[CaptureInstance, LsnRange]]) -> dict[str, int]:
        return {
            i.name: sum(1 for n, t, _ in self.source.log if t == i.schema.table_id.name and lsn(n) in wanted)
            for i, wanted in parts
        }

    def measure(self, parts: Sequence[tuple[CaptureInstance, LsnRange]], to: Lsn) -> Volume:
        return Volume(None, self.count_rows(parts))

    def split(self, instance: CaptureInstance, wanted: LsnRange, parts: int) -> list[LsnRange]:
        return [wanted]

    def altered(self, positions: Mapping[int, Lsn]) -> dict[int, str]:
        return {}

    def estimated_rows(self) -> dict[int, int]:
        """Return nothing: every snapshot counts as large."""
        return {}

    def next_bound(
        self,
        schema: TableSchema,
        rows: int,
        last: Bound | None,
        *,
        until: Bound | None = None,
        condition: str | None = None,
        under_lock: bool = False,
    ) -> Bound | None:
        low, high = (None if bound is None else int(str(bound[0])) for bound in (last, until))
        keys = self.keys(schema, condition)
        found = [key for key in keys if (low is None or key > low) and (high is None or key <= high)]
        return (str(found[rows - 1]),) if len(found) >= rows else None

    def last_bound(self, schema: TableSchema, condition: str | None = None) -> Bound | None:
        keys = self.keys(schema, condition)
        return (str(keys[-1]),) if keys else None

    def keys(self, schema: TableSchema, condition: str | None) -> list[int]:
        """The keys of a table that fulfill a condition, in order."""
        assert condition is None  # the model has no conditions
        return sorted(self.source.tables[schema.table_id.name].rows)
