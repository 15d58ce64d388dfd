"""Dates and times from (days since 0001-01-01, nanoseconds in the day, offset minutes) to Arrow.

`datetime2(7)` and `datetimeoffset` travel in these parts because every driver damages one or the other
(100 ns, the years 1 and 9999, the offset). Nothing here goes through Python datetimes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from mssql_cdc.source.sqlserver.arrays import (
    Bytes,
    Flags,
    Numbers,
    decimal_digits,
    fixed_text,
    flags,
    literal,
    numbers,
)

_EPOCH_DAY = 719_162  # days from 0001-01-01 to 1970-01-01
_DAY_US = 86_400_000_000
_MINUTE_US = 60_000_000


def local_time(days: pa.Array, nanoseconds: pa.Array) -> tuple[pa.Array, pa.StringArray | None]:
    """timestamp[us] of the parts, and exact texts `2024-05-06 07:08:09.1234567` where a seventh digit is lost."""
    valid = flags(days)
    ns = numbers(nanoseconds)
    micros = _microseconds(numbers(days), ns)
    lossy = valid & (ns % 1000 != 0)
    exact = _texts(micros, ns, 7, where=lossy) if lossy.any() else None
    return _timestamps(micros, valid, pa.timestamp("us")), exact


def instant(
    days: pa.Array, nanoseconds: pa.Array, offset: pa.Array, scale: int
) -> tuple[pa.Array, pa.StringArray | None]:
    """timestamp[us, UTC] of local parts and their offset, and exact texts `… 07:08:09.123 +02:00` (local time).

    There is an exact text where the offset is not zero or a seventh digit is lost; it has `scale` digits.
    """
    valid = flags(days)
    ns, minutes = numbers(nanoseconds), numbers(offset)
    local = _microseconds(numbers(days), ns)
    lossy = valid & ((minutes != 0) | (ns % 1000 != 0))
    exact = _texts(local, ns, scale, where=lossy, offset=minutes) if lossy.any() else None
    return _timestamps(local - minutes * _MINUTE_US, valid, pa.timestamp("us", tz="UTC")), exact


def _microseconds(days: Numbers, nanoseconds: Numbers) -> Numbers:
    return (days - _EPOCH_DAY) * _DAY_US + nanoseconds // 1000


def _timestamps(micros: Numbers, valid: Flags, kind: pa.DataType) -> pa.Array:
    return pa.array(micros, pa.int64(), mask=None if valid.all() else ~valid).view(kind)


def _texts(
    micros: Numbers, nanoseconds: Numbers, scale: int, *, where: Flags, offset: Numbers | None = None
) -> pa.StringArray:
    """Texts of the rows `where`, NULL elsewhere."""
    rows = np.nonzero(where)[0]
    seconds = micros[rows] // 1_000_000
    parts = [_date_time(seconds)]
    if scale:
        ticks = nanoseconds[rows] % 1_000_000_000 // 100
        parts += [literal(".", len(rows)), decimal_digits(ticks, 7)[:, :scale]]
    if offset is not None:
        parts.append(_offset_text(offset[rows]))
    index = np.full(len(where), -1, dtype=np.int64)
    index[rows] = np.arange(len(rows))
    return fixed_text(*parts).take(pa.array(index, mask=~where))


def _date_time(seconds: Numbers) -> Bytes:
    """`2024-05-06 07:08:09` of seconds since 1970."""
    days, rest = np.divmod(seconds, 86_400)
    date = days.astype("datetime64[D]")
    months = date.astype("datetime64[M]")
    month_number = months.astype(np.int64) + 1970 * 12
    day = (date - months).astype(np.int64) + 1
    return np.concatenate(
        [
            decimal_digits(month_number // 12, 4),
            literal("-", len(days)),
            decimal_digits(month_number % 12 + 1, 2),
            literal("-", len(days)),
            decimal_digits(day, 2),
            literal(" ", len(days)),
            decimal_digits(rest // 3600, 2),
            literal(":", len(days)),
            decimal_digits(rest // 60 % 60, 2),
            literal(":", len(days)),
            decimal_digits(rest % 60, 2),
        ],
        axis=1,
    )


def _offset_text(minutes: Numbers) -> Bytes:
    """` +02:00` of offset minutes."""
    sign: Any = np.where(minutes < 0, ord("-"), ord("+")).astype(np.uint8)[:, None]
    size = np.abs(minutes)
    rows = len(minutes)
    return np.concatenate(
        [literal(" ", rows), sign, decimal_digits(size // 60, 2), literal(":", rows), decimal_digits(size % 60, 2)],
        axis=1,
    )
