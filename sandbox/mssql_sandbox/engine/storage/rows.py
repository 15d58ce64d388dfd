"""Rows in memory: slots, their versions, and the index entries of both.

What does not belong here: the meaning of columns (table.py), when a version is settled (transaction.py).
"""

from __future__ import annotations

from mssql_sandbox.engine.storage.index import Index
from mssql_sandbox.engine.storage.objects import Schema, SchemaObject
from mssql_sandbox.engine.versions import Slot, Version, chain_rows, newest


class StoredRows(SchemaObject):
    """A schema object that has rows, kept by row id, and indexes over them."""

    __slots__ = ("free", "heap", "indexes", "versions")

    def __init__(
        self, name: str, object_id: int, schema: Schema, type_code: str, create_date: int, modify_date: int,
        *, is_ms_shipped: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(name, object_id, schema, type_code, create_date, modify_date, is_ms_shipped=is_ms_shipped)
        self.indexes: list[Index] = []
        self.heap: list[Slot] = []
        self.free: list[int] = []
        self.versions = 0
        """Slots that are not plain tuples: versions, and for heaps also free slots."""

    @property
    def row_count(self) -> int:
        """The number of rows, including uncommitted ones (shown by sys.partitions)."""
        if not self.versions:
            return len(self.heap) - len(self.free)
        return sum(1 for slot in self.heap if newest(slot) is not None)

    def publish(self, rowids: list[int], oldest: int) -> None:
        """Settle just committed rows if no snapshot is in use."""
        heap = self.heap
        for rowid in rowids:
            slot = heap[rowid] if rowid < len(heap) else None
            if type(slot) is Version:
                if slot.previous is None and slot.row is not None and slot.transaction is None:
                    heap[rowid] = slot.row
                    self.versions -= 1
                else:
                    self.collapse(rowid, oldest)

    def collapse(self, rowid: int, oldest: int) -> None:
        """Discard the versions of a row that no snapshot from `oldest` on can see, and their index entries."""
        if rowid >= len(self.heap):
            return  # the table was truncated meanwhile
        top = self.heap[rowid]
        above: Version | None = None
        slot = top
        while type(slot) is Version and (slot.transaction is not None or slot.sequence > oldest):
            above, slot = slot, slot.previous
        if type(slot) is not Version:
            return
        kept, gone = slot.row, chain_rows(slot.previous)
        if above is not None:
            above.previous = kept
        else:
            self.heap[rowid] = kept
            self.versions -= 1
            if kept is None:
                self._free(rowid)
        if gone:
            self._drop_entries(rowid, gone, chain_rows(self.heap[rowid]))

    def undo_version(self, rowid: int, version: Version) -> None:
        """Remove an uncommitted version."""
        previous = version.previous
        self.heap[rowid] = previous
        if type(previous) is not Version:
            self.versions -= 1
            if previous is None:
                self._free(rowid)
        if version.row is not None:
            self._drop_entries(rowid, [version.row], chain_rows(previous))

    def _free(self, rowid: int) -> None:
        self.free.append(rowid)

    def _drop_entries(self, rowid: int, gone: list[tuple], kept: list[tuple]) -> None:
        """Remove index entries of the rows in `gone` that no row in `kept` shares."""
        for index in self.indexes:
            keep = {index.key(row) for row in kept if index.covers(row)}
            for row in gone:
                key = index.key(row)
                if key not in keep:
                    index.discard(key, rowid)
