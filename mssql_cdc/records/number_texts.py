"""Texts of floating-point and decimal columns, with the digits and the exponents that JSON shows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.records.json_texts import joined

_SMALL, _LARGE = 1e-4, 1e10
"""Between them, Arrow and Python write a number with the same digits and without an exponent."""


def float_texts(values: pa.Array) -> pa.Array:
    """Return Python's texts; for a 32-bit number, its own shortest digits."""
    texts = values.cast(pa.string())
    sizes = np.abs(pc.fill_null(values, 1.0).to_numpy(zero_copy_only=False))
    texts = pc.if_else(pc.match_substring(texts, "."), texts, joined(texts, ".0"))
    places = np.flatnonzero((sizes >= _LARGE) | ((sizes < _SMALL) & (sizes > 0)))
    if not len(places):
        return texts
    is_unusual = np.zeros(len(values), bool)
    is_unusual[places] = True
    shown = [repr(float(text)) for text in values.take(pa.array(places)).cast(pa.string()).to_pylist()]
    return pc.replace_with_mask(texts, pa.array(is_unusual), pa.array(shown, pa.string()))


def double_texts(values: pa.Array) -> pa.Array:
    """Return the nearest double of each decimal: Arrow's own cast does not always find it."""
    return float_texts(values.cast(pa.string()).cast(pa.float64()))


def decimal_texts(values: pa.Array) -> pa.Array:
    """Return all digits of decimals, never an exponent."""
    scale = _scale(values.type)
    if scale == 0:
        return values.cast(pa.string())
    unscaled = values.view(pa.decimal128(38, 0)).cast(pa.string())
    is_negative = pc.starts_with(unscaled, "-")
    digits = pc.utf8_lpad(pc.utf8_ltrim(unscaled, "-"), width=scale + 1, padding="0")
    sign = pc.if_else(is_negative, "-", "")
    return joined(sign, pc.utf8_slice_codeunits(digits, 0, -scale), ".", pc.utf8_slice_codeunits(digits, -scale))


def _scale(decimal: Any) -> int:
    return decimal.scale


class WrittenNumber(str):
    """A JSON number as it is written."""

    __slots__ = ()


def with_numbers_as_written(text: str) -> Any:
    """Parse JSON; each number is a `WrittenNumber`."""
    return json.loads(text, parse_int=WrittenNumber, parse_float=WrittenNumber, parse_constant=WrittenNumber)
