"""Random schedules of incremental snapshots: each row that they emit is one that the source had at its position."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test

from mssql_cdc.capture.incremental.store import load
from mssql_cdc_tests.storm.incremental import Incremental
from mssql_cdc_tests.storm.lake import change_log, unopened


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
    schedule.steps(0, 2)
    reading = load(schedule.world.database).state.reading
    assert reading is not None
    assert reading.staged


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
        schedule._emitted_rows_are_in_the_cut("orders")
