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
    resumed,
)
from mssql_cdc.check.story import log_start
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.lake.steps import Entry, SnapshotEnded, Stamp, snapshot_ended
from mssql_cdc.lsn import Lsn, snapshot_position_text
from mssql_cdc.plan.policy import policy_of
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import Chunk, LogMark
from mssql_cdc_tests.lake_kit import AT, orders

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
    while group := next_group(plan, left, size, expected={}, further=lambda _: None):
        assert len(group) <= size
        seen += [chunk.number for _, chunk in group]
        left[ORDERS] = left[ORDERS][len(group) :]
    assert seen == sorted(set(range(count)) - set(read))


def test_small_tables_are_read_before_large_ones_and_equals_in_the_plan_s_order():
    names = [TableId("shop", "dbo", name) for name in ("large", "b", "a", "medium")]
    rows = dict(zip(names, (3_000, 10, 10, 200), strict=True))
    tables = tuple(TablePlan(name, chunks(n), lsn(1)) for name, n in zip(names, (3, 1, 1, 2), strict=True))
    plan, left = SnapshotPlan("snapshot-20261121T000000", 1, tables), {one.table: one.chunks for one in tables}
    found = [table.name for table, _ in next_group(plan, left, 7, expected=rows, further=lambda _: None)]
    assert found == ["b", "a", "medium", "medium", "large", "large", "large"]


def test_group_plans_no_more_chunks_than_it_reads_and_only_of_tables_that_are_read():
    tables = (TablePlan(ORDERS, chunks(3)[:2], lsn(1), following=2), TablePlan(PEOPLE, (), lsn(1)))
    plan, planned = SnapshotPlan("snapshot-20261121T000000", 1, tables), list[TableId]()

    def further(table: TableId) -> Chunk:
        planned.append(table)
        return Chunk(len(planned) + 1)

    left = {ORDERS: tables[0].chunks[1:]}
    found = next_group(plan, left, 3, expected={}, further=further)
    assert [chunk.number for _, chunk in found] == [1, 2, 3]
    assert planned == [ORDERS, ORDERS]


def test_last_planned_chunk_is_the_end_of_the_table_only_without_an_upper_bound():
    table = TablePlan(ORDERS, (), lsn(1)).further(("5",))
    done = [GroupDone((0,), lsn(8))]
    assert not table.is_whole
    assert remaining(table, done, lsn(3)) == ()
    assert conclude(table, done, lsn(3)) == Reread(())
    whole = table.further(None)
    assert whole.is_whole
    assert conclude(whole, [*done, GroupDone((1,), lsn(8))], lsn(3)) == Ended(lsn(8), lsn(8))


@pytest.mark.parametrize("piece", [{"locked": True}, {"select": "SELECT 1 AS id"}])
def test_table_that_is_read_in_one_piece_is_planned_whole(piece):
    table = TablePlan(ORDERS, (), lsn(1), edition=4, **piece)
    found = resumed(table, [])
    assert found.chunks == (Chunk(0),)
    assert resumed(table, [GroupDone((0,), lsn(8), bounds=found.chunks, edition=4)]).chunks == (Chunk(0),)
    assert resumed(table, [GroupDone((0,), lsn(8), bounds=found.chunks, edition=2)]).chunks == (Chunk(1),)


def test_plan_continues_after_the_chunks_that_its_commits_have():
    table = TablePlan(ORDERS, (), lsn(1), edition=4)
    first, second, third = table.further(("1",)).further(("2",)).further(None).chunks
    done = [GroupDone((0, 1), lsn(8), bounds=(first, second), edition=4)]
    found = resumed(table, done)
    assert (found.chunks, found.following, found.is_whole) == ((first, second), 2, False)
    again = [GroupDone((0,), lsn(9), bounds=(first,), edition=4)]
    assert resumed(table, [*done, *again, GroupDone((2,), lsn(9), bounds=(third,), edition=4)]).is_whole


def test_plan_of_another_key_begins_anew_with_further_numbers():
    other = TablePlan(ORDERS, (), lsn(1), edition=4).further(("1",)).further(None)
    table = TablePlan(ORDERS, (), lsn(1), edition=5)
    done = [GroupDone((0, 1), lsn(8), bounds=other.chunks, edition=4)]
    assert resumed(table, done).further(None).chunks == (Chunk(2),)
    own = GroupDone((2,), lsn(8), bounds=(Chunk(2, None, ("7",)),), edition=5)
    assert resumed(table, [*done, own]).further(None).chunks == (*own.bounds, Chunk(3, ("7",), None))


def test_chunks_after_a_lost_commit_do_not_count():
    """The log of a Delta table may have been cleaned up; then the keys of those commits would be read by no chunk."""
    table = TablePlan(ORDERS, (), lsn(1), edition=4)
    _, second, third = table.further(("1",)).further(("2",)).further(None).chunks
    known = GroupDone((1, 2), lsn(8), bounds=(second, third), edition=4)
    found = resumed(table, [known])
    assert (found.chunks, found.following) == ((), 3)
    anew = found.further(("4",)).further(None).chunks
    found = resumed(table, [known, GroupDone((3, 4), lsn(9), bounds=anew, edition=4)])
    assert (found.chunks, found.is_whole) == (anew, True)


def test_plan_of_an_earlier_version_is_read_with_all_of_its_chunks():
    """Its chunks were all planned and persisted before the first one was read, and commits had no bounds."""
    text = (
        '{"id":"snapshot-20261121T000000","number":3,"tables":[{"table":{"catalog":"db","schema":"dbo",'
        '"name":"orders"},"chunks":[{"number":0,"lower":null,"upper":["5"],"keys":null},{"number":1,"lower":["5"],'
        f'"upper":null,"keys":null}}],"begun":"{lsn(9).text}","held":null,"select":null,"locked":false,"again":false,'
        '"key":"k","refused":null}],"signal":null,"notice":null,"noticed":0}'
    )
    (table,) = plan_of_text(text).tables
    done = [GroupDone((0,), lsn(8))]
    assert resumed(table, done) == table
    assert table.is_whole
    assert remaining(resumed(table, done), done, lsn(3)) == (Chunk(1, ("5",), None),)


KEYS = st.integers(0, 30)


@given(
    st.sets(KEYS),
    st.lists(st.tuples(st.sampled_from(["insert", "delete", "group", "kill"]), KEYS), max_size=40),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_chunks_planned_step_by_step_cover_every_key_once(keys, steps, rows, size):
    """Rows come and go between the steps, and what was planned and not committed is lost again and again."""
    live, persisted = set(keys), TablePlan(ORDERS, (), lsn(1), edition=1)
    done: list[GroupDone] = []
    table = resumed(persisted, done)

    def further(_: TableId) -> Chunk | None:
        nonlocal table
        if table.is_whole:
            return None
        last = table.chunks[-1].upper if table.chunks else None
        behind = sorted(key for key in live if last is None or key > int(str(last[0])))
        table = table.further((str(behind[rows - 1]),) if len(behind) >= rows else None)
        return table.chunks[-1]

    def group() -> tuple[Chunk, ...]:
        plan, left = SnapshotPlan("s", 1, (table,)), {ORDERS: remaining(table, done, lsn(1))}
        return tuple(chunk for _, chunk in next_group(plan, left, size, expected={}, further=further))

    for step, key in [*steps, *[("group", 0)] * 40]:
        if step in {"insert", "delete"}:
            live ^= {key} - live if step == "insert" else {key} & live
        elif read := group():
            if step == "kill":
                table = resumed(persisted, done)
            else:
                done.append(GroupDone(tuple(chunk.number for chunk in read), lsn(9), bounds=read, edition=1))
    assert isinstance(conclude(table, done, lsn(1)), Ended)
    read = [chunk for one in done for chunk in one.bounds]
    assert [chunk.number for chunk in read] == list(range(len(read)))
    for key in range(-1, 32):
        assert sum(_has(chunk, key) for chunk in read) == 1


def _has(chunk: Chunk, key: int) -> bool:
    lower, upper = (None if bound is None else int(str(bound[0])) for bound in (chunk.lower, chunk.upper))
    return (lower is None or key > lower) and (upper is None or key <= upper)


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


def test_rows_that_another_run_has_read_of_the_same_snapshot_are_before_the_start_of_the_log() -> None:
    """A table without a key was read by the plans of two runs, both at the same end of the log: all rows counted."""
    plan = TablePlan(ORDERS, (Chunk(1),), lsn(1), locked=True)
    found = conclude(plan, [GroupDone((0,), lsn(2)), GroupDone((1,), lsn(2), edition=2)], lsn(1))
    assert isinstance(found, Ended)
    facts = {"table": ORDERS.text, "snapshot": "s", "signal": None, "mark": LogMark(lsn(9)), "number": 3}
    ended = SnapshotEnded(low=found.low.text, chunk=found.chunk, **facts)
    row = snapshot_ended(
        Stamp(at=AT, run_id="run", epoch=0), Entry("streaming", to=lsn(3).text, object_id=1), ended, witness=None
    )
    versions = [replace(orders(version=1, object_id=1, instance="i"), table_id=ORDERS)]
    start = log_start(versions, folder="dbo/orders", offsets=Offsets().with_row(row, 1))
    assert snapshot_position_text(0, lsn(2), number=3, chunk=0, row=7) < start
    assert start == snapshot_position_text(0, lsn(2), number=3, chunk=1)
