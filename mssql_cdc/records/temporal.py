"""Formats dates and times like Debezium, from the lake's values and their exact texts.

The functions convert entire columns; `converters.py` decides which one a column uses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_DAY_US = 86_400_000_000
_CUTOVER_DAY = -141_427
"""1582-10-15, the first day of Java's Gregorian calendar, in days since 1970."""
_GAP_DAYS = 10
"""The number of days before the cutover that Java's calendar lacks; it shifts them past the cutover."""


def dates(values: pa.Array) -> list[int | None]:
    """Return days since 1970."""
    return _without_gap(values, pa.int32(), 1).view(pa.int32()).to_pylist()


def iso_dates(values: pa.Array) -> list[str | None]:
    """Return texts like `2017-09-15Z`."""
    texts = _without_gap(values, pa.int32(), 1).cast(pa.string()).to_pylist()
    return [None if text is None else f"{text}Z" for text in texts]


def times(values: pa.Array, unit_ns: int) -> list[int | None]:
    """Return the time of day in units of `unit_ns`, truncated, from texts `hh:mm:ss[.fffffff]`."""
    return [None if text is None else _nanoseconds(text) // unit_ns for text in values.to_pylist()]


def iso_times(values: pa.Array) -> list[str | None]:
    """Return texts like `04:05:11.789Z`, without trailing zeros in the fraction."""
    return [None if text is None else f"{_trimmed(text)}Z" for text in values.to_pylist()]


def timestamps(values: pa.Array, exact: pa.Array | None, unit_ns: int) -> list[int | None]:
    """Return units since 1970, rounded down; nanoseconds beyond 64 bits wrap around as in Debezium 3.3.1.

    Args:
        values: timestamp[us] without a zone.
        exact: Texts with the seventh digit where there is one; None: no value has one.
        unit_ns: The unit in nanoseconds: 1, 1,000 or 1,000,000.
    """
    values = _without_gap(values, pa.int64(), _DAY_US)
    micros = pc.fill_null(values.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    if unit_ns >= 1000:
        found = micros // (unit_ns // 1000)
    else:
        found = micros * np.int64(1000 // unit_ns)  # Wraps around silently.
        if exact is not None:
            found = found + _hundreds(exact) // unit_ns
    return pa.array(found, pa.int64(), mask=_nulls(values)).to_pylist()


def iso_timestamps(values: pa.Array, exact: pa.Array | None) -> list[str | None]:
    """Return texts like `2019-07-09T02:28:57.123456Z`, without trailing zeros in the fraction."""
    found = _without_gap(values, pa.int64(), _DAY_US).cast(pa.string()).to_pylist()
    if exact is not None:  # Only its seventh digit is missing.
        found = [v + e[26:] if v and e else v for e, v in zip(exact.to_pylist(), found, strict=True)]
    return [None if text is None else f"{_trimmed(text).replace(' ', 'T')}Z" for text in found]


def zoned_timestamps(values: pa.Array, exact: pa.Array | None) -> list[str | None]:
    """Return texts like `2024-02-29T12:34:56.123+02:00`, with the row's own offset, or `Z` for none.

    This reproduces two bugs of Debezium's JDBC driver that are visible in its records: days before 1582-10-15 UTC are
    interpreted as Julian, and instants before 1970 with a fraction of at least a millisecond are one second late.
    """
    micros = values.view(pa.int64()).to_pylist()
    texts = exact.to_pylist() if exact is not None else [None] * len(values)
    return [None if us is None else _zoned(us, text) for us, text in zip(micros, texts, strict=True)]


def _zoned(micros: int, exact: str | None) -> str:
    offset, fraction = 0, f"{micros % 1_000_000:06}"
    if exact is not None:
        sign = -1 if exact[-6] == "-" else 1
        offset = sign * (int(exact[-5:-3]) * 60 + int(exact[-2:]))
        fraction = exact[20:-7]
    day, in_day = divmod(micros, _DAY_US)
    if day < _CUTOVER_DAY:
        micros = _julian_day(day) * _DAY_US + in_day
    if micros < 0 and micros // 1000 % 1000:
        micros += 1_000_000  # The driver divides negative milliseconds by 1000, and Java rounds toward zero.
    text = _local_text(micros + offset * 60_000_000)
    fraction = fraction.rstrip("0")
    shown = "Z" if not offset else f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    return f"{text}{'.' + fraction if fraction else ''}{shown}"


def _local_text(micros: int) -> str:
    """Return a text like `2024-02-29T12:34:56`; years before 1 and after 9999 are formatted like Java."""
    seconds = micros // 1_000_000
    text = str(np.datetime64(seconds, "s"))
    # numpy writes year 0 as 0000 and negative years with a sign, as Java does; years above 9999 lack Java's plus.
    year = text[: text.index("-", 1)]
    return f"+{text}" if len(year) > 4 and not year.startswith("-") else text


def _julian_day(day: int) -> int:
    """Return the day whose Julian date reads like the Gregorian date of `day` (both in days since 1970)."""
    date = np.datetime64(day, "D")
    month = date.astype("datetime64[M]")
    y, m = divmod(int(month.astype(np.int64)) + 1970 * 12, 12)
    m, d = m + 1, int((date - month).astype(np.int64)) + 1
    shift = (14 - m) // 12
    years, months = y + 4800 - shift, m + 12 * shift - 3
    return d + (153 * months + 2) // 5 + 365 * years + years // 4 - 32_083 - 2_440_588


def _without_gap(values: pa.Array, numbers: pa.DataType, day: int) -> pa.Array:
    """Shift days that Java's calendar lacks past the cutover; `day` is the length of a day in the values' unit."""
    found = values.view(numbers)
    inside = pc.and_(pc.greater_equal(found, (_CUTOVER_DAY - _GAP_DAYS) * day), pc.less(found, _CUTOVER_DAY * day))
    if not pc.any(inside).as_py():
        return values
    return pc.if_else(inside, pc.add(found, pa.scalar(_GAP_DAYS * day, numbers)), found).view(values.type)


def _hundreds(exact: pa.Array) -> Any:
    """Return the seventh fractional digit of exact texts in nanoseconds, 0 where there is none."""
    return np.array([0 if t is None else int(t[26:27] or 0) * 100 for t in exact.to_pylist()], dtype=np.int64)


def _nulls(values: pa.Array) -> Any:
    return values.is_null().to_numpy(zero_copy_only=False)


def _nanoseconds(text: str) -> int:
    seconds = int(text[:2]) * 3600 + int(text[3:5]) * 60 + int(text[6:8])
    return seconds * 1_000_000_000 + int(text[9:].ljust(9, "0"))


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
