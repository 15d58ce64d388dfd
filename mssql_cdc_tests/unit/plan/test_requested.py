"""Ranges requested by key: the unread rest, and when there is none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.errors import SourceRestoredError, StaleReaderError
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.plan.facts import Facts, Instance, Member
from mssql_cdc.plan.requested import requested
from mssql_cdc.schema import TableId


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10, "big"))


def table(name: str) -> TableId:
    return TableId("shop", "dbo", name)


def member(name: str, at: int, **more: object) -> Member:
    instance = Instance(1, f"dbo_{name}", lsn(1), lsn(1))
    known = {"read": instance.identity, "shown": frozenset({instance.identity}), **more}
    return Member(table(name), "streaming", lsn(at), (instance,), **known)  # type: ignore[arg-type]


def facts(*members: Member, captured: int = 10, cut: int | None = None, **more: object) -> Facts:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    found = None if cut is None else lsn(cut)
    return Facts(now, members, lsn(captured), cut=found, **more)  # type: ignore[arg-type]


def key(from_: int, to: int, epoch: int = 0) -> str:
    return LsnRange(lsn(from_), lsn(to), epoch).partition_key


EVERY = (table("a"), table("b"))


def test_each_table_reads_from_its_own_position():
    found = requested(facts(member("a", 4), member("b", 6)), key(1, 8), EVERY)
    assert found is not None
    assert [(part.from_, part.to) for part in found.slices] == [(lsn(4), lsn(8)), (lsn(6), lsn(8))]
    assert found.complete
    assert found.key == key(1, 8)


def test_a_range_that_every_table_has_passed_needs_no_work():
    assert requested(facts(member("a", 9), member("b", 9), cut=9), key(1, 8), EVERY) is None


def test_a_subset_of_the_tables_makes_no_complete_cut():
    found = requested(facts(member("a", 4), member("b", 4)), key(1, 8), [table("a")])
    assert found is not None
    assert found.tables == (table("a"),)
    assert not found.complete


def test_positions_that_were_reached_in_parts_become_a_cut():
    found = requested(facts(member("a", 8), member("b", 8), cut=4), key(4, 8), EVERY)
    assert found is not None
    assert found.complete
    assert found.slices == ()


def test_a_table_opens_even_if_there_is_nothing_to_read():
    closed = member("a", 8, closed_until=lsn(7))
    found = requested(facts(closed, member("b", 8), cut=8), key(8, 8), EVERY)
    assert found is not None
    assert found.opens == (table("a"),)


def test_the_end_must_be_visible():
    with pytest.raises(StaleReaderError, match="the source shows"):
        requested(facts(member("a", 4), captured=6), key(1, 8), EVERY)


def test_a_key_from_before_a_restore_needs_no_work():
    assert requested(facts(member("a", 4), epoch=1), key(1, 8), EVERY) is None


def test_a_key_of_a_later_history_is_rejected():
    with pytest.raises(SourceRestoredError, match="epoch 2"):
        requested(facts(member("a", 4)), key(1, 8, epoch=2), EVERY)


def test_nothing_is_read_from_a_restored_source():
    with pytest.raises(SourceRestoredError, match="the witness is gone"):
        requested(facts(member("a", 4), restored="the witness is gone"), key(1, 8), EVERY)


def test_a_text_that_is_not_a_range_is_rejected():
    with pytest.raises(ValueError, match="Not the partition key"):
        requested(facts(member("a", 4)), "yesterday", EVERY)


@given(positions=st.lists(st.integers(1, 12), min_size=2, max_size=2), to=st.integers(1, 10))
def test_no_table_rereads_rows_or_reads_beyond_the_key(positions, to):
    found = requested(facts(member("a", positions[0]), member("b", positions[1])), key(0, to), EVERY)
    parts = {part.table: part for part in found.slices} if found else {}
    for name, at in zip(EVERY, positions, strict=True):
        assert (name in parts) == (at < to)
        if name in parts:
            assert (parts[name].from_, parts[name].to) == (lsn(at), lsn(to))
