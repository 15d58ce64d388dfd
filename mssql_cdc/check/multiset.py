"""Comparing two unordered streams of rows in bounded memory: count, checksum, and then the rows that differ.

The first pass sums a 128-bit digest of every row into buckets by key, so order does not matter and equal halves
cancel out; only keys in buckets that differ are kept by the second pass. Rows are `(key texts, column texts)`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mssql_cdc.source.values import Texts

Row = tuple[Texts, Texts, int]
"""Key, columns, and how often the row counts: 1, or -1 for one that takes another away."""
Found = dict[Texts, Counter[Texts]]
"""Rows by key, each with how often it is there."""

BUCKETS = 4096
_MODULUS = 1 << 128


@dataclass(frozen=True, slots=True)
class Difference:
    """One key at which the sides differ; `columns` are those whose texts differ (all, when a side lacks the row)."""

    key: Texts
    kind: str
    columns: tuple[str, ...]
    source: Texts | None
    lake: Texts | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows and checksum of both sides, and the differences."""

    source_rows: int
    lake_rows: int
    source_sum: int
    lake_sum: int
    differences: tuple[Difference, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether both sides hold the same rows."""
        return not self.differences


def compare(
    source: Callable[[], Iterable[Row]], lake: Callable[[], Iterable[Row]], columns: tuple[str, ...]
) -> Comparison:
    """Compare two sides; each is called once, and a second time only when they differ.

    Args:
        source: Reads the rows of the source; may be called more than once.
        lake: Reads the rows of the lake; may be called more than once.
        columns: The names of the compared columns.
    """
    ours, theirs = Sums(source()), Sums(lake())
    whole = Comparison(ours.rows, theirs.rows, ours.total, theirs.total)
    suspects = {n for n in range(BUCKETS) if ours.buckets[n] != theirs.buckets[n]}
    if not suspects:
        return whole
    left, right = _collect(source(), suspects), _collect(lake(), suspects)
    found = tuple(differences(left, right, columns))
    return Comparison(whole.source_rows, whole.lake_rows, whole.source_sum, whole.lake_sum, found)


def differences(source: Found, lake: Found, columns: tuple[str, ...]) -> Iterator[Difference]:
    """What differs between the rows of two sides, key by key.

    Args:
        source: The rows of the source by key.
        lake: The rows of the lake by key.
        columns: The names of the compared columns.
    """
    for key in sorted(source.keys() | lake.keys(), key=lambda k: tuple(part or "" for part in k)):
        ours, theirs = source.get(key, Counter()), lake.get(key, Counter())
        if ours == theirs:
            continue
        missing = [row for row, count in ours.items() if count > theirs.get(row, 0)]
        surplus = [row for row, count in theirs.items() if count > ours.get(row, 0)]
        left, right = next(iter(missing), None), next(iter(surplus), None)
        if left is not None and right is not None:
            names = tuple(n for n, a, b in zip(columns, left, right, strict=True) if a != b)
            yield Difference(key, "differs", names, left, right)
        elif left is not None:
            yield Difference(key, "missing in the lake", columns, left, None)
        elif right is not None:
            yield Difference(key, "not in the source", columns, None, right)


class Sums:
    """Digest sums of one side.

    Args:
        rows: Its rows.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = 0
        self.buckets = [0] * BUCKETS
        for key, values, count in rows:
            digest = int.from_bytes(_digest(key, values), "big")
            self.buckets[bucket(key)] += digest * count
            self.rows += count

    @property
    def total(self) -> int:
        """The order-independent checksum."""
        return sum(self.buckets) % _MODULUS


def _collect(rows: Iterable[Row], suspects: set[int]) -> Found:
    found: Found = {}
    for key, values, count in rows:
        if bucket(key) in suspects:
            found.setdefault(key, Counter())[values] += count
    return found


def bucket(key: Texts) -> int:
    """The bucket of a key."""
    return int.from_bytes(_digest(key, ())[:4], "big") % BUCKETS


def _digest(key: Texts, values: Texts) -> bytes:
    state = hashlib.blake2b(digest_size=16)
    for text in (*key, *values):
        raw = b"" if text is None else text.encode("utf-8", "surrogatepass")
        state.update(b"N" if text is None else b"%d:" % len(raw) + raw)
    return state.digest()
