"""Scans: slices of visible rows of a table, in the order of an index or of the heap.

A scan is an iterator that keeps its position by key. If it raises `MustWait` it has not moved: once the lock is
granted, `next` may be called again. The table may be changed between two slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mssql_sandbox.engine.storage.index import Bounds, Index
from mssql_sandbox.engine.storage.sorted_keys import TOP
from mssql_sandbox.engine.storage.views import ReadView
from mssql_sandbox.engine.versions import Version

if TYPE_CHECKING:
    from mssql_sandbox.engine.storage.table import Table

HEAP_SLICE = 1024


class Scan:
    """Iterator over lists of visible row tuples."""

    __slots__ = ("_bounds", "_done", "_down", "_index", "_place", "_table", "_view")

    def __init__(
        self, table: Table, view: ReadView, *, index: Index | None, bounds: Bounds | None, descending: bool
    ) -> None:
        view.open(table)
        self._table = table
        self._view = view
        self._index = index
        self._bounds = bounds
        self._down = descending
        self._place: Any = None
        self._done = False

    def __iter__(self) -> Iterator[list[Any]]:
        return self

    def __next__(self) -> list[Any]:
        while not self._done:
            keys, rowids = self._next_entries()
            if not rowids:
                self._done = True
                break
            rows = self._visible(keys, rowids)
            # The position is a 1-tuple, because a key can be any value.
            self._place = (keys[-1],)
            if result := self._result(rowids, rows):
                return result
        raise StopIteration

    def _result(self, rowids: Sequence[int], rows: list[Any]) -> list[Any]:  # noqa: ARG002 - EntryScan uses it
        return [row for row in rows if row is not None] if None in rows else rows

    def _next_entries(self) -> tuple[Sequence[Any], Sequence[int]]:
        if self._index is None:
            return self._heap_entries()
        bounds, entries, place = self._bounds, self._index.entries, self._place
        low, after = (bounds.low, bounds.after) if bounds else (None, False)
        high, through = (bounds.high, bounds.through) if bounds else (None, True)
        if self._down:
            start, before = (high, not through) if place is None else (place[0], True)
            return entries.slice_down(start, before=before, low=low, through=not after)
        start, behind = (low, after) if place is None else (place[0], True)
        return entries.slice_up(start, after=behind, high=TOP if high is None else high, through=through)

    def _heap_entries(self) -> tuple[Sequence[int], Sequence[int]]:
        end = len(self._table.heap)
        if self._down:
            stop = end if self._place is None else self._place[0]
            found = range(stop - 1, max(0, stop - HEAP_SLICE) - 1, -1)
        else:
            start = 0 if self._place is None else self._place[0] + 1
            found = range(start, min(end, start + HEAP_SLICE))
        return found, found

    def _visible(self, keys: Sequence[Any], rowids: Sequence[int]) -> list[Any]:
        """One row or None per row id."""
        table, view, index = self._table, self._view, self._index
        heap = table.heap
        held = view.needs_row_locks
        if not table.versions and not held:
            if isinstance(rowids, range) and not self._down:
                return heap[rowids.start : rowids.stop]
            return [heap[rowid] for rowid in rowids]
        resolve = view.resolve
        rows: list[Any] = []
        for key, rowid in zip(keys, rowids, strict=True):
            slot = heap[rowid]
            if type(slot) is tuple and not held:
                rows.append(slot)
                continue
            row = resolve(table, rowid, slot)
            if row is not None and index is not None and type(slot) is Version and index.entry_key(row, rowid) != key:
                # The entry belongs to another version of the row, which the scan reaches under its own key.
                row = None
            rows.append(row)
        return rows


class EntryScan(Scan):
    """Iterator over lists of (row id, row)."""

    __slots__ = ()

    def _result(self, rowids: Sequence[int], rows: list[Any]) -> list[Any]:
        return [(rowid, row) for rowid, row in zip(rowids, rows, strict=True) if row is not None]
