"""JSON as columns of text: strings with their escapes, numbers, objects. No Python per row.

The texts are those of Python's `json` with `ensure_ascii=False` and without spaces. What a value means, and which
objects there are, belongs to `converters.py`, `rows.py` and `envelope.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Texts = pa.Array
"""JSON texts, one per row; NULL where the row has no value."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)
_ASCII_ENCODER = json.JSONEncoder(separators=(",", ":"))
_ESCAPED = [*range(0x20), ord('"')]


def json_text(value: Any) -> str:
    """Return the JSON of one value; a lone surrogate, which UTF-8 cannot encode, is escaped."""
    text = _ENCODER.encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _ASCII_ENCODER.encode(value)
    return text


def quoted(values: pa.Array) -> Texts:
    """Return JSON strings."""
    return joined('"', escaped(values), '"')


def escaped(values: pa.Array) -> pa.Array:
    """Return the contents of JSON strings; the same array object if nothing in it needs escaping."""
    present = _present_bytes(values)
    if present[ord("\\")]:
        values = pc.replace_substring(values, "\\", "\\\\")
    for code in _ESCAPED:
        if present[code]:
            values = pc.replace_substring(values, chr(code), _ENCODER.encode(chr(code))[1:-1])
    return values


def joined(*pieces: pa.Array | str) -> Texts:
    """Concatenate texts row by row; NULL where a piece is NULL."""
    return pc.binary_join_element_wise(*pieces, "")


def objects(fields: Sequence[tuple[str, Texts]], rows: int) -> Texts:
    """Return JSON objects.

    Args:
        fields: Names and texts of the values, without NULL.
        rows: The number of objects.
    """
    if not fields:
        return repeated("{}", rows)
    pieces: list[pa.Array | str] = []
    for place, (name, texts) in enumerate(fields):
        pieces += [f"{',' if place else '{'}{json_text(name)}:", texts]
    return joined(*pieces, "}")


def or_null(texts: Texts) -> Texts:
    """Replace NULL with JSON's null."""
    return pc.fill_null(texts, "null") if texts.null_count else texts


def repeated(text: str, rows: int) -> Texts:
    """Return the same text for every row."""
    return pa.repeat(pa.scalar(text, pa.string()), rows)


def _present_bytes(values: pa.Array) -> np.ndarray[Any, Any]:
    """Return which of the control characters, the quote and the backslash occur."""
    found = np.zeros(256, bool)
    _, offsets, data = values.buffers()
    if data is None or not len(values):
        return found
    bounds = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    used = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    suspect = used[(used < 0x20) | (used == ord('"')) | (used == ord("\\"))]
    found[suspect] = True
    return found
