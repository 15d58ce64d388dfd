"""Snapshots as blocks of records: which snapshots there are, of which tables, and at which positions (SNP).

In the lake, the rows of a snapshot have the positions at which they are exact (rule C18), while Debezium emits them in
one go. A block is placed at its first row's position; Debezium repeats the same changes after it. What `_offsets` says
about snapshots is in `known_snapshots.py`, the records of a block are in `snapshot_block.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.recorded import Cut
from mssql_cdc.lake.steps import OffsetRow, SnapshotEnded
from mssql_cdc.lsn import Lsn, cut_text
from mssql_cdc.records.cuts import Cuts, last_before
from mssql_cdc.records.known_snapshots import KnownSnapshot, begun_later, known_snapshots
from mssql_cdc.records.pieces import ChangeLog, first_row, snapshot_numbers
from mssql_cdc.records.tables import Tables
from mssql_cdc.schema import TableId

INITIAL, BLOCKING = "INITIAL", "BLOCKING"


@dataclass(frozen=True, slots=True)
class Block:
    """One snapshot: its position, its number, its tables in snapshot order, and whether it `has_rows` at the cut.

    `described` are the tables that it did not read but whose structure it shows all the same. It ended when its newest
    row in `_offsets` was written, the one with the number `ended_by`; None: there is none. For each table, the rows
    from the position in `lows` on count: others were read too long ago, or by another run, and so were read again.
    """

    position: str
    number: str
    tables: tuple[TableId, ...]
    kind: str
    has_rows: bool
    described: tuple[TableId, ...] = ()
    ended: datetime | None = None
    ended_by: int | None = None
    lows: Mapping[TableId, str] = field(default_factory=dict[TableId, str])

    @property
    def commit_lsn(self) -> str | None:
        """The LSN of its position; None if it is not known."""
        return Lsn.parse(self.position[5:25]).text if len(self.position) > 25 else None


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The completed snapshots, in order; records end before `bound`, the position of the first open snapshot.

    Otherwise, a snapshot's records could later belong between records that were already written. `creates` are the
    tables whose CREATE record belongs to a snapshot, perhaps to an open or a later one, and not to the stream.
    """

    blocks: tuple[Block, ...]
    bound: str
    creates: frozenset[TableId]


def find_snapshots(
    logs: Mapping[TableId, ChangeLog],
    offsets: Offsets,
    cut: OffsetRow,
    order: Sequence[TableId],
    *,
    tables: Tables,
) -> Snapshots:
    """Find the snapshots of a database at a cut; those after the first are BLOCKING if somebody requested them.

    A table that joined without a snapshot of its rows does not count as one: Debezium announces it in the stream.

    Args:
        logs: The change logs of the tables that had one at the cut.
        offsets: All rows of `_offsets`.
        cut: The complete cut up to which records are rendered.
        order: The database's tables in snapshot order.
        tables: The database's tables.
    """
    known = known_snapshots(offsets, cut, tables)
    firsts: dict[str, str] = {}
    members: dict[str, set[str]] = {number: one.tables - one.left for number, one in known.items()}
    later = begun_later(offsets, cut) - set(known)
    for table_id, log in logs.items():
        for number in snapshot_numbers(log) - later:
            if number in known and table_id.text in known[number].left:
                continue  # Only part of the table was read, and an output that continued has none of these rows.
            members.setdefault(number, set()).add(table_id.text)
            first = min(piece.snapshots[number] for piece in log.pieces if number in piece.snapshots)
            firsts[number] = min(first, firsts.get(number, first))
    described = {number: (one.described | one.left) - members[number] for number, one in known.items()}
    positions = {number: firsts.get(number) or known[number].position or "" for number in members}
    open_ones = {number for number, one in known.items() if one.is_open}
    # An open snapshot without rows has no position of its own yet.
    ordered = sorted(members, key=lambda number: (number in open_ones, positions[number]))
    ordered = [number for number in ordered if members[number] or known[number].described]
    joined = {number for number, one in known.items() if one.only_joined}
    ordered = [number for number in ordered if number == ordered[0] or number not in joined]
    lows = {number: one.lows for number, one in known.items()}
    bounds = [firsts.get(number) or _end_before(known[number].begun, offsets) for number in open_ones]
    found = [
        Block(
            positions[number],
            number,
            tuple(table for table in order if table.text in members[number]),
            BLOCKING if place and not (number in known and known[number].is_initial) else INITIAL,
            number in firsts and _has_rows(number, logs, members[number], lows.get(number, {})),
            tuple(table for table in order if table.text in described.get(number, ())),
            known[number].newest.at if number in known else None,
            known[number].newest.number if number in known else None,
            {table: lows[number][table.text] for table in order if table.text in lows.get(number, {})},
        )
        for place, number in enumerate(ordered)
        if number not in open_ones
    ]
    shown = {number: members[number] | described.get(number, set()) for number in ordered}
    creates = _creates(order, shown, known, positions, logs) | _not_streamed(order, logs, offsets, cut, tables)
    return Snapshots(tuple(found), min([end_of(cut), *bounds]), creates)


def _has_rows(
    number: str, logs: Mapping[TableId, ChangeLog], members: Collection[str], lows: Mapping[str, str]
) -> bool:
    """Whether a snapshot has rows that count; rows are read only where a row group may have both these and others."""
    for table, log in logs.items():
        firsts = [piece.snapshots[number] for piece in log.pieces if number in piece.snapshots]
        low = lows.get(table.text, "")
        if table.text not in members or not firsts:
            continue
        if max(firsts) >= low or first_row(log, number, low=low) is not None:
            return True
    return False


def _creates(
    order: Sequence[TableId],
    shown: Mapping[str, set[str]],
    known: Mapping[str, KnownSnapshot],
    positions: Mapping[str, str],
    logs: Mapping[TableId, ChangeLog],
) -> frozenset[TableId]:
    """Return the tables that were in a snapshot before they streamed.

    A table that joined the stream has its CREATE record there, no matter which snapshot has its rows later.

    Args:
        order: The database's tables.
        shown: The tables of each snapshot, in order.
        known: The offsets' facts about snapshots, including those that only took the positions of tables that joined.
        positions: The positions of snapshots.
        logs: The change logs.
    """
    joined = [one for number, one in known.items() if number not in shown]
    found: set[TableId] = set()
    for table in order:
        first = next((number for number, own in shown.items() if table.text in own), None)
        if first is None:
            continue
        begun = known[first].begun.number if first in known else 0
        has_joined = any(one.begun.number < begun and table.text in one.described for one in joined)
        left = {number for number, one in known.items() if table.text in one.left}
        pieces = [one for one in logs[table].pieces if left.isdisjoint(one.snapshots)] if table in logs else []
        if not has_joined and not any(piece.first < positions[first] for piece in pieces):
            found.add(table)
    return frozenset(found)


def _not_streamed(
    order: Sequence[TableId], logs: Mapping[TableId, ChangeLog], offsets: Offsets, cut: OffsetRow, tables: Tables
) -> frozenset[TableId]:
    """Return the tables that had not begun to stream at a cut: their CREATE record comes with their first snapshot.

    Their structure is stored before that snapshot begins. In older lakes, no step says that a table had joined the
    stream.
    """
    streamed, named = set[str](), set[str]()
    for row, _ in offsets.steps:
        for name, entry in row.tables.items():
            own = tables.named(name, entry)
            named.add(own)
            if entry.status == "streaming" and row.number <= cut.number:
                streamed.add(own)
    return frozenset(
        table
        for table in order
        if table not in logs and table.text not in streamed and (table.text in named or table not in tables.entries)
    )


def with_marks(cut: OffsetRow, offsets: Offsets) -> OffsetRow:
    """Return the cut with the log marks that it has passed: in an idle log, they can be after its newest change.

    A table without a key is read at such a mark, and opened by a cut that has its rows, and no change after the last.

    Args:
        cut: The last complete cut.
        offsets: All rows of `_offsets`.
    """
    passed = [
        row.facts.mark.lsn.text
        for row in offsets.noted
        if isinstance(row.facts, SnapshotEnded)
        and row.number < cut.number
        and row.epoch == cut.epoch
        and offsets.closed_until(row.facts.table, row.tables.get(row.facts.table)) is None
    ]
    return replace(cut, to=max([cut.to or "", *passed])) if passed else cut


def end_of(cut: OffsetRow | Cut) -> str:
    """Return a text that is greater than every position up to the cut and less than every later one."""
    return f"{cut_text(cut.epoch, Lsn.parse(cut.to or ''))}+"


def _end_before(begun: OffsetRow, offsets: Offsets) -> str:
    """Return a bound after the newest complete cut before the snapshot began; the snapshot's rows follow it, too."""
    cut = last_before(Cuts(offsets.recorded), begun.number)
    return end_of(cut) if cut is not None else ""
