"""Comparing two unordered streams of rows in bounded memory: count, checksum, and then the rows that differ.

The first pass sums a 128-bit digest of every row into buckets, so order does not matter and equal halves cancel out;
the second pass keeps only the rows in buckets that differ, in temporary files if they are many. A row is in the bucket
of its key; without a key, in that of its columns.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from mssql_cdc.check import row_files
from mssql_cdc.check.partitions import PART_ROWS, partitioned
from mssql_cdc.check.row_files import Row
from mssql_cdc.source.values import Texts

Found = dict[Texts, Counter[Texts]]
"""Rows by key, each with how often it occurs."""

BUCKETS = 4096
_MODULUS = 1 << 128


@dataclass(frozen=True, slots=True)
class Difference:
    """One key at which the sides differ; `columns` are those whose texts differ (all, if a side lacks the row)."""

    key: Texts
    kind: str
    columns: tuple[str, ...]
    source: Texts | None
    lake: Texts | None


@dataclass
class Unread:
    """Counts the rows of the source that the lake was never meant to have, which are not differences.

    `told` says whether the change log has deleted a key in this epoch: if so, the lake should have its row.
    """

    told: Callable[[Texts], bool] = lambda _: False
    rows: int = 0


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
    source: Callable[[], Iterable[Row]],
    lake: Callable[[], Iterable[Row]],
    columns: tuple[str, ...],
    unread: Unread | None = None,
) -> Comparison:
    """Compare two sides; each is called once, and a second time only if they differ.

    Args:
        source: Reads the rows of the source; may be called more than once.
        lake: Reads the rows of the lake; may be called more than once.
        columns: The names of the compared columns.
        unread: Counts the rows that the lake was never meant to have; None: it should have every row.
    """
    ours, theirs = Sums(source()), Sums(lake())
    whole = Comparison(ours.rows, theirs.rows, ours.total, theirs.total)
    suspects = {n for n in range(BUCKETS) if ours.buckets[n] != theirs.buckets[n]}
    if not suspects:
        return whole
    held = max(sum(side.held[n] for n in suspects) for side in (ours, theirs))
    found: dict[tuple[Texts, str], Difference] = {}
    for left, right in _in_parts(source(), lake(), suspects, 1 + held // PART_ROWS):
        for one in differences(left, right, columns, unread):
            found.setdefault((one.key, one.kind), one)
    ordered = sorted(found.values(), key=lambda one: _sorted_by(one.key))
    return Comparison(whole.source_rows, whole.lake_rows, whole.source_sum, whole.lake_sum, tuple(ordered))


def differences(
    source: Found, lake: Found, columns: tuple[str, ...], unread: Unread | None = None
) -> Iterator[Difference]:
    """What differs between the rows of two sides, key by key.

    Args:
        source: The rows of the source by key.
        lake: The rows of the lake by key.
        columns: The names of the compared columns.
        unread: Counts the rows that the lake was never meant to have; None: it should have every row.
    """
    for key in sorted(source.keys() | lake.keys(), key=_sorted_by):
        ours, theirs = source.get(key, Counter()), lake.get(key, Counter())
        if ours == theirs:
            continue
        missing = [row for row, count in ours.items() if count > theirs.get(row, 0)]
        surplus = [row for row, count in theirs.items() if count > ours.get(row, 0)]
        if unread is not None and (not key or (not theirs and not unread.told(key))):
            # Without a key, changes to rows that were never read may subtract rows that nothing has added.
            unread.rows += sum(ours[row] - max(theirs.get(row, 0), 0) for row in missing)
            missing = []
        else:
            surplus += [row for row, count in theirs.items() if count < 0]
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
        self.held = [0] * BUCKETS
        for key, values, count in rows:
            digest, place = int.from_bytes(digest_of(key, values), "big"), bucket(key or values)
            self.buckets[place] += digest * count
            self.held[place] += 1
            self.rows += count

    @property
    def total(self) -> int:
        """The order-independent checksum."""
        return sum(self.buckets) % _MODULUS


def _in_parts(
    source: Iterable[Row], lake: Iterable[Row], suspects: Collection[int], parts: int
) -> Iterator[tuple[Found, Found]]:
    """The rows of both sides in these buckets, in this many parts, one after another."""
    sides = [(row for row in side if _place(row) in suspects) for side in (source, lake)]
    if parts == 1:
        left, right = map(_collected, sides)
        yield left, right
        return
    stored = [(row_files.SCHEMA, row_files.batches(side, lambda row: str(_place(row)))) for side in sides]
    with partitioned(stored, parts) as files:
        for of_part in files:
            left, right = (_collected(row_files.read(file)) for file in of_part)
            yield left, right


def _collected(rows: Iterable[Row]) -> Found:
    found: Found = {}
    for key, values, count in rows:
        found.setdefault(key, Counter())[values] += count
    return found


def _place(row: Row) -> int:
    key, values, _ = row
    return bucket(key or values)


def _sorted_by(key: Texts) -> tuple[str, ...]:
    return tuple(part or "" for part in key)


def bucket(texts: Texts) -> int:
    """The bucket of a key, or of the columns of a row without one."""
    return int.from_bytes(digest_of(texts, ())[:4], "big") % BUCKETS


def digest_of(key: Texts, values: Texts) -> bytes:
    """A 128-bit digest of the texts of a row."""
    state = hashlib.blake2b(digest_size=16)
    for text in (*key, *values):
        raw = b"" if text is None else text.encode("utf-8", "surrogatepass")
        state.update(b"N" if text is None else b"%d:" % len(raw) + raw)
    return state.digest()
