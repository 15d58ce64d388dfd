"""The tables of a database as records know them: by their newest names, or with an object id (rule B15).

A table that is no longer captured still has changes to render when another one has its name. A record shows the name
that the table had at the time, which `records/shapes.py` takes from the version of its row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from mssql_cdc.lake.history import SchemaHistory
from mssql_cdc.lake.named_entries import entries_by_name, last_name
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry
from mssql_cdc.schema import TableId, TableSchema


@dataclass(frozen=True)
class Tables:
    """The versions of each table, oldest first, and its newest entry in `_offsets`, if it has one."""

    versions: Mapping[TableId, Sequence[TableSchema]]
    entries: Mapping[TableId, Entry] = field(default_factory=dict[TableId, Entry])

    @classmethod
    def of(cls, history: SchemaHistory, offsets: Offsets) -> Tables:
        """Find the tables.

        A table that has taken its name back from another one has no structure under this name before its next change;
        its newest entry has the name.

        Args:
            history: The schema history as it was loaded.
            offsets: The offsets.
        """
        found = {own[-1].table_id: own for own in history.versions.values()}
        lost: dict[TableId, Entry] = {}
        for number, own in history.former.items():
            table, entry = last_name(offsets, number, own), offsets.last_of(number)
            if table is not None and table not in found:
                found[table] = own
            elif table is not None and entry is not None:
                apart = replace(table, name=f"{table.name} (object id {number})")
                found[apart], lost[apart] = own, entry
        named = {table.text: own for table, own in found.items() if table not in lost}
        entries = entries_by_name(offsets, named)
        return cls(found, {**{table: entries[table.text] for table in found if table.text in entries}, **lost})

    def named(self, name: str, entry: Entry) -> str:
        """Return the table (`TableId.text`) of an entry of `_offsets`, which has the name that the table had then.

        Args:
            name: The name.
            entry: The entry.
        """
        return self._by_folder.get(entry.folder or "") or self._renamed.get(name, name)

    @cached_property
    def _by_folder(self) -> dict[str, str]:
        return {entry.folder: table.text for table, entry in self.entries.items() if entry.folder is not None}

    @cached_property
    def _renamed(self) -> dict[str, str]:
        """The newest name of each table, by its former names that no other table has now."""
        former = {one.table_id.text: table.text for table, own in self.versions.items() for one in own}
        now = {table.text for table in self.versions}
        return {name: table for name, table in former.items() if name not in now}
