"""Random schedules of incremental snapshots: each row that they emit is one that the source had at its position."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test

from mssql_cdc.capture.incremental.store import load
from mssql_cdc.capture.requests import REQUESTED, SignalRow, ask_for_snapshot, note_signal
from mssql_cdc.errors import StorageError
from mssql_cdc.follow import incremental
from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.follow.incremental_budget import Clock
from mssql_cdc.lake import log, small_tables
from mssql_cdc.lake.log import TableState
from mssql_cdc_tests.storm.emitted import emitted_rows_are_in_the_cut
from mssql_cdc_tests.storm.incremental import Incremental
from mssql_cdc_tests.storm.lake import (
    Killed,
    change_log,
    entry_of,
    happening_at,
    home_of,
    killed_at,
    restore_change_log,
    rows_by_the_log,
    unopened,
)


def play(*, schedules: int, steps: int, seed: int, shrink: bool = False) -> None:
    """Play the schedules of a seed."""
    run_state_machine_as_test(
        seeded(seed)(type("Played", (Incremental,), {})),
        settings=settings(
            max_examples=schedules,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
            suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
        ),
    )


@pytest.mark.feature("INC-09", "INC-10", "INC-11")
def test_incremental_snapshots_emit_what_the_source_had_whatever_happens_beside_them():
    play(schedules=25, steps=20, seed=0)


@pytest.fixture
def schedule() -> Iterator[Incremental]:
    played = Incremental()
    yield played
    played.teardown()


@pytest.mark.parametrize("at", range(6))
def test_first_range_of_a_table_that_another_run_reads_meanwhile_is_read_once(schedule: Incremental, at: int):
    """Neither run knows a change log when it begins: the second one must not take the first one's for its own."""
    schedule.begin_with_rows([])
    schedule.step(0)
    schedule.transaction([("orders", 1, "a")])
    schedule.scan(4)
    schedule.step_inside_a_step(0, at, 0)


def test_group_is_read_again_if_the_stream_broke_off_since(schedule: Incremental):
    """Changes that were never captured are no reason to drop a staged row, but make it wrong."""
    schedule.begin_with_rows([])
    schedule.step(0)
    schedule.incremental_snapshot_is_asked_for("orders")
    schedule.steps(0, 2)  # Staged; what comes next is not captured.
    schedule.world.disable("orders")
    schedule.transaction([("orders", 0, "never captured")])
    schedule.world.enable("orders")
    schedule.scan(4)
    schedule.step(0)  # The table is lost.
    schedule.blocking_snapshot_is_asked_for("orders")
    schedule.steps(0, 3)


def test_chunks_are_read_although_the_table_was_advanced_past_the_newest_transaction(schedule: Incremental):
    """An idle table follows the rows that an idle log leaves, so that cleanup does not overtake it (A8)."""
    schedule.begin_with_rows([])
    schedule.step(0)
    schedule.transaction([("orders", 1, "a")])
    schedule.steps(0, 2)
    schedule.quiet_days(0)
    schedule.incremental_snapshot_is_asked_for("orders")
    schedule.steps(0, 3)
    reading = load(schedule.world.database).state.reading
    assert reading is not None
    assert reading.staged


def read_while_idle() -> Incremental:
    """An incremental snapshot has read a table that was advanced past the newest transaction."""
    schedule = Incremental()
    schedule.begin_with_rows([])
    schedule.step(0)
    schedule.transaction([("orders", 1, "a")])
    schedule.world.scan(500)
    schedule.step(0)
    schedule.quiet_days(0)
    schedule.incremental_snapshot_is_asked_for("orders")
    takes(schedule, 0)
    return schedule


def test_a_blocking_snapshot_of_an_idle_database_replaces_rows_of_an_incremental_one():
    """Its rows stood at the newest transaction, behind which idle tables are advanced: they counted as the older ones.

    What changes here is what CDC misses, such as a partition switch; `check` advises such a snapshot.
    """
    schedule = read_while_idle()
    rows = schedule.world.server.tables["orders"].rows
    del rows[4]
    rows |= {6: "changed", 7: "switched in"}
    schedule.blocking_snapshot_is_asked_for("orders")
    with schedule.stack:
        for _ in range(8):
            schedule.world.scan(500)
            schedule.step(0)
        assert rows_by_the_log(schedule.world.database, "orders", keyed=True) == schedule.world.rows("orders")


def test_a_repair_of_an_idle_table_whose_change_log_was_restored_replaces_rows_of_an_incremental_snapshot():
    """Its stream does not go on, so that the repair stood at the newest transaction, before what the sweep is about."""
    schedule = read_while_idle()
    database = schedule.world.database
    with schedule.stack:
        assert restore_change_log(database, "orders", 2)
        schedule.step(0)
        schedule.blocking_snapshot_is_asked_for("orders")
        for _ in range(8):
            schedule.world.scan(500)
            schedule.step(0)
        assert rows_by_the_log(database, "orders", keyed=True) == schedule.world.rows("orders")


def test_emitted_rows_are_in_a_cut_although_a_closed_table_cannot_be_opened(schedule: Incremental):
    """Nothing would show them before the next change: only tables that are there hold back a cut."""
    schedule.begin_with_rows([])
    schedule.scan(4)
    schedule.steps(0, 3)
    schedule.blocking_snapshot_is_asked_for("people")
    schedule.step(0)
    schedule.incremental_snapshot_is_asked_for("orders")
    with unopened(schedule.world.database, "people"):
        for _ in range(5):
            schedule.steps(0, 2)
            schedule.scan(4)
        emitted = [row for row in change_log(schedule.world.database, "orders") if row["_snapshot"]]
        assert len(emitted) == 5
        log = change_log(schedule.world.database, "orders")
        emitted_rows_are_in_the_cut(schedule.world.database, "orders", log)


COMMIT = "mssql_cdc.lake.small_tables.commit"


def one_snapshot(schedule: Incremental, *, columns: int = 2) -> None:
    """The rows of a table wait to be read."""
    schedule.begin_with_rows([])
    schedule.step(0)
    schedule.transaction([("orders", 1, "a")])
    schedule.world.scan(500)
    schedule.step(0)
    if columns > 2:
        schedule.second_instance("orders")
        for value in "ba":
            schedule.world.scan(500)
            schedule.step(0)
            schedule.transaction([("orders", 1, value)])
        schedule.world.scan(500)
        schedule.step(0)
        schedule.world.disable("orders", oldest_only=True)
    schedule.incremental_snapshot_is_asked_for("orders")


def takes(schedule: Incremental, number: int) -> None:
    """A run takes steps until the snapshot has ended."""
    for _ in range(8):
        schedule.world.scan(500)
        schedule.step(number)
    assert not load(schedule.world.database).is_due


TOLD_OF_ORDERS = [
    ("STARTED", None),
    *[("IN_PROGRESS", key) for key in ("1", "4", "8")],
    ("TABLE_SCAN_COMPLETED", None),
    ("COMPLETED", None),
]


@pytest.mark.feature("NOT-04")
@pytest.mark.parametrize("call", range(1, 17))
def test_a_killed_snapshot_is_told_once_and_whole(schedule: Incremental, call: int):
    one_snapshot(schedule)
    with killed_at(COMMIT, call, after=False), suppress(Killed):
        takes(schedule, 0)
    takes(schedule, 1)
    assert schedule.told() == TOLD_OF_ORDERS


@pytest.mark.feature("NOT-04")
@pytest.mark.parametrize("call", range(1, 17))
def test_a_snapshot_that_two_runs_take_is_told_once_and_whole(schedule: Incremental, call: int):
    """The second run takes all that is left of it while the first one is in the middle of a step."""
    one_snapshot(schedule)
    real, calls = small_tables.commit, itertools.count(1)

    def overtaken(*arguments: Any, **more: Any) -> Any:
        if next(calls) == call:
            takes(schedule, 1)
        return real(*arguments, **more)

    with patch(COMMIT, overtaken):
        takes(schedule, 0)
    assert schedule.told() == TOLD_OF_ORDERS


def staged(schedule: Incremental, *, columns: int = 2) -> None:
    """The first group of `orders` waits, and the stream has passed it; the second of two runs has read it."""
    one_snapshot(schedule, columns=columns)
    for _ in range(6):
        schedule.step(1)
        reading = load(schedule.world.database).state.reading
        if reading is not None and reading.staged:
            break
    else:
        raise AssertionError("nothing is staged")
    for _ in range(2):
        schedule.world.scan(500)


def emitted(schedule: Incremental) -> list[tuple[str, str]]:
    """The keys and positions of the emitted rows of `orders`."""
    log = change_log(schedule.world.database, "orders")
    return sorted((row["_key"], row["_pos"]) for row in log if str(row["_snapshot"]).startswith("incremental"))


EMISSION = "mssql_cdc.capture.incremental.emission"


@pytest.mark.parametrize("at", ["_touched", "write_files", "commit", "append_offsets", "passed_groups", "is_stale"])
def test_a_group_that_two_runs_emit_at_once_is_emitted_once(schedule: Incremental, at: str):
    """The later one committed from a state behind the other's commit, which it had not asked what it holds."""
    staged(schedule)
    with happening_at(f"{EMISSION}.{at}", 1, lambda: schedule.step(0)):
        schedule.step(1)
    takes(schedule, 0)
    assert [key for key, _ in emitted(schedule)] == ["1:0", "1:1", "1:2", "1:4", "1:6", "1:8"]


@pytest.mark.parametrize("steps", range(1, 5))
@pytest.mark.parametrize("at", ["_touched", "write_files", "commit", "append_offsets", "passed_groups"])
def test_a_late_emission_of_a_group_that_was_given_up_is_fenced(schedule: Incremental, at: str, steps: int):
    """It counted as that of the group that was read in its place: rows of that were never emitted, and then swept."""
    staged(schedule, columns=3)
    world = schedule.world

    def another_structure() -> None:
        table = world.server.tables["orders"]
        table.columns = table.columns[:-1]
        world.enable("orders")
        for _ in range(2):
            world.scan(500)
        world.change(("orders", 2, None))  # Not captured yet: the group that is read again ends elsewhere.
        for _ in range(steps):
            schedule.step(0)

    with happening_at(f"{EMISSION}.{at}", 1, another_structure):
        schedule.step(1)
    takes(schedule, 0)
    by_the_log = rows_by_the_log(world.database, "orders", keyed=True)
    assert by_the_log == world.rows("orders")


@pytest.mark.feature("INC-06")
def test_rows_per_second_are_kept_by_all_runs_together(schedule: Incremental):
    """A chunk has two rows, and the limit is one row a second: whichever run comes next waits for two seconds."""
    unlimited = schedule.world.database
    settings = unlimited.connector.snapshot
    limited = replace(settings, incremental=replace(settings.incremental, max_rows_per_second=1))
    schedule.world.database = replace(unlimited, connector=replace(unlimited.connector, snapshot=limited))
    times = [datetime(2026, 1, 1, 12, tzinfo=UTC)]
    schedule.followers = [schedule._follower(number) for number in (0, 1)]
    for follower in schedule.followers:
        follower.chunks = IncrementalSnapshots(Clock(lambda: times[0]))
    one_snapshot(schedule)

    def rows() -> int:
        for number in (0, 1, 0, 1):
            schedule.world.scan(500)
            schedule.step(number)
        reading = load(schedule.world.database).state.reading
        return 6 if reading is None else reading.rows + sum(group.rows for group in reading.staged)

    found: list[int] = []
    for _ in range(8):
        found.append(rows())
        times[0] += timedelta(seconds=1)
    schedule.world.database = unlimited
    assert found == [2, 2, 4, 4, 6, 6, 6, 6]


@contextmanager
def uncommitted(schedule: Incremental, name: str) -> Iterator[None]:
    """The rows of a range are not written for one of its tables: its store does not answer."""
    real, uri = log.commit, home_of(schedule.world.database, name).changes

    def refused(state: TableState, *arguments: Any, **more: Any) -> TableState:
        if state.uri == uri:
            raise StorageError(f"{uri} cannot be reached")
        return real(state, *arguments, **more)

    with patch("mssql_cdc.capture.range.commit", refused):
        yield


def test_emitted_rows_leave_the_newest_witness_of_the_source(schedule: Incremental):
    """Another table is ahead of the one that is emitted: a restore between the two was not noticed (A7)."""
    staged(schedule)
    schedule.world.change(("orders", 8, "behind the end of what is staged"))
    schedule.world.scan(500)
    with killed_at(f"{EMISSION}.commit", 1, after=False), suppress(Killed):
        schedule.step(1)
    schedule.world.change(("people", 1, "ahead"))
    schedule.world.change(("orders", 9, "left behind"))
    schedule.world.scan(500)
    with uncommitted(schedule, "orders"):
        schedule.step(1)
    assert emitted(schedule)
    behind, ahead = (entry_of(schedule.world.database, name) for name in ("orders", "people"))
    assert behind is not None
    assert ahead is not None
    assert behind.to is not None
    assert ahead.to is not None
    assert behind.to < ahead.to
    witness = schedule.world.database.offsets().witness
    assert witness is not None
    assert witness.start_lsn.text == ahead.to


KEYS = ["1:0", "1:1", "1:2", "1:4", "1:6", "1:8"]


def keys(schedule: Incremental, name: str) -> list[str]:
    """The keys of the emitted rows of a table."""
    found = change_log(schedule.world.database, name)
    return sorted(row["_key"] for row in found if str(row["_snapshot"]).startswith("incremental"))


@pytest.mark.feature("INC-12")
def test_a_request_waits_for_a_table_that_cannot_be_captured_for_a_moment(schedule: Incremental):
    """Its signal was taken for one that nothing is left to do of; another table is read meanwhile."""
    one_snapshot(schedule)
    with unopened(schedule.world.database, "orders"):
        schedule.incremental_snapshot_is_asked_for("people")
        for _ in range(8):
            schedule.world.scan(500)
            schedule.step(0)
        assert keys(schedule, "people") == [one for one in KEYS if one != "1:1"]
    takes(schedule, 0)
    assert keys(schedule, "orders") == KEYS


@pytest.mark.feature("INC-11")
def test_a_snapshot_continues_after_a_moment_in_which_its_table_cannot_be_captured(schedule: Incremental):
    staged(schedule)
    with unopened(schedule.world.database, "orders"):
        schedule.steps(1, 3)
    takes(schedule, 1)
    assert keys(schedule, "orders") == KEYS
    assert schedule.told() == TOLD_OF_ORDERS


@pytest.mark.feature("INC-11", "INC-19")
def test_a_table_that_cannot_be_captured_any_more_holds_up_no_other(
    schedule: Incremental, monkeypatch: pytest.MonkeyPatch
):
    """All that were queued waited until somebody had mended it."""
    staged(schedule)
    schedule.incremental_snapshot_is_asked_for("people")
    monkeypatch.setattr(incremental, "AWAY_SECONDS", 0.0)
    with unopened(schedule.world.database, "orders"):
        for _ in range(8):
            schedule.world.scan(500)
            schedule.step(0)
        assert keys(schedule, "people") == [one for one in KEYS if one != "1:1"]
    takes(schedule, 0)
    assert keys(schedule, "orders") == KEYS


@pytest.mark.feature("INC-03", "INC-12")
def test_a_request_of_tables_that_are_not_captured_any_more_is_answered_with_the_reason(schedule: Incremental):
    lines: list[str] = []
    one_snapshot(schedule)
    takes(schedule, 0)
    ask_for_snapshot(schedule.world.database, "late", ["dbo.nothing"], channel="storm", kind="incremental")
    follower = schedule.followers[0]
    follower.database = replace(follower.database, log=lines.append)
    schedule.steps(0, 2)
    assert [line for line in lines if "late" in line] == [
        "signal late (execute-snapshot) is ignored: none of its tables is captured (dbo.nothing)"
    ]


@pytest.fixture
def renamed() -> Iterator[Incremental]:
    """A schedule whose tables have other names in the end: `orders` is read first, then `people`."""
    played = Incremental()
    with played.stack:
        one_snapshot(played)
        played.incremental_snapshot_is_asked_for("people")
        for _ in range(8):
            played.step(0)
            reading = load(played.world.database).state.reading
            if reading is not None and reading.staged:
                break
        played.world.rename("people", "persons")
        yield played


@pytest.mark.feature("INC-12")
def test_a_queued_table_is_read_under_the_name_that_it_has_in_its_turn(renamed: Incremental):
    takes(renamed, 0)
    assert keys(renamed, "persons") == [one for one in KEYS if one != "1:1"]


@pytest.mark.feature("INC-12")
def test_a_queued_table_is_read_although_another_one_has_its_name_by_then(renamed: Incremental):
    renamed.world.rename("notes", "people")
    takes(renamed, 0)
    assert keys(renamed, "persons") == [one for one in KEYS if one != "1:1"]
    assert keys(renamed, "people") == []


@pytest.mark.feature("INC-13")
@pytest.mark.parametrize(("name", "others"), [("persons", "orders"), ("bought", "persons")])
def test_a_stop_names_tables_as_they_are_called_now(renamed: Incremental, name: str, others: str):
    if name == "bought":
        renamed.world.rename("orders", "bought")
    stop = json.dumps({"type": "incremental", "data-collections": [f"shop.dbo.{name}"]})
    note_signal(renamed.world.database, SignalRow("stop", "stop-snapshot", stop), "storm", REQUESTED, "")
    takes(renamed, 0)
    assert keys(renamed, name) == []
    assert keys(renamed, others) != []
