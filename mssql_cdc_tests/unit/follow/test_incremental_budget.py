"""The budget of incremental snapshots by clocks that the tests move: rows per second, hours, lag."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mssql_cdc.follow.incremental_budget import LAG_SECONDS, Budget, Clock
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.source.values import CaptureHealth
from mssql_cdc_tests.lake_kit import Change, column
from mssql_cdc_tests.unit.config.samples import MINIMAL, connector_with, problems_of
from mssql_cdc_tests.unit.records.kit import Lake, table

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class Times:
    """Clocks, and a source whose oldest unread change has an age."""

    seconds: float = 1000.0
    now: datetime = NOW
    behind: float = 0.0
    latency: float = 0.0
    replica: float = 0.0
    questions: int = 0
    lines: list[str] = field(default_factory=list[str])

    def budget(self, **properties: object) -> Budget:
        names = {f"incremental.snapshot.{name.replace('_', '.')}": value for name, value in properties.items()}
        settings = connector_with(names).snapshot.incremental
        return Budget(settings, Clock(lambda: self.now, lambda: self.seconds), self.lines.append)

    def capture_health(self, positions: Any) -> CaptureHealth:
        self.questions += 1
        unread = dict.fromkeys(positions, self.now - timedelta(seconds=self.behind))
        return CaptureHealth(now=self.now, unread=unread, behind=timedelta(seconds=self.latency))

    def replica_lag(self) -> timedelta:
        return timedelta(seconds=self.replica)


@pytest.fixture
def times() -> Times:
    return Times()


@pytest.fixture
def offsets(tmp_path: Any) -> Any:
    """One table that streams."""
    lake = Lake(tmp_path)
    schema = lake.add(table("things", column("id", "int", nullable=False)))
    lake.append(schema, Change(5, "c", after={"id": 1}))
    lake.cut(7)
    return load_offsets(lake.layout)


def test_without_limits_chunks_are_read_at_once(times: Times, offsets: Any):
    budget = times.budget()
    assert budget.rest_after(10**6) is None
    assert budget.most_rows is None
    assert budget.allows(times, offsets, rest=None)  # type: ignore[arg-type]
    assert times.questions == 0


def test_rows_per_second_are_kept_on_average(times: Times, offsets: Any):
    budget = times.budget(max_rows_per_second=100)
    assert budget.most_rows == 100
    read, rest = 0, None
    for _ in range(60):
        if budget.allows(times, offsets, rest=rest):  # type: ignore[arg-type]
            rest = budget.rest_after(130)  # A chunk ends where its rows do, not where a second does.
            read += 130
        times.now += timedelta(seconds=1)
    assert read == 130 * 30  # Each takes 1.3 seconds, and is asked for once a second.
    times.now += timedelta(hours=1)
    rest = budget.rest_after(100)
    another = times.budget(max_rows_per_second=100)
    assert not another.allows(times, offsets, rest=rest), "another run keeps the limit, too"  # type: ignore[arg-type]
    times.now += timedelta(seconds=1)
    assert another.allows(times, offsets, rest=rest)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("hours", "zone", "open_at", "closed_at"),
    [
        ("22:00-06:00", "UTC", ["22:00", "23:59", "00:00", "05:59"], ["06:00", "12:00", "21:59"]),
        ("08:00-09:30,12:00-24:00", "UTC", ["08:00", "09:29", "12:00", "23:59"], ["09:30", "00:00", "11:59"]),
        ("01:00-02:00", "Asia/Tokyo", ["16:00", "16:59"], ["01:30", "17:00"]),
    ],
)
def test_chunks_are_read_at_these_hours_only(
    times: Times, offsets: Any, hours: str, zone: str, open_at: list[str], closed_at: list[str]
):
    settings = connector_with(
        {"incremental.snapshot.hours": hours, "incremental.snapshot.hours.time.zone": zone}
    ).snapshot.incremental
    budget = Budget(settings, Clock(lambda: times.now, lambda: times.seconds), times.lines.append)

    def allows(text: str) -> bool:
        times.now = datetime.fromisoformat(f"2026-01-01T{text}:00+00:00")
        return budget.allows(times, offsets, rest=None)  # type: ignore[arg-type]

    assert [allows(text) for text in open_at] == [True] * len(open_at)
    assert [allows(text) for text in closed_at] == [False] * len(closed_at)


def test_chunks_wait_while_the_stream_is_too_far_behind(times: Times, offsets: Any):
    budget = times.budget(max_lag_seconds=30)
    assert budget.allows(times, offsets, rest=None)  # type: ignore[arg-type]
    times.behind = 45
    assert budget.allows(times, offsets, rest=None)  # type: ignore[arg-type]
    assert times.questions == 1
    for _ in range(2):
        times.seconds += LAG_SECONDS
        assert not budget.allows(times, offsets, rest=None)  # type: ignore[arg-type]
    assert times.lines == ["the incremental snapshot waits: the stream is 45 s behind"]
    times.behind, times.seconds = 30, times.seconds + LAG_SECONDS
    assert budget.allows(times, offsets, rest=None)  # type: ignore[arg-type]


def test_chunks_wait_while_the_capture_job_is_too_far_behind(times: Times, offsets: Any):
    """It scans, and everything that it has captured is read."""
    budget = times.budget(max_lag_seconds=30)
    times.latency = 45
    assert not budget.allows(times, offsets, rest=None)  # type: ignore[arg-type]
    times.latency, times.seconds = 30, times.seconds + LAG_SECONDS
    assert budget.allows(times, offsets, rest=None)  # type: ignore[arg-type]


def test_chunks_wait_while_a_secondary_replica_is_too_far_behind(times: Times, offsets: Any):
    budget = times.budget(max_lag_seconds=30)
    times.replica = 45
    assert not budget.allows(times, offsets, rest=None)  # type: ignore[arg-type]
    assert times.lines == ["the incremental snapshot waits: a secondary replica is 45 s behind"]
    times.replica, times.seconds = 30, times.seconds + LAG_SECONDS
    assert budget.allows(times, offsets, rest=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("hours", "22-6", "found '22-6', expected hours such as 22:00-06:00"),
        ("hours", "08:00-08:00", "expected hours such as"),
        ("hours", "08:00-25:00", "expected hours such as"),
        ("hours.time.zone", "Mars/Olympus", "expected an IANA time zone"),
        ("max.rows.per.second", "-1", "expected 0 or more"),
    ],
)
def test_bad_limits_are_refused(name: str, value: str, problem: str):
    assert problem in problems_of(MINIMAL | {f"incremental.snapshot.{name}": value})


def test_a_rest_that_a_clock_far_ahead_has_noted_holds_nothing_up(times: Times, offsets: Any):
    """Reading waited until the clock of this host came to it."""
    budget = times.budget(max_rows_per_second=100)
    rest = budget.rest_after(50)
    assert rest is not None
    assert not budget.allows(times, offsets, rest=rest)  # type: ignore[arg-type]
    assert budget.allows(times, offsets, rest=rest + timedelta(days=2))  # type: ignore[arg-type]
