"""A loop whose source is down: how often it tries again, and that it pauses in between."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.errors import ConfigurationError, MssqlCdcError, SourceError, SourceUnavailableError
from mssql_cdc.lsn import LsnRange
from mssql_cdc.plan.decisions import Decision, Range, Snapshot, Wait
from mssql_cdc.run import loop
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import Follower
from mssql_cdc_tests.lake_kit import lsn
from mssql_cdc_tests.unit.config.samples import connector_with


@dataclass
class Down:
    """A source that nobody answers for."""

    asked: int = 0
    error: MssqlCdcError = field(default_factory=lambda: SourceUnavailableError("nobody answers"))

    @contextmanager
    def session(self, _catalog: str) -> Generator[NoReturn]:
        self.asked += 1
        raise self.error
        yield


@dataclass
class Stand:
    """A follower of such a source, and what it said."""

    source: Down
    follower: Follower
    said: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, folder: Path, **properties: object) -> Stand:
        made = connector_with(
            {"delta.warehouse": str(folder), **{n.replace("_", "."): v for n, v in properties.items()}}
        )
        source, said = Down(), list[str]()
        anything: Any = source
        database = Database.of(made, "testDB", spark=lambda: pytest.fail("no Spark"), source=anything, log=said.append)
        return cls(source, Follower(database), said)


def test_retries_end_with_the_error_after_as_many_as_are_allowed(tmp_path: Path) -> None:
    stand = Stand.of(tmp_path, errors_max_retries=2, retriable_restart_connector_wait_ms=0)
    assert stand.follower.attempt() is None
    assert stand.follower.attempt() is None
    with pytest.raises(SourceUnavailableError, match=r"nobody answers\. Given up after 2 retries \(errors\.max\.retr"):
        stand.follower.attempt()
    assert stand.source.asked == 3
    assert stand.said == [f"nobody answers; retry {n} of 2 in 0 s" for n in (1, 2)]


def test_no_retry_is_made_when_none_is_allowed(tmp_path: Path) -> None:
    stand = Stand.of(tmp_path, errors_max_retries=0)
    with pytest.raises(SourceUnavailableError, match="Given up after 0 retries"):
        stand.follower.attempt()


def test_without_a_limit_retries_go_on(tmp_path: Path) -> None:
    stand = Stand.of(tmp_path, retriable_restart_connector_wait_ms=0)
    assert [stand.follower.attempt() for _ in range(20)] == [None] * 20
    assert stand.source.asked == 20


@pytest.mark.feature("ERR-02")
def test_any_error_of_a_source_that_was_surveyed_is_retried_as_often_as_is_allowed(tmp_path: Path) -> None:
    """Review: the server's word for it ended a run that had streamed for weeks; Debezium retries every SQLException."""
    stand = Stand.of(tmp_path, errors_max_retries=2, retriable_restart_connector_wait_ms=0)
    stand.source.error = SourceError("the row object is odd")
    surveyed: Any = object()
    stand.follower.persists, stand.follower.seen = True, surveyed
    assert [stand.follower.attempt() for _ in range(2)] == [None] * 2
    assert stand.follower.failure is stand.source.error
    assert not stand.follower.ready, "the next attempt begins with preflight"
    with pytest.raises(SourceError, match=r"the row object is odd\. Given up after 2 retries"):
        stand.follower.attempt()


@pytest.mark.parametrize(
    ("persists", "surveyed", "error"),
    [
        (True, False, SourceError("no such function")),  # It was never better: an operator has to act.
        (
            False,
            True,
            SourceError("no such function"),
        ),  # `--until-caught-up` says what is wrong; Dagster's sensor retries.
        (True, True, ConfigurationError("CDC is off")),
    ],
)
def test_other_errors_that_a_retry_would_meet_again_are_raised_at_once(
    tmp_path: Path, *, persists: bool, surveyed: bool, error: MssqlCdcError
) -> None:
    stand = Stand.of(tmp_path, retriable_restart_connector_wait_ms=0)
    stand.source.error = error
    seen: Any = object() if surveyed else None
    stand.follower.persists, stand.follower.seen = persists, seen
    with pytest.raises(type(error)):
        stand.follower.attempt()


DECISIONS = pytest.mark.parametrize(
    "last",
    [Wait("nothing to do"), Snapshot("s", ()), Range(LsnRange(lsn(1), lsn(2)), (), complete=True)],
    ids=["wait", "snapshot", "range"],
)
"""What was decided last before the source went down."""


@DECISIONS
def test_a_source_that_is_down_is_left_alone_until_the_wait_is_over(tmp_path: Path, last: Decision) -> None:
    """Review, D2: whatever the last decision was, a loop never asks without a pause."""
    stand = Stand.of(tmp_path, retriable_restart_connector_wait_ms=3_600_000)
    stand.follower.decision = last
    assert [stand.follower.attempt() for _ in range(5)] == [None] * 5
    assert stand.source.asked == 1
    assert stand.said == ["nobody answers; retry 1 in 3600 s"]


@DECISIONS
def test_a_loop_pauses_between_two_attempts_at_a_source_that_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: Decision
) -> None:
    """Review, D2: it went round without a pause if the last decision had been a range or a snapshot."""
    stand = Stand.of(tmp_path, retriable_restart_connector_wait_ms=3_600_000, poll_interval_ms=70)
    pauses, rounds = list[float](), list[Done | None]()

    def paused(seconds: float) -> None:
        pauses.append(seconds)

    def watch(_follower: Follower, done: Done | None) -> bool:
        rounds.append(done)
        stand.follower.decision = last
        return len(rounds) == 5

    monkeypatch.setattr(time, "sleep", paused)
    stand.follower.decision = last
    with pytest.raises(SourceUnavailableError, match="nobody answers"):
        loop._run_for([stand.follower], None, watch)
    assert rounds == [None] * 5
    assert pauses == [0.07] * 4
    assert stand.source.asked == 1


def test_a_problem_of_the_source_makes_a_wait_an_alarm() -> None:
    wait = Wait("no changes since 7")
    assert wait.because_of(None) is wait
    assert wait.because_of("capture stands still") == Wait("no changes since 7; capture stands still", alarm=True)
