"""Schedules in which the storm found a defect, or that find a planted one: short, each ends with a quiet point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import cast
from unittest.mock import patch

import pytest

from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.capture.survey import survey
from mssql_cdc.errors import MssqlCdcError, SourceError
from mssql_cdc.lake.gaps import load_gaps
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.plan.decisions import Snapshot
from mssql_cdc.run.loss import acknowledge, go_on_after_restore
from mssql_cdc.run.snapshots import take_snapshot
from mssql_cdc.run.standing import standings
from mssql_cdc.schema import TableId, TableSchema
from mssql_cdc.source.values import CaptureInstance
from mssql_cdc_tests.lake_kit import lsn
from mssql_cdc_tests.storm.lake import happening_at, opened_snapshots, unopened
from mssql_cdc_tests.storm.machine import Storm
from mssql_cdc_tests.storm.model import ModelWorld
from mssql_cdc_tests.storm.model_server import ModelServerSession
from mssql_cdc_tests.storm.schedule import ENOUGH


@pytest.fixture
def storm() -> Iterator[Storm]:
    played = Storm(ModelWorld)
    yield played
    played.teardown()


def test_rows_of_a_chunk_that_is_read_again_are_swept(storm: Storm):
    """Its first rows came from an instance that was replaced: their deletion was never captured."""
    storm.transaction([("orders", 0, "a")])
    storm.killed_step(storm.write("snapshot.finish"), 2, after=False)  # `notes` ends first.
    storm.disable_change_enable("orders", [("orders", 0, None)])


@pytest.mark.parametrize(
    "place", [("snapshot.begin.append_offsets", 1, False), ("snapshot.chunk_groups.commit", 1, True)]
)
@pytest.mark.parametrize("by_hand", [True, False])
def test_a_snapshot_that_another_run_is_ahead_of_leaves_nothing_out(
    storm: Storm,
    place: tuple[str, int, bool],
    by_hand: bool,  # noqa: FBT001 (a parameter of the test)
):
    """The other one has read the table, and streamed its deletions, when this one writes its status or its rows."""
    storm.come_to_rest()
    storm.another_run_is_ahead("orders", rows=2, later=60, by_hand=by_hand, place=place, looks=3, changes=None)


def test_rows_of_a_part_that_is_read_again_are_swept(storm: Storm):
    """As above; the statement of the configuration leaves out rows of a table that never streamed."""
    storm.begin(storm.profile, [], running=False, bound=None, pause=None, own={"orders": "id < 2"})
    storm.transaction([("orders", 0, "a"), ("orders", 1, "b")])
    storm.killed_step(storm.write("snapshot.finish"), 2, after=False)  # `notes` ends first.
    storm.disable_change_enable("orders", [("orders", 0, None)])


def test_changes_that_go_while_a_part_of_a_table_is_read_are_a_loss(storm: Storm):
    """They are changes of rows that the filter leaves out: a part of the rows cannot stand for them."""
    storm.change_arrives([("orders", key, "a") for key in range(4)])
    storm.come_to_rest()
    storm.snapshot_is_disturbed(
        name="orders", rows=0, anew=False, captured=False, event="cleanup", changes=[(2, "b"), (3, None)], kept=0,
        place=("snapshot.begin.append_offsets", 1, True), looks=3, part="id < 2",
    )  # fmt: skip


def test_table_without_a_key_is_read_again_when_its_instance_was_replaced(storm: Storm):
    storm.transaction([("notes", 0, "a"), ("notes", 1, "b")])
    storm.killed_step(storm.write("snapshot.finish"), 1, after=False)
    storm.disable_change_enable("notes", [("notes", 1, None)])


@pytest.mark.parametrize("at", range(1, 5))
def test_snapshot_ends_although_cleanup_passes_the_newest_transaction_meanwhile(storm: Storm, at: int):
    """Cleanup follows the rows of an idle log: what is read from then on is behind its low-water mark all the same."""
    storm.transaction([("orders", key, "a") for key in range(4)])
    storm.come_to_rest()
    storm.scan(1)
    storm.snapshot_is_asked_for("orders")
    storm.step_while_it_is_cleaned_up(kept=0, only="orders", at=at)


def test_table_that_has_committed_is_not_read_again_when_its_offsets_were_not_written(storm: Storm):
    storm.come_to_rest()
    storm.transaction([("orders", 0, "a")])
    storm.scan(1)
    storm.killed_step(storm.write("range.append_offsets"), 1, after=False)


def test_changes_that_are_cleaned_up_before_they_are_counted_are_missed(storm: Storm):
    """The minimum was in order, and then the count finds no rows: the table looks like a quiet one.

    Only this instance is cleaned up, so that the transaction at which the range ends is still there.
    """
    storm.come_to_rest()
    storm.transaction([("orders", 0, "a")])
    storm.scan(1)
    server, count = cast("ModelWorld", storm.world).server, ModelServerSession.measure

    def cleaned_up_first(session: ModelServerSession, parts: Sequence[tuple[CaptureInstance, LsnRange]], to: Lsn):
        (instance,) = server.tables["orders"].instances
        storm.scan(1)  # Finds nothing, and leaves a row behind the transaction.
        instance.start, storm.cleaned = max(server.mapping), True
        storm.may_lack.add("orders")
        return count(session, parts, to)

    with patch.object(ModelServerSession, "measure", cleaned_up_first):
        storm.step()


def test_changes_that_are_cleaned_up_during_a_snapshot_are_a_gap(storm: Storm):
    """They come behind the position of the table's stream and before the snapshot's first mark."""
    storm.come_to_rest()
    storm.transaction([("orders", 0, "a")])
    storm.scan(1)
    storm.snapshot_is_asked_for("orders")
    storm.step_while_it_is_cleaned_up(0, 1)


def test_snapshot_after_a_second_instance_is_no_gap(storm: Storm):
    """The first instance still holds what comes between the table's position and the start of the second one."""
    storm.come_to_rest()
    storm.transaction([("orders", 0, "a")])
    storm.second_instance("orders")
    storm.scan(4)
    storm.snapshot_is_asked_for("orders")
    storm.come_to_rest()
    assert load_gaps(storm.database.layout, storm.database.storage) == []


def test_changes_while_capture_was_off_are_lost(storm: Storm):
    storm.come_to_rest()
    storm.transaction([("orders", 0, "a")])
    storm.come_to_rest()
    storm.disable_change_enable("orders", [("orders", 0, "b")])
    storm.second_instance("orders")


def test_changes_that_are_cleaned_up_before_they_are_read_are_a_gap(storm: Storm):
    storm.come_to_rest()
    storm.transaction([("orders", 0, "a")])
    storm.scan(1)
    storm.scan(1)  # Finds nothing: cleanup may go up to its row.
    storm.clean_up(0)


def test_changes_before_a_snapshot_are_read_too(storm: Storm):
    storm.come_to_rest()
    storm.transaction([("orders", 0, "a")])
    storm.scan(1)
    storm.snapshot_is_asked_for("orders")


def test_second_loss_after_the_same_position_is_named(storm: Storm):
    """Nothing was captured between the snapshot that repaired the first one and the second."""
    storm.transaction([("orders", 0, "a")])
    storm.come_to_rest()
    for _ in range(2):
        storm.user_restores_a_change_log("orders", 1)
        storm.come_to_rest()


def restored_later(storm: Storm) -> None:
    """A cut, a backup, and rows that are read by a snapshot before they are captured: no transaction knows of them.

    A transaction behind the first snapshot is the witness. Without one, that snapshot's own marks notice the restore.
    """
    storm.come_to_rest()
    storm.transaction([("people", 0, "a")])
    storm.come_to_rest()
    storm.back_up()
    storm.transaction([("orders", 0, "a"), ("orders", 1, "b"), ("orders", 2, "c"), ("orders", 3, "d")])
    storm.snapshot_is_asked_for("orders")


def test_restore_takes_transactions_back(storm: Storm):
    storm.come_to_rest()
    storm.back_up()
    storm.transaction([("people", 0, "a")])
    storm.come_to_rest()
    storm.restore()


def test_restore_during_a_snapshot_is_noticed_when_it_is_resumed(storm: Storm):
    restored_later(storm)
    storm.killed_step(storm.write("chunk_groups"), 1, after=True)
    storm.restore()


def test_restore_during_a_snapshot_is_noticed_before_it_ends(storm: Storm):
    restored_later(storm)
    storm.step_while_it_is_restored(4)  # Between its two groups.


def test_restore_after_a_snapshot_is_noticed_while_no_later_transaction_is_captured(storm: Storm):
    """What capture had not reached is in the snapshot's rows only."""
    restored_later(storm)
    for _ in range(3):
        storm.step()
    storm.restore()


def test_restore_below_an_idle_position_is_noticed_where_the_recovery_fork_is_hidden(storm: Storm):
    """The snapshot of `notes` takes the cut to the log's end, which other transactions use again after the restore."""
    marked = ModelServerSession.mark
    with patch.object(ModelServerSession, "mark", lambda session: replace(marked(session), fork=None)):
        storm.back_up()
        storm.come_to_rest()
        storm.restore()
        storm.transaction([("orders", 0, "a")])
        storm.come_to_rest()


def test_instance_that_a_restored_source_made_at_an_idle_position_is_another(storm: Storm):
    """While capture of `notes` is off, changes take the LSNs up to its position; nothing captured shows the restore."""
    storm.recovery_fork_is_hidden()
    storm.back_up()
    storm.come_to_rest()
    position = load_offsets(storm.database.layout, storm.database.storage).entries["shop.dbo.notes"].to
    storm.restore()
    storm.disable("notes")
    server = cast("ModelWorld", storm.world).server
    while lsn(server.number).text < str(position):
        storm.transaction([("notes", 0, f"v{server.number}")])
    storm.enable("notes")


@pytest.mark.parametrize("hidden", [False, True])
def test_snapshot_says_that_the_recovery_fork_is_hidden(storm: Storm, *, hidden: bool):
    """Then nothing shows that a restore has taken back what only the snapshot has read (A7)."""
    lines = list[str]()
    storm.database = replace(storm.database, log=lines.append)
    storm.follower = storm.new_follower()
    if hidden:
        storm.recovery_fork_is_hidden()
    storm.come_to_rest()
    assert any("GRANT VIEW ANY DATABASE" in line for line in lines) == hidden
    lines.clear()
    storm.transaction([("people", 0, "one")])
    storm.ask_beside("people")
    storm.come_to_rest()
    assert any("GRANT VIEW ANY DATABASE" in line for line in lines) == hidden


def test_restore_is_noticed_when_cleanup_has_removed_the_transactions_that_show_it(storm: Storm):
    """The witness is older than all that the source still has, as it would be after quiet days without a restore."""
    storm.come_to_rest()
    storm.back_up()
    storm.change_arrives([("people", 0, "a")])
    storm.quiet_days(early=False, changes=[])
    storm.restore()
    storm.transaction([("people", 0, "b")])
    storm.scan(1)
    storm.scan(1)  # Finds nothing: cleanup may go up to its row.
    storm.clean_up(0)


def test_gap_of_a_restore_begins_after_what_a_run_committed_before_it_died(storm: Storm):
    storm.come_to_rest()
    storm.run_dies_in_a_range([[("orders", 0, "a")], [("notes", 0, "a")]], "range.commit", 2, after=True, looks=0)
    storm.restore()


def test_bounded_range_does_not_end_below_a_table_while_another_stands_beyond_capture(storm: Storm):
    """`people` is read on while `orders` is given up; the snapshot of `notes` ends behind what is captured."""
    storm.world.configure(**{"max.iteration.transactions": "1"})
    storm.database = storm.world.database
    storm.follower = storm.new_follower()
    storm.come_to_rest()
    storm.snapshot_while_capture_lags("people", "orders", 5, [], anew=True, early=True)
    storm.come_to_rest()
    storm.snapshot_while_capture_lags("notes", "people", 4, [2, 2], anew=True, early=True, denied="orders", looks=1)


def test_closed_table_makes_no_ranges_without_effect(storm: Storm):
    """The others have come beyond the newest cut, and capture has not passed the end of the snapshot."""
    storm.transaction([("orders", 0, "a")])
    storm.come_to_rest()
    storm.snapshot_while_capture_lags("notes", "orders", 5, [1])


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_snapshot_of_a_source_that_is_restored_meanwhile_leaves_a_gap_at_the_furthest_position(storm: Storm, at: int):
    storm.transaction([("orders", 1, "a")])
    storm.quiet_point()
    storm.back_up()
    storm.transaction([("orders", 2, "b")])
    storm.quiet_point()
    storm.snapshot_is_asked_for("orders")
    storm.step_while_it_is_restored(at)


def test_range_that_ends_at_the_start_of_an_instance_is_read(storm: Storm):
    """Without a captured transaction, nothing but an instance's start is there: it is no commit, and was waited for."""
    storm.transaction([("notes", 3, "a"), ("notes", 0, None)])
    storm.scan(most=4)
    storm.late_rival(changes=[("notes", 2, None)])
    storm.step_while_an_instance_is_replaced(at=2, changes=[("orders", 1, None)], name="orders")
    storm.scan_begins()
    storm.backlog(name="orders", count=8)
    storm.step_while_it_is_cleaned_up(at=0, kept=0)


def test_table_that_disappears_when_its_first_snapshot_has_just_begun_is_named(storm: Storm):
    storm.transaction([("people", 0, "a")])
    storm.killed_step(storm.write("snapshot.begin"), 1, after=True)
    storm.disable("people")


def test_snapshot_that_was_planned_and_never_began_takes_the_tables_of_its_second_attempt(storm: Storm):
    """Only `people` is captured at first; both attempts have the id of the same second."""
    storm.drop_and_create("orders")
    storm.drop_and_create("notes")
    storm.killed_step(storm.write("snapshot.begin"), 1, after=False)
    storm.disable("people")


@pytest.mark.parametrize("part", ["finish.append_offsets", "chunk_groups.commit"])
def test_no_group_of_a_run_that_takes_a_snapshot_over_follows_its_end(storm: Storm, part: str):
    """Both runs had planned it under one id: the other one read rows newer than the end behind which it was open."""
    storm.come_to_rest()
    changes: list[tuple[int, str | None]] = [(0, "newer"), (1, None)]
    place = f"snapshot.{part}", 1, False
    storm.snapshot_is_planned_twice("orders", rows=3, place=place, groups=1, changes=changes, scans=1)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("part", ["begin.append_offsets", "chunk_groups.commit", "finish.append_offsets"])
@pytest.mark.parametrize("after", [True, False])
def test_rows_of_a_table_without_a_key_count_once_though_two_runs_read_it(
    storm: Storm, part: str, *, after: bool, groups: int
):
    """One read it by the plan of each run, both as of the same end of the log."""
    place = f"snapshot.{part}", 1, after
    storm.snapshot_is_planned_twice("notes", rows=3, place=place, groups=groups, changes=[], scans=1)


def test_no_group_of_a_run_that_was_overtaken_follows_the_end_of_a_snapshot(storm: Storm):
    """Cleanup has passed what it had read: it would read that again, behind the end that another run has written."""
    storm.come_to_rest()
    storm.drop_and_create("orders")
    storm.transaction([("orders", 0, "old"), ("orders", 1, "old")])
    storm.scan(500)
    run = storm.database.named("run")
    found = storm.decided(run)
    assert found is not None
    assert isinstance(found[1], Snapshot)

    def overtaken() -> None:
        storm.look(2)
        for name in ("people", "notes", "people"):
            storm.transaction([(name, 0, "later")])
        storm.scan(500)
        storm.look()
        storm.cleaned_up(1)
        storm.transaction([("orders", 0, "newer")])
        storm.transaction([("orders", 1, "newer")])

    with happening_at("mssql_cdc.capture.snapshot.chunk_groups.obey", 3, overtaken), suppress(MssqlCdcError):
        take_snapshot(run, found[1])
    storm.scan(1)
    storm.look()


def test_snapshot_that_ends_below_its_table_after_a_restore_leaves_a_gap(storm: Storm):
    storm.snapshot_while_capture_lags("notes", "orders", 5, [1])
    storm.come_to_rest()
    storm.snapshot_is_asked_for("orders")
    storm.step_while_it_is_restored(1)


def test_first_snapshot_of_a_table_that_was_made_anew_begins_again_when_its_run_has_died(storm: Storm):
    """The versions are recorded before the status is: the table was taken for one that had lost its instance."""
    storm.come_to_rest()
    storm.drop_and_create("orders")
    storm.scan(500)
    storm.killed_step(storm.write("snapshot.begin"), 1, after=False)


def test_gap_ends_where_a_table_streams_again_and_not_where_it_was_to(storm: Storm):
    """The end of the gap is written before the end of the snapshot; the run dies, and the table is made anew."""
    storm.transaction([("notes", 0, "a")])
    storm.come_to_rest()
    storm.drop_and_create("notes")
    storm.scan(500)
    storm.killed_step(storm.write("snapshot.finish"), 1, after=False)
    storm.drop_and_create("notes")
    storm.transaction([("notes", 1, "b")])
    storm.scan(500)


def test_backlog_of_more_ranges_than_a_schedule_has_looks_is_read(storm: Storm):
    """The storm itself failed here: it gave up while the connector read one transaction at a time."""
    storm.begin(profile=frozenset(), changes=[], running=True, bound=1, pause=None)
    for _ in range(ENOUGH // 8 + 1):
        storm.backlog(name="orders", count=8)


@pytest.mark.parametrize("name", ["orders", "notes"])
def test_table_that_gets_the_object_id_of_one_that_a_restore_took_back_is_another(storm: Storm, name: str):
    """After a restore, SQL Server gives the same object ids once more."""
    storm.transaction([(name, 0, "a")])
    storm.come_to_rest()
    storm.back_up()
    storm.drop_and_create(name)
    storm.come_to_rest()
    storm.restore()
    storm.come_to_rest()
    storm.transaction([(name, 1, "b")])
    storm.drop_and_create(name)


def test_table_that_gets_the_object_id_of_another_one_that_a_restore_took_back_is_not_that_one(storm: Storm):
    """Its versions were taken for those of the other table, which then had none."""
    storm.transaction([("orders", 0, "a"), ("people", 0, "a")])
    storm.come_to_rest()
    storm.snapshot_is_disturbed(
        name="orders", rows=4, anew=True, captured=True, event="restore", changes=None, kept=1,
        place=("snapshot.begin.append_offsets", 1, False), looks=3,
    )  # fmt: skip
    storm.drop_and_create("people")


@pytest.mark.parametrize("name", ["orders", "notes"])
def test_table_that_one_look_does_not_see_stays_closed(storm: Storm, name: str):
    """Its snapshot ended behind five changes of it; the others make a complete cut before these are captured."""
    storm.come_to_rest()
    storm.snapshot_while_capture_lags(name, name, 5, [2, 1], unseen=True)
    storm.come_to_rest()


@pytest.mark.parametrize("event", ["disable", "drop_and_create"])
def test_table_whose_identity_a_restore_gave_to_another_one_is_missed(storm: Storm, event: str):
    """`notes` was made anew and the source restored; `people`, made anew then, gets the identity that `notes` had.

    Then `notes` is no longer captured: it must not be taken for a table that was renamed to `people`.
    """
    storm.come_to_rest()
    storm.drop_and_create("notes")
    storm.change_arrives([("orders", 0, "a")])
    storm.look(3)
    storm.restore()
    storm.drop_and_create("people")
    storm.change_arrives([("people", 0, "b")])
    storm.transaction([("notes", 0, "c")])
    if event == "drop_and_create":
        storm.drop_and_create("notes")
    storm.disable("notes")
    storm.come_to_rest()


@pytest.mark.parametrize("beside", [False, True])
def test_table_that_was_given_up_is_read_at_the_next_start(storm: Storm, *, beside: bool):
    """Its login could not read it at first."""
    storm.begin(storm.profile, [], running=False, bound=None, pause=None, beside=beside, denied="orders")
    assert load_offsets(storm.database.layout, storm.database.storage).entries["shop.dbo.orders"].status == "failed"
    storm.come_to_rest()


def test_table_that_a_run_has_read_and_could_not_say_so_is_no_longer_given_up(storm: Storm):
    """The offsets of its range were refused, since a snapshot of another table had begun; then all is quiet."""
    storm.begin(storm.profile, [], running=True, bound=None, pause=None, beside=True)
    storm.snapshot_while_capture_lags("people", "people", 4, [1], anew=True, denied="notes", looks=4, unseen=True)
    storm.snapshot_is_asked_for("orders")
    storm.come_to_rest()


def test_table_that_was_given_up_and_is_no_longer_captured_is_named(storm: Storm):
    storm.begin(storm.profile, [], running=False, bound=None, pause=None, denied="orders")
    storm.transaction([("orders", 0, "a")])
    storm.disable("orders")
    storm.come_to_rest()


@pytest.mark.parametrize("restored", [False, True])
def test_table_that_cannot_begin_anew_holds_back_no_cut(storm: Storm, *, restored: bool):
    """Its newest entry is that of the table, or of the epoch, before: nothing of it has begun."""

    def refused(_session: object, schema: TableSchema, _rows: int, _last: object, **_more: object) -> None:
        if schema.table_id.name == "orders":
            raise SourceError("orders cannot be planned")

    storm.come_to_rest()
    if restored:
        storm.back_up()
        storm.change_arrives([("people", 0, "a")])
        storm.restore()
    else:
        storm.drop_and_create("orders")
    storm.scan(500)
    with patch.object(ModelServerSession, "next_bound", refused):
        for _ in range(12):
            storm.change_arrives([("people", 1, f"v{storm.played}")])
            storm.resume_after_restore(storm.follower)
            storm.played += 1
        offsets = load_offsets(storm.database.layout, storm.database.storage)
        cut, people = offsets.last_cut(), offsets.entries["shop.dbo.people"]
        assert cut is not None
        assert (cut.epoch, cut.to) == (people.epoch, people.to)


def test_failed_snapshot_waits_by_the_clock_of_its_run(storm: Storm):
    """One that mixes two clocks, an hour apart, finds every wait over."""

    def refused(_session: object, schema: TableSchema, _rows: int, _last: object, **_more: object) -> None:
        if schema.table_id.name == "orders":
            raise SourceError("orders cannot be planned")

    storm.come_to_rest()
    storm.drop_and_create("orders")
    storm.scan(500)
    storm.now += timedelta(hours=1)
    tried = list[bool]()
    with patch.object(ModelServerSession, "next_bound", refused):
        for _ in range(5):  # The waits are one, two and four seconds; a look takes one.
            storm.look()
            tried.append(isinstance(storm.follower.decision, Snapshot))
    assert tried == [True, True, False, True, False]


def test_table_is_not_opened_by_a_bounded_range_that_ends_before_its_snapshot(storm: Storm):
    """Capture has passed the end of the snapshot, but the stream has read the first of three changes before it only."""
    storm.world.configure(**{"max.iteration.transactions": "1"})
    storm.database = storm.world.database
    storm.follower = storm.new_follower()
    storm.come_to_rest()
    storm.snapshot_while_capture_lags("orders", "orders", 3, [], looks=1)
    for _ in range(4):
        storm.scan(4)
    storm.look()


@pytest.mark.parametrize(("scans", "is_open"), [(0, False), (1, False), (3, False), (4, True)])
def test_table_stays_closed_until_what_the_last_rows_of_its_snapshot_show_is_read(
    storm: Storm,
    *,
    scans: int,
    is_open: bool,
):
    """A row changes between two groups; one scan gets behind the snapshot's begin, the next one to this change.

    Two more that find nothing prove that there was nothing else before the end of the snapshot.
    """

    def meanwhile() -> None:
        storm.transaction([("people", 0, "b")])
        storm.transaction([("orders", 3, "b")])

    storm.transaction([("orders", key, "a") for key in range(4)])
    storm.come_to_rest()
    storm.ask("orders")
    storm.look_while(meanwhile, at=4)
    for _ in range(scans):
        storm.scan(1)
        storm.look()
    assert ("orders" in {name for name, *_ in opened_snapshots(storm.database)}) == is_open


def test_restore_between_a_survey_and_the_cut_that_it_decides_on_is_noticed(storm: Storm):
    """It reads nothing, since the run before has died behind its commits: its witness was of the new history."""
    changes = [[("people", 1, "a")], [("orders", 2, "b"), ("notes", 3, "c")]]
    storm.begin(storm.profile, changes, running=True, bound=2, pause=None, beside=True, denied="orders")
    storm.backlog("people", 3)
    storm.come_to_rest()
    storm.permission_is_revoked("people")
    storm.back_up()
    work = [[("orders", 1, "d"), ("orders", 2, "e"), ("people", 2, None)]]
    storm.run_dies_in_a_range(work=work, write="range.append_offsets", call=2, after=True, looks=2)
    storm.step_while_it_is_restored(at=1)
    storm.come_to_rest()


@pytest.mark.parametrize("call", [1, 2, 3])
def test_rows_that_a_user_took_from_a_log_during_its_first_snapshot_are_read_again(storm: Storm, call: int):
    """Their chunk counted as read: a table without a position had nothing to lose."""
    storm.transaction([("orders", 1, "a"), ("people", 1, "a")])
    storm.transaction([("notes", 1, "a")])
    storm.scan(500)
    for _ in range(2):
        storm.killed_step(storm.write("snapshot.chunk_groups.commit"), call, after=True)
    storm.user_restores_a_change_log("orders", 1)
    storm.transaction([("orders", 2, "b")])
    storm.come_to_rest()


@pytest.mark.parametrize("later", [1, 3])
@pytest.mark.parametrize("names", [["orders"], ["orders", "people"]])
def test_restore_after_commits_whose_run_has_died_is_noticed(storm: Storm, names: list[str], later: int):
    """Nothing told it: the tables stood where the lost transaction was, and what came below was never read."""
    storm.come_to_rest()
    storm.transaction([("orders", 0, "a"), ("people", 0, "a")])
    storm.come_to_rest()
    work, new = [[(name, 1, "lost") for name in names]], [(name, 2, "new") for name in names]
    storm.run_dies_in_a_range(
        work=work, write="range.append_offsets", call=1, after=False, looks=1, restored=[new] * later
    )
    storm.come_to_rest()


@pytest.mark.parametrize("at", range(1, 10))
def test_restore_while_a_range_is_read_is_noticed(storm: Storm, at: int):
    storm.come_to_rest()
    storm.transaction([("orders", 0, "a"), ("people", 0, "a")])
    storm.come_to_rest()
    storm.back_up()
    storm.transaction([("orders", 1, "lost"), ("people", 1, "lost")])
    storm.scan(1)
    storm.step_while_it_is_restored(at=at)
    for number in range(3):
        storm.transaction([("orders", 2 + number, "new")])
    storm.scan(10)
    storm.come_to_rest()


def test_bounded_range_ends_at_a_transaction_though_a_table_stands_at_the_logs_end(storm: Storm):
    """`notes`, read whole, stands between two transactions; no range can end there, and none may end before it."""
    storm.begin(storm.profile, [], running=False, bound=1, pause=None, beside=True)
    storm.look(2)
    storm.snapshot_while_capture_lags("notes", "orders", 3, [2], anew=True, denied="orders", early=True, looks=2)
    storm.transaction([("people", 3, "a"), ("orders", 0, "b")])
    storm.come_to_rest()


def test_table_that_a_requested_snapshot_has_to_leave_out_is_named(storm: Storm):
    """The request is answered by the snapshot of the other table: nothing would ask for this one again."""
    lines = list[str]()
    storm.database = replace(storm.database, log=lines.append)
    storm.come_to_rest()
    ask_for_snapshot(storm.database, "both", ["dbo.orders", "dbo.people"], channel="storm")
    with unopened(storm.database, "people"):
        storm.look()
    assert any("people: left out of this snapshot" in line and "cannot be reached" in line for line in lines), lines


@pytest.mark.parametrize("name", ["orders", "notes"])
def test_table_that_is_made_anew_twice_is_read_in_full_despite_a_statement_of_its_own(storm: Storm, name: str):
    """The run that reads the second one dies behind its status: the table looked as if it had never streamed."""
    storm.begin(storm.profile, [], running=True, bound=None, pause=None, own={name: "id < 2"})
    storm.change_arrives([(name, 2, "a")])
    storm.drop_and_create(name)
    storm.scan(500)
    storm.killed_step(storm.write("snapshot.begin"), 1, after=True)
    storm.drop_and_create(name)
    storm.transaction([(name, 2, "z")])


@pytest.mark.parametrize("name", ["orders", "notes"])
def test_restored_table_whose_repair_had_begun_is_read_in_full_despite_a_statement(storm: Storm, name: str):
    """Its changes were lost; the run that repairs it dies behind its status; then the source is restored."""
    storm.begin(storm.profile, [], running=True, bound=None, pause=None, own={name: "id < 2"})
    storm.change_arrives([(name, 2, "a")])
    storm.back_up()
    storm.disable_change_enable(name, [])
    storm.scan(500)
    storm.look()
    storm.ask(name)
    storm.killed_step(storm.write("snapshot.begin"), 1, after=True)
    storm.restore()


def test_incremental_snapshot_of_an_idle_database_deletes_no_row(storm: Storm):
    """Its rows get the position of the stream, behind which an idle log has two rows of its own."""
    storm.change_arrives([("orders", 0, "a")])
    storm.come_to_rest()
    storm.scan(1)
    storm.scan(1)
    storm.ask_beside("orders")


def test_emitted_rows_are_in_a_cut_although_a_table_was_lost_before_it_was_opened(storm: Storm):
    """`orders` has a snapshot whose end is not captured when its instance goes: no stream of it opens it any more."""
    storm.change_arrives([("people", 0, "a")])
    storm.come_to_rest()
    storm.ask("orders")
    storm.transaction([("orders", 0, "a")])
    storm.look(2)
    storm.disable_change_enable("orders", [])
    storm.look()
    storm.ask_beside("people")


def staged(storm: Storm, *, looks: int = 2) -> None:
    """The first chunks of an incremental snapshot of `orders` wait for the stream."""
    storm.change_arrives([("orders", key, "a") for key in range(4)])
    storm.come_to_rest()
    storm.ask_beside("orders")
    storm.look(looks)


def test_rows_that_change_while_they_are_staged_are_left_to_the_stream(storm: Storm):
    staged(storm)
    storm.change_arrives([("orders", 0, "b"), ("orders", 1, None)])


def test_rows_are_emitted_after_the_changes_that_had_led_to_them(storm: Storm):
    """A staged row has a value whose change is not captured yet."""
    staged(storm, looks=0)
    storm.transaction([("orders", 0, "b")])
    storm.look(3)


def test_rows_that_a_killed_run_has_emitted_are_emitted_once(storm: Storm):
    staged(storm)
    storm.transaction([("people", 0, "a")])
    storm.scan(1)
    storm.killed_step(storm.write("emission.commit"), 1, after=True)


def test_staged_rows_are_read_again_if_the_stream_broke_off_since(storm: Storm):
    """A change that was never read is no reason to leave a row out, but makes it wrong."""
    staged(storm)
    storm.connector_stands_still([[("orders", 0, "never read")]], empty=1, kept=0, only="orders")
    storm.look()
    storm.ask("orders")
    storm.look()
    storm.change_arrives([("people", 0, "a")])


def test_chunks_are_not_read_during_a_pause(storm: Storm):
    staged(storm)
    storm.snapshots_are_controlled("pause-snapshot")
    storm.look(3)


@pytest.fixture
def unsettled() -> Iterator[Storm]:
    """A schedule that does not come to rest at its end."""
    played = Storm(ModelWorld)
    yield played
    played.stack.close()


def test_tables_keep_what_was_read_of_them_when_they_exchange_their_names_and_get_them_back(storm: Storm):
    storm.transaction([("orders", 0, "a"), ("people", 1, "a"), ("notes", 2, "a")])
    storm.come_to_rest()
    for name in ("orders", "people"):
        storm.table_is_renamed(name, "people", changes=[(0, name), (1, None)], scans=True, looks=1)
        storm.table_is_renamed("people", "orders", changes=[(2, name)], scans=False, looks=2)
    storm.table_is_renamed("notes", None, changes=[(2, "b")], scans=True, looks=2)
    assert load_gaps(storm.database.layout, storm.database.storage) == []


def test_table_that_is_renamed_while_it_is_lost_and_read_then_is_not_missed_under_its_former_name(unsettled: Storm):
    storm = unsettled
    storm.change_arrives([("orders", 0, "a")])
    storm.come_to_rest()
    storm.disable_change_enable("orders", [("orders", 0, "b")])
    storm.change_arrives([("people", 0, "a")])
    storm.renamed("orders", "orders_old")
    storm.ask("orders_old")
    for _ in range(6):
        storm.change_arrives([("people", 0, "b")])
    assert [gap.to for gap in load_gaps(storm.database.layout, storm.database.storage)] != [None]
    assert not standings(survey(storm.database, currents=False)).missing


def test_table_that_gets_its_name_back_goes_on_where_it_was_read_to_meanwhile(unsettled: Storm):
    """All that cleanup takes was read before: nothing is lost."""
    storm = unsettled
    storm.change_arrives([("orders", 0, "a")])
    storm.come_to_rest()
    storm.renamed("orders", "orders_old")
    for value in ("b", "c"):
        storm.change_arrives([("people", 0, value)])
    storm.cleaned_up(1)
    storm.renamed("orders_old", "orders")
    storm.look(2)
    assert not standings(survey(storm.database, currents=False)).missing


def test_table_that_is_no_longer_captured_is_missed_although_another_one_has_its_name(unsettled: Storm):
    storm = unsettled
    storm.change_arrives([("orders", 0, "a"), ("people", 0, "a")])
    storm.come_to_rest()
    storm.disabled("orders")
    storm.transaction([("orders", 1, "captured by none")])
    storm.look()
    assert standings(survey(storm.database, currents=False)).missing
    storm.renamed("orders", "orders_old")
    storm.renamed("people", "orders")
    storm.change_arrives([("orders", 1, "b")])
    storm.look(2)
    assert {*standings(survey(storm.database, currents=False)).missing} == {"shop.dbo.orders (object id 1001)"}
    (gap,) = load_gaps(storm.database.layout, storm.database.storage)
    assert (gap.table, gap.to) == ("shop.dbo.orders", None)
    assert "(object id 1001)" in gap.reason
    assert "CDC is no longer enabled on it" in gap.reason
    acknowledge(storm.database, None, by="a test")
    assert not standings(survey(storm.database, currents=False)).missing


def test_lost_table_holds_back_no_cut_when_it_gets_its_name_back_from_another_one(storm: Storm):
    """The newest entry under its name was the other one's, which streamed: no range was a complete cut any more."""
    storm.transaction([("orders", 0, "a"), ("people", 1, "a")])
    storm.come_to_rest()
    storm.name_of_a_lost_table_is_taken(["people", "orders"], [(0, None), (0, "v19")], before=2, looks=2)


def test_table_that_has_its_name_back_from_a_lost_one_is_known_after_a_restore(storm: Storm):
    """No structure had its name, and the lake was called damaged."""
    storm.transaction([("orders", 0, "a"), ("people", 1, "a")])
    storm.come_to_rest()
    storm.name_of_a_lost_table_is_taken(["orders", "people"], [], before=2, looks=3)
    storm.restore()


def test_gap_of_a_lost_table_goes_on_though_another_one_that_had_its_name_is_read_again(storm: Storm):
    storm.transaction([("orders", 0, "a"), ("people", 1, "a")])
    storm.come_to_rest()
    storm.disabled("people")
    storm.change_arrives([("notes", 0, "a")])
    storm.look(2)
    storm.renamed("people", "people_old")
    storm.renamed("orders", "people")
    storm.change_arrives([("people", 0, "b")])
    storm.look(2)
    storm.renamed("people", "orders")
    storm.renamed("people_old", "people")
    storm.snapshot_is_asked_for("orders")
    storm.look(4)


def test_table_is_found_that_was_not_captured_for_as_long_as_another_one_had_its_name(storm: Storm):
    storm.transaction([("orders", 0, "a"), ("people", 1, "a")])
    storm.come_to_rest()
    storm.name_of_a_lost_table_is_taken(["orders", "people"], [(0, None)], before=0, looks=2)


def test_of_two_tables_that_had_a_name_last_one_is_missed_under_it(storm: Storm):
    """The first one was made anew and acknowledged. Behind the second, its loss was recorded at each look, for ever."""
    storm.come_to_rest()
    storm.name_of_a_lost_table_is_taken(["orders", "people"], [], before=1, looks=3)
    storm.drop_and_create("people")
    storm.come_to_rest()
    storm.name_of_a_lost_table_is_taken(["people", "orders"], [(3, "v63")], before=0, looks=3)


def test_position_of_an_earlier_epoch_does_not_count_for_a_table_that_is_lost_when_a_new_one_begins(storm: Storm):
    """It became the position of `orders` in the new history, far beyond what is captured there."""
    _disabled_far_beyond_a_restore(storm)
    storm.look(4)
    storm.transaction([("orders", 0, "while it was off")])
    storm.come_to_rest()
    _changes_are_read(storm)


def test_position_of_an_earlier_epoch_does_not_count_for_a_table_that_was_given_up_in_a_new_one(storm: Storm):
    """Acknowledging its loss gave it that position in the new epoch."""
    _disabled_far_beyond_a_restore(storm)
    go_on_after_restore(storm.database, by="the storm")
    assert acknowledge(storm.database, [TableId("shop", "dbo", "orders")], by="the storm").given_up
    storm.enable("orders")
    storm.come_to_rest()
    _changes_are_read(storm)


def _disabled_far_beyond_a_restore(storm: Storm) -> None:
    storm.come_to_rest()
    storm.back_up()
    storm.backlog("orders", 200)
    storm.come_to_rest()
    storm.restore()
    storm.disable("orders")


def _changes_are_read(storm: Storm) -> None:
    for value in ("a", "b"):
        storm.change_arrives([("orders", 0, value)])
        storm.come_to_rest()
