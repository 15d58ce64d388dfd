"""`records --follow` tells of notifications: as events, and with the channel `sink` as records."""

from __future__ import annotations

from typing import Any

import pytest

from mssql_cdc_tests.end_to_end.followed import Followed, followed
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = pytest.mark.slow
TOPIC = "told"


def types(found: Followed, aggregate: str) -> list[str]:
    """The types of the notifications among the records."""
    values = [one["value"]["payload"] for one in found.records if one["topic"] == TOPIC]
    return [one["type"] for one in values if one["aggregate_type"] == aggregate]


def events(found: Followed, name: str, **members: Any) -> list[dict[str, Any]]:
    return [one for one in found.events if one["event"] == name and members.items() <= one.items()]


@pytest.mark.feature("NOT-01", "NOT-03", "NOT-04")
def test_follow_tells_of_snapshots_in_events_and_sink_records(place: Place) -> None:
    place.configure(**{"notification.enabled.channels": "sink", "notification.sink.topic.name": TOPIC})
    place.create("items", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.items VALUES (1, N'one'), (2, N'two')")
    place.settle()
    items = f"{place.database}.dbo.items"
    with followed(place, control=True) as found:
        found.wait_for(lambda one: "COMPLETED" in types(one, "Initial Snapshot"))
        data = {"type": "incremental", "data-collections": [items]}
        found.command(command="signal", id="i1", type="execute-snapshot", data=data)
        found.wait_for(lambda one: "COMPLETED" in types(one, "Incremental Snapshot"))
        assert found.end() == 0
    assert types(found, "Initial Snapshot") == ["STARTED", "IN_PROGRESS", "TABLE_SCAN_COMPLETED", "COMPLETED"]
    assert types(found, "Incremental Snapshot")[0] == "STARTED"
    told = [one["value"]["payload"] for one in found.records if one["topic"] == TOPIC]
    shown = [{k: v for k, v in one.items() if k not in {"event", "database"}} for one in events(found, "notification")]
    assert sorted(shown, key=str) == sorted(told, key=str)
    assert {one["database"] for one in events(found, "notification")} == {place.database}
    states = [one["state"] for one in events(found, "snapshot", kind="incremental")]
    assert (states[0], states[-1]) == ("started", "completed")
    (table,) = events(found, "snapshot", kind="incremental", state="table")
    assert (table["id"], table["table"], table["rows"], table["status"]) == ("i1", items, 2, "SUCCEEDED")
    assert events(found, "snapshot", kind="incremental", state="progress")[0]["table"] == items
