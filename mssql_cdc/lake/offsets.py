"""`_offsets`: one sparse row per finished range or snapshot step of a database (rules A1, A3, A4, A8).

The list of cuts, and the position of idle tables. Positions are texts of the source, compared with their epoch and
never looked into. What to read next is decided in `stream/plan.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal, get_args

import pyarrow as pa
from deltalake.exceptions import DeltaError

from mssql_cdc.errors import FencedError
from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.small_tables import SmallTable
from mssql_cdc.lake.storage import LOCAL, Storage
from mssql_cdc.schema.arrow import INSTANT, TEXTS

Status = Literal["streaming", "snapshot", "lost", "failed", "excluded"]
Kind = Literal["range", "snapshot", "idle", "status"]
_ATTEMPTS = 20
_COMPACT_EVERY = 50


@dataclass(frozen=True, slots=True, order=True)
class Reached:
    """How far something has come: a source position in its epoch; later epochs are larger."""

    epoch: int
    to: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What a row says of one table. `folder` is its home below the database's root, fixed at first capture."""

    status: Status
    to: str | None = None
    epoch: int = 0
    delta_table_id: str | None = None
    delta_version: int | None = None
    batch: int | None = None
    rows: int = 0
    incarnation: int = 1
    folder: str | None = None
    reason: str | None = None

    @property
    def reached(self) -> Reached | None:
        """How far the table has come by this entry."""
        return None if self.to is None else Reached(self.epoch, self.to)


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """One row of `_offsets`; `number` is its `_batch`.

    `failed` names the members that a complete cut goes on without. `witness` and `facts` are texts of the source and
    of the run (JSON); nothing here reads them.
    """

    kind: Kind
    at: datetime
    tables: Mapping[str, Entry]
    to: str | None = None
    epoch: int = 0
    complete: bool = False
    failed: tuple[str, ...] = ()
    scanned: str | None = None
    partition: str | None = None
    run_id: str | None = None
    witness: str | None = None
    facts: str | None = None
    number: int = 0

    @property
    def reached(self) -> Reached | None:
        """The end of the range."""
        return None if self.to is None else Reached(self.epoch, self.to)


@dataclass(frozen=True, slots=True)
class Offsets:
    """All rows of a database as loaded, oldest first."""

    rows: tuple[OffsetRow, ...]
    entries: Mapping[str, Entry]

    def entry(self, table: str) -> Entry | None:
        """The newest entry of a table (`TableId.text`): its state."""
        return self.entries.get(table)

    def position(self, table: str, own: Reached | None = None) -> Reached | None:
        """Where the table's next range begins: the larger of its own commit's end and its newest entry's.

        None: the table needs a snapshot or an explicit start, whatever the database has reached (rule A1).
        """
        entry = self.entry(table)
        known = [reached for reached in (own, entry.reached if entry else None) if reached is not None]
        return max(known, default=None)

    def cuts(self) -> list[OffsetRow]:
        """The complete cuts, in order."""
        return [row for row in self.rows if row.complete]

    def last_cut(self) -> OffsetRow | None:
        """The complete cut that reaches farthest."""
        reached = [(row.reached, row.number, row) for row in self.cuts() if row.reached is not None]
        return max(reached, key=lambda item: item[:2])[2] if reached else None

    def cut_batch(self, table: str, cut: OffsetRow) -> int | None:
        """The table's newest `_batch` at a cut: rows of larger batches belong to later cuts."""
        numbers = [
            row.tables[table].batch
            for row in self.rows
            if row.number <= cut.number and table in row.tables and row.tables[table].batch is not None
        ]
        return max((number for number in numbers if number is not None), default=None)


def cut_of(
    entries: Mapping[str, Entry], members: Iterable[str], took_part: Collection[str]
) -> tuple[bool, tuple[str, ...]]:
    """Whether a range that these tables took part in is a complete cut, and which failed members it names.

    Every member with status streaming must have taken part: committed, or probed without rows.
    """
    found = {member: entries[member].status for member in members if member in entries}
    complete = all(member in took_part for member, status in found.items() if status == "streaming")
    return complete, tuple(sorted(member for member, status in found.items() if status == "failed"))


def offsets_table(layout: Layout, storage: Storage = LOCAL) -> SmallTable:
    """The `_offsets` table of a database."""
    return SmallTable(layout.own("offsets"), layout.own_app_id("offsets"), _SCHEMA, storage)


def load_offsets(layout: Layout, storage: Storage = LOCAL) -> Offsets:
    """Everything that `_offsets` holds; creates nothing."""
    return _offsets(offsets_table(layout, storage).rows())


def append_offsets(
    layout: Layout,
    row: OffsetRow,
    *,
    seen: Offsets,
    members: Iterable[str] = (),
    storage: Storage = LOCAL,
) -> Offsets:
    """Append one row; the offsets after it.

    A lost append re-reads and tries the next number, unless an entry of one of the row's own tables has changed since
    `seen`: then another run holds these tables. With `members`, whether the row is a complete cut is decided here,
    from the entries of the very state that it is appended to.

    Raises:
        FencedError: another run has written an entry of the row's own tables, or appends never succeeded.
    """
    table = offsets_table(layout, storage)
    wanted = set(members)
    for _ in range(_ATTEMPTS):
        state = table.state()
        known = seen.rows[-1].number if seen.rows else 0
        now = seen if known == state.batch else _offsets(table.rows())
        _check_own(row, seen, now, table.uri)
        if wanted:
            after = {**now.entries, **row.tables}
            complete, failed = cut_of(after, wanted, row.tables.keys())
            row = replace(row, complete=complete, failed=failed)
        try:
            table.append(state, [_to_row(row)], {"kind": row.kind, "to": row.to, "run_id": row.run_id})
        except FencedError:
            continue
        row = replace(row, number=state.batch + 1)
        _housekeeping(table, row.number)
        return Offsets((*now.rows, row), {**now.entries, **row.tables})
    raise FencedError(f"{table.uri} is being written by other runs all the time; gave up after {_ATTEMPTS} attempts")


def _check_own(row: OffsetRow, seen: Offsets, now: Offsets, uri: str) -> None:
    changed = [name for name in row.tables if seen.entry(name) != now.entry(name)]
    if changed:
        raise FencedError(f"Another run has written offsets of {sorted(changed)} in {uri} since this run began")


def _housekeeping(table: SmallTable, number: int) -> None:
    if number % _COMPACT_EVERY:
        return
    try:
        table.compact()
    except DeltaError:
        return  # Another run compacts or appends right now; the next fiftieth row tries again.


_ENTRY = pa.struct(
    [
        pa.field("status", pa.string()),
        pa.field("to", pa.string()),
        pa.field("epoch", pa.int32()),
        pa.field("delta_table_id", pa.string()),
        pa.field("delta_version", pa.int64()),
        pa.field("batch", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("incarnation", pa.int32()),
        pa.field("folder", pa.string()),
        pa.field("reason", pa.string()),
    ]
)
_SCHEMA = pa.schema(
    [
        pa.field("_batch", pa.int64()),
        pa.field("at", INSTANT),
        pa.field("kind", pa.string()),
        pa.field("epoch", pa.int32()),
        pa.field("to", pa.string()),
        pa.field("complete", pa.bool_()),
        pa.field("failed", TEXTS),
        pa.field("scanned", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("run_id", pa.string()),
        pa.field("witness", pa.string()),
        pa.field("facts", pa.string()),
        pa.field("tables", pa.map_(pa.string(), _ENTRY)),
    ]
)


def _to_row(row: OffsetRow) -> dict[str, Any]:
    bad = [entry.status for entry in row.tables.values() if entry.status not in get_args(Status)]
    if bad:
        raise ValueError(f"Unknown status {bad}; known are {get_args(Status)}")
    values = {name: getattr(row, name) for name in _SCHEMA.names if hasattr(row, name)}
    return {
        **values,
        "failed": list(row.failed),
        "tables": [(name, asdict(entry)) for name, entry in sorted(row.tables.items())],
    }


def _offsets(found: Iterable[Mapping[str, Any]]) -> Offsets:
    rows = tuple(_from_row(row) for row in found)
    entries: dict[str, Entry] = {}
    for row in rows:
        entries |= row.tables
    return Offsets(rows, entries)


def _from_row(found: Mapping[str, Any]) -> OffsetRow:
    values = {name: value for name, value in found.items() if name != "_batch"}
    values["failed"] = tuple(values["failed"] or ())
    values["tables"] = {name: Entry(**entry) for name, entry in values["tables"] or ()}
    return OffsetRow(number=found["_batch"], **values)
