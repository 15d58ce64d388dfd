"""Pure rules that split a snapshot's tables into chunks and decide when it has ended.

Case B of correctness C: every group of chunks has its own low mark L, taken before it is read; the stream starts at
the smallest L; the current table stays closed until the stream has passed the largest log end E. Chunks are planned
while a table is read, and the commit of each group keeps the bounds of its chunks. `capture/snapshot/chunk_groups.py`
finds the bounds and reads the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache

from pydantic import TypeAdapter

from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import Bound, Chunk


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What is known about a table's chunks, and how the table is read.

    `chunks` are in key order, without holes from the first key on; `resumed` adds those that are committed. A persisted
    plan has chunks only if an earlier version made it, and then all of them. `following` is the number of the next
    chunk. `edition` distinguishes this plan of the table from others in the same snapshot: commits name it.

    `held` is where the table's stream had stopped when the snapshot began (P; None: it does not continue from there, or
    never streamed), `reached` the position that it had reached in this epoch, whether it continues there or not,
    `begun` what was captured then (L0). `select` is a statement that replaces the table, which makes the snapshot a
    filtered one. `locked` tables are read whole (C21: without a key, or not captured). `again`: the lake has earlier
    rows of the table, which have to be swept afterwards (rule C19). `key` is the definition of the key that the chunks'
    bounds consist of. `refused` says why the signal's filter is not run, so that the table is not read.
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
    edition: int = 0
    following: int = 0
    reached: Lsn | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the chunks reach the end of the table: the last one has no upper bound."""
        return bool(self.chunks) and self.chunks[-1].upper is None

    def further(self, upper: Bound | None) -> TablePlan:
        """The plan with one more chunk, which ends at a bound; None: it is the last one, with all further keys."""
        lower = self.chunks[-1].upper if self.chunks else None
        chunk = Chunk(self.following, lower, upper)
        return replace(self, chunks=(*self.chunks, chunk), following=self.following + 1)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The chunk numbers in order."""
        return tuple(chunk.number for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class SnapshotPlan:
    """A snapshot: its partition key, its number (part of `_pos`), its tables, the signal that requested it.

    `notice` is the id of its notifications if no signal provides one, `noticed` the newest `_batch` of `_notifications`
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

    def having(self, table_plan: TablePlan) -> SnapshotPlan:
        """The plan with this plan of one of its tables."""
        return replace(self, tables=tuple(table_plan if t.table == table_plan.table else t for t in self.tables))


@dataclass(frozen=True, slots=True)
class GroupDone:
    """The snapshot facts of one commit of a table: the chunks that it contains, their low mark L and their rows.

    `read_at` is when the scan of the table began, by the source's clock. `bounds` are the chunks with their bounds, of
    the plan with this `edition`; an earlier version recorded none.
    """

    chunks: tuple[int, ...]
    low: Lsn
    rows: int = 0
    read_at: datetime | None = None
    bounds: tuple[Chunk, ...] = ()
    edition: int = 0


@dataclass(frozen=True, slots=True)
class Reread:
    """Chunks are left: they were read so long ago that the changes since their low mark are being cleaned up (A9).

    If there are none, the table's last chunk is not planned yet.
    """

    chunks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """The table is read: stream from `position`, exclusive.

    `low` is the smallest low mark of the groups that count. `again`: other groups do not count, so their rows may have
    to be swept (rule C19). `gap`: the changes after P were removed during the snapshot; its rows replace them. `chunk`
    is the number of the first chunk that counts (C21).
    """

    position: Lsn
    low: Lsn
    again: bool = False
    gap: bool = False
    chunk: int = 0


def low_mark(captured: Lsn, minimum: Lsn) -> Lsn:
    """Return L of a group: the captured position, or the minimum of the table's capture instance if that is later.

    A reader sees every transaction below the minimum: it is the instance's start, and enabling CDC on a table briefly
    excludes writers; or cleanup has moved it, at most to a mapping row that is as old as the retention. Without this
    rule, a quiet database would never have a mark that its minimum allows, and its chunks would be read forever.

    Args:
        captured: The captured position.
        minimum: The smallest LSN that the instance holds, as read before the group.
    """
    return max(captured, minimum)


def resumed(plan: TablePlan, done: Sequence[GroupDone]) -> TablePlan:
    """Return the plan with the chunks that its commits have, after which it resumes; a commit is the cursor (rule A6).

    Only contiguous chunks count. Numbers continue after those of all commits, including those of other editions.

    Args:
        plan: The persisted plan of one table.
        done: The committed groups of this snapshot of the table.
    """
    if plan.chunks:
        return plan
    known = {chunk.number: chunk for group in done if group.edition == plan.edition for chunk in group.bounds}
    chunks: list[Chunk] = []
    for _, chunk in sorted(known.items()):
        if chunk.lower == (chunks[-1].upper if chunks else None):
            chunks.append(chunk)
    following = max((number for group in done for number in group.chunks), default=-1) + 1
    found = replace(plan, chunks=tuple(chunks), following=following)
    in_one_piece = plan.locked or plan.select is not None
    return found.further(None) if in_one_piece and not chunks else found


def remaining(plan: TablePlan, done: Iterable[GroupDone], min_lsn: Lsn | None) -> tuple[Chunk, ...]:
    """Return the planned chunks that are unread; those whose low mark cleanup has passed count as unread.

    Args:
        plan: The plan of one table.
        done: The committed groups of chunks.
        min_lsn: The minimum LSN of the capture instance; None if it has none.
    """
    read = {number for group in done if _reaches(group.low, min_lsn) for number in group.chunks}
    return tuple(chunk for chunk in plan.chunks if chunk.number not in read)


def next_group(
    plan: SnapshotPlan,
    left: Mapping[TableId, Sequence[Chunk]],
    size: int,
    *,
    expected: Mapping[TableId, int],
    further: Callable[[TableId], Chunk | None],
) -> tuple[tuple[TableId, Chunk], ...]:
    """Return up to `size` unread chunks, table by table, so that one table ends early and can stream.

    Tables with few rows come first, since they would wait long for a large one; ties keep the plan's order.

    Args:
        plan: The plan of the snapshot.
        left: The planned unread chunks of each table that is to be read.
        size: The number of chunks per group.
        expected: The rows of each table, as the source estimates them.
        further: Plans one more chunk of a table; None: there is none.
    """
    group: list[tuple[TableId, Chunk]] = []
    for table in sorted((one.table for one in plan.tables), key=lambda table: expected.get(table, 0)):
        if table not in left:
            continue
        unread = iter(left[table])
        while len(group) < max(size, 1) and (chunk := next(unread, None) or further(table)) is not None:
            group.append((table, chunk))
    return tuple(group)


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
    if left or not plan.is_whole:
        return Reread(tuple(chunk.number for chunk in left))
    counting = [group for group in done if _reaches(group.low, min_lsn) and {*group.chunks} & {*plan.numbers}]
    low, again = min(group.low for group in counting), len(counting) < len(done)
    found = Ended(low, low, again, chunk=min(plan.numbers))
    if plan.held is None or plan.held >= low:
        return found
    return replace(found, position=plan.held) if _reaches(plan.held, oldest or min_lsn) else replace(found, gap=True)


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
