"""Schedules in which the storm found a defect, as short as they can be told. Each ends with a quiet point."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mssql_cdc_tests.storm.machine import Storm
from mssql_cdc_tests.storm.model import ModelWorld


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


def test_table_without_a_key_is_read_again_when_its_instance_was_replaced(storm: Storm):
    storm.transaction([("notes", 0, "a"), ("notes", 1, "b")])
    storm.killed_step(storm.write("snapshot.finish"), 1, after=False)
    storm.disable_change_enable("notes", [("notes", 1, None)])


def restored_later(storm: Storm) -> None:
    """A cut, a backup, and rows that are read by a snapshot before they are captured: no transaction knows of them."""
    storm.come_to_rest()
    storm.back_up()
    storm.transaction([("orders", 0, "a"), ("orders", 1, "b"), ("orders", 2, "c"), ("orders", 3, "d")])
    storm.snapshot_is_asked_for("orders")


def test_restore_during_a_snapshot_is_noticed_when_it_is_resumed(storm: Storm):
    restored_later(storm)
    storm.killed_step(storm.write("chunk_groups"), 1, after=True)
    storm.restore()


def test_restore_during_a_snapshot_is_noticed_before_it_ends(storm: Storm):
    restored_later(storm)
    storm.step_while_it_is_restored(3)  # Between its two groups.


def test_restore_behind_a_snapshot_is_noticed_while_no_later_transaction_is_captured(storm: Storm):
    """What was changed while nothing captured it is in the snapshot only, which capture has passed."""
    storm.back_up()
    storm.come_to_rest()
    storm.disable_change_enable("people", [("people", 0, "a")])
    storm.come_to_rest()
    storm.restore()


def test_closed_table_makes_no_ranges_without_effect(storm: Storm):
    """The others have come beyond the newest cut, and capture has not passed the end of the snapshot."""
    storm.transaction([("orders", 0, "a")])
    storm.come_to_rest()
    storm.snapshot_while_capture_lags("notes", "orders", 5, 1, early=False)
