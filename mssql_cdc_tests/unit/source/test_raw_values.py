"""Text arrives as UTF-16 bytes; times keep their 100 ns, their offset and the years 1 and 9999 (E26)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.source.sqlserver import raw_values
from mssql_cdc.source.sqlserver.raw_values import EXACT_PREFIX, decode_utf16, instant, local_time

ANY_UNITS = st.lists(
    st.one_of(
        st.integers(0, 0x7F),
        st.integers(0x80, 0xFFFF),
        st.integers(0xD7F0, 0xE00F),
    ),
    max_size=6,
).map(lambda units: b"".join(unit.to_bytes(2, "little") for unit in units))


@given(st.lists(st.one_of(st.none(), st.text())))
def test_text_without_lone_surrogates_is_the_text(texts: list[str | None]) -> None:
    decoded, exact = decode_utf16(pa.array([None if t is None else t.encode("utf-16-le") for t in texts], pa.binary()))

    assert decoded.to_pylist() == texts
    assert exact is None


def test_text_beyond_the_offsets_of_arrow_is_an_error_instead_of_wrapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Review of the readers, 1: three bytes for each unit make more than 2 GiB of a legal nvarchar(max)."""
    monkeypatch.setattr(raw_values, "_MOST_BYTES", 5)
    assert decode_utf16(pa.array(["€é".encode("utf-16-le")], pa.binary()))[0].to_pylist() == ["€é"]
    with pytest.raises(ValueError, match="6 bytes of text"):
        decode_utf16(pa.array(["€€".encode("utf-16-le")], pa.binary()))


@given(st.lists(st.one_of(st.none(), ANY_UNITS)))
def test_any_bytes_are_restored_from_the_text_or_its_exact_text(values: list[bytes | None]) -> None:
    decoded, exact = decode_utf16(pa.array(values, pa.binary()))
    exacts = exact.to_pylist() if exact is not None else [None] * len(values)

    for value, text, kept in zip(values, decoded.to_pylist(), exacts, strict=True):
        if value is None:
            assert text is None
            assert kept is None
            continue
        if kept is None:
            assert text.encode("utf-16-le") == value
        else:
            whole = bytes.fromhex(kept.removeprefix(EXACT_PREFIX)).decode("utf-16-be", "surrogatepass")
            assert whole.encode("utf-16-le", "surrogatepass") == value
            assert "\ufffd" in text


@given(st.lists(st.one_of(st.none(), ANY_UNITS), min_size=1), st.data())
def test_a_slice_of_text_decodes_like_the_whole(values: list[bytes | None], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(values) - 1))
    whole, _ = decode_utf16(pa.array(values, pa.binary()))
    part, _ = decode_utf16(pa.array(values, pa.binary()).slice(start))

    assert part.to_pylist() == whole.to_pylist()[start:]


def test_surrogate_halves_in_two_rows_are_both_lone() -> None:
    decoded, exact = decode_utf16(pa.array([b"\x3d\xd8", b"\x00\xde"], pa.binary()))

    assert decoded.to_pylist() == ["\ufffd", "\ufffd"]
    assert exact is not None
    assert exact.to_pylist() == ["utf16:d83d", "utf16:de00"]


def test_an_odd_number_of_bytes_is_rejected() -> None:
    with pytest.raises(ValueError, match="odd number"):
        decode_utf16(pa.array([b"abc"], pa.binary()))


MOMENTS = st.tuples(
    st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)),  # noqa: DTZ001 - datetime2 has none
    st.integers(0, 9),
)


def text(at: datetime, tick: int, scale: int = 7, offset: int | None = None) -> str:
    """The time in T-SQL's style 121."""
    digits = f"{at.microsecond:06d}{tick}"[:scale]
    sign = "-" if (offset or 0) < 0 else "+"
    zone = "" if offset is None else f" {sign}{abs(offset) // 60:02d}:{abs(offset) % 60:02d}"
    return f"{at.year:04d}-{at:%m-%d %H:%M:%S}{'.' + digits if scale else ''}{zone}"


@given(st.lists(st.one_of(st.none(), MOMENTS)))
def test_datetime2_keeps_every_digit(moments: list[tuple[datetime, int] | None]) -> None:
    texts = [text(*m) if m else None for m in moments]
    values, exact = local_time(pa.array(texts, pa.string()), 7)
    exacts = exact.to_pylist() if exact is not None else [None] * len(moments)

    assert values.to_pylist() == [m[0] if m else None for m in moments]
    assert exacts == [t if m and m[1] else None for m, t in zip(moments, texts, strict=True)]


@given(st.lists(st.tuples(MOMENTS, st.integers(-14 * 60, 14 * 60))), st.integers(0, 7))
def test_datetimeoffset_is_the_instant_and_its_text_is_the_local_time(
    moments: list[tuple[tuple[datetime, int], int]], scale: int
) -> None:
    texts = [text(at, tick, scale, offset) for (at, tick), offset in moments]
    values, exact = instant(pa.array(texts, pa.string()), scale)
    exacts = exact.to_pylist() if exact is not None else [None] * len(moments)

    for ((at, tick), offset), value, kept, whole in zip(moments, values.to_pylist(), exacts, texts, strict=True):
        stored = at.replace(microsecond=int(f"{at.microsecond:06d}"[:scale].ljust(6, "0")))
        assert value == (stored - timedelta(minutes=offset)).replace(tzinfo=UTC)
        assert kept == (whole if offset or (scale == 7 and tick) else None)


@given(st.lists(st.one_of(st.none(), MOMENTS), min_size=1), st.data())
def test_a_slice_of_times_decodes_like_the_whole(
    moments: list[tuple[datetime, int] | None], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(moments) - 1))
    whole = pa.array([text(*m) if m else None for m in moments], pa.string())

    assert local_time(whole.slice(start), 7)[0].to_pylist() == local_time(whole, 7)[0].to_pylist()[start:]


@pytest.mark.parametrize(
    ("written", "micros"),
    [
        ("0001-01-01 14:00:00.0000000 +14:00", -62_135_596_800_000_000),
        ("0001-01-01 00:00:00.0000000 +14:00", -62_135_647_200_000_000),
        ("9999-12-31 23:59:59.9999999 -12:00", 253_402_343_999_999_999),
    ],
)
def test_datetimeoffset_at_the_limits_of_its_range(written: str, micros: int) -> None:
    values, exact = instant(pa.array([written]), 7)

    assert values.cast(pa.int64()).to_pylist() == [micros]
    assert exact is not None
    assert exact.to_pylist() == [written]


@pytest.mark.parametrize("written", ["2024-05-06 07:08:09", "2024-05-06T07:08:09.12345678"])
def test_a_text_in_another_format_is_rejected(written: str) -> None:
    with pytest.raises(ValueError, match="27 characters"):
        local_time(pa.array([written]), 7)
