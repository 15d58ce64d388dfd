"""Compares rows that no key tells apart and some of which lack cells: each cell that is known counts.

A row of the lake that lacks cells matches one row of the source that has all of its other cells. Rows are grouped by
the cells that every row has, so that no more of them are held than could match each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mssql_cdc.check.multiset import BUCKETS, Comparison, Difference, Sums, Unread, bucket
from mssql_cdc.source.values import Texts

Partial = tuple[Texts, frozenset[str]]
"""A row of the lake, and the columns whose cells it lacks."""


@dataclass(frozen=True, slots=True)
class _Group:
    """The rows of both sides that have the same cells in the columns that every row has."""

    source: Counter[Texts] = field(default_factory=Counter[Texts])
    whole: Counter[Texts] = field(default_factory=Counter[Texts])
    partial: Counter[Partial] = field(default_factory=Counter[Partial])


def compare_unkeyed(
    source: Callable[[], Iterable[Texts]],
    lake: Callable[[], Iterable[Partial]],
    columns: Sequence[str],
    lacking: Collection[str],
    unread: Unread | None = None,
) -> Comparison:
    """Compare two sides; each is called once, and a second time if they differ or rows lack cells.

    Args:
        source: Reads the rows of the source; may be called more than once.
        lake: Reads the rows of the lake; may be called more than once.
        columns: The names of the compared columns.
        lacking: The columns whose cells some rows of the lake lack.
        unread: Counts the rows that the lake was never meant to have; None: it should have every row.

    Returns:
        The comparison, with the first difference of each kind.
    """
    shared = [place for place, name in enumerate(columns) if name not in lacking]

    def group_of(texts: Texts) -> Texts:
        return tuple(texts[place] for place in shared)

    partly: set[int] = set()

    def seen() -> Iterator[tuple[Texts, Texts, int]]:
        for texts, names in lake():
            group = group_of(texts)
            if names:
                partly.add(bucket(group))
            yield group, texts, 1

    ours, theirs = Sums((group_of(texts), texts, 1) for texts in source()), Sums(seen())
    suspects = partly | {n for n in range(BUCKETS) if ours.buckets[n] != theirs.buckets[n]}
    whole = Comparison(ours.rows, theirs.rows, ours.total, theirs.total)
    if not suspects:
        return whole
    groups: dict[Texts, _Group] = defaultdict(_Group)
    for texts in source():
        if bucket(group := group_of(texts)) in suspects:
            groups[group].source[texts] += 1
    for texts, names in lake():
        if bucket(group := group_of(texts)) in suspects:
            if names:
                groups[group].partial[texts, names] += 1
            else:
                groups[group].whole[texts] += 1
    found: dict[str, Difference] = {}
    for one in groups.values():
        for difference in _differences(one, columns, unread):
            found.setdefault(difference.kind, difference)
    return replace(whole, differences=tuple(found.values()))


def _differences(group: _Group, columns: Sequence[str], unread: Unread | None) -> Iterator[Difference]:
    """What differs between the two sides of a group."""
    # Equal rows match each other first: whichever of them is left lacks no cell that another one has.
    missing, surplus = group.source - group.whole, group.whole - group.source
    partial = _unmatched(missing, group.partial, columns)
    lonely: list[Partial] = [*((texts, frozenset[str]()) for texts in surplus.elements()), *partial]
    rest = list(missing.elements())
    for left, (right, lacking) in zip(rest, lonely, strict=False):
        names = tuple(name for name, a, b in zip(columns, left, right, strict=True) if a != b and name not in lacking)
        yield Difference((), "differs", names, left, right)
    if unread is not None:
        unread.rows += max(len(rest) - len(lonely), 0)
    for left in rest[len(lonely) :] if unread is None else ():
        yield Difference((), "missing in the lake", tuple(columns), left, None)
    for right, _ in lonely[len(rest) :]:
        yield Difference((), "not in the source", tuple(columns), None, right)


def _unmatched(missing: Counter[Texts], partial: Counter[Partial], columns: Sequence[str]) -> list[Partial]:
    """Remove from `missing` the rows that these rows match; return the rows that match none.

    A row that lacks fewer cells fits fewer others, so it is matched first. This matches as many as possible if each set
    of columns contains the ones before it; where two do not, both rows are compared without the columns of either.
    """
    widened = _chain({lacking for _, lacking in partial})
    by_columns: dict[frozenset[str], list[Partial]] = defaultdict(list)
    for row in partial.elements():
        by_columns[widened[row[1]]].append(row)
    left: list[Partial] = []
    for lacking in sorted(by_columns, key=len):
        places = [place for place, name in enumerate(columns) if name not in lacking]
        there: dict[Texts, list[Texts]] = defaultdict(list)
        for texts in missing.elements():
            there[tuple(texts[place] for place in places)].append(texts)
        for row in by_columns[lacking]:
            fitting = there[tuple(row[0][place] for place in places)]
            if fitting:
                missing[fitting.pop()] -= 1
            else:
                left.append(row)
    return left


def _chain(sets: Collection[frozenset[str]]) -> Mapping[frozenset[str], frozenset[str]]:
    """A superset of each of these sets, such that of any two supersets one contains the other."""
    chain: list[tuple[frozenset[str], list[frozenset[str]]]] = []
    for one in sorted(sets, key=lambda names: (len(names), sorted(names))):
        if chain and not chain[-1][0] <= one:
            last, members = chain.pop()
            chain.append((last | one, [*members, one]))
        else:
            chain.append((one, [one]))
    return {member: superset for superset, members in chain for member in members}
