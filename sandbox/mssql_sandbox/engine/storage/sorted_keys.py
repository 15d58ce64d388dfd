"""A sorted multimap from index keys to row ids: chunked sorted lists under `bisect`.

Keys of one map must be comparable with each other; row ids take 8 bytes each. Ranges are read in slices that can be
resumed after a key, so that a scan survives changes made between two slices. What does not belong here: making a key
from a row (index.py).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import islice
from typing import Any

_CHUNK = 1024
Slice = tuple[list[Any], "array[int]"]
"""Keys and row ids of a run of entries, in reading order; both empty at the end of the range."""


class Top:
    """Greater than every key; the upper end of a prefix."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True


TOP = Top()


class SortedKeys:
    """Sorted (key, row id) entries; equal keys keep the order of insertion."""

    __slots__ = ("_count", "_keys", "_maxes", "_rowids")

    def __init__(self) -> None:
        self._keys: list[list[Any]] = []
        self._rowids: list[array[int]] = []
        self._maxes: list[Any] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def build(self, entries: Iterable[tuple[Any, int]]) -> None:
        """Replace all entries by `entries`, which are sorted by key."""
        self.__init__()
        iterator = iter(entries)
        while block := list(islice(iterator, _CHUNK)):
            self._keys.append([key for key, _ in block])
            self._rowids.append(array("q", [rowid for _, rowid in block]))
            self._maxes.append(block[-1][0])
            self._count += len(block)

    def add(self, key: Any, rowid: int) -> None:
        """Insert an entry after the entries of equal key."""
        self._count += 1
        maxes = self._maxes
        if not maxes:
            self._keys.append([key])
            self._rowids.append(array("q", (rowid,)))
            maxes.append(key)
            return
        if not key < maxes[-1]:
            place = len(maxes) - 1
            keys = self._keys[place]
            if len(keys) >= _CHUNK:
                # Growing at the end is the common case: full chunks stay full.
                self._keys.append([key])
                self._rowids.append(array("q", (rowid,)))
                maxes.append(key)
                return
            keys.append(key)
            self._rowids[place].append(rowid)
            maxes[place] = key
            return
        place = bisect_right(maxes, key)
        keys = self._keys[place]
        at = bisect_right(keys, key)
        keys.insert(at, key)
        self._rowids[place].insert(at, rowid)
        if len(keys) > 2 * _CHUNK:
            self._split(place)

    def _split(self, place: int) -> None:
        keys, rowids = self._keys[place], self._rowids[place]
        half = len(keys) // 2
        self._keys[place : place + 1] = [keys[:half], keys[half:]]
        self._rowids[place : place + 1] = [rowids[:half], rowids[half:]]
        self._maxes[place : place + 1] = [keys[half - 1], keys[-1]]

    def discard(self, key: Any, rowid: int) -> bool:
        """Remove the entry if it is there."""
        place = bisect_left(self._maxes, key)
        while place < len(self._maxes):
            keys, rowids = self._keys[place], self._rowids[place]
            for at in range(bisect_left(keys, key), len(keys)):
                if key < keys[at]:
                    return False
                if rowids[at] == rowid:
                    self._remove(place, at)
                    return True
            place += 1
        return False

    def _remove(self, place: int, at: int) -> None:
        keys, rowids = self._keys[place], self._rowids[place]
        del keys[at]
        del rowids[at]
        self._count -= 1
        if not keys:
            del self._keys[place]
            del self._rowids[place]
            del self._maxes[place]
        elif at == len(keys):
            self._maxes[place] = keys[-1]

    def find(self, key: Any) -> list[int]:
        """Row ids of all entries with exactly this key."""
        maxes = self._maxes
        if not maxes or maxes[-1] < key:
            return []
        place = bisect_left(maxes, key)
        found: list[int] = []
        while place < len(maxes):
            keys, rowids = self._keys[place], self._rowids[place]
            for at in range(bisect_left(keys, key), len(keys)):
                if key < keys[at]:
                    return found
                found.append(rowids[at])
            place += 1
        return found

    def slice_up(self, low: Any, *, after: bool, high: Any = TOP, through: bool = True) -> Slice:
        """The next ascending slice: entries with keys from `low` (None: from the start) up to `high`.

        `after`: keys equal to `low` are left out; `through`: keys equal to `high` belong to the range. Entries of equal
        key are never in two slices. An empty result ends the range.
        """
        maxes = self._maxes
        if low is None:
            place, at = 0, 0
        else:
            place = bisect_right(maxes, low) if after else bisect_left(maxes, low)
            if place == len(maxes):
                return [], array("q")
            at = bisect_right(self._keys[place], low) if after else bisect_left(self._keys[place], low)
        if place >= len(maxes):
            return [], array("q")
        keys = self._keys[place]
        end = len(keys)
        if high is not TOP and not keys[-1] < high:
            end = bisect_right(keys, high) if through else bisect_left(keys, high)
        if at >= end:
            return [], array("q")
        rowids = self._rowids[place][at:end]
        found = keys[at:end]
        if end == len(keys):
            last = keys[-1]
            place += 1
            while place < len(maxes) and not last < self._keys[place][0]:
                same = bisect_right(self._keys[place], last)
                rowids.extend(self._rowids[place][:same])
                found.extend(self._keys[place][:same])
                place += 1
        return found, rowids

    def slice_down(self, high: Any, *, before: bool, low: Any = None, through: bool = True) -> Slice:
        """The next descending slice: entries from `high` (None: from the end) down to `low`.

        Mirrors `slice_up`: `before` leaves keys equal to `high` out, `through` keeps keys equal to `low`.
        """
        empty = array("q")
        maxes = self._maxes
        if not maxes:
            return [], empty
        if high is None:
            place = len(maxes) - 1
            end = len(self._keys[place])
        else:
            place = bisect_left(maxes, high) if before else bisect_right(maxes, high)
            place = min(place, len(maxes) - 1)
            end = bisect_left(self._keys[place], high) if before else bisect_right(self._keys[place], high)
            if end == 0:
                place -= 1
                if place < 0:
                    return [], empty
                end = len(self._keys[place])
        keys = self._keys[place]
        at = 0
        if low is not None and not low < keys[0]:
            at = bisect_left(keys, low) if through else bisect_right(keys, low)
        if at >= end:
            return [], empty
        rowids = self._rowids[place][at:end]
        rowids.reverse()
        found = keys[at:end]
        found.reverse()
        if at == 0:
            last = keys[0]
            place -= 1
            while place >= 0 and not self._keys[place][-1] < last:
                same = bisect_left(self._keys[place], last)
                more = self._rowids[place][same:]
                more.reverse()
                rowids.extend(more)
                found.extend(reversed(self._keys[place][same:]))
                place -= 1
        return found, rowids
