"""Dates and times keep their 100 ns, their offset, and the years 1 and 9999 (rule E26)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.source.sqlserver.temporal import instant, local_time

FIRST = datetime(1, 1, 1)  # noqa: DTZ001 - datetime2 has no zone
MOMENTS = st.tuples(
    st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)),  # noqa: DTZ001
    st.integers(0, 9),
)


def parts(at: datetime, tick: int = 0) -> tuple[int, int]:
    since = at - FIRST
    return since.days, (since.seconds * 1_000_000 + since.microseconds) * 1000 + tick * 100


@given(st.lists(st.one_of(st.none(), MOMENTS)))
def test_datetime2_keeps_every_digit(moments: list[tuple[datetime, int] | None]) -> None:
    raw = [parts(*m) if m else (None, None) for m in moments]
    values, exact = local_time(pa.array([d for d, _ in raw], pa.int32()), pa.array([n for _, n in raw], pa.int64()))
    texts = exact.to_pylist() if exact is not None else [None] * len(moments)

    for moment, value, text in zip(moments, values.to_pylist(), texts, strict=True):
        if moment is None:
            assert value is None
            assert text is None
            continue
        at, tick = moment
        assert value == at
        assert text == (f"{at.year:04d}-{at:%m-%d %H:%M:%S}.{at.microsecond:06d}{tick}" if tick else None)


@given(st.lists(st.tuples(MOMENTS, st.integers(-14 * 60, 14 * 60))), st.integers(0, 7))
def test_datetimeoffset_is_the_instant_and_its_text_the_local_time(
    moments: list[tuple[tuple[datetime, int], int]], scale: int
) -> None:
    raw = [parts(*local) for local, _ in moments]
    values, exact = instant(
        pa.array([d for d, _ in raw], pa.int32()),
        pa.array([n for _, n in raw], pa.int64()),
        pa.array([offset for _, offset in moments], pa.int32()),
        scale,
    )
    texts = exact.to_pylist() if exact is not None else [None] * len(moments)

    for ((at, tick), offset), value, text in zip(moments, values.to_pylist(), texts, strict=True):
        assert value == (at - timedelta(minutes=offset)).replace(tzinfo=UTC)
        if not offset and not tick:
            assert text is None
            continue
        digits = f"{at.microsecond:06d}{tick}"[:scale]
        sign = "-" if offset < 0 else "+"
        zone = f"{sign}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}"
        fraction = f".{digits}" if scale else ""
        assert text == f"{at.year:04d}-{at:%m-%d %H:%M:%S}{fraction} {zone}"


@pytest.mark.parametrize(
    ("days", "nanoseconds", "offset", "micros", "text"),
    [
        (0, 14 * 3600 * 10**9, 840, -62_135_596_800_000_000, "0001-01-01 14:00:00.0000000 +14:00"),
        (0, 0, 840, -62_135_647_200_000_000, "0001-01-01 00:00:00.0000000 +14:00"),
        (3_652_058, 86_399_999_999_900, -720, 253_402_343_999_999_999, "9999-12-31 23:59:59.9999999 -12:00"),
    ],
)
def test_datetimeoffset_at_the_ends_of_time(days: int, nanoseconds: int, offset: int, micros: int, text: str) -> None:
    values, exact = instant(
        pa.array([days], pa.int32()), pa.array([nanoseconds], pa.int64()), pa.array([offset], pa.int32()), 7
    )

    assert values.cast(pa.int64()).to_pylist() == [micros]
    assert exact is not None
    assert exact.to_pylist() == [text]
