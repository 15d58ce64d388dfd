"""Chunks, resuming and completing snapshots; modes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mssql_cdc.capture.snapshot.chunk_plan import (
    Ended,
    GroupDone,
    Reread,
    SnapshotPlan,
    TablePlan,
    conclude,
    low_mark,
    next_group,
    plan_of_text,
    plan_text,
    remaining,
)
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lsn import Lsn
from mssql_cdc.plan.policy import policy_of
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import Chunk

ORDERS, PEOPLE = TableId("db", "dbo", "orders"), TableId("db", "dbo", "people")


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10, "big"))


def chunks(count: int) -> tuple[Chunk, ...]:
    edges = [None, *[(str(n),) for n in range(1, count)], None]
    return tuple(Chunk(n, edges[n], edges[n + 1]) for n in range(count))


@pytest.mark.feature("SNP-01", "SNP-03", "SNP-05")
def test_modes_define_whether_to_read_rows_and_whether_to_stream():
    shape = {mode: policy_of(mode) for mode in ("always", "initial", "initial_only", "no_data", "when_needed")}
    assert {m: (p.data, p.stream, p.on_data_error) for m, p in shape.items()} == {
        "always": (True, True, False),
        "initial": (True, True, False),
        "initial_only": (True, False, False),
        "no_data": (False, True, False),
        "when_needed": (True, True, True),
    }


@pytest.mark.feature("SNP-08")
def test_configuration_based_mode_follows_its_flags():
    policy = policy_of("configuration_based", data=True, stream=False, on_data_error=True)
    assert (policy.data, policy.stream, policy.on_data_error) == (True, False, True)


def test_unknown_mode_is_rejected_with_the_known_ones():
    with pytest.raises(ConfigurationError, match="initial_only"):
        policy_of("sometimes")


def test_plan_survives_serialization():
    plan = SnapshotPlan(
        "snapshot-20261121T000000",
        3,
        (
            TablePlan(ORDERS, chunks(3), lsn(9), lsn(7)),
            TablePlan(PEOPLE, (Chunk(0),), lsn(9), None, "SELECT * FROM people", True),
        ),
    )
    assert plan_of_text(plan_text(plan)) == plan


@given(st.integers(1, 12), st.lists(st.integers(0, 11), max_size=12), st.integers(1, 5))
def test_groups_cover_every_unread_chunk_once_in_order(count, read, size):
    table = TablePlan(ORDERS, chunks(count), lsn(1))
    done = [GroupDone((n,), lsn(9)) for n in read if n < count]
    plan, seen = SnapshotPlan("snapshot-20261121T000000", 1, (table,)), []
    left = {ORDERS: remaining(table, done, lsn(1))}
    while group := next_group(plan, left, size):
        assert len(group) <= size
        seen += [chunk.number for _, chunk in group]
        left[ORDERS] = left[ORDERS][len(group) :]
    assert seen == sorted(set(range(count)) - set(read))


def test_small_tables_are_read_before_large_ones_and_equals_in_the_plan_s_order():
    names = [TableId("shop", "dbo", name) for name in ("large", "b", "a", "medium")]
    tables = tuple(TablePlan(name, chunks(n), lsn(1)) for name, n in zip(names, (3, 1, 1, 2), strict=True))
    plan = SnapshotPlan("snapshot-20261121T000000", 1, tables)
    found = [table.name for table, _ in next_group(plan, {table.table: table.chunks for table in tables}, 7)]
    assert found == ["b", "a", "medium", "medium", "large", "large", "large"]


def test_stream_starts_at_the_smallest_mark_and_never_after_its_last_position():
    table = TablePlan(ORDERS, chunks(3), lsn(1))
    done = [GroupDone((0, 1), lsn(8)), GroupDone((2,), lsn(5))]
    assert conclude(table, done, lsn(3)) == Ended(lsn(5), lsn(5))
    assert conclude(replace(table, held=lsn(4)), done, lsn(3)) == Ended(lsn(4), lsn(5))
    assert conclude(replace(table, held=lsn(6)), done, lsn(3)) == Ended(lsn(5), lsn(5))


def test_position_that_was_cleaned_up_during_the_snapshot_is_a_named_gap():
    table = TablePlan(ORDERS, chunks(1), lsn(1), held=lsn(2))
    assert conclude(table, [GroupDone((0,), lsn(8))], lsn(6)) == Ended(lsn(8), lsn(8), gap=True)


def test_position_that_an_older_instance_still_holds_is_no_gap():
    table = TablePlan(ORDERS, chunks(1), lsn(1), held=lsn(2))
    assert conclude(table, [GroupDone((0,), lsn(8))], lsn(6), lsn(3)) == Ended(lsn(2), lsn(8))
    assert conclude(table, [GroupDone((0,), lsn(8))], lsn(6), lsn(4)) == Ended(lsn(8), lsn(8), gap=True)


def test_chunks_whose_mark_was_cleaned_up_are_reread():
    table = TablePlan(ORDERS, chunks(2), lsn(1))
    done = [GroupDone((0,), lsn(3)), GroupDone((1,), lsn(8))]
    assert conclude(table, done, lsn(5)) == Reread((0,))
    again = [*done, GroupDone((0,), lsn(9))]
    assert conclude(table, again, lsn(5)) == Ended(lsn(8), lsn(8), again=True)
    assert conclude(table, again, None) == Reread((0, 1))


def test_new_instance_raises_the_mark_to_its_start():
    assert low_mark(lsn(5), lsn(9)) == lsn(9)
    assert low_mark(lsn(9), lsn(5)) == lsn(9)
