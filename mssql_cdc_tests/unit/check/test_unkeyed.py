"""Rows that no key tells apart: a cell that a row lacks hides nothing of the other rows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.check.multiset import Unread
from mssql_cdc.check.unkeyed import compare_unkeyed
from mssql_cdc.source.values import Texts

NAMES = ("n", "a", "b")
CELL = st.none() | st.sampled_from(["", "x", "y"])
ROW = st.tuples(CELL, CELL, CELL)
NONE: frozenset[str] = frozenset()
SURPLUS, MISSING = ("not in the source", NAMES), ("missing in the lake", NAMES)
A, B, BOTH = frozenset({"a"}), frozenset({"b"}), frozenset({"a", "b"})


def blank(row: Texts, lacking: frozenset[str]) -> tuple[Texts, frozenset[str]]:
    return tuple(None if name in lacking else cell for name, cell in zip(NAMES, row, strict=True)), lacking


def found(source: Sequence[Texts], lake: Sequence[tuple[Texts, frozenset[str]]]) -> list[tuple[str, tuple[str, ...]]]:
    lacking = NONE.union(*(names for _, names in lake))
    result = compare_unkeyed(lambda: source, lambda: lake, NAMES, lacking)
    assert (result.source_rows, result.lake_rows) == (len(source), len(lake))
    return [(one.kind, one.columns) for one in result.differences]


@given(st.lists(st.tuples(ROW, st.sampled_from([NONE, A, B, BOTH])), max_size=20), st.randoms())
def test_rows_that_lack_cells_of_any_columns_are_those_of_the_source(rows, random):
    lake = [blank(row, lacking) for row, lacking in rows]
    random.shuffle(lake)
    assert found([row for row, _ in rows], lake) == []


@given(st.lists(st.tuples(ROW, st.sampled_from([NONE, A])), max_size=20), ROW)
def test_a_known_cell_that_is_wrong_is_found_whatever_the_other_rows_lack(rows, row):
    source, lake = [one for one, _ in rows], [blank(*one) for one in rows]
    wrong = (row[0], row[1], "wrong")
    assert found([*source, row], [*lake, (wrong, NONE)]) != []
    assert found([*source, row], [*lake, blank(wrong, A)]) != []


def test_rows_that_were_never_read_are_counted_and_the_cells_of_the_others_compared():
    source, unread = [("1", "p", "x"), ("1", "q", "y"), ("2", "r", "z")], Unread()
    lake = [(("1", None, "x"), A)]
    assert compare_unkeyed(lambda: source, lambda: lake, NAMES, A, unread).equal
    assert unread.rows == 2
    wrong = compare_unkeyed(lambda: source, lambda: [*lake, (("3", None, "w"), A)], NAMES, A, Unread())
    assert [one.kind for one in wrong.differences] == ["not in the source"]


@pytest.mark.parametrize(
    ("lake", "differences"),
    [
        ([(("1", None, "x"), A), (("1", "q", "y"), NONE)], []),
        ([(("1", None, "x"), A), (("1", "p", "y"), NONE)], [("differs", ("a",))]),
        ([(("1", None, "x"), A), (("1", None, "x"), A)], [SURPLUS, MISSING]),
        ([(("1", None, "x"), A)], [MISSING]),
        ([(("1", None, "x"), A), (("1", "q", "y"), NONE), (("1", None, "y"), A)], [SURPLUS]),
        ([(("1", None, None), BOTH), (("1", None, "x"), A)], []),
        ([(("1", None, None), BOTH), (("1", None, "z"), A)], [("differs", ("b",))]),
    ],
    ids=["equal", "another row's cell", "its own cell", "missing", "surplus", "the one that fits", "none that fits"],
)
def test_each_row_is_compared_without_the_cells_that_it_lacks(lake, differences):
    assert found([("1", "p", "x"), ("1", "q", "y")], lake) == differences
