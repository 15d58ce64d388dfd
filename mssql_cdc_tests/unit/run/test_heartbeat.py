"""When a heartbeat is due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mssql_cdc.run.heartbeat import is_due

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.feature("HB-01")
@pytest.mark.parametrize(
    ("interval", "ago", "due"),
    [
        (0, None, False),
        (0, 10_000, False),
        (500, None, True),
        (500, 499, False),
        (500, 500, True),
        (500, -3_600_000, True),
    ],
)
def test_a_heartbeat_is_due_when_its_interval_has_passed(interval: int, ago: int | None, *, due: bool):
    last = None if ago is None else NOW - timedelta(milliseconds=ago)
    assert is_due(interval, last, NOW) is due
