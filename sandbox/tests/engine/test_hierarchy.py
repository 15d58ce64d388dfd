"""Rules of hierarchyid: the packed form of published values, texts and values say the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_sandbox.engine.hierarchy import decode, encode, from_text, to_text
from mssql_sandbox.errors import SqlError

LABELS = st.integers(-72, 5198)
LEVELS = st.lists(st.lists(LABELS, min_size=1, max_size=3).map(tuple), max_size=5)


@pytest.mark.parametrize(
    ("text", "value"),
    [("/", ""), ("/1/", "58"), ("/2/", "68"), ("/1/1/", "5AC0"), ("/3/", "78"), ("/4/", "84"), ("/1/2/", "5B40")],
)
def test_published_values(text: str, value: str) -> None:
    """Values as Microsoft's tutorial "Using the hierarchyid data type" prints them."""
    assert from_text(text) == bytes.fromhex(value)
    assert to_text(bytes.fromhex(value)) == text


@given(LEVELS)
def test_packing_loses_nothing(levels: list[tuple[int, ...]]) -> None:
    assert decode(encode(levels)) == levels


@given(LEVELS, LEVELS)
def test_values_sort_depth_first(one: list[tuple[int, ...]], other: list[tuple[int, ...]]) -> None:
    above = [*one, *other]
    assert encode(one) <= encode(above)


@pytest.mark.parametrize("text", ["x", "/a/", "/1", "/100000/", "/-100/"])
def test_what_cannot_be_packed_is_an_error(text: str) -> None:
    with pytest.raises(SqlError) as caught:
        from_text(text)
    assert caught.value.number == 6522
