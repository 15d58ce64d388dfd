"""Commit times: server-local texts become instants, even in the repeated hour (STR-13, rule B17)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.lsn import Lsn
from mssql_cdc.source.sqlserver.commit_times import (
    CommitTimeLoader,
    CommitTimes,
    ambiguous_window,
    distinct,
    to_instants,
)

BERLIN = "Europe/Berlin"
FALLS_BACK = datetime(2026, 10, 25, 1, tzinfo=UTC)
"""When Berlin's clocks go from 3:00 back to 2:00."""


def local(*texts: str) -> pa.Array:
    return pa.array([datetime.fromisoformat(text) for text in texts], pa.timestamp("us"))


def utc(*texts: str) -> list[datetime]:
    return [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in texts]


@pytest.mark.feature("STR-13")
def test_an_offset_in_minutes_is_subtracted() -> None:
    assert to_instants(local("2026-01-01 00:30"), 120).to_pylist() == utc("2025-12-31 22:30")


def test_a_zone_distinguishes_summer_and_winter_time() -> None:
    found = to_instants(local("2026-01-01 12:00", "2026-07-01 12:00"), BERLIN).to_pylist()

    assert found == utc("2026-01-01 11:00", "2026-07-01 10:00")


def test_times_that_decrease_in_lsn_order_are_in_the_second_pass_of_the_hour() -> None:
    times = local("2026-10-25 01:59", "2026-10-25 02:10", "2026-10-25 02:50", "2026-10-25 02:20", "2026-10-25 03:01")

    assert to_instants(times, BERLIN).to_pylist() == utc(
        "2026-10-24 23:59", "2026-10-25 00:10", "2026-10-25 00:50", "2026-10-25 01:20", "2026-10-25 02:01"
    )


def test_commits_that_are_only_out_of_order_do_not_begin_the_second_pass() -> None:
    """Audit of issue 10, 4: a fall of 3 ms moved the rest of the hour by an hour."""
    times = local(
        "2026-10-25 01:59", "2026-10-25 02:10:00.010", "2026-10-25 02:10:00.007", "2026-10-25 02:59:59.997",
        "2026-10-25 02:00", "2026-10-25 02:59:59.993", "2026-10-25 02:30", "2026-10-25 03:00:00.003",
        "2026-10-25 02:59:59.997",
    )  # fmt: skip

    assert to_instants(times, BERLIN).to_pylist() == utc(
        "2026-10-24 23:59", "2026-10-25 00:10:00.010", "2026-10-25 00:10:00.007", "2026-10-25 00:59:59.997",
        "2026-10-25 01:00", "2026-10-25 00:59:59.993", "2026-10-25 01:30", "2026-10-25 02:00:00.003",
        "2026-10-25 01:59:59.997",
    )  # fmt: skip


def test_the_second_pass_begins_at_a_fall_of_local_time_also_where_clocks_change_by_half_an_hour() -> None:
    times = local("2026-04-05 01:29", "2026-04-05 01:59", "2026-04-05 01:31", "2026-04-05 02:01")

    assert to_instants(times, "Australia/Lord_Howe").to_pylist() == utc(
        "2026-04-04 14:29", "2026-04-04 14:59", "2026-04-04 15:01", "2026-04-04 15:31"
    )


def test_a_commit_without_a_time_begins_no_second_pass() -> None:
    times = pa.concat_arrays([local("2026-10-25 02:10"), pa.nulls(1, pa.timestamp("us")), local("2026-10-25 02:20")])

    assert to_instants(times, BERLIN).to_pylist() == [*utc("2026-10-25 00:10"), None, *utc("2026-10-25 00:20")]


def test_a_quiet_gap_of_an_hour_hides_the_fall_and_the_first_pass_is_assumed() -> None:
    """No local time falls, so nothing tells the passes apart; the order of rows never depends on it."""
    times = local("2026-10-25 02:10", "2026-10-25 02:20", "2026-10-25 03:30")

    assert to_instants(times, BERLIN).to_pylist() == utc("2026-10-25 00:10", "2026-10-25 00:20", "2026-10-25 02:30")


@given(
    steps=st.lists(st.timedeltas(timedelta(0), timedelta(minutes=40)), min_size=1, max_size=60),
    jitter=st.lists(st.timedeltas(timedelta(seconds=-29), timedelta(seconds=29)), min_size=60, max_size=60),
    begin=st.timedeltas(timedelta(hours=-3), timedelta(minutes=-1)),
)
def test_commits_across_the_fall_back_get_their_instants_whatever_their_jitter(
    steps: list[timedelta], jitter: list[timedelta], begin: timedelta
) -> None:
    at = FALLS_BACK + begin
    true = [at]
    for step, noise in zip(steps, jitter, strict=False):
        at += step
        true.append(at + noise)
    times = pa.array([one.astimezone(ZoneInfo(BERLIN)).replace(tzinfo=None) for one in true], pa.timestamp("us"))

    assert to_instants(times, BERLIN).to_pylist() == true


def test_the_window_around_a_repeated_hour_is_detected_only_there() -> None:
    assert ambiguous_window(local("2026-10-25 12:00"), BERLIN) is None
    assert ambiguous_window(local("2026-10-25 02:30"), 60) is None
    assert ambiguous_window(local("2026-10-25 02:30"), BERLIN) == (
        datetime.fromisoformat("2026-10-25 00:30"),
        datetime.fromisoformat("2026-10-25 04:30"),
    )


def test_times_are_looked_up_by_lsn_and_null_if_the_mapping_has_none() -> None:
    def lsns(*numbers: int) -> np.ndarray:
        return np.frombuffer(b"".join(n.to_bytes(10, "big") for n in numbers), np.uint8).reshape(-1, 10)

    known = pa.array([n.to_bytes(10, "big") for n in (1, 256)], pa.binary(10))
    times = CommitTimes(known, to_instants(local("2026-01-01 00:00", "2026-01-02 00:00"), 0))

    assert times(lsns(1, 1, 2, 256)).to_pylist() == [
        *utc("2026-01-01", "2026-01-01"),
        None,
        *utc("2026-01-02"),
    ]
    assert distinct([lsns(1, 1, 2), lsns(2, 256)]).tolist() == lsns(1, 2, 256).tolist()


def matrix(numbers: Sequence[int]) -> np.ndarray:
    return np.frombuffer(b"".join(n.to_bytes(10, "big") for n in numbers), np.uint8).reshape(-1, 10)


class Mapping:
    """The mapping table of a database with one commit a second, which counts the rows that it gives out."""

    def __init__(self, begin: datetime, commits: int) -> None:
        self.begin, self.commits, self.sent, self.texts = begin, commits, 0, list[str]()

    def read(
        self, sql: str, fields: Sequence[pa.Field], parameters: Sequence[str] = (), **_: object
    ) -> Iterator[pa.RecordBatch]:
        self.texts.append(sql)
        top = re.search(r"TOP \((\d+)\)", sql)
        left = int(top[1]) if top else self.commits
        for first in range(0, self.commits, 1000):
            meant = [n for n in range(first, min(first + 1000, self.commits)) if self._is_meant(n, sql, parameters)]
            chosen = meant[:left]
            if chosen:
                self.sent += len(chosen)
                left -= len(chosen)
                raw: list[Any] = [n.to_bytes(10, "big") for n in chosen]
                columns = [pa.array(raw, pa.binary(10)), pa.array([self.local(n) for n in chosen], pa.timestamp("us"))]
                yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(fields)))

    def _is_meant(self, number: int, sql: str, parameters: Sequence[str]) -> bool:
        if "tran_end_time >=" in sql:
            return datetime.fromisoformat(parameters[0]) <= self.local(number) < datetime.fromisoformat(parameters[1])
        if " IN (" in sql:
            return number.to_bytes(10, "big").hex() in set(parameters)
        return parameters[0] <= number.to_bytes(10, "big").hex() <= parameters[1]

    def instant(self, number: int) -> datetime:
        return self.begin + timedelta(seconds=number)

    def local(self, number: int) -> datetime:
        return self.instant(number).astimezone(ZoneInfo(BERLIN)).replace(tzinfo=None)


@pytest.mark.long
@pytest.mark.parametrize("apart", [1, 3, 190])
@pytest.mark.parametrize("wanted", [1, 3, 40, 400, 401, 1000], ids=str)
def test_commits_of_a_page_are_found_whatever_lies_between_them(wanted: int, apart: int) -> None:
    """Audit of issue 10, 3a: above 400 commits, every row between the first and the last was loaded."""
    mapping = Mapping(datetime(2026, 1, 1, tzinfo=UTC), 200_000)
    numbers = [n * apart for n in range(1, wanted + 1)]
    times = CommitTimeLoader(mapping, BERLIN)  # type: ignore[arg-type]
    times.load([matrix(numbers)])

    assert times(matrix(numbers)).to_pylist() == [mapping.instant(n) for n in numbers]
    between = apart * (wanted - 1) + 1
    near = min(between, 10 * next(length for length in (4, 40, 400, 4000) if wanted <= length))
    lists = -(-(wanted - sum(n < numbers[0] + near for n in numbers)) // 400)
    assert len(mapping.texts) == 1 + (lists if near < between else 0)
    assert mapping.sent == near + sum(n >= numbers[0] + near for n in numbers)


def test_commits_that_follow_each_other_need_no_list() -> None:
    mapping = Mapping(datetime(2026, 1, 1, tzinfo=UTC), 1_000)
    times = CommitTimeLoader(mapping, BERLIN)  # type: ignore[arg-type]
    times.load([matrix(list(range(100, 500)))])

    (text,) = mapping.texts
    assert " IN (" not in text


def test_pages_of_a_range_whose_times_were_read_at_once_need_no_statement() -> None:
    mapping = Mapping(datetime(2026, 1, 1, tzinfo=UTC), 1_000)
    times = CommitTimeLoader(mapping, BERLIN)  # type: ignore[arg-type]
    times.expect(Lsn((99).to_bytes(10, "big")), Lsn((500).to_bytes(10, "big")))
    for numbers in (list(range(100, 300, 2)), [100, 500], list(range(101, 500, 2))):
        times.load([matrix(numbers)])
        assert times(matrix(numbers)).to_pylist() == [mapping.instant(n) for n in numbers]
        assert times.kept == len(numbers)
    assert len(mapping.texts) == 1


def test_commits_that_were_not_read_with_the_range_are_asked_for() -> None:
    mapping = Mapping(datetime(2026, 1, 1, tzinfo=UTC), 1_000)
    times = CommitTimeLoader(mapping, BERLIN)  # type: ignore[arg-type]
    times.expect(Lsn((99).to_bytes(10, "big")), Lsn((500).to_bytes(10, "big")))
    times.load([matrix([490, 510])])

    assert times(matrix([490, 510])).to_pylist() == [mapping.instant(n) for n in (490, 510)]
    assert len(mapping.texts) == 2


def test_a_range_of_many_commits_is_left_to_its_pages() -> None:
    mapping = Mapping(datetime(2026, 1, 1, tzinfo=UTC), 20_000)
    times = CommitTimeLoader(mapping, BERLIN)  # type: ignore[arg-type]
    times.expect(Lsn((0).to_bytes(10, "big")), Lsn((19_999).to_bytes(10, "big")))
    assert mapping.sent == 4_000
    times.load([matrix([7])])

    assert times(matrix([7])).to_pylist() == [mapping.instant(7)]
    assert len(mapping.texts) == 2


def test_of_many_commits_only_those_of_the_page_are_kept() -> None:
    mapping = Mapping(datetime(2026, 1, 1, tzinfo=UTC), 20_000)
    numbers = list(range(1, 20_000, 4))
    times = CommitTimeLoader(mapping, BERLIN)  # type: ignore[arg-type]
    times.load([matrix(numbers)])

    assert times(matrix(numbers)).to_pylist() == [mapping.instant(n) for n in numbers]
    assert times.kept == len(numbers)
    assert len(mapping.texts) == 1


def test_of_the_hours_around_a_fall_back_only_the_commits_of_the_page_are_kept() -> None:
    mapping = Mapping(FALLS_BACK - timedelta(hours=3), 20_000)
    numbers = list(range(10_000, 16_000, 17))
    times = CommitTimeLoader(mapping, BERLIN)  # type: ignore[arg-type]
    times.load([matrix(numbers)])

    assert times(matrix(numbers)).to_pylist() == [mapping.instant(n) for n in numbers]
    assert times.kept == len(numbers)
