"""Comparing unordered rows: order does not matter, one changed cell does, and keys are reported."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from mssql_cdc.check.multiset import compare

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


def test_null_and_empty_text_are_different():
    assert not compare(lambda: [(("k",), (None, ""), 1)], lambda: [(("k",), ("", None), 1)], NAMES).equal
