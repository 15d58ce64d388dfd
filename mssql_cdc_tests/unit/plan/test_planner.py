"""The planner's rules, one by one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from mssql_cdc.errors import StaleReaderError
from mssql_cdc.lsn import LsnRange
from mssql_cdc.plan.decisions import Lost, Range, Restored, Wait
from mssql_cdc.plan.facts import Absent, Activity, Cursor, Limits, Outcome, Runs
from mssql_cdc.plan.planner import next_cursor, plan, plan_partition
from mssql_cdc.plan.policy import policy_of
from mssql_cdc.plan.waits import backoff
from mssql_cdc_tests.unit.plan.simulation import NOW, ends, facts, instance, lsn, member, planned, table


def pending(key_to: int, *read: str, attempt: int = 1, held: bool = False) -> Cursor:
    """An unfinished range whose last attempt has read these tables."""
    key, tables = LsnRange(lsn(1), lsn(key_to)).partition_key, tuple(table(name).text for name in read)
    return Cursor(key, attempt, NOW if held else None, tables=tables)


@pytest.mark.feature("STR-01")
def test_range_reads_every_table_from_its_own_position():
    decision = planned(facts(member("a", 4), member("b", 7), cut=lsn(4)), Range)
    assert ends(decision) == {"a": (4, 10), "b": (7, 10)}
    assert decision.complete
    assert decision.range == LsnRange(lsn(4), lsn(10))


def test_nothing_new_waits():
    assert isinstance(plan(facts(member("a", 10), member("b", 10), cut=lsn(10))), Wait)


@pytest.mark.feature("SNP-05", "SNP-34")
def test_positions_that_no_cut_names_get_a_cut_without_a_change():
    first = planned(facts(member("a", 10), member("b", 10)), Range)
    assert (first.slices, first.idle, first.complete, first.range.to) == ((), (), True, lsn(10))


@pytest.mark.feature("STR-14")
def test_nothing_captured_yet_waits_and_takes_no_snapshot():
    assert isinstance(plan(facts(member("a", None), captured=None)), Wait)
    assert isinstance(plan(facts(member("a", 3), captured=None)), Wait)


@pytest.mark.feature("STR-02")
def test_bounds_shorten_a_range_but_never_below_what_a_table_has_committed():
    bounded = facts(member("a", 4), member("b", 4), row_bound=lsn(6), transaction_bound=lsn(8))
    assert planned(bounded, Range).range.to == lsn(6)
    ahead = facts(member("a", 9), member("b", 4), row_bound=lsn(6))
    assert ends(planned(ahead, Range)) == {"b": (4, 9)}
    assert planned(ahead, Range).complete


def test_bounded_range_opens_no_table_whose_changes_it_leaves_unread():
    """Capture has passed 7, the end of its snapshot; what it captured up to there is read by the next range."""
    closed = member("a", 4, closed_until=lsn(7))
    bounded = planned(facts(closed, member("b", 4), scanned=lsn(10), transaction_bound=lsn(5)), Range)
    assert (bounded.range.to, bounded.complete, bounded.opens) == (lsn(5), False, ())
    passed = planned(facts(closed, member("b", 4), scanned=lsn(10), transaction_bound=lsn(8)), Range)
    assert (passed.range.to, passed.complete, passed.opens) == (lsn(8), True, (table("a"),))


def test_reader_behind_the_lake_positions_waits():
    decision = plan(facts(member("a", 12), member("b", 12), captured=10))
    assert isinstance(decision, Wait)
    assert "lagging" in decision.reason


def test_a_wait_says_what_may_hold_capture_back():
    """In an availability group a resting database does not show how far capture is."""
    closed = facts(member("a", 20, closed_until=lsn(20)), captured=10, held_back="it is in a group")
    assert isinstance(wait := plan(closed), Wait)
    assert wait.reason.endswith("opens once capture has passed its end: it is in a group")
    behind = facts(member("a", 20), captured=10, held_back="it is in a group")
    assert isinstance(wait := plan(behind), Wait)
    assert wait.reason.endswith(": it is in a group")
    assert "lagging" not in wait.reason


def test_reader_behind_one_table_makes_no_cut():
    decision = planned(facts(member("a", 12), member("b", 4), captured=10), Range)
    assert ends(decision) == {"b": (4, 10)}
    assert not decision.complete


@pytest.mark.feature("EVO-02")
def test_bound_does_not_end_a_range_below_a_table_though_another_stands_beyond_what_is_captured():
    """Found by the storm: the third one has come from a snapshot that ended behind capture."""
    found = planned(facts(member("a", 9), member("b", 4), member("c", 12), transaction_bound=lsn(6)), Range)
    assert found.range.to == lsn(9)


def test_range_ends_below_the_start_of_a_newer_instance():
    two = (instance(1), instance(2, start=8, before=6))
    first = planned(facts(member("a", 4, instances=two), member("b", 4)), Range)
    assert ends(first) == {"a": (4, 6), "b": (4, 6)}
    assert {s.instance.object_id for s in first.slices if s.table.name == "a"} == {1}
    second = planned(facts(member("a", 6, instances=two), member("b", 6)), Range)
    assert second.range.to == lsn(10)
    assert {s.instance.object_id for s in second.slices if s.table.name == "a"} == {2}


def test_range_that_a_newer_instance_shortens_below_another_table_is_no_cut():
    two = (instance(1), instance(2, start=8, before=6))
    decision = planned(facts(member("a", 4, instances=two), member("b", 9)), Range)
    assert ends(decision) == {"a": (4, 6)}
    assert not decision.complete


@pytest.mark.feature("SNP-12")
def test_cleaned_up_changes_are_lost_for_that_table_only():
    gone = member("a", 4, instances=(instance(1, start=2, minimum=6),))
    decision = plan(facts(gone, member("b", 4)))
    assert isinstance(decision, Lost)
    assert decision.tables == (table("a"),)
    after = planned(facts(replace(gone, status="lost"), member("b", 4)), Range)
    assert ends(after) == {"b": (4, 10)}


def test_cleanup_that_raised_the_start_of_the_instance_is_named_as_the_cause():
    """`sp_cdc_cleanup_change_table` moves `start_lsn` in `cdc.change_tables`, and the minimum with it."""
    decision = plan(facts(member("a", 4, instances=(instance(1, start=6),))))
    assert isinstance(decision, Lost)
    assert [loss.position for loss in decision.losses] == [lsn(4)]
    assert "CDC cleanup removed changes" in decision.losses[0].reason


@pytest.mark.parametrize("minimum", [None, 0])
def test_missing_minimum_is_left_to_the_reader_and_is_not_a_small_number(minimum):
    """The instance exists, so no loss is known; its reader reports the missing permission (A9)."""
    hidden = replace(instance(), min_lsn=None if minimum is None else lsn(0))
    assert ends(planned(facts(member("a", 4, instances=(hidden,))), Range)) == {"a": (4, 10)}


def test_replacing_the_capture_instance_loses_the_changes_in_between():
    """CDC was disabled and enabled again: a change in between is in no change table (review, bug 2)."""
    replaced = member("a", 4, instances=(instance(2, start=8, before=4),), read="id1")
    decision = plan(facts(replaced, member("b", 4)))
    assert isinstance(decision, Lost)
    assert [(loss.table.name, loss.position) for loss in decision.losses] == [("a", lsn(4))]
    assert "the previously read capture instance no longer exists" in decision.reason


def test_instance_that_is_newer_than_the_position_and_begins_below_it_does_not_continue():
    """A restore that nothing else shows: other transactions have the LSNs that the table had passed (B14)."""
    newer = member("a", 8, instances=(instance(2, start=8),), read="id1", shown=frozenset({"id1"}))
    decision = plan(facts(newer))
    assert isinstance(decision, Lost)
    assert "begins at" in decision.losses[0].reason


def test_another_instance_continues_if_it_holds_everything_after_the_position():
    """The first instance was read past the start of the second one before it was dropped."""
    later = member("a", 8, instances=(instance(2, start=8),), read="id1")
    assert ends(planned(facts(later), Range)) == {"a": (8, 10)}


def test_a_second_instance_continues_while_the_first_shows_nothing_between():
    both = member("a", 6, instances=(instance(1), instance(2, start=8, before=6)))
    (part,) = planned(facts(both), Range).slices
    assert (part.instance.object_id, part.read_from) == (2, lsn(7))


def test_an_instance_that_was_read_is_read_from_the_position_though_its_minimum_is_hidden():
    """Cleanup may have raised its start: a reader that sees the minimum finds out only from there (A9)."""
    hidden = replace(instance(1, start=8), min_lsn=None)
    (part,) = planned(facts(member("a", 4, instances=(hidden,))), Range).slices
    assert (part.instance.object_id, part.read_from) == (1, lsn(4))


def test_a_slice_that_ends_below_the_start_of_its_instance_is_empty():
    """An operator may request a partition that ends anywhere."""
    both = member("a", 4, instances=(instance(1), instance(2, start=8, before=4)))
    (part,) = plan_partition(facts(both), LsnRange(lsn(4), lsn(5))).slices
    assert (part.instance.object_id, part.read_from, part.to) == (2, lsn(5), lsn(5))


def test_tables_that_the_source_no_longer_shows_are_reported_as_lost():
    gone = Absent(table("c"), "streaming", lsn(3), "it was dropped", lost=True)
    hidden = Absent(table("d"), "streaming", lsn(3), "GRANT SELECT", lost=False)
    decision = plan(facts(member("a", 4), absent=(gone, hidden)))
    assert isinstance(decision, Lost)
    assert [loss.table for loss in decision.losses] == [table("c")]
    known = replace(gone, status="lost")
    assert ends(planned(facts(member("a", 4), absent=(known, hidden)), Range)) == {"a": (4, 10)}


def test_no_idle_table_advances_beyond_what_is_proven_to_be_captured():
    """A keyless table's snapshot is at the log's end E, which capture has not reached (review, bug 1)."""
    waiting = facts(member("a", 20, closed_until=lsn(20)), member("b", 10), captured=10)
    assert isinstance(plan(waiting), Wait)
    passed = planned(replace(waiting, scanned=lsn(20)), Range)
    assert (passed.idle, passed.range.to) == ((table("b"),), lsn(20))


def test_no_idle_table_advances_beyond_what_is_proven_when_another_one_is_given_up():
    """Such a range is requested whatever capture has reached (review, bug 1)."""
    stuck = facts(
        member("a", 20, closed_until=lsn(20)),
        member("b", 10),
        member("c", 4),
        captured=10,
        cursor=pending(10, "c", attempt=5, held=True),
    )
    decision = planned(stuck, Range)
    assert (decision.give_up, decision.idle, decision.complete) == ((table("c"),), (), False)
    proven = planned(replace(stuck, scanned=lsn(20)), Range)
    assert (proven.give_up, proven.idle, proven.complete) == ((table("c"),), (table("b"),), True)


def test_minimum_right_after_the_position_loses_nothing():
    assert isinstance(plan(facts(member("a", 4, instances=(instance(1, minimum=5),)))), Range)
    assert isinstance(plan(facts(member("a", 4, instances=(instance(1, start=2, minimum=6),)))), Lost)


def test_planner_waits_for_a_running_range():
    busy = facts(member("a", 4), runs=Runs((Activity("range", "1-2", "0123456789", 5),)))
    assert "01234567" in planned(busy, Wait).reason


@pytest.mark.feature("ERR-02")
def test_unfinished_range_is_requested_again_with_its_key_for_the_missing_tables_only():
    stuck = facts(member("a", 8), member("b", 4), captured=8, cursor=pending(8))
    first = plan(stuck)
    assert isinstance(first, Wait)
    assert first.until == NOW + timedelta(seconds=10)
    cursor = next_cursor(stuck, first)
    assert isinstance(plan(replace(stuck, cursor=cursor)), Wait)
    later = replace(stuck, cursor=cursor, now=first.until)
    retry = planned(later, Range)
    assert (retry.key, retry.attempt, ends(retry)) == (stuck.cursor.pending_key, 2, {"b": (4, 8)})
    assert retry.complete
    assert next_cursor(later, retry) == pending(8, "b", attempt=2)


@pytest.mark.parametrize("active", [(), (Activity("snapshot", "snapshot-2", "0123456789", 5),)])
@pytest.mark.parametrize("attempt", [1, 2, 5])
def test_a_table_that_comes_from_a_snapshot_joins_the_next_range_at_once(active: tuple[Activity, ...], attempt: int):
    """Also behind a retry that succeeded: the table has nothing to do with the failures before."""
    finished = facts(member("a", 8), member("b", 4), cursor=pending(8, attempt=attempt))
    done = Runs(active, {finished.cursor.pending_key or "": Outcome(succeeded=True)})
    decision = planned(replace(finished, runs=done), Range)
    assert (ends(decision), decision.complete, decision.attempt) == ({"a": (8, 10), "b": (4, 10)}, True, 1)


def test_tables_go_on_while_another_one_waits_for_its_retry():
    stuck = facts(member("a", 8), member("b", 4), member("c", 8), cursor=pending(8))
    until = NOW + timedelta(seconds=10)
    first = planned(stuck, Range)
    assert (ends(first), first.complete) == ({"a": (8, 10), "c": (8, 10)}, False)
    cursor = next_cursor(stuck, first)
    assert cursor == Cursor(stuck.cursor.pending_key, 1, until), "the retry is forgotten"
    read = facts(member("a", 10), member("b", 4), member("c", 10), cursor=cursor)
    assert planned(read, Wait).until == until
    more = replace(read, captured=lsn(12))
    assert ends(planned(more, Range)) == {"a": (10, 12), "c": (10, 12)}
    assert next_cursor(more, planned(more, Range)) == cursor
    retry = planned(replace(more, now=until), Range)
    assert (retry.key, retry.attempt, ends(retry), retry.complete) == (cursor.pending_key, 2, {"b": (4, 8)}, False)
    done = facts(member("a", 12), member("b", 8), member("c", 12), captured=12, cursor=Cursor(retry.key, 2))
    assert ends(planned(done, Range)) == {"b": (8, 12)}
    assert planned(done, Range).complete


def test_a_table_that_fails_beside_the_retry_of_another_one_waits_as_well():
    """Nothing counts its failures, so it would be read again at once, for ever."""
    both = facts(member("a", 10), member("b", 4), member("c", 8), captured=12, cursor=pending(8, held=True))
    assert isinstance(plan(replace(both, cursor=replace(both.cursor, not_before=NOW + timedelta(seconds=5)))), Wait)


def test_table_that_was_given_up_gets_a_cut_though_it_has_nothing_left_to_read():
    """Its own commit says that it was read to the end; only a cut that names it says so to others."""
    decision = plan(facts(member("a", 10), member("b", 10, revived=True), cut=lsn(10)))
    assert isinstance(decision, Range)
    assert decision.complete
    assert not decision.slices
    assert isinstance(plan(facts(member("a", 10), member("b", 10), cut=lsn(10))), Wait)


def test_table_that_fails_too_often_is_set_to_failed_and_cuts_continue():
    stuck = facts(member("a", 8), member("b", 4), cursor=pending(8, "b", attempt=5, held=True))
    decision = planned(stuck, Range)
    assert decision.give_up == (table("b"),)
    assert ends(decision) == {"a": (8, 10)}
    assert decision.complete
    still = planned(replace(stuck, captured=lsn(8)), Range)
    assert (still.give_up, still.slices, still.complete) == ((table("b"),), (), True)


def test_a_table_that_had_no_part_in_the_last_attempt_is_not_given_up_with_the_others():
    """It has come from a snapshot since, or its login sees it again."""
    stuck = facts(member("a", 8), member("b", 4), member("c", 6), cursor=pending(8, "b", attempt=5, held=True))
    decision = planned(stuck, Range)
    assert decision.give_up == (table("b"),)
    assert ends(decision) == {"a": (8, 10), "c": (6, 10)}


def test_tables_that_no_attempt_has_read_are_tried_before_any_is_given_up():
    """Then the cursor knows them."""
    stuck = facts(member("a", 8), member("b", 4), cursor=pending(8, "c", attempt=5, held=True))
    retry = planned(stuck, Range)
    assert (retry.give_up, ends(retry), retry.attempt) == ((), {"b": (4, 8)}, 6)
    again = replace(stuck, cursor=replace(next_cursor(stuck, retry), not_before=NOW))
    assert planned(again, Range).give_up == (table("b"),)


def test_if_every_table_fails_the_source_is_to_blame_and_retries_continue():
    stuck = facts(member("a", 4), member("b", 4), cursor=pending(8, attempt=50, held=True))
    assert planned(stuck, Range).attempt == 51


def test_lost_cursor_changes_the_attempt_but_not_the_rows():
    stuck = facts(member("a", 8), member("b", 4))
    decision = planned(stuck, Range)
    assert ends(decision) == {"a": (8, 10), "b": (4, 10)}
    assert decision.complete


def test_cursor_of_another_epoch_is_ignored():
    old = replace(facts(member("a", 4), cursor=pending(8)), epoch=1)
    assert planned(old, Range).range == LsnRange(lsn(4), lsn(10), 1)


@pytest.mark.feature("STR-19", "HB-02")
def test_idle_tables_are_advanced_before_cleanup_overtakes_them():
    idle = facts(member("a", 10), member("b", 10), settled=lsn(15), scanned=lsn(15), cut=lsn(10))
    assert isinstance(plan(idle), Wait)
    due = planned(replace(idle, idle_for=timedelta(hours=7)), Range)
    assert (due.slices, set(due.idle), due.range.to) == ((), {table("a"), table("b")}, lsn(15))
    assert due.complete


def test_table_below_an_idle_advance_is_advanced_without_a_read():
    decision = planned(facts(member("a", 15), member("b", 10), scanned=lsn(15)), Range)
    assert (decision.slices, decision.idle, decision.complete) == ((), (table("b"),), True)


def test_restored_source_stops_everything():
    decision = plan(facts(member("a", 4), restored="the transaction at 4 is another one"))
    assert isinstance(decision, Restored)
    assert "restored" in decision.reason
    assert not decision.automatic


def test_when_needed_resumes_after_a_restore_automatically():
    gone_back = facts(member("a", 4), restored="another one", policy=policy_of("when_needed"))
    assert planned(gone_back, Restored).automatic


def test_partition_requested_again_reads_nothing():
    decision = plan_partition(facts(member("a", 10), member("b", 10)), LsnRange(lsn(2), lsn(8)))
    assert (decision.slices, decision.complete) == ((), False)


def test_partition_for_some_tables_makes_no_cut():
    known = facts(member("a", 4), member("b", 4))
    some = plan_partition(known, LsnRange(lsn(4), lsn(8)), {table("a")})
    assert (ends(some), some.complete) == ({"a": (4, 8)}, False)
    rest = plan_partition(facts(member("a", 8), member("b", 4)), LsnRange(lsn(4), lsn(8)), {table("b")})
    assert rest.complete


def test_partition_beyond_the_captured_position_is_rejected():
    with pytest.raises(StaleReaderError, match="so far"):
        plan_partition(facts(member("a", 4)), LsnRange(lsn(4), lsn(18)))


def test_backoff_grows_and_stops_at_ten_minutes():
    waits = [backoff(Limits().retry_wait, n).total_seconds() for n in (1, 2, 3, 50)]
    assert waits == [10, 20, 40, 600]


def test_instance_whose_capture_has_not_begun_is_not_read_and_loses_nothing():
    """SQL Server shows no minimum for up to one poll after an instance was created."""
    young = replace(instance(2, start=8, before=6), min_lsn=None)
    decision = planned(facts(member("a", 6, instances=(instance(1), young))), Range)
    assert {s.instance.object_id for s in decision.slices} == {1}


def test_cut_counts_as_merged_only_when_every_table_was_looked_at():
    """A table that one look did not see may lack rows of it, and so may one whose snapshot is given up later."""
    at_rest = facts(member("a", 10), cut=lsn(10), cut_number=7)
    assert next_cursor(at_rest, Wait("nothing to do")).merged == 7
    unseen = Absent(table("b"), "streaming", lsn(10), "its change log cannot be opened", lost=False)
    assert next_cursor(replace(at_rest, absent=(unseen,)), Wait("nothing to do")).merged is None
    read = replace(at_rest, members=(*at_rest.members, member("b", 10, status="snapshot", snapshot="p")))
    assert next_cursor(read, Wait("nothing to do")).merged is None
    gone = replace(unseen, status="lost", lost=True)
    assert next_cursor(replace(at_rest, absent=(gone,)), Wait("nothing to do")).merged == 7
