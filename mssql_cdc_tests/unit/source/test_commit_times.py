"""Commit times: server-local texts become instants, even in the repeated hour (STR-13, rule B17)."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from mssql_cdc.source.sqlserver.commit_times import CommitTimes, ambiguous_window, distinct, to_instants

BERLIN = "Europe/Berlin"


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
