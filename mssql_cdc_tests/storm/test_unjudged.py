"""What no look has judged counts for nothing: change logs that a user changes, and commits that no row tells of.

Each schedule ended with rows or events that were missing, and nothing that said so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from mssql_cdc.capture.survey import survey
from mssql_cdc.capture.take_over import take_over
from mssql_cdc.errors import SourceRestoredError
from mssql_cdc.lake.gaps import load_gaps
from mssql_cdc.plan.decisions import Lost, Snapshot
from mssql_cdc.records.source_offsets import SourceOffset
from mssql_cdc.run.execute import execute
from mssql_cdc.run.snapshots import take_snapshot
from mssql_cdc.schema import TableId
from mssql_cdc_tests.lake_kit import lsn
from mssql_cdc_tests.storm.lake import Killed, happening_at, killed_at
from mssql_cdc_tests.storm.machine import Storm
from mssql_cdc_tests.storm.model import ModelWorld
from mssql_cdc_tests.storm.worlds import TABLES

ORDERS, PEOPLE, NOTES = (TableId("shop", "dbo", name) for name in ("orders", "people", "notes"))
RANGE_ROW = "mssql_cdc.capture.range.append_offsets"
GROUP = "mssql_cdc.capture.snapshot.chunk_groups.commit"


@pytest.fixture
def storm() -> Iterator[Storm]:
    played = Storm(ModelWorld)
    yield played
    played.teardown()


def events(storm: Storm, name: str, count: int, *, looks: int = 2) -> None:
    """Changes of a table, each in a range of its own."""
    for number in range(count):
        change(storm, name, number % 4, f"e{number}")
        storm.look(looks)


def change(storm: Storm, name: str, key: int, value: str) -> None:
    storm.transaction([(name, key, value)])
    storm.world.scan(500)


def taken_back(storm: Storm) -> None:
    """A restore, also while the fork is hidden and a snapshot is open: `brought_back` plays none then."""
    storm.world.restore()
    storm.restored = True
    storm.may_lack.update(TABLES)


def new_history(storm: Storm, count: int) -> None:
    """What the source commits behind a restore, at positions that it had used before."""
    for number in range(count):
        change(storm, "orders", 2 + number % 2, f"new{number}")
    storm.look()


# -- change logs that a user changes (A5) ---------------------------------------------------------------------------


def test_a_snapshot_by_hand_of_a_log_that_was_changed_leaves_a_gap(storm: Storm):
    """It may come before the next look, which would find the loss; the events that were taken stay away."""
    storm.come_to_rest()
    events(storm, "orders", 3)
    storm.user_restores_a_change_log("orders", 1)
    take_snapshot(storm.database.named("by hand"), Snapshot("snapshot-20270101T000000", (ORDERS,), by_hand=True))
    (gap,) = load_gaps(storm.database.layout)
    assert gap.table == ORDERS.text
    assert "RESTORE" in gap.reason


@pytest.mark.parametrize("looks", [1, 2, 3])
def test_a_log_that_is_changed_beside_an_incremental_snapshot_is_noticed(storm: Storm, looks: int):
    """Its table is quiet, so that looks do not read its log; each emission recorded the version that it had met."""
    storm.come_to_rest()
    events(storm, "orders", 4)
    storm.ask_beside("orders")
    for number in range(looks):
        change(storm, "people", 0, f"x{number}")
        storm.look()
    storm.user_restores_a_change_log("orders", 1)
    events(storm, "people", 3, looks=1)


def test_a_log_that_is_changed_between_a_look_and_the_snapshot_is_noticed(storm: Storm):
    storm.come_to_rest()
    events(storm, "orders", 3)
    storm.ask("orders")
    begun = "mssql_cdc.capture.snapshot.begin.append_offsets"
    with happening_at(begun, 1, lambda: storm.user_restores_a_change_log("orders", 1)):
        storm.look()
    storm.look(2)


def test_a_table_continues_after_a_change_of_its_log_that_was_noticed(storm: Storm):
    """Its position was taken again without the log as it is now: loss and position alternated for ever."""
    storm.world.configure(**{"snapshot.mode": "when_needed_no_data"})
    storm.database = storm.world.database
    storm.follower = storm.new_follower()
    events(storm, "orders", 3, looks=3)
    storm.user_restores_a_change_log("orders", 1)
    change(storm, "orders", 3, "c")
    decisions = list[type]()
    for _ in range(8):
        storm.follower.step()
        decisions.append(type(storm.follower.decision))
    assert decisions.count(Lost) == 1, decisions
    by_hand = Snapshot("snapshot-20270101T000000", (ORDERS, PEOPLE, NOTES), by_hand=True)
    take_snapshot(storm.database, by_hand)  # No row was read until now.


# -- commits that no row tells of (A7) ------------------------------------------------------------------------------


def test_a_restore_after_a_stopped_snapshot_of_a_table_that_a_dead_run_had_read_is_noticed(storm: Storm):
    """The row of the snapshot copied the position of the commit, without the witness of its range."""
    storm.come_to_rest()
    storm.change_arrives([("orders", 0, "a"), ("people", 0, "a")])
    storm.come_to_rest()
    storm.back_up()
    change(storm, "orders", 1, "lost")
    storm.look_and_die(RANGE_ROW, 1, after=False)
    storm.ask("orders")
    storm.look_and_die(GROUP, 1, after=False)
    storm.control("stop-snapshot")
    storm.look()
    storm.brought_back()
    new_history(storm, 3)


@pytest.mark.parametrize("place", ["during", "behind"])
def test_a_restore_of_what_a_snapshot_has_read_is_noticed_where_the_recovery_fork_is_hidden(storm: Storm, place: str):
    """Azure SQL Database shows none. What the snapshot read was captured before, and is taken back."""
    storm.recovery_fork_is_hidden()
    storm.transaction([("orders", 0, "a"), ("people", 0, "a"), ("notes", 0, "a")])
    storm.world.scan(500)
    storm.back_up()
    change(storm, "orders", 1, "lost")
    if place == "during":
        storm.look_and_die(GROUP, 2, after=True)
    else:
        storm.look()
    taken_back(storm)
    new_history(storm, 4)


def test_a_restore_after_a_group_of_a_snapshot_whose_run_has_died_is_noticed(storm: Storm):
    """What is taken back was captured behind the begin of the snapshot, and before the group."""
    storm.recovery_fork_is_hidden()
    storm.transaction([("orders", key, "a") for key in range(4)])
    storm.world.scan(500)
    storm.back_up()
    with happening_at(GROUP, 2, lambda: change(storm, "orders", 3, "lost")):
        storm.look_and_die(GROUP, 4, after=True)
    taken_back(storm)
    new_history(storm, 4)


def test_a_restore_between_a_survey_and_its_range_is_noticed_after_commits_of_a_dead_run(storm: Storm):
    """The new history has come as far as the old one: only the witness of the commits tells them apart."""
    storm.come_to_rest()
    storm.change_arrives([("orders", 0, "a"), ("people", 0, "a")])
    storm.come_to_rest()
    storm.back_up()
    change(storm, "orders", 1, "lost")
    storm.look_and_die(RANGE_ROW, 1, after=False)

    def meanwhile() -> None:
        storm.brought_back()
        for number in range(3):
            storm.transaction([("orders", 2 + number % 2, f"new{number}")])
        storm.world.scan(500)

    storm.look_while(meanwhile, 1)


def test_a_restore_after_a_quiet_table_that_another_dead_run_had_read_is_noticed(storm: Storm):
    """A run that does not read its log advanced it past the commits of the other one."""
    storm.come_to_rest()
    storm.change_arrives([("orders", 0, "a"), ("people", 0, "a")])
    storm.look(3)
    change(storm, "people", 0, "b")
    storm.look(2)
    storm.back_up()
    change(storm, "orders", 1, "lost")
    rival = storm.database.named("rival")
    found = storm.decided(rival)
    assert found is not None
    with pytest.raises(Killed), killed_at(RANGE_ROW, 1, after=False):
        execute(rival, *found, merge=False)
    storm.brought_back()
    for number in range(3):
        change(storm, "people", 2, f"new{number}")
    storm.look(2)


def test_an_offset_beyond_all_that_the_source_has_is_refused(storm: Storm):
    """There is no transaction below it that would tell: the source was restored without its history of CDC."""
    server = cast("ModelWorld", storm.world).server
    storm.world.scan(1)
    storm.world.scan(1)
    storm.world.clean_up(0)
    beyond = lsn(server.number + 6)
    offset = SourceOffset.of({"commit_lsn": beyond.text, "change_lsn": "NULL", "event_serial_no": 1})
    with pytest.raises(SourceRestoredError, match="does not have commit"):
        take_over(storm.database, offset)
    assert not survey(storm.database).offsets.entries
    storm.cleaned = True
