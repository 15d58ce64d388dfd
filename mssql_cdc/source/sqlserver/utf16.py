"""Text as it lies in SQL Server, UTF-16 little-endian bytes, to Arrow strings.

Text is fetched as bytes, so that no driver, locale or code page between the server and here can change a
character, and a lone surrogate is found instead of being replaced or stopping the table (rule E26).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.source.sqlserver.arrays import Flags, flags, string_array

Units = np.ndarray[Any, np.dtype[np.uint16]]
_REPLACEMENT = 0xFFFD
EXACT_PREFIX = "utf16:"
"""What an exact text of a string with lone surrogates begins with; big-endian hexadecimal digits follow."""


def decode_utf16(raw: pa.Array) -> tuple[pa.StringArray, pa.StringArray | None]:
    """Strings of UTF-16LE binary values, and the exact texts of those with lone surrogates (None: there are none).

    A lone surrogate shows as U+FFFD in the string.

    Raises:
        ValueError: a value has an odd number of bytes.
    """
    rows = len(raw)
    if not rows:
        return pa.array([], pa.string()), None
    offsets = np.frombuffer(raw.buffers()[1], dtype=np.int32)[raw.offset : raw.offset + rows + 1]
    start, end = int(offsets[0]), int(offsets[-1])
    valid = None if raw.null_count == 0 else flags(raw)
    bounds = offsets - start
    if (bounds & 1).any():
        raise ValueError("expected UTF-16 text, found a value with an odd number of bytes")
    bounds = bounds // 2
    data = raw.buffers()[2]
    units = np.frombuffer(data, dtype="<u2", count=(end - start) // 2, offset=start) if end > start else _none()
    if not len(units) or int(units.max()) < 0x80:
        return string_array(bounds, pa.py_buffer(units.astype(np.uint8)), valid), None
    exact = None
    surrogates = (units & 0xF800) == 0xD800
    if surrogates.any():
        lone = _lone_surrogates(units, bounds)
        if lone.any():
            exact = _exact(raw, lone, bounds)
            units = np.where(lone, np.uint16(_REPLACEMENT), units)
            surrogates &= ~lone
    width = np.ones(len(units), dtype=np.int8)
    width += units >= 0x80
    width += (units >= 0x800) & ~surrogates
    ends = np.zeros(len(units) + 1, dtype=np.int64)
    np.cumsum(width, out=ends[1:])
    text = units.astype("<u2").tobytes().decode("utf-16-le").encode("utf-8")
    return string_array(ends[bounds], pa.py_buffer(text), valid), exact


def _none() -> Units:
    return np.empty(0, dtype=np.uint16)


def _lone_surrogates(units: Units, bounds: np.ndarray[Any, Any]) -> Flags:
    """Surrogates without their other half in the same value."""
    high = (units & 0xFC00) == 0xD800
    low = (units & 0xFC00) == 0xDC00
    first = np.zeros(len(units) + 1, dtype=bool)
    first[bounds] = True
    pair = np.zeros(len(units), dtype=bool)
    pair[:-1] = high[:-1] & low[1:] & ~first[1:-1]
    lone = high & ~pair
    lone[1:] |= low[1:] & ~pair[:-1]
    lone[0] |= low[0]
    return lone


def _exact(raw: pa.Array, lone: Flags, bounds: np.ndarray[Any, Any]) -> pa.StringArray:
    """The exact text of the rows that hold a lone surrogate; such rows are rare, so one by one."""
    counts = np.concatenate([[0], np.cumsum(lone)])
    rows = np.nonzero(counts[bounds[1:]] > counts[bounds[:-1]])[0]
    texts = [EXACT_PREFIX + _swapped(raw[int(row)].as_py()).hex() for row in rows]
    where = np.full(len(raw), -1, dtype=np.int64)
    where[rows] = np.arange(len(rows))
    return pa.array(texts, pa.string()).take(pc.if_else(pa.array(where >= 0), pa.array(where), None))


def _swapped(value: bytes) -> bytes:
    return np.frombuffer(value, dtype="<u2").astype(">u2").tobytes()
