"""Complete cuts (rule A1), and the tables that they open: until then, a table is closed behind its snapshot (C18).

A cut may be complete without a table, which failed then, or was not there for one look. So only a cut that names the
table as streaming opens it. A table is told by its object id, since it may be renamed meanwhile (B15).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mssql_cdc.lake.offset_entries import Entries
from mssql_cdc.lake.steps import Entry, OffsetRow, SnapshotEnded
from mssql_cdc.source.values import LogMark


@dataclass(frozen=True, slots=True)
class Closures:
    """The log marks that the streams of closed tables have to pass.

    `by_name` has them by the newest name (`TableId.text`) that an entry gives the table.
    """

    by_name: Mapping[str, LogMark] = field(default_factory=dict[str, LogMark])
    by_object_id: Mapping[int, LogMark] = field(default_factory=dict[int, LogMark])

    def mark(self, table: str, entry: Entry | None) -> LogMark | None:
        """The mark that the stream of a table has to pass; None: the table is open.

        Args:
            table: The table's name.
            entry: Its newest entry, perhaps under a former name.
        """
        if entry is not None and entry.object_id is not None:
            return self.by_object_id.get(entry.object_id)
        return self.by_name.get(table)


def closures(noted: Iterable[OffsetRow], entries: Entries, complete: np.ndarray[Any, Any], numbers: Any) -> Closures:
    """Return the closed tables.

    Args:
        noted: The rows with facts, of one epoch: marks of an earlier one belong to a log that is gone.
        entries: The entries of all rows.
        complete: Which of all rows are complete cuts.
        numbers: The numbers of all rows.
    """
    ended: dict[int | str, tuple[int, SnapshotEnded]] = {}
    for row in noted:
        if isinstance(row.facts, SnapshotEnded):
            read = row.tables.get(row.facts.table)
            identity = read.object_id if read is not None else None
            ended[row.facts.table if identity is None else identity] = row.number, row.facts
    cuts = np.flatnonzero(complete)
    for searched in (cuts[-1:], cuts):  # Nearly always, the newest cut has all tables.
        last = entries.last_streaming(searched) if ended else {}
        ended = {one: end for one, end in ended.items() if one not in last or numbers[last[one]] <= end[0]}
    by_name: dict[str, LogMark] = {}
    by_object_id: dict[int, LogMark] = {}
    for identity, (_, facts) in ended.items():
        if isinstance(identity, str):
            by_name[identity] = facts.mark
            continue
        by_object_id[identity] = facts.mark
        name = entries.newest_name(identity)
        if name is not None:
            by_name[name] = facts.mark
    return Closures(by_name, by_object_id)


def cut_of(
    entries: Mapping[str, Entry], members: Iterable[str], took_part: Collection[str]
) -> tuple[bool, tuple[str, ...]]:
    """Whether a range that these tables took part in is a complete cut, and which failed members it names.

    Every member with status streaming must have taken part: committed, or probed without rows.

    Args:
        entries: The newest entry of each table.
        members: The names of the captured tables.
        took_part: The tables that committed, or were probed without rows.
    """
    found = {member: entries[member].status for member in members if member in entries}
    complete = all(member in took_part for member, status in found.items() if status == "streaming")
    return complete, tuple(sorted(member for member, status in found.items() if status == "failed"))
