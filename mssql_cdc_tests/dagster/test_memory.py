"""The sensor's memory tolerates any cursor text."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.defs.memory import Memory, Refusals
from mssql_cdc.errors import LoginRefusedError, SourceError
from mssql_cdc.plan.facts import Cursor

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_memory_survives_a_round_trip():
    cursor = Cursor("1:1:1-1:1:2", 3, NOW, "snapshot-20260501T120000", 17)
    memory = Memory(
        cursor=cursor, looked=NOW, beaten=NOW, started=1.5, window="2026-05-01-12:00", absent=("shop.dbo.a",)
    )
    assert Memory.from_json(memory.to_json()) == memory


@pytest.mark.parametrize("text", [None, "", "nonsense", "[]", "3", '{"v": 1}', '{"v": 2}', '{"v": 3, "looked": "x"}'])
def test_an_unreadable_memory_is_reset(text):
    assert Memory.from_json(text) == Memory()


@given(st.dictionaries(st.sampled_from(["v", "cursor", "looked", "beaten", "started", "window"]), st.none()))
def test_missing_values_are_not_an_error(data):
    assert Memory.from_json(json.dumps(data)).cursor == Cursor()


def test_a_wait_after_a_refused_login_grows_to_ten_minutes_and_survives_a_clock_that_is_set_back():
    refusals = Refusals()
    for wait in (120, 240, 480, 600, 600):
        with pytest.raises(LoginRefusedError, match=r"^refused$"), refusals.heeded(None):
            raise LoginRefusedError("refused")
        asked = datetime.now(UTC).timestamp()
        for since in (wait - 60, 60 - wait):
            refusals.at = datetime.now(UTC) - timedelta(seconds=since)
            with pytest.raises(LoginRefusedError, match=r"refused; .* the next one is in (59|60) s"):
                refusals.heeded(asked - wait - 60).__enter__()
        refusals.at = datetime.now(UTC) + timedelta(seconds=wait + 1)  # The clock was ahead.


def test_a_sensor_that_is_turned_on_asks_at_once_and_a_login_that_succeeds_is_the_end_of_it():
    refusals = Refusals()
    with pytest.raises(LoginRefusedError), refusals.heeded(None):
        raise LoginRefusedError("refused")
    with refusals.heeded(datetime.now(UTC).timestamp() + 1):
        pass
    assert refusals == Refusals()


def test_another_error_is_no_login_that_succeeded():
    refusals = Refusals()
    with pytest.raises(SourceError), refusals.heeded(None):
        raise SourceError("no table")
    assert refusals == Refusals()
