"""Each death of a run at a write, with each event right behind it: what random schedules draw too rarely."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import pytest

from mssql_cdc_tests.storm.lake import WRITES
from mssql_cdc_tests.storm.machine import Storm
from mssql_cdc_tests.storm.model import ModelWorld

STATES = ("stream", "first snapshot", "blocking snapshot", "incremental snapshot")
EVENTS: Mapping[str, Callable[[Storm], None]] = {
    "restore": lambda storm: storm.brought_back(),
    "a log is restored by its user": lambda storm: storm.user_restores_a_change_log("orders", 1),
    "a table anew": lambda storm: storm.world.drop_and_create("orders"),
    "another instance": lambda storm: storm.disable_change_enable("orders", [("orders", 0, None)]),
    "a second instance": lambda storm: storm.second_instance("orders"),
    "cleanup": lambda storm: storm.cleaned_up(0),
    "a right is revoked": lambda storm: storm.permission_is_revoked("orders"),
    "a log cannot be opened": lambda storm: storm.change_log_cannot_be_opened("orders", 1),
}
SOON = {("stream", "restore"), ("first snapshot", "a log is restored by its user")}
"""The two in which such a pair showed a loss that 20,000 random schedules had passed."""


PAIRS = [
    pytest.param(*pair, marks=() if pair in SOON else pytest.mark.long, id=", ".join(pair))
    for pair in product(STATES, EVENTS)
]


@pytest.mark.parametrize(("state", "event"), PAIRS)
def test_nothing_is_lost_after_a_death_whatever_happens_next(state: str, event: str):
    for write, call, after in product(WRITES, (1, 2, 3), (False, True)):
        storm = Storm(ModelWorld)
        try:
            _come_to(storm, state)
            for _ in range(2):
                storm.look_and_die(write, call, after=after)
            EVENTS[event](storm)
            for changes in ([("orders", 2, "b")], [("notes", 2, "b"), ("people", 2, "b")], [("orders", 5, "c")]):
                storm.transaction(changes)
            storm.scan(500)
            storm.come_to_rest()
        except AssertionError as error:
            error.add_note(f"killed at call {call} of {write}, {'behind' if after else 'before'} it")
            raise
        finally:
            storm.teardown()


def _come_to(storm: Storm, state: str) -> None:
    """Changes wait to be read, and perhaps a snapshot."""
    if state != "first snapshot":
        storm.come_to_rest()
        storm.transaction([("orders", 0, "a"), ("people", 0, "a"), ("notes", 0, "a")])
        storm.come_to_rest()
    storm.back_up()
    if state == "blocking snapshot":
        storm.ask("orders")
    if state == "incremental snapshot":
        storm.incremental_snapshot_is_asked_for("orders")
    storm.transaction([("orders", 1, "d"), ("people", 1, "d")])
    storm.transaction([("notes", 1, "d")])
    storm.scan(500)
