"""Comparing unordered rows: order does not matter, one changed cell does, and keys are reported."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mssql_cdc.check import multiset
from mssql_cdc.check.multiset import Unread, compare

TEXT = st.none() | st.text(max_size=3)
ROWS = st.dictionaries(st.tuples(st.text(max_size=3)), st.tuples(TEXT, TEXT), max_size=20)
NAMES = ("a", "b")


def side(rows, order=lambda items: items):
    return lambda: [(key, values, 1) for key, values in order(list(rows.items()))]


@given(ROWS, st.randoms())
def test_order_does_not_matter(rows, random):
    def shuffled(items):
        random.shuffle(items)
        return items

    assert compare(side(rows), side(rows, shuffled), NAMES).equal


@given(ROWS, st.data())
def test_one_changed_cell_is_found_with_its_key_and_column(rows, data):
    assume(rows)
    key = data.draw(st.sampled_from(sorted(rows)))
    new = data.draw(TEXT.filter(lambda text: text != rows[key][1]))
    result = compare(side(rows), side({**rows, key: (rows[key][0], new)}), NAMES)
    assert not result.equal
    assert [(d.key, d.kind, d.columns) for d in result.differences] == [(key, "differs", ("b",))]


@given(ROWS, st.data())
def test_missing_and_surplus_rows_are_distinguished(rows, data):
    assume(rows)
    key = data.draw(st.sampled_from(sorted(rows)))
    less = {k: v for k, v in rows.items() if k != key}
    assert [(d.key, d.kind) for d in compare(side(rows), side(less), NAMES).differences] == [
        (key, "missing in the lake")
    ]
    assert [(d.key, d.kind) for d in compare(side(less), side(rows), NAMES).differences] == [(key, "not in the source")]


def test_negative_rows_cancel_positive_ones():
    source = [((), ("x", None), 1), ((), ("x", None), 1)]
    log = [*source, ((), ("y", None), 1), ((), ("y", None), -1)]
    assert compare(lambda: source, lambda: log, NAMES).equal
    once = compare(lambda: source, lambda: log[1:], NAMES)
    assert not once.equal
    assert once.differences[0].kind == "missing in the lake"


def test_a_row_that_the_log_takes_away_without_having_brought_it_is_a_difference():
    """The counts differed, and the result was equal."""
    source = [((), ("x", None), 1)]
    result = compare(lambda: source, lambda: [*source, ((), ("y", None), -1)], NAMES)
    assert (result.source_rows, result.lake_rows) == (1, 0)
    assert [(d.kind, d.lake) for d in result.differences] == [("not in the source", ("y", None))]


@pytest.mark.parametrize("key", [lambda n: (str(n),), lambda _: ()], ids=["keyed", "keyless"])
def test_rows_that_differ_are_compared_part_by_part(monkeypatch: pytest.MonkeyPatch, key):
    def rows(numbers):
        return [(key(n), (str(n), "\ud800"), 1) for n in numbers]

    monkeypatch.setattr(multiset, "PART_ROWS", 10)
    result = compare(lambda: rows(range(300)), lambda: rows(range(100, 400)), NAMES)
    counts = {kind: sum(d.kind == kind for d in result.differences) for kind in ("missing in the lake", "differs")}
    if key(1):
        assert counts == {"missing in the lake": 100, "differs": 0}
        assert len(result.differences) == 200
    else:
        assert 1 <= len(result.differences) <= 3, "the first of each kind"


@given(ROWS, ROWS)
def test_rows_that_were_never_read_are_counted_and_all_others_compared(rows, more):
    more = {key: values for key, values in more.items() if key not in rows}
    unread = Unread()
    assert compare(side({**rows, **more}), side(rows), NAMES, unread).equal
    assert unread.rows == len(more)
    told = compare(side({**rows, **more}), side(rows), NAMES, Unread(lambda _: True))
    assert {d.key for d in told.differences} == set(more)
    assert {d.kind for d in compare(side(rows), side({**rows, **more}), NAMES, Unread()).differences} <= {
        "not in the source"
    }


def test_changes_of_rows_without_a_key_that_were_never_read_are_no_differences():
    """One row of each of `a` to `d` was never read: `a` has changed since, and `b` was deleted."""
    source = [((), (name, None), 1) for name in "xcd"]
    log = [((), ("a", None), -1), ((), ("x", None), 1), ((), ("b", None), -1)]
    unread = Unread()
    assert compare(lambda: source, lambda: log, NAMES, unread).equal
    assert unread.rows == 2
    wrong = compare(lambda: source, lambda: [*log, ((), ("y", None), 1)], NAMES, Unread())
    assert [(d.kind, d.lake) for d in wrong.differences] == [("not in the source", ("y", None))]


def test_null_and_empty_text_are_different():
    assert not compare(lambda: [(("k",), (None, ""), 1)], lambda: [(("k",), ("", None), 1)], NAMES).equal
