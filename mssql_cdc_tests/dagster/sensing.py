"""Helpers of the sensor tests."""

from __future__ import annotations

import time

import dagster as dg
from dagster._core.events import EngineEventData

from mssql_cdc.defs.runs import ATTEMPT_TAG
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.lake.steps import Entry
from mssql_cdc.schema import TableId
from mssql_cdc_tests.dagster.kit import Location


def ask(location: Location) -> dg.RunRequest:
    """The only run that the sensor requests now."""
    location.shop.scan()
    result = location.tick()
    assert result.skip_message is None, result.skip_message
    (request,) = location.requests
    return request


def begin(location: Location, request: dg.RunRequest, *, seconds_ago: float = 0) -> dg.DagsterRun:
    """Record that the requested run has begun, and its step."""
    run = location.launch(request, dg.DagsterRunStatus.STARTING)
    for kind in (dg.DagsterEventType.RUN_START, dg.DagsterEventType.STEP_START):
        report(location, run, kind, seconds_ago=seconds_ago)
    return run


def report(location: Location, run: dg.DagsterRun, kind: dg.DagsterEventType, *, seconds_ago: float = 0) -> None:
    """Store an event of a run."""
    data = EngineEventData() if kind is dg.DagsterEventType.ENGINE_EVENT else None
    event = dg.DagsterEvent(event_type_value=kind.value, job_name=run.job_name, event_specific_data=data)
    location.instance.report_dagster_event(event, run.run_id, timestamp=time.time() - seconds_ago)


def attempt(request: dg.RunRequest) -> int:
    """How often this was requested, including this time."""
    return int(request.tags.get(ATTEMPT_TAG, "1"))


def entry(location: Location, name: str) -> Entry:
    database = location.database()
    return load_offsets(database.layout, database.storage).entries[TableId(location.shop.catalog, "dbo", name).text]
