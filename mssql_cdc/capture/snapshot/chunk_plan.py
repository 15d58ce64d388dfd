"""Pure rules that split a snapshot's tables into chunks and decide when it has ended.

Case B of correctness C: every group of chunks has its own low mark L, taken before it is read; the stream starts at
the smallest L; the current table stays closed until the stream has passed the largest log end E.
`capture/snapshot/chunk_groups.py` reads the chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from pydantic import TypeAdapter

from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import Chunk


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The chunks of one table, planned once and persisted, so that chunk numbers keep their meaning after a restart.

    `held` is where the table's stream had stopped when the snapshot began (P; None: it never streamed), `begun` what
    was captured then (L0). `select` is a statement that stands for the table, which makes the snapshot a filtered one.
    `locked` tables are read whole, under a lock (a table without a key, rule C21). `again`: the lake has rows of the
    table from before, which have to be swept afterwards (rule C19). `key` is the definition of the key that the
    chunks' bounds are made of. `refused` says why the signal's filter is not run, so that the table is not read.
    """

    table: TableId
    chunks: tuple[Chunk, ...]
    begun: Lsn
    held: Lsn | None = None
    select: str | None = None
    locked: bool = False
    again: bool = False
    key: str | None = None
    refused: str | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The chunk numbers in order."""
        return tuple(chunk.number for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class SnapshotPlan:
    """A snapshot: its partition key, its number (part of `_pos`), its tables, the signal that requested it.

    `notice` is the id of its notifications where no signal has one, `noticed` the newest `_batch` of `_notifications`
    when it was planned.
    """

    id: str
    number: int
    tables: tuple[TablePlan, ...]
    signal: str | None = None
    notice: str | None = None
    noticed: int = 0

    def of(self, table: TableId) -> TablePlan:
        """The plan of one table."""
        return next(plan for plan in self.tables if plan.table == table)


@dataclass(frozen=True, slots=True)
class GroupDone:
    """The snapshot facts of one commit of a table: the chunks that it contains, their low mark L and their rows.

    `read_at` is when the scan of the table began, by the source's clock.
    """

    chunks: tuple[int, ...]
    low: Lsn
    rows: int = 0
    read_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Reread:
    """These chunks were read so long ago that the changes since their low mark are being cleaned up (rule A9)."""

    chunks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """The table is read: stream from `position`, exclusive.

    `low` is the smallest low mark of the groups that count. `again`: other groups do not count, so that their rows may
    have to be swept (rule C19). `gap`: the changes after P went during the snapshot; its rows replace them.
    """

    position: Lsn
    low: Lsn
    again: bool = False
    gap: bool = False


def low_mark(captured: Lsn, minimum: Lsn) -> Lsn:
    """Return L of a group: the captured position, or the minimum of the table's capture instance if that is later.

    A reader sees every transaction below the minimum: it is the instance's start, and enabling CDC on a table briefly
    excludes writers; or cleanup has moved it, at most to a row of the mapping that is as old as the retention. Without
    this rule, a quiet database would never have a mark that its minimum allows, and its chunks would be read for ever.

    Args:
        captured: The captured position.
        minimum: The smallest LSN that the instance holds, as read before the group.
    """
    return max(captured, minimum)


def remaining(plan: TablePlan, done: Iterable[GroupDone], min_lsn: Lsn | None) -> tuple[Chunk, ...]:
    """Return the unread chunks; those whose low mark cleanup has passed count as unread.

    Args:
        plan: The plan of one table.
        done: The committed groups of chunks.
        min_lsn: The minimum LSN of the capture instance; None if it has none.
    """
    read = {number for group in done if _reaches(group.low, min_lsn) for number in group.chunks}
    return tuple(chunk for chunk in plan.chunks if chunk.number not in read)


def next_group(
    plan: SnapshotPlan, left: dict[TableId, tuple[Chunk, ...]], size: int
) -> tuple[tuple[TableId, Chunk], ...]:
    """Return up to `size` unread chunks, table by table, so that one table ends early and can stream.

    Tables with few chunks come first, since they would wait long for a large one; equals keep the plan's order.

    Args:
        plan: The plan of the snapshot.
        left: The unread chunks of each table.
        size: The number of chunks per group.
    """
    tables = sorted(plan.tables, key=lambda table: len(table.chunks))
    wanted = [(t.table, chunk) for t in tables for chunk in left.get(t.table, ())]
    return tuple(wanted[: max(size, 1)])


def conclude(
    plan: TablePlan, done: Sequence[GroupDone], min_lsn: Lsn | None, oldest: Lsn | None = None
) -> Reread | Ended:
    """Return how the table's snapshot ends: chunks to reread, or the position to stream from (min of P and all L).

    Args:
        plan: The plan of one table.
        done: The committed groups of chunks.
        min_lsn: The minimum LSN of the capture instance; None if it has none.
        oldest: The smallest minimum of all instances of the table; None if that is `min_lsn`.
    """
    left = remaining(plan, done, min_lsn)
    if left:
        return Reread(tuple(chunk.number for chunk in left))
    counting = [group for group in done if _reaches(group.low, min_lsn) and {*group.chunks} & {*plan.numbers}]
    low, again = min(group.low for group in counting), len(counting) < len(done)
    if plan.held is None or plan.held >= low:
        return Ended(low, low, again)
    return Ended(plan.held, low, again) if _reaches(plan.held, oldest or min_lsn) else Ended(low, low, again, gap=True)


def _reaches(low: Lsn, min_lsn: Lsn | None) -> bool:
    """Whether every change after `low` still exists: L + 1 >= min_lsn (NULL or zero: none does)."""
    return bool(min_lsn) and min_lsn <= low.increment()


def plan_text(plan: SnapshotPlan) -> str:
    """Serialize the plan for the lake."""
    return _plans().dump_json(plan).decode()


def plan_of_text(text: str) -> SnapshotPlan:
    """Parse a serialized plan."""
    return _plans().validate_json(text)


@cache
def _plans() -> TypeAdapter[SnapshotPlan]:
    return TypeAdapter(SnapshotPlan)
