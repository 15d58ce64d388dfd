"""What `_offsets` says about the snapshots of a database, up to a cut.

`records/snapshots.py` derives the blocks of records from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mssql_cdc.lake.offset_digest import Step
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import OffsetRow, SnapshotBegun, SnapshotEnded, is_of_start
from mssql_cdc.lsn import Lsn, snapshot_position_text
from mssql_cdc.records.tables import Tables


@dataclass(slots=True)
class KnownSnapshot:
    """The offsets' facts about one snapshot.

    `left` are tables that were excluded before they were read; `lows` are the first positions that count in the others.
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

    @property
    def only_joined(self) -> bool:
        """Whether the snapshot took positions of tables and nothing else, and nobody asked for it."""
        facts = self.begun.facts
        return not self.tables and isinstance(facts, SnapshotBegun) and facts.signal is None


def known_snapshots(offsets: Offsets, cut: OffsetRow, tables: Tables) -> dict[str, KnownSnapshot]:
    """Return the snapshots by number; one that read no rows has none and is identified by its partition.

    Args:
        offsets: All rows of `_offsets`.
        cut: The complete cut up to which they count.
        tables: The database's tables.
    """
    steps = [step for step in offsets.steps if step.row.number <= cut.number]
    numbers = _numbers_by_partition(steps)
    found: dict[str, KnownSnapshot] = {}
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
            # A run that continues a snapshot says so in a row of another kind: the table is still in the same snapshot.
            newest[name] = (status, before[1] if status == "snapshot" and not number else number)
        if row.kind != "snapshot":
            continue
        one = found.setdefault(number, KnownSnapshot(row, row))
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
    """Return the numbers of snapshots that took positions first: without a cut in between, both are one snapshot."""
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


def begun_later(offsets: Offsets, cut: OffsetRow) -> set[str]:
    """Return the snapshots that began after the cut: their rows can have the cut's position."""
    return {str(_number(row)) for row in offsets.snapshot_rows if row.number > cut.number}
