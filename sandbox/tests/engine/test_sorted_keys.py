"""The index structure against a plain sorted list."""

from bisect import bisect_left, bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_sandbox.engine.storage import sorted_keys
from mssql_sandbox.engine.storage.sorted_keys import TOP, SortedKeys

KEYS = st.integers(-20, 20)
OPERATIONS = st.lists(st.tuples(st.booleans(), KEYS), max_size=200)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_keys, "_CHUNK", 4)


def built(operations: list[tuple[bool, int]]) -> tuple[SortedKeys, list[tuple[int, int]]]:
    entries, model = SortedKeys(), []
    for rowid, (insert, key) in enumerate(operations):
        if insert:
            entries.add(key, rowid)
            model.append((key, rowid))
        elif found := entries.find(key):
            assert entries.discard(key, found[0])
            model.remove((key, found[0]))
        else:
            assert not entries.discard(key, rowid)
    return entries, sorted(model)


def upward(entries: SortedKeys, low: int | None, high: int | None, *, after: bool, through: bool) -> list[tuple]:
    out: list[tuple] = []
    start, behind = low, after
    while True:
        keys, rowids = entries.slice_up(start, after=behind, high=TOP if high is None else high, through=through)
        if not keys:
            return out
        out += zip(keys, rowids, strict=True)
        start, behind = keys[-1], True


@given(OPERATIONS, KEYS, KEYS, st.booleans(), st.booleans())
def test_a_range_read_in_slices_equals_the_range_of_a_sorted_list(operations, low, high, after, through) -> None:
    entries, model = built(operations)
    keys = [key for key, _ in model]
    start = bisect_right(keys, low) if after else bisect_left(keys, low)
    stop = bisect_right(keys, high) if through else bisect_left(keys, high)
    assert sorted(upward(entries, low, high, after=after, through=through)) == model[start:stop]
    assert len(entries) == len(model)


@given(OPERATIONS)
def test_reading_downwards_mirrors_reading_upwards(operations) -> None:
    entries, _ = built(operations)
    down: list[int] = []
    start, before = None, False
    while True:
        keys, rowids = entries.slice_down(start, before=before)
        if not keys:
            break
        down += rowids
        start, before = keys[-1], True
    up = [rowid for _, rowid in upward(entries, None, None, after=False, through=True)]
    assert down == up[::-1]


@given(OPERATIONS, KEYS)
def test_find_gives_all_rows_of_a_key(operations, key) -> None:
    entries, model = built(operations)
    assert sorted(entries.find(key)) == [rowid for own, rowid in model if own == key]


@given(st.lists(st.tuples(KEYS, st.integers(0, 99)), max_size=60))
def test_a_built_index_reads_like_an_inserted_one(pairs) -> None:
    entries = SortedKeys()
    entries.build(sorted(pairs))
    assert upward(entries, None, None, after=False, through=True) == sorted(pairs)


def test_a_prefix_closed_by_top_holds_all_its_extensions() -> None:
    entries = SortedKeys()
    for rowid, key in enumerate([("a", 1), ("a", 2), ("b", 1)]):
        entries.add(key, rowid)
    keys, _ = entries.slice_up(("a",), after=False, high=("a", TOP), through=True)
    assert keys == [("a", 1), ("a", 2)]
