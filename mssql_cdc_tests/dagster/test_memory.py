"""The sensor's memory tolerates any cursor text."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.defs.memory import Memory
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
