"""The bounds of a file's columns hold every value of the file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mssql_cdc.lake.live_file import LiveFile
from mssql_cdc.lake.statistics import Statistics
from mssql_cdc.lake.vectors import Vector

LONG = st.text(st.sampled_from("a\U0010ffff"), min_size=30, max_size=36)


@given(st.lists(st.text(max_size=40) | LONG, min_size=1))
@example(["a" * 32 + "\U0010ffff\U0010ffff"])
def test_every_text_is_within_the_bounds_of_its_file(texts: list[str]):
    found = Statistics({"name": "stored"})
    found.add(pa.record_batch({"name": pa.array(texts, pa.string())}))
    facts = json.loads(found.to_json())
    assert facts["minValues"]["stored"] <= min(texts)
    assert "stored" not in facts["maxValues"] or facts["maxValues"]["stored"] >= max(texts)


def test_a_long_text_has_a_short_upper_bound():
    found = Statistics({"name": "stored"})
    found.add(pa.record_batch({"name": pa.array(["b" * 100, "a"], pa.string())}))
    assert json.loads(found.to_json())["maxValues"] == {"stored": "b" * 32 + "\U0010ffff"}


DIGITS = st.integers(1 - 10**38, 10**38 - 1) | st.integers(2**53, 2**54)


@given(numbers=st.lists(DIGITS, min_size=1), scale=st.integers(0, 38))
@example([2**53 + 1], 0)
@example([5, 2**53 + 1], 2)
def test_the_bounds_of_decimals_are_exact(numbers: list[int], scale: int):
    values = [Decimal(f"{number}E-{scale}") for number in numbers]
    found = Statistics({"name": "stored"})
    for value in values:
        found.add(pa.record_batch({"name": pa.array([value], pa.decimal128(38, scale))}))
    facts = json.loads(found.to_json(), parse_float=Decimal)
    assert (facts["minValues"], facts["maxValues"]) == ({"stored": min(values)}, {"stored": max(values)})


INSTANTS = st.datetimes(timezones=st.just(UTC))
YEAR = 366 * 24 * 3600 * 10**6


@given(st.lists(INSTANTS, min_size=1))
@example([datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)])
def test_every_instant_is_within_the_bounds_of_its_file(instants: list[datetime]):
    found = Statistics({"name": "stored"})
    found.add(pa.record_batch({"name": pa.array(instants, pa.timestamp("us", "UTC"))}))
    facts = json.loads(found.to_json())
    assert datetime.fromisoformat(facts["minValues"]["stored"]) == min(instants)
    assert datetime.fromisoformat(facts["maxValues"]["stored"]) == max(instants)


def test_an_instant_in_the_year_10000_by_utc_has_no_bound():
    """9999-12-31 23:00 at -14:00 is such a datetimeoffset; each update ended with an OverflowError."""
    known = datetime(2026, 11, 28, tzinfo=UTC)
    values = pa.array([0, (10_000 - 1970) * YEAR], pa.int64()).cast(pa.timestamp("us", "UTC"))
    found = Statistics({"name": "stored"})
    found.add(pa.record_batch({"name": pa.array([known], pa.timestamp("us", "UTC"))}))
    found.add(pa.record_batch({"name": values}))
    facts = json.loads(found.to_json())
    assert facts["minValues"] == {"stored": "1970-01-01T00:00:00.000000Z"}
    assert facts["maxValues"] == {}
    assert facts["nullCount"] == {"stored": 0}


@pytest.mark.parametrize("stats", [
    '{"numRecords":9,"minValues":{"n":1.10,"o":{"p":0.5}},"maxValues":{"n":12345678901234564.99},"nullCount":{"n":0}}',
    '{ "minValues" : {"a,\\"}":-0.10}, "tightBounds":true ,"maxValues":{"n":99999999999999999999.9},"nullCount":{}}\n',
])  # fmt: skip
def test_a_file_that_gets_a_vector_keeps_its_bounds_as_their_writer_wrote_them(stats: str):
    """Spark's bounds of wide decimals are exact; they came back as the nearest doubles."""
    file = LiveFile.of_add({"path": "x", "size": 1, "stats": stats})
    found = file.add(vector=Vector("u", "x" * 20, 40, 1, 1), rows=9)["add"]["stats"]
    expected = {**json.loads(stats, parse_float=Decimal), "tightBounds": False, "numRecords": 9}
    assert json.loads(found, parse_float=Decimal) == expected


@pytest.mark.parametrize("stats", [None, "", "{}"])
def test_a_file_without_statistics_that_gets_a_vector_has_those_that_a_vector_needs(stats: str | None):
    file = LiveFile.of_add({"path": "x", "size": 1, "stats": stats})
    assert json.loads(file.add(rows=9)["add"]["stats"]) == {"numRecords": 9, "tightBounds": False}
