"""When the planner requests snapshots: new and lost tables, modes, resumption, opening of current tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from mssql_cdc.plan.decisions import Lost, Range, Snapshot, Wait
from mssql_cdc.plan.facts import Absent, Activity, Asked, Outcome, Runs
from mssql_cdc.plan.planner import plan
from mssql_cdc.plan.policy import policy_of
from mssql_cdc_tests.unit.plan.simulation import NOW, ends, facts, instance, lsn, member, planned, table


@pytest.mark.feature("SNP-07")
@pytest.mark.parametrize(("mode", "data"), [("when_needed", True), ("when_needed_no_data", False)])
def test_when_needed_records_a_loss_and_then_repairs_it_like_a_new_table(mode: str, *, data: bool):
    gone = member("a", 4, instances=(instance(1, start=2, minimum=6),))
    found = facts(gone, member("b", 4), policy=policy_of(mode))
    loss = plan(found)
    assert isinstance(loss, Lost)
    assert (loss.tables, loss.repaired) == ((table("a"),), True)
    repair = plan(replace(found, members=(replace(gone, status="lost"), member("b", 4))))
    assert isinstance(repair, Snapshot)
    assert repair.tables == (table("a"),)
    assert found.policy.data is data


def test_loss_found_under_another_mode_is_repaired_once_the_mode_allows_it():
    found = facts(member("a", 4, status="lost"), member("b", 10), cut=lsn(10))
    assert isinstance(plan(found), Wait)
    assert isinstance(plan(replace(found, policy=policy_of("when_needed"))), Snapshot)


@pytest.mark.feature("SIG-02")
def test_lost_signal_table_streams_on_in_every_mode_and_the_others_wait():
    """No snapshot that somebody requests reads it."""
    signals = member("signals", 4, status="lost", signals=True)
    decision = plan(facts(signals, member("a", 4, status="lost"), member("b", 10), cut=lsn(10)))
    assert isinstance(decision, Snapshot)
    assert (decision.tables, decision.signal) == ((table("signals"),), None)


@pytest.mark.feature("SNP-02")
def test_new_tables_get_a_snapshot_while_the_others_keep_streaming():
    beside = facts(member("a", None), member("b", 4))
    decision = plan(beside)
    assert isinstance(decision, Snapshot)
    assert decision.tables == (table("a"),)
    running = replace(beside, runs=Runs((Activity("snapshot", decision.id, "run"),)))
    assert ends(planned(running, Range)) == {"b": (4, 10)}


@pytest.mark.feature("SNP-03")
def test_initial_only_never_streams():
    assert isinstance(plan(facts(member("a", 4), policy=policy_of("initial_only"))), Wait)


@pytest.mark.feature("SNP-03")
@pytest.mark.parametrize("status", ["streaming", "failed"])
def test_initial_only_loses_nothing_after_its_snapshot(status: str):
    """Cleanup goes on, and the positions stay: after the retention each table was `lost`."""
    behind = member("a", 4, status=status, instances=(instance(minimum=9),))
    gone = Absent(table("b"), "streaming", lsn(4), "CDC is no longer enabled on it", lost=True)
    found = facts(behind, policy=policy_of("initial_only"), absent=(gone,))
    assert planned(found, Wait).ended
    assert isinstance(plan(facts(behind, policy=policy_of("initial"))), Lost)


@pytest.mark.feature("SNP-03")
def test_initial_only_loses_what_its_snapshot_lacks():
    unread = member("a", 4, instances=(instance(minimum=9),), closed_until=lsn(8))
    gone = Absent(table("b"), "snapshot", lsn(4), "CDC is no longer enabled on it", lost=True)
    decision = planned(facts(unread, policy=policy_of("initial_only"), absent=(gone,)), Lost)
    assert decision.tables == (table("a"), table("b"))


@pytest.mark.feature("SNP-03")
def test_initial_only_keeps_reading_until_its_snapshot_opens():
    read = facts(member("a", 4, closed_until=lsn(8)), policy=policy_of("initial_only"))
    decision = planned(read, Range)
    assert ends(decision) == {"a": (4, 10)}
    assert (decision.complete, decision.opens) == (True, (table("a"),))


def test_started_snapshot_is_resumed_with_its_own_key():
    begun = member("a", None, status="snapshot", snapshot="snapshot-20261120T000000")
    assert planned(facts(begun, member("b", 4)), Snapshot).id == "snapshot-20261120T000000"


def test_failed_snapshot_waits_while_ranges_continue():
    begun = member("a", None, status="snapshot", snapshot="snapshot-20261120T000000")
    failed = facts(begun, member("b", 4), runs=Runs(outcomes={"snapshot-20261120T000000": Outcome(1, NOW)}))
    assert isinstance(plan(failed), Range)
    later = replace(failed, now=NOW + timedelta(seconds=11))
    assert isinstance(plan(later), Snapshot)


def test_a_snapshot_that_fails_does_not_keep_new_tables_and_requests_waiting():
    begun = member("a", None, status="snapshot", snapshot="snapshot-20261120T000000")
    runs = Runs(outcomes={"snapshot-20261120T000000": Outcome(1, NOW)})
    new = plan(facts(begun, member("b", None), runs=runs))
    assert isinstance(new, Snapshot)
    assert new.tables == (table("b"),)
    asked = plan(facts(begun, member("b", 10), runs=runs, asked=(Asked("snapshot-20261121T000000", (table("b"),)),)))
    assert isinstance(asked, Snapshot)
    assert (asked.id, asked.tables) == ("snapshot-20261121T000000", (table("b"),))


@pytest.mark.parametrize("mode", ["initial", "when_needed", "no_data", "initial_only"])
def test_a_key_with_another_definition_asks_for_a_snapshot_of_a_table_that_streams(mode: str):
    """Review, bugs 5 and 18: the current table was emptied, and nobody filled it again."""
    rekeyed = replace(member("a", 4), rekeyed=True)
    decision = plan(facts(rekeyed, member("b", 4), policy=policy_of(mode)))
    if mode == "initial_only":
        assert isinstance(decision, Wait)
    else:
        assert isinstance(decision, Snapshot)
        assert decision.tables == (table("a"),)
    taken = plan(facts(replace(rekeyed, status="snapshot", snapshot="snapshot-20261120T000000")))
    assert isinstance(taken, Snapshot)
    assert taken.id == "snapshot-20261120T000000"


@pytest.mark.parametrize("status", ["streaming", "failed", "snapshot"])
def test_a_change_log_that_was_tampered_with_is_lost(status: str):
    """Review, bug 11."""
    decision = plan(facts(replace(member("a", 4), status=status, tampered="RESTORE"), member("b", 4)))
    assert isinstance(decision, Lost)
    assert [(loss.table, loss.position, loss.reason) for loss in decision.losses] == [(table("a"), lsn(4), "RESTORE")]


def test_tables_that_are_left_make_a_cut_when_another_one_is_given_up():
    """Review, bug 19: nothing new, and yet what was read is in no complete cut."""
    decision = plan(facts(member("a", 4, status="failed"), member("b", 10), cut=lsn(4)))
    assert isinstance(decision, Range)
    assert (decision.slices, decision.complete, decision.range.to) == ((), True, lsn(10))


def test_current_table_stays_closed_until_the_stream_has_passed_its_snapshot():
    closed = facts(member("a", 10, closed_until=lsn(14)), member("b", 4))
    assert not planned(closed, Range).complete
    waiting = facts(member("a", 10, closed_until=lsn(14)), member("b", 10), scanned=lsn(12))
    assert isinstance(plan(waiting), Wait)
    opened = planned(replace(waiting, scanned=lsn(14)), Range)
    assert (opened.opens, opened.complete, opened.slices) == ((table("a"),), True, ())


def test_quiet_database_opens_right_after_a_snapshot_of_a_new_capture_instance():
    fresh = member("a", 12, closed_until=lsn(14), instances=(instance(1, start=12),))
    quiet = facts(fresh, member("b", 10), scanned=lsn(14))
    decision = planned(quiet, Range)
    assert (decision.idle, decision.opens, decision.complete) == ((table("b"),), (table("a"),), True)
    assert decision.range.to == lsn(12)


def test_new_table_waits_until_capture_of_its_instance_has_begun():
    young = replace(instance(1, start=12), min_lsn=None)
    decision = planned(facts(member("a", None, instances=(young,)), member("b", 4)), Range)
    assert ends(decision) == {"b": (4, 10)}


def test_new_table_whose_minimum_stays_hidden_is_snapshotted_so_that_the_reason_is_reported():
    hidden = replace(instance(1, start=2), min_lsn=None)
    assert isinstance(plan(facts(member("a", None, instances=(hidden,)))), Snapshot)


def test_a_paused_snapshot_is_left_alone_and_the_next_one_is_taken() -> None:
    one, other = (member(name, 10, status="snapshot", snapshot=f"snapshot-{name}") for name in "ab")
    asked = Asked("snapshot-c", (table("c"),), "s")
    found = facts(one, other, member("c", 10), paused=frozenset({"snapshot-a"}), asked=(asked,))
    assert planned(found, Snapshot).id == "snapshot-b"
    found = replace(found, paused=frozenset({"snapshot-a", "snapshot-b"}))
    assert planned(found, Snapshot).id == "snapshot-c"
    assert not isinstance(plan(replace(found, asked=(replace(asked, paused=True),))), Snapshot)
