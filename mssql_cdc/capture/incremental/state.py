"""The progress of incremental snapshots, and how signals change it: values only.

A read-only staged-chunk algorithm (correctness C): chunks are read alongside the stream in *groups*, each between a low
mark L and a log end E, and wait as files until the stream has passed E. `store.py` keeps the state in the lake.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache

from pydantic import TypeAdapter

from mssql_cdc.capture.notification_contract import Notification
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import Bound, LogMark

READ = ("SUCCEEDED", "EMPTY")
"""The statuses of tables that were read."""
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=10), timedelta(days=1)
"""How long a table that was not read is left alone before the connector itself requests it again; the pause doubles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A table whose last snapshot of all rows has ended without reading it.

    Attributes:
        object_id: Identifies the table, within its epoch.
        epoch: The epoch.
        times: How many times in a row that has happened.
        again: When the connector itself may request it again.
    """

    object_id: int
    epoch: int
    times: int
    again: datetime

    @classmethod
    def after(cls, last: Unread | None, one: Wanted, at: datetime) -> Unread | None:
        """The same after one more attempt; None: the table is not known.

        Args:
            last: What was known before.
            one: What was requested.
            at: When the attempt ended.
        """
        if one.object_id is None:
            return None
        times = 1 if last is None else last.times + 1
        pause = min(FIRST_PAUSE * 2 ** min(times - 1, 10), LONGEST_PAUSE)
        return cls(object_id=one.object_id, epoch=one.epoch, times=times, again=at + pause)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A table that waits to be read.

    Attributes:
        table: The table.
        signal: The id of the signal that requested it.
        condition: Only the rows that satisfy it (INC-04).
        surrogate: The column that orders the chunks instead of the key (INC-05).
        refused: Why the condition is not run, so that the table is not read.
        object_id: Identifies the table across renames, within its epoch; None: it was not captured.
        epoch: The epoch in which it was requested.
    """

    table: TableId
    signal: str
    condition: str | None = None
    surrogate: str | None = None
    refused: str | None = None
    object_id: int | None = None
    epoch: int = 0

    def named(self, names: Mapping[int, TableId], epoch: int) -> Wanted:
        """The same under the name that its table has now.

        Args:
            names: The names of the captured tables by their identities.
            epoch: The current epoch: in another one, an identity may be another table's.
        """
        if self.object_id is None or self.epoch != epoch:
            return self
        table = names.get(self.object_id, self.table)
        return self if table == self.table else replace(self, table=table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Chunks that were read one after another and are staged, not yet emitted.

    Attributes:
        number: Counts the groups of a table.
        chunks: The number of its chunks.
        upper: The last key that it holds.
        low: L: captured before the read.
        mark: E: the end of the log after the read.
        batch: The newest `_batch` of the change log before L was taken: changes after L have a larger one.
        version: The structure of its rows.
        offsets: The newest row of `_offsets` before L was taken.
        files: The staged files.
        rows: The number of its rows.
        uppers: The last key of each of its chunks.
    """

    number: int
    chunks: int
    upper: Bound
    low: Lsn
    mark: LogMark
    batch: int
    version: int
    offsets: int
    files: tuple[str, ...]
    rows: int
    uppers: tuple[Bound, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The table that is being read.

    Attributes:
        wanted: What was requested.
        object_id: Identifies the table across renames.
        number: The snapshot's number, part of `_pos`.
        epoch: The epoch in which it began.
        begun: L0: captured, and read by the stream, when it began.
        keys: The columns that order the chunks.
        definition: The fingerprint of these columns: bounds are texts of their types.
        maximum: The largest key of the wanted rows when it began; rows after it are left to the stream. Without any
            row, it is empty.
        group: The number of the last group that was emitted, or given up.
        chunks: The number of the chunks that were emitted, or given up.
        last: The last emitted key.
        rows: The number of rows that were read in emitted groups.
        staged: The groups that wait, in key order.
    """

    wanted: Wanted
    object_id: int
    number: int
    epoch: int
    begun: Lsn
    keys: tuple[str, ...]
    definition: str | None
    maximum: Bound
    group: int = 0
    chunks: int = 0
    last: Bound | None = None
    rows: int = 0
    staged: tuple[Group, ...] = ()

    @property
    def identified(self) -> Wanted:
        """What was requested, with the table's identity."""
        return replace(self.wanted, object_id=self.object_id, epoch=self.epoch)

    @property
    def mark(self) -> str:
        """`_snapshot` of its rows."""
        return f"incremental:{self.number}"

    @property
    def reached(self) -> Bound | None:
        """The last key that was read."""
        return self.staged[-1].upper if self.staged else self.last

    @property
    def is_empty(self) -> bool:
        """Whether the table had no row when it began."""
        return not self.maximum

    @property
    def is_read(self) -> bool:
        """Whether every chunk was read, emitted or not."""
        return self.reached == self.maximum

    @property
    def is_done(self) -> bool:
        """Whether every chunk was emitted."""
        return self.last == self.maximum

    @property
    def next_group(self) -> int:
        """The number of the group that is read next."""
        return (self.staged[-1].number if self.staged else self.group) + 1

    @property
    def next_chunk(self) -> int:
        """The number of the chunk that is read next."""
        return self.chunks + sum(group.chunks for group in self.staged)

    def is_read_like(self, other: Reading) -> bool:
        """Whether the same part of the same table has been read, no matter how much of it is emitted."""
        own = self.number, self.epoch, self.reached, self.next_group, self.next_chunk
        return own == (other.number, other.epoch, other.reached, other.next_group, other.next_chunk)

    def having(self, group: Group) -> Reading:
        """Stage the next group."""
        return replace(self, staged=(*self.staged, group))

    def given_up(self) -> Reading:
        """Read what is staged again, under other numbers, since a late run may still emit the present ones."""
        return replace(self, staged=(), group=self.next_group - 1, chunks=self.next_chunk)

    def emitted(self, group: Group) -> Reading:
        """Advance past the first staged group."""
        return replace(
            self,
            group=group.number,
            chunks=self.chunks + group.chunks,
            last=group.upper,
            rows=self.rows + group.rows,
            staged=self.staged[1:],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All incremental snapshots of a database.

    Attributes:
        queue: The tables that wait.
        reading: The table that is being read.
        paused: Whether no further chunk is read.
        taken: The newest `_batch` of `_signals` that took effect.
        correlation: The id of the last signal that requested tables, which all notifications have (NOT-04).
        rest: The time until which no further chunk is read, so that the limit of rows per second is kept.
        notes: The notifications of the step that led here; none once they have been sent.
        noticed: The newest `_batch` of `_notifications` before them.
        unread: Tables whose last snapshot of all rows ended without reading them; stopped tables are not among them.
    """

    queue: tuple[Wanted, ...] = ()
    reading: Reading | None = None
    paused: bool = False
    taken: int = 0
    correlation: str | None = None
    rest: datetime | None = None
    notes: tuple[Notification, ...] = ()
    noticed: int = 0
    unread: tuple[Unread, ...] = ()

    @property
    def tables(self) -> tuple[TableId, ...]:
        """The tables that are not finished, the one that is being read first."""
        return tuple(one.table for one in self.wanted)

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """What is not finished, the table that is being read first."""
        return (*((self.reading.identified,) if self.reading is not None else ()), *self.queue)

    @property
    def is_running(self) -> bool:
        """Whether there is something to read or to emit, paused or not."""
        return self.reading is not None or bool(self.queue)

    @property
    def is_due(self) -> bool:
        """Whether there is something to do now: during a pause, staged chunks are still emitted."""
        return self.has_staged or (self.is_running and not self.paused)

    @property
    def has_staged(self) -> bool:
        """Whether chunks wait for the stream."""
        return self.reading is not None and bool(self.reading.staged)

    def named(self, names: Mapping[int, TableId], epoch: int) -> State:
        """The same under the names that the tables have now: signals use these, and others may have the former ones.

        Args:
            names: The names of the captured tables by their identities.
            epoch: The current epoch.
        """
        queue, reading = tuple(one.named(names, epoch) for one in self.queue), self.reading
        if reading is not None:
            known = reading.identified.named(names, epoch)
            if known.table != reading.wanted.table:
                reading = replace(reading, wanted=known)
        return self if (queue, reading) == (self.queue, self.reading) else replace(self, queue=queue, reading=reading)

    def asked(self, wanted: Collection[Wanted]) -> State:
        """Append tables to the queue (INC-12), unless the same already waits."""
        waiting = {(one.table, one.condition, one.surrogate) for one in self.queue}
        new = tuple(one for one in wanted if (one.table, one.condition, one.surrogate) not in waiting)
        return replace(self, queue=self.queue + new, correlation=new[-1].signal) if new else self

    def stopped(self, tables: Collection[TableId]) -> State:
        """Forget these tables; what they have staged is never emitted (INC-13)."""
        reading = None if self.reading is not None and self.reading.wanted.table in tables else self.reading
        queue = tuple(one for one in self.queue if one.table not in tables)
        gone = [one for one in self.wanted if one.table in tables]
        return replace(self, queue=queue, reading=reading, unread=self._unread_without(*gone)).settled()

    def put_off(self) -> State:
        """Move the table being read after all others, to start it over; what it has staged is never emitted."""
        later = (self.reading.identified,) if self.reading is not None else ()
        return replace(self, reading=None, queue=(*self.queue, *later))

    def next_table(self, status: str, at: datetime) -> State:
        """Leave the table that was read, or could not be read; if there is none, the next one in the queue.

        Args:
            status: What became of it.
            at: The time.
        """
        left = self.wanted[0]
        state = replace(self, reading=None) if self.reading is not None else replace(self, queue=self.queue[1:])
        if left.condition is not None or (left.surrogate is not None and status not in READ):
            return state  # This says nothing about a snapshot of all rows in the order of the key.
        last = self.unread_of(left.object_id, left.epoch)
        failed = Unread.after(last, left, at) if status not in READ else None
        return replace(state, unread=(*self._unread_without(left), *([failed] if failed is not None else [])))

    def unread_of(self, object_id: int | None, epoch: int) -> Unread | None:
        """How the last snapshot of a table's rows failed; None: it did not.

        Args:
            object_id: The table's identity.
            epoch: Its epoch.
        """
        return next((one for one in self.unread if (one.object_id, one.epoch) == (object_id, epoch)), None)

    def will_read(self, object_id: int, epoch: int) -> bool:
        """Whether all rows of a table are wanted but not read yet.

        Args:
            object_id: The table's identity.
            epoch: Its epoch.
        """
        return any((one.object_id, one.epoch, one.condition) == (object_id, epoch, None) for one in self.wanted)

    def _unread_without(self, *tables: Wanted) -> tuple[Unread, ...]:
        known = {(one.object_id, one.epoch) for one in tables}
        return tuple(one for one in self.unread if (one.object_id, one.epoch) not in known)

    def settled(self) -> State:
        """The state without the pause and the signal of a snapshot that has ended."""
        return self if self.is_running else replace(self, paused=False, correlation=None)


def state_text(state: State) -> str:
    """Serialize the state for the lake."""
    return _states().dump_json(state).decode()


def state_of_text(text: str) -> State:
    """Parse a serialized state."""
    return _states().validate_json(text)


@cache
def _states() -> TypeAdapter[State]:
    return TypeAdapter(State)
