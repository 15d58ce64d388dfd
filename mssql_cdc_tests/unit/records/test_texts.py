"""Texts of whole columns equal those that Python writes value by value."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.records.encodings import binary_encoder, binary_texts, unscaled_text, unscaled_texts
from mssql_cdc.records.json_texts import json_text, objects, quoted
from mssql_cdc.records.number_texts import decimal_texts, double_texts, float_texts

FINITE = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = FINITE | st.integers(-(10**17), 10**17).map(float) | st.integers(1, 10**6).map(lambda n: n / 10**8)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(['"', "\\", "\x00\x1f\x7f\n"])
BYTES = st.binary(max_size=9) | st.integers(500, 3000).map(lambda size: b"\xfb" * size)


def sliced(values: list[Any], of_type: pa.DataType) -> pa.Array:
    """The values as a slice: kernels on buffers must respect its offset."""
    return pa.array([None, *values, None], of_type).slice(1, len(values))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    whole = st.integers(-most, most) | st.integers(-300, 300)
    return whole.map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))


@given(st.lists(st.none() | NUMBERS))
def test_doubles_are_written_like_pythons(values: list[float | None]):
    expected = [None if value is None else json_text(value) for value in values]
    assert float_texts(sliced(values, pa.float64())).to_pylist() == expected


@pytest.mark.parametrize("scale", [0, 4, 10, 38])
@given(data=st.data())
def test_decimals_are_written_in_every_form_like_pythons(data: st.DataObject, scale: int):
    values = data.draw(st.lists(st.none() | decimals(38, scale)))
    found = sliced(values, pa.decimal128(38, scale))
    known = [value for value in values if value is not None]
    assert [text for text in decimal_texts(found).to_pylist() if text] == [format(value, "f") for value in known]
    assert [text for text in double_texts(found).to_pylist() if text] == [json_text(float(value)) for value in known]
    unscaled = [unscaled_text(_unscaled(value)) for value in known]
    assert [text for text in unscaled_texts(found).to_pylist() if text] == unscaled


@pytest.mark.parametrize("mode", ["bytes", "base64", "base64-url-safe", "hex"])
@given(values=st.lists(st.none() | BYTES))
def test_bytes_are_written_like_pythons(mode: str, values: list[bytes | None]):
    encode = binary_encoder(mode)
    expected = [None if value is None else encode(value) for value in values]
    assert binary_texts(sliced(values, pa.binary()), mode).to_pylist() == expected


@given(st.lists(st.tuples(TEXT, TEXT), max_size=6), TEXT)
def test_objects_of_texts_are_written_like_pythons(rows: list[tuple[str, str]], name: str):
    columns = [sliced([row[at] for row in rows], pa.string()) for at in (0, 1)]
    found = objects([(name, quoted(columns[0])), (f"{name}2", quoted(columns[1]))], len(rows))
    assert found.to_pylist() == [
        json.dumps({name: one, f"{name}2": two}, ensure_ascii=False, separators=(",", ":")) for one, two in rows
    ]


def _unscaled(value: Decimal) -> int:
    digits = int("".join(map(str, value.as_tuple().digits)))
    return -digits if value.as_tuple().sign else digits
