"""The lag of a table: the age of the oldest change that it may lack, by the source's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mssql_cdc.capture.lag import Lag, captured_until, lag_of, unread_lag, without_answer
from mssql_cdc.lsn import Lsn
from mssql_cdc.source.values import CaptureHealth
from mssql_cdc_tests.lake_kit import lsn

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
HERE = lsn(5)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def health(
    *, unread: float | None = None, scanned: float = 1, problem: str | None = None, behind: float = 0
) -> CaptureHealth:
    found: dict[Lsn, datetime] = {} if unread is None else {HERE: ago(unread)}
    return CaptureHealth(NOW, ago(scanned), problem, found, timedelta(seconds=behind))


@pytest.mark.parametrize(
    ("unmerged", "found", "expected"),
    [
        (None, health(), Lag(0, 0)),
        (None, health(scanned=119), Lag(0, 0)),
        (None, health(unread=3), Lag(3, 3)),
        (7, health(unread=3), Lag(3, 7)),
        (2, health(), Lag(0, 2)),
        (None, health(scanned=300, problem="capture stands still"), Lag(300, 300)),
        (None, health(unread=20, scanned=300, problem="capture stands still"), Lag(300, 300)),
        (400, health(unread=350, scanned=300, problem="capture stands still"), Lag(350, 400)),
        (-5, health(), Lag(0, 0)),
        (None, health(scanned=1500), Lag(1500, 1500)),
        (1600, health(scanned=1500), Lag(1500, 1600)),
        (None, health(behind=600), Lag(600, 600)),
        (None, health(behind=600, unread=700), Lag(700, 700)),
        (None, health(behind=20), Lag(0, 0)),
    ],
    ids=[
        "caught up",
        "capture polls rarely",
        "unread",
        "unmerged",
        "only unmerged",
        "capture stands still",
        "unread, and capture stands still",
        "unread longer than capture stands still",
        "a clock that jumped",
        "capture runs from a schedule",
        "unmerged longer than capture has not scanned",
        "capture has a backlog",
        "unread longer than capture's backlog",
        "capture scans every 20 s",
    ],
)
def test_lag_is_the_age_of_the_oldest_change_that_may_be_missing(
    unmerged: float | None, found: CaptureHealth, expected: Lag
):
    assert lag_of(HERE, None if unmerged is None else ago(unmerged), found) == expected


def test_lag_is_unknown_before_a_table_streams():
    assert lag_of(None, None, health()) == Lag(None, None)


def test_a_table_without_a_key_has_no_lag_of_a_current_table():
    assert lag_of(HERE, ago(9), health(unread=3), has_current=False) == Lag(3, None)


def test_transactions_after_another_position_do_not_count():
    assert lag_of(lsn(6), None, health(unread=3)) == Lag(0, 0)


@pytest.mark.parametrize(
    ("last", "lag"),
    [
        (health(), 40),
        (health(unread=3), 43),
        (health(scanned=300, problem="capture stands still"), 340),
        (health(scanned=1500), 1540),
    ],
    ids=["caught up", "unread", "capture stands still", "capture runs from a schedule"],
)
def test_lag_grows_while_the_source_does_not_answer(last: CaptureHealth, lag: float):
    assert lag_of(HERE, None, without_answer(last, timedelta(seconds=40))).log == lag


@pytest.mark.parametrize(
    ("found", "until"),
    [
        (health(), 120),
        (health(behind=20), 120),
        (health(scanned=100), 130),
        (health(scanned=1500), 1530),
        (health(scanned=1500, problem="capture stands still"), 1530),
        (health(behind=3000), 3001),
        (health(scanned=1500, behind=3000), 4500),
        (health(scanned=0), None),
        (health(scanned=-3), None),
        (CaptureHealth(NOW), None),
    ],
    ids=[
        "capture scans",
        "a scan that found changes of a moment ago",
        "a scan that may have read the log's end a moment before it ended",
        "capture runs from a schedule",
        "capture stands still",
        "capture has a backlog",
        "a scan some time ago had a backlog",
        "a scan that goes on",
        "a clock that was set back",
        "no scan is known",
    ],
)
def test_everything_is_captured_up_to_what_the_last_scan_that_ended_had_passed(
    found: CaptureHealth, until: float | None
):
    assert captured_until(found) == (None if until is None else ago(until))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (health(scanned=1500), 0),
        (health(scanned=1500, unread=3), 3),
        (health(scanned=1500, behind=600), 600),
        (health(scanned=1500, problem="capture stands still"), 1500),
    ],
    ids=["capture runs from a schedule", "unread", "capture has a backlog", "capture stands still"],
)
def test_a_table_is_not_judged_by_how_often_capture_scans(found: CaptureHealth, expected: float):
    assert unread_lag(HERE, found) == expected
    assert unread_lag(None, found) is None
