"""Snapshots as blocks of records: CREATE records of all tables, then each table's rows with their markers (SNP).

In the lake, the rows of a snapshot have the positions at which they are exact (rule C18), while Debezium emits them in
one go. A block is placed at its first row's position; Debezium repeats the same changes after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
import pyarrow as pa

from mssql_cdc.lake.offset_digest import Step
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.recorded import Cut
from mssql_cdc.lake.steps import OffsetRow, SnapshotBegun, SnapshotEnded, is_of_start
from mssql_cdc.lsn import Lsn, cut_text, snapshot_position_text
from mssql_cdc.records.cuts import Cuts, last_before
from mssql_cdc.records.envelope import Envelopes, SourceInfo
from mssql_cdc.records.pieces import ChangeLog, TextBytes, first_row, snapshot_numbers, snapshot_rows
from mssql_cdc.records.record_batch import Record
from mssql_cdc.records.schema_changes import Described, Version, snapshot_record
from mssql_cdc.records.state import InSnapshot
from mssql_cdc.records.tables import Tables
from mssql_cdc.schema import TableId

INITIAL, BLOCKING = "INITIAL", "BLOCKING"


@dataclass(frozen=True, slots=True)
class Block:
    """One snapshot: its position, its number, its tables in snapshot order, and whether it `has_rows` at the cut.

    `described` are the tables that it did not read and whose structure it shows all the same. It ended when its newest
    row of `_offsets` was written, the one with the number `ended_by`; None: there is none. Of each table, the rows from
    the position in `lows` on count: others were read so long ago, or by another run, that they were read again.
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

    Otherwise, a snapshot's records could later be inserted between records that were already written. `creates` are the
    tables whose CREATE record belongs to a snapshot, perhaps to an open or a later one, and not to the stream.
    """

    blocks: tuple[Block, ...]
    bound: str
    creates: frozenset[TableId]


@dataclass(slots=True)
class _Known:
    """The offsets' facts about one snapshot.

    `left` are tables that were excluded before they were read; `lows` are the first positions of the others that count.
    """

    begun: OffsetRow
    newest: OffsetRow
    tables: set[str] = field(default_factory=set[str])
    described: set[str] = field(default_factory=set[str])
    left: set[str] = field(default_factory=set[str])
    lows: dict[str, str] = field(default_factory=dict[str, str])
    position: str | None = None
    is_open: bool = False
    repairs: bool = False

    @property
    def is_initial(self) -> bool:
        """Whether nobody asked for it: a start requests it itself, or it repairs a table that lost changes."""
        facts = self.begun.facts
        signal = facts.signal if isinstance(facts, SnapshotBegun | SnapshotEnded) else None
        return is_of_start(signal) or (signal is None and self.repairs)


def find_snapshots(
    logs: Mapping[TableId, ChangeLog],
    offsets: Offsets,
    cut: OffsetRow,
    order: Sequence[TableId],
    *,
    tables: Tables,
) -> Snapshots:
    """Find the snapshots of a database at a cut; later ones than the first are BLOCKING if somebody asked for them.

    A table that joined without a snapshot of its rows is none: Debezium announces it in the stream.

    Args:
        logs: The change logs of the tables that had one at the cut.
        offsets: All rows of `_offsets`.
        cut: The complete cut up to which records are rendered.
        order: The database's tables in snapshot order.
        tables: The database's tables.
    """
    known = _known(offsets, cut, tables)
    firsts: dict[str, str] = {}
    members: dict[str, set[str]] = {number: one.tables - one.left for number, one in known.items()}
    later = _begun_later(offsets, cut) - set(known)
    for table_id, log in logs.items():
        for number in snapshot_numbers(log) - later:
            if number in known and table_id.text in known[number].left:
                continue  # Its rows are a part of it, and an output that went on has none of them.
            members.setdefault(number, set()).add(table_id.text)
            first = min(piece.snapshots[number] for piece in log.pieces if number in piece.snapshots)
            firsts[number] = min(first, firsts.get(number, first))
    described = {number: (one.described | one.left) - members[number] for number, one in known.items()}
    positions = {number: firsts.get(number) or known[number].position or "" for number in members}
    open_ones = {number for number, one in known.items() if one.is_open}
    # An open one without rows has no position of its own yet.
    ordered = sorted(members, key=lambda number: (number in open_ones, positions[number]))
    ordered = [number for number in ordered if members[number] or known[number].described]
    ordered = [number for number in ordered if number == ordered[0] or not _only_joined(known.get(number))]
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
    return Snapshots(tuple(found), min([behind(cut), *bounds]), creates)


def _has_rows(
    number: str, logs: Mapping[TableId, ChangeLog], members: Collection[str], lows: Mapping[str, str]
) -> bool:
    """Whether rows of a snapshot count; rows are read only where some of a row group may, and others may not."""
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
    known: Mapping[str, _Known],
    positions: Mapping[str, str],
    logs: Mapping[TableId, ChangeLog],
) -> frozenset[TableId]:
    """Return the tables that were in a snapshot before they streamed.

    A table that joined the stream has its CREATE record there, whichever snapshot has its rows later.

    Args:
        order: The database's tables.
        shown: The tables of each snapshot, in order.
        known: The offsets' facts about snapshots, those too that only took positions of tables that joined.
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

    Their structure is kept before that begins. Of lakes of before, no step says that a table had joined the stream.
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
    """Return the cut with the log marks that it has passed: of an idle log, they can be behind its newest change.

    A table without a key is read at such a mark, and opened by a cut that has its rows, and no change behind the last.

    Args:
        cut: A complete cut, the last one.
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


def behind(cut: OffsetRow | Cut) -> str:
    """Return a text that is greater than every position up to the cut and less than every later one."""
    return f"{cut_text(cut.epoch, Lsn.parse(cut.to or ''))}+"


def _only_joined(one: _Known | None) -> bool:
    """Whether it took positions of tables and nothing else, and nobody asked for it."""
    facts = None if one is None else one.begun.facts
    return one is not None and not one.tables and isinstance(facts, SnapshotBegun) and facts.signal is None


def _known(offsets: Offsets, cut: OffsetRow, tables: Tables) -> dict[str, _Known]:
    """Return the snapshots by number; one that read no rows has none and is known by its partition."""
    steps = [step for step in offsets.steps if step.row.number <= cut.number]
    numbers = _numbers_by_partition(steps)
    found: dict[str, _Known] = {}
    newest: dict[str, tuple[str, str]] = {}
    for row, _ in steps:
        own = _number(row)
        number = (
            str(numbers.get(row.partition, row.partition) if own is None else own) if row.kind == "snapshot" else ""
        )
        named = {tables.named(name, entry): entry.status for name, entry in row.tables.items()}
        lost = any(newest.get(name, ("", ""))[0] == "lost" for name in named)
        for name, status in named.items():
            before = newest.get(name, ("", ""))
            if status == "excluded" and before[0] == "snapshot" and before[1] in found:
                found[before[1]].left.add(name)
            # A run that goes on with a snapshot says so in a row of another kind: the table is still in the same one.
            newest[name] = (status, before[1] if status == "snapshot" and not number else number)
        if row.kind != "snapshot":
            continue
        one = found.setdefault(number, _Known(row, row))
        one.repairs = one.repairs or lost
        one.newest = row
        if isinstance(row.facts, SnapshotEnded):
            read, ended = tables.named(row.facts.table, row.tables[row.facts.table]), row.facts
            one.lows[read] = snapshot_position_text(
                row.epoch, Lsn.parse(ended.low), number=ended.number, chunk=ended.chunk
            )
        is_read = not isinstance(row.facts, SnapshotBegun) or row.facts.data
        (one.tables if is_read else one.described).update(named)
        reached = [entry.reached for entry in row.tables.values() if entry.reached is not None]
        place = int(number) if number.isdigit() else 0
        for where in (snapshot_position_text(r.epoch, Lsn.parse(r.to), number=place) for r in reached):
            one.position = min(where, one.position or where)
    gone = _gone(offsets, tables)
    for name, (status, number) in newest.items():
        if status == "snapshot" and number in found and name not in gone:
            found[number].is_open = True
    return found


def _gone(offsets: Offsets, tables: Tables) -> set[str]:
    """Return the tables whose names others have taken: a snapshot goes by the name, and would be another one (B15)."""
    found: set[str] = set()
    for table, entry in tables.entries.items():
        last = offsets.last_name(entry.object_id) if entry.object_id is not None else None
        newest = offsets.entry(last) if last is not None else None
        if newest is not None and newest.object_id != entry.object_id:
            found.add(table.text)
    return found


def _number(row: OffsetRow) -> int | None:
    """Return the number of the snapshot to which a row belongs."""
    facts = row.facts
    return facts.number if row.kind == "snapshot" and isinstance(facts, SnapshotBegun | SnapshotEnded) else None


def _numbers_by_partition(steps: Sequence[Step]) -> Mapping[str | None, int]:
    """Return the numbers of snapshots that first took positions: without a cut in between, it is one snapshot."""
    found: dict[str | None, int] = {}
    since: set[str | None] = set()
    cuts = 0
    for row, before in steps:
        number = _number(row)
        if before > cuts:
            since.clear()
            cuts = before
        if row.complete:
            continue
        if number is None and row.kind == "snapshot":
            since.add(row.partition)
        elif number is not None and row.partition in since:
            found.setdefault(row.partition, number)
    return found


def _begun_later(offsets: Offsets, cut: OffsetRow) -> set[str]:
    """Return the snapshots that began behind the cut: their rows can have the cut's position."""
    return {str(_number(row)) for row in offsets.snapshot_rows if row.number > cut.number}


def _end_before(begun: OffsetRow, offsets: Offsets) -> str:
    """Return a bound after the newest complete cut before the snapshot began; the snapshot's rows follow it, too."""
    cut = last_before(Cuts(offsets.recorded), begun.number)
    return behind(cut) if cut is not None else ""


@dataclass(frozen=True, slots=True)
class SnapshotRows:
    """Consecutive rows of one table of a snapshot, and their place in it.

    Args:
        block: The snapshot.
        log: The table's change log.
        rows: Rows of its change log.
        is_first_table: The table is the snapshot's first one.
        is_first: They begin with the table's first row.
        is_last: They end with the table's last row.
        ends_snapshot: They end with the snapshot's last row.
        done: The tables before this one (`ChangeLog.identity`).
    """

    block: Block
    log: ChangeLog
    rows: pa.RecordBatch
    is_first_table: bool
    is_first: bool
    is_last: bool
    ends_snapshot: bool
    done: tuple[str, ...] = ()

    @property
    def table_id(self) -> TableId:
        """The table."""
        return self.log.table_id

    @property
    def markers(self) -> pa.Array:
        """`source.snapshot` of each row."""
        found = np.full(self.rows.num_rows, "true", object)
        if self.is_last:
            found[-1] = "last_in_data_collection"
        if self.is_first and self.is_first_table:
            found[0] = "first"
        elif self.is_first and not (self.is_last and self.rows.num_rows == 1):
            found[0] = "first_in_data_collection"
        if self.ends_snapshot:
            found[-1] = "last"
        return pa.array(found, pa.string())


def block_rows(
    block: Block, logs: Mapping[TableId, ChangeLog], text_bytes: TextBytes, *, within: InSnapshot | None = None
) -> Iterator[SnapshotRows]:
    """Yield the rows of one snapshot, table by table.

    Args:
        block: The snapshot.
        logs: The change logs of its tables.
        text_bytes: Bounds what their records repeat.
        within: What is written of it; None: nothing.
    """
    pending: SnapshotRows | None = None
    for found in _rows(block, logs, text_bytes, within):
        if pending is not None:
            yield replace(pending, is_last=found.table_id != pending.table_id)
        pending = found
    if pending is not None:
        yield replace(pending, is_last=True, ends_snapshot=True)


def _rows(
    block: Block, logs: Mapping[TableId, ChangeLog], text_bytes: TextBytes, within: InSnapshot | None
) -> Iterator[SnapshotRows]:
    begun, done = _written(block, logs, within)
    is_new = within is None or within.table is None
    for table_id in sorted(block.tables, key=lambda table: table != begun):
        if table_id not in logs or logs[table_id].identity in done:
            continue
        log, low = logs[table_id], f"{within.position}+" if within is not None and table_id == begun else ""
        is_first, is_first_table = not low, is_new and table_id == block.tables[0]
        low = max(low, block.lows.get(table_id, ""))
        for rows in snapshot_rows(log, block.number, text_bytes, low=low):
            yield SnapshotRows(block, log, rows, is_first_table, is_first, False, False, done)
            is_first = False
        done = (*done, log.identity)


def _written(
    block: Block, logs: Mapping[TableId, ChangeLog], within: InSnapshot | None
) -> tuple[TableId | None, tuple[str, ...]]:
    """Return the table of which a part is written, if it is still there, and those that are done."""
    if within is None or within.table is None:
        return None, ()
    # Outputs that were begun before logs had an identity here name the table.
    own = {table: {table.text, *([logs[table].identity] if table in logs else [])} for table in block.tables}
    begun = next((table for table, ids in own.items() if within.table in ids), None)
    if within.done is not None or begun is None:
        return begun, within.done or ()
    before = block.tables[: block.tables.index(begun)]
    return begun, tuple(logs[table].identity for table in before if table in logs)


def create_records(
    block: Block,
    logs: Mapping[TableId, ChangeLog],
    versions: Mapping[TableId, Sequence[Version]],
    envelopes: Envelopes,
    others: Sequence[Described] = (),
    *,
    kept: SourceInfo,
) -> Iterator[Record]:
    """Yield the CREATE record of each table of a snapshot.

    Args:
        block: The snapshot.
        logs: The change logs of its tables.
        versions: All versions of each table, in order.
        envelopes: Builds the records, one after another.
        others: The tables that are not captured; only the initial snapshot describes them.
        kept: The event whose position the records show.
    """
    found = _first_versions(block, logs)
    shown = {
        table: next((v for v in versions[table] if v.schema.version == found.get(table)), versions[table][0]).described
        for table in (*block.tables, *block.described)
    }
    if block.kind == INITIAL:
        shown = {one.table_id: one for one in others} | shown
        # Java compares names by their UTF-16 code units.
        shown = {table: shown[table] for table in sorted(shown, key=lambda table: table.text.encode("utf-16-be"))}
    for place, described in enumerate(shown.values(), start=1):
        is_last = not block.has_rows and place == len(shown)
        marker = "last" if is_last else "true"
        yield snapshot_record(described, envelopes, kept=kept, kind=block.kind, marker=marker)


def _first_versions(block: Block, logs: Mapping[TableId, ChangeLog]) -> dict[TableId, int]:
    """Return the schema version of each table's first row."""
    found: dict[TableId, int] = {}
    for table_id in block.tables:
        if table_id in logs:
            first = first_row(logs[table_id], block.number, low=block.lows.get(table_id, ""))
            if first is not None:
                found[table_id] = first.column("_schema")[0].as_py()
    return found
