"""Windows of commit time: keys, order and the partitions that Dagster lists."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.config.model import Window
from mssql_cdc.defs.windows import Windows

NOW = datetime(2026, 5, 1, 10, 47, 12, tzinfo=UTC)
NAMES = st.sampled_from(["15 minutes", "hour", "day"])


def windows(name: Window = "hour", *, days: int = 90, first: datetime | None = None) -> Windows:
    return Windows.of(name, days=days, first=first, now=NOW)


@pytest.mark.parametrize(
    ("name", "key"),
    [("15 minutes", "2026-05-01-10:45"), ("hour", "2026-05-01-10:00"), ("day", "2026-05-01")],
)
def test_the_last_partition_is_the_current_window(name: Window, key: str) -> None:
    found = windows(name, days=2)
    keys = found.definition.get_partition_keys(current_time=NOW)
    assert keys[-1] == found.key(NOW) == key


def test_a_local_commit_time_chooses_its_window_in_utc() -> None:
    berlin = timezone(timedelta(hours=2))
    assert windows().key(datetime(2026, 5, 1, 0, 30, tzinfo=berlin)) == "2026-04-30-22:00"


@given(NAMES, st.integers(0, 10 * 365 * 24 * 3600 * 1000))
def test_a_window_contains_the_times_that_choose_it(name: Window, milliseconds: int) -> None:
    found, instant = windows(name), datetime(2020, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    start = found.parse(found.key(instant))
    assert start == found.start(instant)
    assert start <= instant < start + found.length


@given(NAMES, st.integers(1, 5))
def test_partitions_are_the_windows_that_have_begun(name: Window, days: int) -> None:
    found = windows(name, days=days)
    keys = found.definition.get_partition_keys(current_time=NOW)
    assert keys == [found.key(start) for start in found.between(found.since, NOW)]
    assert len(keys) <= days * (timedelta(days=1) // found.length) + 96


def test_windows_begin_when_capture_was_set_up_and_move_on_after_90_days() -> None:
    set_up = NOW - timedelta(hours=3)
    assert windows(first=set_up).definition.get_first_partition_key() == "2026-05-01-07:00"
    assert windows(first=NOW - timedelta(days=400)).since == windows().since
    assert windows().definition.get_first_partition_key() == "2026-01-31-00:00"
