"""LSNs, ranges, positions and partition keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.lsn import (
    ZERO_LSN,
    Lsn,
    LsnRange,
    Position,
    cut_text,
    parse_snapshot_key,
    snapshot_key,
    snapshot_position_text,
)
from mssql_cdc_tests.lake_kit import position_text

lsns = st.binary(min_size=10, max_size=10).map(Lsn)


@given(lsns)
def test_lsn_texts_name_the_same_lsn(lsn: Lsn):
    assert Lsn.parse(lsn.text) == Lsn.parse(lsn.compact) == Lsn.parse("0x" + lsn.raw.hex().upper()) == lsn


@given(lsns, lsns)
def test_lsn_text_sorts_like_its_bytes(one: Lsn, other: Lsn):
    assert (one < other) == (one.text < other.text) == (one.raw < other.raw)


@given(lsns.filter(lambda lsn: lsn.raw != b"\xff" * 10))
def test_lsn_increment_is_the_next_one(lsn: Lsn):
    assert lsn.increment() > lsn
    assert lsn.increment().decrement() == lsn


def test_lsn_text_is_lowercase_and_compact_text_is_short():
    lsn = Lsn.parse("0x0000002D00000AC00002")
    assert lsn.text == "0000002d:00000ac0:0002"
    assert lsn.compact == "2d:ac0:2"
    assert not ZERO_LSN


@pytest.mark.parametrize("text", ["", "27:ac0", "27:ac0:2:1", "0x12", "zz:1:1"])
def test_lsn_rejects_other_texts(text: str):
    with pytest.raises(ValueError, match="Not an LSN"):
        Lsn.parse(text)


def test_lsn_has_ten_bytes():
    with pytest.raises(ValueError, match="10 bytes"):
        Lsn(b"1")


@given(lsns, lsns, st.integers(0, 9))
def test_range_key_names_the_range(one: Lsn, other: Lsn, epoch: int):
    range_ = LsnRange(min(one, other), max(one, other), epoch)
    assert LsnRange.parse(range_.partition_key) == range_
    assert range_.is_empty == (one == other)


def test_range_key_shows_the_epoch_after_a_restore_only():
    ends = Lsn.parse("27:ac0:2"), Lsn.parse("27:ad8:5")
    assert LsnRange(*ends).partition_key == "27:ac0:2-27:ad8:5"
    assert LsnRange(*ends, epoch=3).partition_key == "e3.27:ac0:2-27:ad8:5"


def test_range_is_open_below_and_closed_above():
    range_ = LsnRange.parse("1:1:1-1:1:3")
    assert [Lsn.parse(f"1:1:{n}") in range_ for n in (1, 2, 3, 4)] == [False, True, True, False]


def test_range_cannot_end_before_it_starts():
    with pytest.raises(ValueError, match="before it begins"):
        LsnRange(Lsn.parse("1:1:2"), Lsn.parse("1:1:1"))


parts = st.tuples(st.integers(0, 3), lsns, st.integers(0, 2**31 - 1), lsns, st.sampled_from([1, 2, 3, 4]))


@given(parts, parts)
def test_position_texts_sort_by_epoch_commit_command_change_operation(one: tuple, other: tuple):
    assert (position_text(*one) < position_text(*other)) == (one < other)


@given(parts)
def test_position_text_is_parsed(values: tuple):
    text = position_text(*values)
    position = Position.parse(text)
    assert position.text == text
    assert (position.epoch, position.commit_lsn, position.command_id) == values[:3]


@given(lsns, lsns, st.integers(0, 2**31 - 1), st.integers(1, 100))
def test_snapshot_rows_sort_after_every_change_of_their_commit(commit: Lsn, change: Lsn, command: int, n: int):
    row = snapshot_position_text(0, commit, number=n, chunk=2, row=3)
    assert position_text(0, commit, command, change, 4) < row < cut_text(0, commit)
    assert snapshot_position_text(0, commit, number=n) < row


def test_position_of_an_old_build_has_command_zero():
    assert position_text(0, ZERO_LSN, None, ZERO_LSN, 2) == position_text(0, ZERO_LSN, 0, ZERO_LSN, 2)


def test_position_that_does_not_fit_is_rejected():
    with pytest.raises(ValueError, match="epoch"):
        position_text(65536, ZERO_LSN, 0, ZERO_LSN, 2)
    with pytest.raises(ValueError, match="chunk"):
        snapshot_position_text(0, ZERO_LSN, number=1, chunk=16**6)


def test_snapshot_key_is_a_time_in_utc():
    at = datetime(2026, 11, 21, 9, 5, 9, tzinfo=timezone(timedelta(hours=1)))
    assert snapshot_key(at) == "snapshot-20261121T080509"
    assert parse_snapshot_key("snapshot-20261121T080509") == datetime(2026, 11, 21, 8, 5, 9, tzinfo=UTC)
    assert parse_snapshot_key(snapshot_key(at, epoch=2)) == at
    assert parse_snapshot_key("27:ac0:2-27:ad8:5") is None
