"""The sensor's memory tolerates any cursor text; only old partitions are pruned."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.defs import prune
from mssql_cdc.defs.memory import Memory
from mssql_cdc.defs.prune import MOST_AT_ONCE, stale_keys
from mssql_cdc.lsn import Lsn, LsnRange, snapshot_key
from mssql_cdc.plan.facts import Cursor

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10, "big"))


def key(from_: int, to: int, epoch: int = 0) -> str:
    return LsnRange(lsn(from_), lsn(to), epoch).partition_key


def test_memory_survives_a_round_trip():
    cursor = Cursor(key(1, 2), 3, NOW, "snapshot-20260501T120000", 17)
    memory = Memory(cursor=cursor, looked=NOW, beaten=NOW, started=1.5)
    assert Memory.from_json(memory.to_json()) == memory


@pytest.mark.parametrize("text", [None, "", "nonsense", "[]", "3", '{"v": 1}', '{"v": 2, "looked": "x"}'])
def test_an_unreadable_memory_is_reset(text):
    assert Memory.from_json(text) == Memory()


@given(st.dictionaries(st.sampled_from(["v", "cursor", "looked", "beaten", "started"]), st.none()))
def test_missing_values_are_not_an_error(data):
    assert Memory.from_json(json.dumps(data)).cursor == Cursor()


def test_ranges_that_the_source_no_longer_holds_are_pruned():
    keys = [key(1, 3), key(3, 5), key(5, 9)]
    assert stale_keys(keys, oldest=lsn(6), epoch=0, now=NOW) == keys[:2]


def test_nothing_is_pruned_while_the_source_minimum_is_unknown():
    assert stale_keys([key(1, 3)], oldest=None, epoch=0, now=NOW) == []


def test_ranges_of_an_earlier_epoch_are_pruned():
    assert stale_keys([key(1, 3), key(7, 9, epoch=1)], oldest=None, epoch=1, now=NOW) == [key(1, 3)]


def test_snapshots_are_pruned_after_some_days_unless_they_are_open():
    old, newer = snapshot_key(NOW - timedelta(days=4)), snapshot_key(NOW - timedelta(days=2))
    assert stale_keys([old, newer], oldest=None, epoch=0, now=NOW) == [old]
    assert stale_keys([old, newer], oldest=None, epoch=0, now=NOW, in_use={old}) == []


def test_user_defined_keys_are_not_pruned():
    assert stale_keys(["yesterday"], oldest=lsn(6), epoch=3, now=NOW) == []


def test_a_tick_deletes_few_keys():
    keys = [key(n, n + 1) for n in range(100)]
    assert stale_keys(keys, oldest=lsn(90), epoch=0, now=NOW) == keys[:MOST_AT_ONCE]


def test_without_cleanup_the_oldest_keys_are_pruned(monkeypatch):
    monkeypatch.setattr(prune, "MOST_KEPT", 3)
    keys = [key(n, n + 1) for n in range(5)]
    assert stale_keys(keys, oldest=lsn(0), epoch=0, now=NOW) == keys[:2]
