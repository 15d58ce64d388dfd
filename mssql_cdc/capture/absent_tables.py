"""The tables of the lake that cannot be captured now, for a survey: which ones, and what the source says about them.

The planner decides what becomes of them (`plan/planner.lost`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.members import LakeTable
from mssql_cdc.lake.gaps import load_gaps
from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.named_entries import entries_by_name, last_name
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry
from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.facts import Absent
from mssql_cdc.schema import TableId
from mssql_cdc.source.protocol import SourceSession
from mssql_cdc.source.values import Absence, CapturedTable


@dataclass(frozen=True, slots=True)
class _Missing:
    """A table that the source does not show.

    Attributes:
        table: Its last name.
        number: Its object id; None: another table has it now (after a restore).
        entry: Its newest entry.
        epoch: The epoch of the survey; the entry may belong to an earlier one.
        former: Whether another table has its name now.
        gap: The status of its gap in that case; None: it has none.
    """

    table: TableId
    number: int | None
    entry: Entry
    epoch: int
    former: bool = False
    gap: Literal["open", "acknowledged"] | None = None

    @property
    def position(self) -> Lsn | None:
        """Its position in this epoch. A table that never streamed and has no name of its own has lost everything."""
        known = self.entry.to_in(self.epoch)
        return Lsn.parse(known) if known else Lsn(bytes(10)) if self.former else None

    def absent(self, absence: Absence) -> Absent:
        """How the planner sees it."""
        reason, former = absence.reason, self.number if self.former else None
        if former is not None:
            reason = f"another table has the name of this one (object id {former}) now; {reason}"
        lost = absence.lost and self.gap is None
        # The restore that began the epoch has recorded the gap of a table that was not captured then.
        status = "lost" if lost and self.entry.epoch != self.epoch else self.entry.status
        return Absent(self.table, status, self.position, reason, lost, former)


def absent_tables(
    session: SourceSession,
    database: Database,
    offsets: Offsets,
    history: SchemaHistory,
    tables: Mapping[TableId, LakeTable],
    problems: Collection[TableId],
) -> Iterator[tuple[Absent, Entry]]:
    """Find the tables that the lake streams but the source does not show, with the reason and their newest entries.

    Tables whose last known name the filters now exclude do not count, nor do tables that are shown under another name.
    If another table has the name of one, its loss is recorded once, as a gap (B15), and reported until that gap is
    acknowledged: nothing else about it uses the name now.

    Args:
        session: A session on the source.
        database: The database.
        offsets: The offsets.
        history: The structures, under the names that tables have now.
        tables: The captured tables.
        problems: Tables that the source shows and that cannot be captured.
    """
    shown = {table.text for table in (*tables, *problems)}
    present = {table.captured.object_id for table in tables.values()}
    own = {one.table: one for one in _under_their_names(database, offsets, history, shown, present)}
    if own:
        for table, absence in session.absences({table: one.number for table, one in own.items()}).items():
            yield own[table].absent(absence), own[table].entry
    for one in _under_former_names(database, offsets, history, shown, present):
        (absence,) = session.absences({one.table: one.number}).values()
        yield one.absent(absence), one.entry


def unfit_tables(offsets: Offsets, problems: Mapping[TableId, str]) -> Iterator[Absent]:
    """The tables that the source shows but that cannot be captured as they are: the others continue without them.

    Args:
        offsets: The offsets.
        problems: The tables, with the reasons.
    """
    for table, reason in problems.items():
        entry = offsets.entry(table.text)
        to = entry.to_in(offsets.epoch) if entry is not None else None
        position = Lsn.parse(to) if to else None
        yield Absent(table, entry.status if entry is not None else "new", position, reason, lost=False)


def apart(tables: Sequence[CapturedTable], offsets: Offsets) -> tuple[list[CapturedTable], list[Absent]]:
    """Separate tables from those whose full names read like that of another one: `[a].[b.c]` and `[a.b].[c]`.

    Only one of them can be captured: the one that the lake has, otherwise the one that was created first.

    Args:
        tables: The captured tables.
        offsets: The offsets.
    """
    found: dict[str, CapturedTable] = {}
    for table in sorted(tables, key=lambda one: (not offsets.last_of(one.object_id), one.object_id)):
        found.setdefault(table.table_id.text, table)
    alike = [table for table in tables if found[table.table_id.text] is not table]
    return [table for table in tables if table not in alike], [
        Absent(
            table.table_id,
            "new",
            None,
            "its full name reads like that of another captured table (object id "
            f"{found[table.table_id.text].object_id}), and the lake goes by full names: rename one of the two",
            lost=False,
            former=table.object_id,
        )
        for table in alike
    ]


def _under_their_names(
    database: Database, offsets: Offsets, history: SchemaHistory, shown: Collection[str], present: Collection[int]
) -> Iterator[_Missing]:
    for name, entry in entries_by_name(offsets, history.versions).items():
        if entry.status == "excluded" or name in shown:
            continue
        newest = history.versions[name][-1]
        table, number = newest.table_id, newest.object_id
        if database.connector.filters.tables.matches(*table.parts):
            # After a restore, another table may have its identity; a table that was renamed has its versions.
            yield _Missing(table, None if number in present else number, entry, offsets.epoch)


def _under_former_names(
    database: Database, offsets: Offsets, history: SchemaHistory, shown: Collection[str], present: Collection[int]
) -> Iterator[_Missing]:
    """Tables whose names others have taken since, and may no longer have.

    Of the tables that had a name that no table has now, the last one goes by it: the others are still former ones.
    """
    numbers = [number for number in history.former if number not in present]
    found = dict[int, tuple[TableId, Entry]]()
    for number in numbers:
        entry, versions = offsets.last_of(number), history.former[number]
        table = last_name(offsets, number, versions) or versions[-1].table_id
        is_known = entry is not None and entry.status != "excluded" and entry.epoch == offsets.epoch
        if entry is not None and is_known and database.connector.filters.tables.matches(*table.parts):
            found[number] = table, entry
    ledger = load_gaps(database.layout, database.storage) if numbers else ()
    told = {gap.identity: gap.status for gap in ledger}
    in_order = sorted(found, key=lambda one: offsets.places(found[one][0].text, one)[1])
    last = {found[number][0].text: number for number in in_order}
    for number, (table, entry) in found.items():
        is_taken = table.text in shown or table.text in history.versions
        one = _Missing(table, number, entry, offsets.epoch, former=is_taken or last[table.text] != number)
        if one.former:
            one = replace(one, gap=told.get((table.text, entry.epoch, str(one.position))))
        if one.gap != "acknowledged":
            yield one
