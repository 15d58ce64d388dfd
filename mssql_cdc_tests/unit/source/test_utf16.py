"""Text arrives as UTF-16 bytes and loses nothing on the way (rule E26)."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.source.sqlserver.utf16 import EXACT_PREFIX, decode_utf16

ANY_UNITS = st.lists(
    st.one_of(
        st.integers(0, 0x7F),
        st.integers(0x80, 0xFFFF),
        st.integers(0xD7F0, 0xE00F),
    ),
    max_size=6,
).map(lambda units: b"".join(unit.to_bytes(2, "little") for unit in units))


@given(st.lists(st.one_of(st.none(), st.text())))
def test_text_without_lone_surrogates_is_the_text(texts: list[str | None]) -> None:
    decoded, exact = decode_utf16(pa.array([None if t is None else t.encode("utf-16-le") for t in texts], pa.binary()))

    assert decoded.to_pylist() == texts
    assert exact is None


@given(st.lists(st.one_of(st.none(), ANY_UNITS)))
def test_any_bytes_come_back_either_from_the_text_or_from_its_exact_text(values: list[bytes | None]) -> None:
    decoded, exact = decode_utf16(pa.array(values, pa.binary()))
    exacts = exact.to_pylist() if exact is not None else [None] * len(values)

    for value, text, kept in zip(values, decoded.to_pylist(), exacts, strict=True):
        if value is None:
            assert text is None
            assert kept is None
            continue
        if kept is None:
            assert text.encode("utf-16-le") == value
        else:
            whole = bytes.fromhex(kept.removeprefix(EXACT_PREFIX)).decode("utf-16-be", "surrogatepass")
            assert whole.encode("utf-16-le", "surrogatepass") == value
            assert "\ufffd" in text


@given(st.lists(st.one_of(st.none(), ANY_UNITS), min_size=1), st.data())
def test_a_slice_decodes_as_the_whole_does(values: list[bytes | None], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(values) - 1))
    whole, _ = decode_utf16(pa.array(values, pa.binary()))
    part, _ = decode_utf16(pa.array(values, pa.binary()).slice(start))

    assert part.to_pylist() == whole.to_pylist()[start:]


def test_halves_of_a_pair_in_two_rows_are_both_lone() -> None:
    decoded, exact = decode_utf16(pa.array([b"\x3d\xd8", b"\x00\xde"], pa.binary()))

    assert decoded.to_pylist() == ["\ufffd", "\ufffd"]
    assert exact is not None
    assert exact.to_pylist() == ["utf16:d83d", "utf16:de00"]


def test_an_odd_number_of_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match="odd number"):
        decode_utf16(pa.array([b"abc"], pa.binary()))
