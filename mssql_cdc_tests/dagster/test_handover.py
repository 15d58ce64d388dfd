"""How one continuous run ends and the next one takes over; the lake's fence is tested elsewhere."""

from __future__ import annotations

import time

import dagster as dg

from mssql_cdc.defs.handover import HANDED_OVER, HANDING_OVER, STATE_TAG, STREAMING, Handover, lead_seconds

LIMIT = 600


def launched(instance: dg.DagsterInstance, status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED) -> dg.DagsterRun:
    return instance.add_run(dg.DagsterRun(job_name="stream", status=status, tags={STATE_TAG: STREAMING}))


def after(instance: dg.DagsterInstance, run: dg.DagsterRun, seconds: float) -> Handover:
    """The part of a run that has been streaming for so long."""
    return Handover(instance, run, LIMIT, started=time.monotonic() - seconds)


def state(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str | None:
    found = instance.get_run_by_id(run.run_id)
    return found.tags.get(STATE_TAG) if found is not None else None


def test_a_run_goes_on_until_its_time_is_over(instance):
    run = launched(instance)
    assert not after(instance, run, LIMIT - 1).is_over()
    assert after(instance, run, LIMIT).is_over()


def test_a_run_waits_for_a_successor_that_has_been_requested_but_not_for_ever(instance):
    run = launched(instance)
    launched(instance, dg.DagsterRunStatus.STARTING)
    assert not after(instance, run, LIMIT + 60).is_over()
    assert after(instance, run, LIMIT + 120).is_over()


def test_a_run_ends_when_its_successor_is_ready(instance):
    first, second = launched(instance), launched(instance)
    successor = after(instance, second, 0)
    runs = successor.take_over()
    assert runs == [first.run_id]
    assert state(instance, first) == HANDING_OVER
    assert not successor.has_taken_over(runs)
    predecessor = after(instance, first, LIMIT - lead_seconds(LIMIT) / 2)
    assert predecessor.is_over()
    predecessor.end()
    assert state(instance, first) == HANDED_OVER
    assert successor.has_taken_over(runs)
    assert successor.predecessors() == []


def test_a_run_that_was_executed_again_streams_although_it_has_the_tags_of_one_that_has_ended(instance):
    """Dagster copies them: the sensor did not see it, and requested another run beside it."""
    made = dg.DagsterRun(job_name="stream", status=dg.DagsterRunStatus.STARTED, tags={STATE_TAG: HANDED_OVER})
    run = instance.add_run(made)
    after(instance, run, 0).begin()
    assert state(instance, run) == STREAMING


def test_a_run_that_died_is_not_waited_for(instance):
    first, second = launched(instance), launched(instance)
    successor = after(instance, second, 0)
    runs = successor.take_over()
    instance.report_run_failed(first)
    assert successor.has_taken_over(runs)


def test_runs_of_other_databases_are_left_alone(instance):
    instance.add_run(dg.DagsterRun(job_name="other", status=dg.DagsterRunStatus.STARTED, tags={STATE_TAG: STREAMING}))
    assert after(instance, launched(instance), 0).take_over() == []
