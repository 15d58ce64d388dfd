"""Converts the texts and bytes that T-SQL returns to Arrow, with exact texts for values that Arrow cannot represent.

`datetime2(7)` and `datetimeoffset` are fetched as style-121 text because every driver corrupts part of them: 100 ns,
the years 1 and 9999, the offset. Text travels as SQL Server stores it, as UTF-16 little-endian bytes, so no driver,
locale or code page between the server and here can change a character, and a lone surrogate is detected instead of
being replaced or stopping the table (rule E26). Whole columns are converted at a time; nothing goes through Python's
values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.source.sqlserver.numpy_arrays import Bytes, Flags, Numbers, flags, string_array

Units = np.ndarray[Any, np.dtype[np.uint16]]
_REPLACEMENT = 0xFFFD
_MOST_BYTES = 2**31 - 1
"""The most that Arrow's 32-bit offsets can address; beyond it they would wrap."""
EXACT_PREFIX = "utf16:"
"""The prefix of the exact text of a string with lone surrogates; big-endian hexadecimal digits follow."""
_FIRST = "0001-01-01 00:00:00"
_MINUTE_US = 60_000_000


class MisfitError(ValueError):
    """A value is more than its declared type can hold, or has another form: the column was altered."""


# -- Text: UTF-16 bytes ------------------------------------------------------------


def decode_utf16(raw: pa.Array) -> tuple[pa.StringArray, pa.StringArray | None]:
    """Strings of UTF-16LE binary values, and the exact texts of those with lone surrogates (None: there are none).

    A lone surrogate appears as U+FFFD in the string.

    Raises:
        ValueError: a value has an odd number of bytes, or the strings are too long for an array.
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
    units = np.frombuffer(data, dtype="<u2", count=(end - start) // 2, offset=start) if end > start else _no_units()
    if not len(units) or int(units.max()) < 0x80:
        return string_array(bounds, pa.py_buffer(units.astype(np.uint8)), valid), None
    exact = None
    surrogates = (units & 0xF800) == 0xD800
    if surrogates.any():
        lone = _lone_surrogates(units, bounds)
        if lone.any():
            exact = _utf16_texts(raw, lone, bounds)
            units = np.where(lone, np.uint16(_REPLACEMENT), units)
            surrogates &= ~lone
    width = np.ones(len(units), dtype=np.int8)
    width += units >= 0x80
    width += (units >= 0x800) & ~surrogates
    total = int(width.sum(dtype=np.int64))
    if total > _MOST_BYTES:
        raise ValueError(f"{total:,} bytes of text as UTF-8, and 2 GiB or more cannot be read")
    ends = np.zeros(len(units) + 1, dtype=np.int32)  # It has twice the size of the raw text.
    np.cumsum(width, out=ends[1:])
    text = units.astype("<u2").tobytes().decode("utf-16-le").encode("utf-8")
    return string_array(ends[bounds], pa.py_buffer(text), valid), exact


def _no_units() -> Units:
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


def _utf16_texts(raw: pa.Array, lone: Flags, bounds: np.ndarray[Any, Any]) -> pa.StringArray:
    """The exact text of the rows that hold a lone surrogate; such rows are rare, so they are converted one by one."""
    counts = np.concatenate([[0], np.cumsum(lone)])
    rows = np.nonzero(counts[bounds[1:]] > counts[bounds[:-1]])[0]
    texts = [EXACT_PREFIX + _swapped(raw[int(row)].as_py()).hex() for row in rows]
    where = np.full(len(raw), -1, dtype=np.int64)
    where[rows] = np.arange(len(rows))
    return pa.array(texts, pa.string()).take(pc.if_else(pa.array(where >= 0), pa.array(where), None))


def _swapped(value: bytes) -> bytes:
    return np.frombuffer(value, dtype="<u2").astype(">u2").tobytes()


# -- Dates and times: style 121 ----------------------------------------------------


def local_time(texts: pa.Array, scale: int) -> tuple[pa.Array, pa.StringArray | None]:
    """timestamp[us] of `2024-05-06 07:08:09.123` (`scale` digits), and the texts whose seventh digit is lost.

    Raises:
        MisfitError: a text has more or fewer digits.
    """
    valid, digits = _matrix(texts, _FIRST + ("." + "0" * scale if scale else ""))
    micros, seventh = _local(digits, scale)
    return _timestamps(micros, valid, pa.timestamp("us")), _lossy_texts(texts, valid & (seventh != 0))


def instant(texts: pa.Array, scale: int) -> tuple[pa.Array, pa.StringArray | None]:
    """timestamp[us, UTC] of `2024-05-06 07:08:09.123 +02:00` (local time, `scale` digits, offset).

    The second part holds the texts with an offset other than +00:00 or with a seventh digit.

    Raises:
        MisfitError: a text has more or fewer digits.
    """
    fraction = "." + "0" * scale if scale else ""
    valid, digits = _matrix(texts, f"{_FIRST}{fraction} +00:00")
    micros, seventh = _local(digits, scale)
    end = digits.shape[1]
    offset = _number(digits, end - 5, end - 3) * 60 + _number(digits, end - 2, end)
    offset = np.where(digits[:, end - 6] == ord("-"), -offset, offset)
    instants = _timestamps(micros - offset * _MINUTE_US, valid, pa.timestamp("us", tz="UTC"))
    return instants, _lossy_texts(texts, valid & ((offset != 0) | (seventh != 0)))


def _matrix(texts: pa.Array, blank: str) -> tuple[Flags, Bytes]:
    """Which texts are not NULL, and all texts as rows of ASCII characters, NULL as `blank`."""
    width = len(blank)
    whole = texts.fill_null(blank)
    lengths = pc.unique(pc.binary_length(whole)).to_pylist()
    if lengths not in ([width], []):
        raise MisfitError(f"expected a date and time of {width} characters, found lengths {sorted(lengths)}")
    joined = b"" if not len(whole) else _characters(whole)
    return flags(texts), np.frombuffer(joined, dtype=np.uint8).reshape(len(whole), width)


def _characters(texts: pa.Array) -> memoryview:
    """The concatenated characters of all texts."""
    start, end = texts.offset, texts.offset + len(texts)
    bounds = np.frombuffer(texts.buffers()[1], dtype=np.int32)
    return memoryview(texts.buffers()[2])[bounds[start] : bounds[end]]


def _local(digits: Bytes, scale: int) -> tuple[Numbers, Numbers]:
    """Microseconds since 1970 as if local time were UTC, and the seventh fractional digit."""
    month = (_number(digits, 0, 4) - 1970) * 12 + _number(digits, 5, 7) - 1
    day = month.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + _number(digits, 8, 10) - 1
    seconds = (_number(digits, 11, 13) * 60 + _number(digits, 14, 16)) * 60 + _number(digits, 17, 19)
    fraction = _number(digits, 20, 20 + scale) * 10 ** (7 - scale)
    return (day * 86_400 + seconds) * 1_000_000 + fraction // 10, fraction % 10


def _number(digits: Bytes, start: int, end: int) -> Numbers:
    """The number that the characters from `start` to `end` represent."""
    found = np.zeros(len(digits), dtype=np.int64)
    for place in range(start, end):
        found = found * 10 + digits[:, place] - ord("0")
    return found


def _timestamps(micros: Numbers, valid: Flags, kind: pa.DataType) -> pa.Array:
    return pa.array(micros, pa.int64(), mask=None if valid.all() else ~valid).view(kind)


def _lossy_texts(texts: pa.Array, lossy: Flags) -> pa.StringArray | None:
    """The texts where something is lost; None when nothing is."""
    return pc.if_else(pa.array(lossy), texts, pa.scalar(None, pa.string())) if lossy.any() else None
