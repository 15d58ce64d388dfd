"""`records --follow` behind a full pipe: what its reader does not take waits there, and in the lake."""

from __future__ import annotations

import time

import pytest

from mssql_cdc_tests.end_to_end.followed import Followed, followed, keys_of
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = pytest.mark.slow
ROWS = 200
"""Their records are several times as large as a pipe."""


@pytest.fixture
def items(place: Place) -> Place:
    """A captured table whose records fill a pipe."""
    place.create("items", "id int NOT NULL PRIMARY KEY, note nvarchar(2000) NULL")
    place.sql(
        *(f"INSERT INTO dbo.items VALUES ({number}, REPLICATE(N'x', 2000))" for number in range(ROWS)),
    )
    place.settle()
    return place


@pytest.mark.feature("ERR-05")
def test_reader_that_stops_for_a_while_gets_every_record_once_and_in_order(items: Place):
    items.configure(max_queue_size="60", max_batch_size="20")
    with followed(items, reads=False) as found:
        found.wait_for(lambda one: any(event.get("state") == "completed" for event in one.events))
        items.sql(f"INSERT INTO dbo.items VALUES ({ROWS}, N'meanwhile')")
        found.wait_for(lambda one: capacities(one)[-1:] == [0])  # As many records as the queue holds wait for the pipe.
        time.sleep(1)  # Nothing tells from outside that a write waits; a shorter time shows less and breaks nothing.
        assert found.process.poll() is None
        found.begin_to_read()
        assert keys_of(found.changes(ROWS + 1)) == [*(("r", number) for number in range(ROWS)), ("c", ROWS)]
        found.wait_for(lambda one: capacities(one)[-1:] == [60])
        assert found.end() == 0


def capacities(found: Followed) -> list[int]:
    """QueueRemainingCapacity over time."""
    metrics = [one["values"] for one in found.events if one["event"] == "metrics" and one["context"] == "streaming"]
    return [one["QueueRemainingCapacity"] for one in metrics]


def test_a_run_that_waits_for_its_reader_can_be_stopped(items: Place):
    with followed(items, reads=False) as found:
        found.wait_for(lambda one: any(event["event"] == "snapshot" for event in one.events))
        time.sleep(2)
        found.process.terminate()
        assert found.ended(timeout=30) == 0
