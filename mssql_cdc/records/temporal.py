"""Formats columns of dates and times like Debezium, from the lake's values and their exact texts.

`converters.py` decides which function a column uses. Debezium reads some old values wrong; here they are as the source
has them (`docs/debezium-contradictions.md`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.records.json_texts import joined

Numbers = np.ndarray[Any, Any]


def dates(values: pa.Array) -> pa.Array:
    """Return days since 1970."""
    return values.view(pa.int32())


def iso_dates(values: pa.Array) -> pa.Array:
    """Return texts like `2017-09-15Z`."""
    return joined(values.cast(pa.string()), "Z")


def times(values: pa.Array, unit_ns: int) -> pa.Array:
    """Return the time of day in units of `unit_ns`, truncated, from texts `hh:mm:ss[.fffffff]`."""
    hours, minutes, seconds = (_number(values, start, start + 2) for start in (0, 3, 6))
    fraction = pc.utf8_rpad(pc.utf8_slice_codeunits(values, 9), width=9, padding="0").cast(pa.int64())
    whole = pc.add(pc.multiply(pc.add(pc.multiply(hours, 60), minutes), 60), seconds)
    return pc.divide(pc.add(pc.multiply(whole, 1_000_000_000), fraction), unit_ns)


def iso_times(values: pa.Array) -> pa.Array:
    """Return texts like `04:05:11.789Z`, without trailing zeros in the fraction."""
    return joined(_trimmed(values), "Z")


def timestamps(values: pa.Array, exact: pa.Array | None, unit_ns: int) -> pa.Array:
    """Return units since 1970, rounded down; nanoseconds beyond 64 bits wrap around as in Debezium 3.3.1.

    Args:
        values: timestamp[us] without a zone.
        exact: Texts with the seventh digit where there is one; None: no value has one.
        unit_ns: The unit in nanoseconds: 1, 1,000 or 1,000,000.
    """
    micros = pc.fill_null(values.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    if unit_ns >= 1000:
        found = micros // (unit_ns // 1000)
    else:
        found = micros * np.int64(1000 // unit_ns)  # Wraps around silently.
        if exact is not None:
            found = found + _hundreds(exact) // unit_ns
    return pa.array(found, pa.int64(), mask=_nulls(values))


def iso_timestamps(values: pa.Array, exact: pa.Array | None) -> pa.Array:
    """Return texts like `2019-07-09T02:28:57.123456Z`, without trailing zeros in the fraction."""
    found = values.cast(pa.string())
    if exact is not None:  # Only its seventh digit is missing.
        found = joined(found, pc.fill_null(pc.utf8_slice_codeunits(exact, 26), ""))
    return joined(pc.utf8_replace_slice(_trimmed(found), 10, 11, "T"), "Z")


def zoned_timestamps(values: pa.Array, exact: pa.Array | None) -> pa.Array:
    """Return texts like `2024-02-29T12:34:56.123+02:00`, with the row's own offset, or `Z` for none."""
    nulls = _nulls(values)
    micros: Numbers = pc.fill_null(values.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    fraction = pc.utf8_lpad(pa.array(micros % 1_000_000).cast(pa.string()), width=6, padding="0")
    zone, minutes = "Z", 0
    if exact is not None:
        # `2024-02-29 12:34:56[.1234567] +02:00`; most values have no text, that is, no offset.
        fraction = pc.coalesce(pc.utf8_slice_codeunits(pc.utf8_replace_slice(exact, -7, 64, ""), 20), fraction)
        shown = pc.utf8_slice_codeunits(exact, -6)
        size = pc.add(pc.multiply(_number(shown, 1, 3), 60), _number(shown, 4, 6))
        signed = pc.if_else(pc.starts_with(shown, "-"), pc.negate(size), size)
        minutes = pc.fill_null(signed, 0).to_numpy(zero_copy_only=False)
        zone = pc.if_else(pa.array(minutes == 0), "Z", pc.fill_null(shown, "Z"))
    seconds = pa.array((micros + minutes * np.int64(60_000_000)) // 1_000_000, pa.timestamp("s"), mask=nulls)
    text = pc.utf8_replace_slice(seconds.cast(pa.string()), 10, 11, "T")
    fraction = pc.utf8_rtrim(fraction, "0")
    return joined(text, pc.if_else(pc.equal(fraction, ""), "", "."), fraction, zone)


def _hundreds(exact: pa.Array) -> Numbers:
    """Return the seventh fractional digit of exact texts in nanoseconds, 0 where there is none."""
    digits = pc.utf8_rpad(pc.utf8_slice_codeunits(exact, 26, 27), width=1, padding="0")
    return pc.fill_null(digits.cast(pa.int64()), 0).to_numpy(zero_copy_only=False) * 100


def _nulls(values: pa.Array) -> Numbers:
    return values.is_null().to_numpy(zero_copy_only=False)


def _number(texts: pa.Array, start: int, stop: int) -> pa.Array:
    return pc.utf8_slice_codeunits(texts, start, stop).cast(pa.int64())


def _trimmed(texts: pa.Array) -> pa.Array:
    """Remove trailing zeros of a fraction, and a point without digits."""
    trimmed = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    return pc.if_else(pc.match_substring(texts, "."), trimmed, texts)
