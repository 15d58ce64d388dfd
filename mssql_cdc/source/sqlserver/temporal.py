"""`datetime2(7)` and `datetimeoffset` from T-SQL's text (style 121) to Arrow.

They travel as text because every driver damages something of them: 100 ns, the years 1 and 9999, the offset. Where
the Arrow value loses something, the text itself is the exact text. Nothing here goes through Python datetimes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.source.sqlserver.arrays import Bytes, Flags, Numbers, flags

_FIRST = "0001-01-01 00:00:00"
_MINUTE_US = 60_000_000


def local_time(texts: pa.Array) -> tuple[pa.Array, pa.StringArray | None]:
    """timestamp[us] of `2024-05-06 07:08:09.1234567`, and the texts whose seventh digit is lost.

    Raises:
        ValueError: a text has another form.
    """
    valid, digits = _matrix(texts, f"{_FIRST}.0000000")
    micros, seventh = _local(digits, 7)
    return _timestamps(micros, valid, pa.timestamp("us")), _where(texts, valid & (seventh != 0))


def instant(texts: pa.Array, scale: int) -> tuple[pa.Array, pa.StringArray | None]:
    """timestamp[us, UTC] of `2024-05-06 07:08:09.123 +02:00` (local time, `scale` digits, offset).

    The second part are the texts with an offset other than +00:00 or with a seventh digit.

    Raises:
        ValueError: a text has another form.
    """
    fraction = "." + "0" * scale if scale else ""
    valid, digits = _matrix(texts, f"{_FIRST}{fraction} +00:00")
    micros, seventh = _local(digits, scale)
    end = digits.shape[1]
    offset = _number(digits, end - 5, end - 3) * 60 + _number(digits, end - 2, end)
    offset = np.where(digits[:, end - 6] == ord("-"), -offset, offset)
    instants = _timestamps(micros - offset * _MINUTE_US, valid, pa.timestamp("us", tz="UTC"))
    return instants, _where(texts, valid & ((offset != 0) | (seventh != 0)))


def _matrix(texts: pa.Array, blank: str) -> tuple[Flags, Bytes]:
    """Which texts are not NULL, and all texts as rows of ASCII characters, NULL as `blank`."""
    width = len(blank)
    whole = texts.fill_null(blank)
    lengths = pc.unique(pc.binary_length(whole)).to_pylist()
    if lengths not in ([width], []):
        raise ValueError(f"expected a date and time of {width} characters, found lengths {sorted(lengths)}")
    joined = b"" if not len(whole) else _characters(whole)
    return flags(texts), np.frombuffer(joined, dtype=np.uint8).reshape(len(whole), width)


def _characters(texts: pa.Array) -> memoryview:
    """The characters of all texts, one behind the other."""
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
    """The number that the characters from `start` to `end` write."""
    found = np.zeros(len(digits), dtype=np.int64)
    for place in range(start, end):
        found = found * 10 + digits[:, place] - ord("0")
    return found


def _timestamps(micros: Numbers, valid: Flags, kind: pa.DataType) -> pa.Array:
    return pa.array(micros, pa.int64(), mask=None if valid.all() else ~valid).view(kind)


def _where(texts: pa.Array, lossy: Flags) -> pa.StringArray | None:
    """The texts where something is lost; None when nothing is."""
    return pc.if_else(pa.array(lossy), texts, pa.scalar(None, pa.string())) if lossy.any() else None
