"""When a snapshot is due, how its tables are cut into chunks, and when it has ended: pure rules.

Case B of correctness C: every group of chunks has its own low mark L, taken before it is read; the stream starts at
the smallest L; the current table stays closed until the stream has passed the largest log end E. Reading belongs to
`snapshot/capture.py`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId

Mode = Literal[
    "always",
    "initial",
    "initial_only",
    "no_data",
    "schema_only",
    "recovery",
    "when_needed",
    "when_needed_no_data",
    "configuration_based",
    "never",
]


@dataclass(frozen=True, slots=True)
class SnapshotPolicy:
    """What `snapshot.mode` asks for: rows of new tables, streaming, a new snapshot when changes were lost."""

    mode: str = "initial"
    data: bool = True
    stream: bool = True
    on_data_error: bool = False


_MODES: dict[str, tuple[bool, bool, bool]] = {
    "always": (True, True, False),
    "initial": (True, True, False),
    "initial_only": (True, False, False),
    "no_data": (False, True, False),
    "schema_only": (False, True, False),
    "recovery": (False, True, False),
    "when_needed": (True, True, True),
    "when_needed_no_data": (False, True, True),
    "never": (False, True, False),
}


def policy_of(mode: str, *, data: bool = False, stream: bool = False, on_data_error: bool = False) -> SnapshotPolicy:
    """The policy of a mode (SNP-01 to SNP-11); the flags are those of `configuration_based` (SNP-08)."""
    if mode == "configuration_based":
        return SnapshotPolicy(mode, data, stream, on_data_error)
    if mode not in _MODES:
        raise ConfigurationError(f"snapshot.mode={mode!r} is not known here; use one of {', '.join(sorted(_MODES))}")
    return SnapshotPolicy(mode, *_MODES[mode])


@dataclass(frozen=True, slots=True)
class Chunk:
    """One stretch of a table: keys in `(lower, upper]`, in the source's own order; None means open.

    Bounds are the source's texts, one per key column. A table without a key has one chunk, open on both sides.
    """

    number: int
    lower: tuple[Any, ...] | None = None
    upper: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The chunks of one table, planned once and kept, so that chunk numbers mean the same after a restart.

    `held` is where the table's stream had stopped when the snapshot began (P; None: it never streamed).
    `select` is a statement of `snapshot.select.statement.overrides`, which makes the snapshot a filtered one.
    """

    table: TableId
    chunks: tuple[Chunk, ...]
    held: Lsn | None = None
    select: str | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The chunk numbers in order."""
        return tuple(chunk.number for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class SnapshotPlan:
    """A snapshot: its partition key, its number (part of `_pos`), its tables."""

    id: str
    number: int
    tables: tuple[TablePlan, ...]

    def of(self, table: TableId) -> TablePlan:
        """The plan of one table."""
        return next(plan for plan in self.tables if plan.table == table)

    def to_json(self) -> str:
        """The text that is kept in the lake."""
        return json.dumps(
            {
                "id": self.id,
                "number": self.number,
                "tables": [
                    {
                        "table": [t.table.catalog, t.table.schema, t.table.name],
                        "held": t.held.text if t.held else None,
                        "select": t.select,
                        "chunks": [[c.number, c.lower, c.upper] for c in t.chunks],
                    }
                    for t in self.tables
                ],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> SnapshotPlan:
        """The plan of this text."""
        data = json.loads(text)
        return cls(data["id"], data["number"], tuple(_table_plan(t) for t in data["tables"]))


@dataclass(frozen=True, slots=True)
class GroupDone:
    """What one commit of a table says about its snapshot: the chunks it held and their low mark L."""

    chunks: tuple[int, ...]
    low: Lsn


@dataclass(frozen=True, slots=True)
class Reread:
    """These chunks were read so long ago that the changes since their low mark are being cleaned up (rule A9)."""

    chunks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """The table is read: stream from `position`, exclusive.

    `gap`: the changes after P were cleaned up while the snapshot ran; its rows stand for them.
    """

    position: Lsn
    gap: bool = False


def low_mark(captured: Lsn, start: Lsn) -> Lsn:
    """L of a group: all that is captured, or the start of the table's capture instance when that is later.

    Enabling CDC on a table excludes writers for a moment, so whoever sees the instance sees every transaction below
    its `start`; without this a quiet database would never have a mark that its minimum LSN allows.
    """
    return max(captured, start)


def remaining(plan: TablePlan, done: Iterable[GroupDone], min_lsn: Lsn | None) -> tuple[Chunk, ...]:
    """The chunks still to read; those whose low mark the source has cleaned up past count as unread."""
    read = {number for group in done if _reaches(group.low, min_lsn) for number in group.chunks}
    return tuple(chunk for chunk in plan.chunks if chunk.number not in read)


def next_group(
    plan: SnapshotPlan, left: dict[TableId, tuple[Chunk, ...]], size: int
) -> tuple[tuple[TableId, Chunk], ...]:
    """Up to `size` unread chunks, table after table, so that one table ends early and can stream."""
    wanted = [(t.table, chunk) for t in plan.tables for chunk in left.get(t.table, ())]
    return tuple(wanted[: max(size, 1)])


def conclude(plan: TablePlan, done: Sequence[GroupDone], min_lsn: Lsn | None) -> Reread | Ended:
    """How the table's snapshot ends: chunks to read again, or the position to stream from (min of P and all L)."""
    left = remaining(plan, done, min_lsn)
    if left:
        return Reread(tuple(chunk.number for chunk in left))
    low = min(group.low for group in done if _reaches(group.low, min_lsn))
    if plan.held is None or plan.held >= low:
        return Ended(low)
    return Ended(plan.held) if _reaches(plan.held, min_lsn) else Ended(low, gap=True)


def select_tables(tables: Collection[TableId], text: Collection[str]) -> tuple[TableId, ...]:
    """The tables of these names: `catalog.schema.name`, `schema.name` or `name`, as people write them."""
    chosen = []
    for name in text:
        wanted = name.replace('"', "").replace("[", "").replace("]", "").casefold()
        found = [t for t in tables if wanted in {t.text.casefold(), f"{t.schema}.{t.name}".casefold()}]
        found = found or [t for t in tables if t.name.casefold() == wanted]
        if len(found) != 1:
            known = ", ".join(sorted(t.text for t in tables))
            raise ConfigurationError(f"{name!r} names {len(found)} captured tables; captured are {known}")
        chosen += [t for t in found if t not in chosen]
    return tuple(chosen)


def _reaches(low: Lsn, min_lsn: Lsn | None) -> bool:
    """Whether every change after `low` is still there: L + 1 >= min_lsn (NULL or zero: nothing is)."""
    return bool(min_lsn) and min_lsn <= low.increment()


def _table_plan(data: dict[str, Any]) -> TablePlan:
    return TablePlan(
        TableId(*data["table"]),
        tuple(Chunk(n, _bound(lower), _bound(upper)) for n, lower, upper in data["chunks"]),
        Lsn.parse(data["held"]) if data["held"] else None,
        data["select"],
    )


def _bound(values: list[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)
