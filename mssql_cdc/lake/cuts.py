"""Complete cuts (rule A1), and the tables that they open: until then, a table is closed after its snapshot (C18).

`lake/offset_digest.py` determines which cuts open which tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from mssql_cdc.lake.offset_digest import Digest
from mssql_cdc.lake.steps import Entry
from mssql_cdc.source.values import LogMark


@dataclass(frozen=True, slots=True)
class Closures:
    """The log marks that the streams of closed tables must pass.

    `by_name` lists them by the newest name (`TableId.text`) that an entry gives the table.
    """

    by_name: Mapping[str, LogMark] = field(default_factory=dict[str, LogMark])
    by_object_id: Mapping[int, LogMark] = field(default_factory=dict[int, LogMark])

    def mark(self, table: str, entry: Entry | None) -> LogMark | None:
        """The mark that the stream of a table must pass; None: the table is open.

        Args:
            table: The table's name.
            entry: Its newest entry, perhaps under a former name.
        """
        if entry is not None and entry.object_id is not None:
            return self.by_object_id.get(entry.object_id)
        return self.by_name.get(table)


def closures(digest: Digest) -> Closures:
    """Return the closed tables.

    Args:
        digest: What all rows of `_offsets` amount to.
    """
    by_name: dict[str, LogMark] = {}
    by_object_id: dict[int, LogMark] = {}
    for identity, (_, facts) in digest.ended.items():
        if isinstance(identity, str):
            by_name[identity] = facts.mark
            continue
        by_object_id[identity] = facts.mark
        name = digest.newest_name(identity)
        if name is not None:
            by_name[name] = facts.mark
    return Closures(by_name, by_object_id)


def cut_of(
    entries: Mapping[str, Entry], members: Iterable[str], took_part: Collection[str]
) -> tuple[bool, tuple[str, ...]]:
    """Whether a range in which these tables took part is a complete cut, and the names of the failed members.

    Every member with status streaming must have taken part: committed, or probed without rows.

    Args:
        entries: The newest entry of each table.
        members: The names of the captured tables.
        took_part: The tables that committed, or were probed without rows.
    """
    found = {member: entries[member].status for member in members if member in entries}
    complete = all(member in took_part for member, status in found.items() if status == "streaming")
    return complete, tuple(sorted(member for member, status in found.items() if status == "failed"))
