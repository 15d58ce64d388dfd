"""The log of `records --follow`: what Debezium warns of is an event with a level and a code; nothing else is said."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.end_to_end.followed import Followed, followed
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = pytest.mark.slow


def codes(found: Followed) -> dict[str, str]:
    """The level of each code in the log."""
    told = [one for one in found.events if one["event"] == "log" and "code" in one]
    return {one["code"]: one["level"] for one in told if not one["code"].startswith("ended")}


@pytest.mark.feature("GRD-02", "SIG-09", "SPI-10")
def test_warnings_are_events_with_a_level_and_a_code(place: Place):
    place.configure(
        post_processors="again",
        again_type="io.debezium.processors.reselect.ReselectColumnsPostProcessor",
        guardrail_collections_max="1",
        tasks_max="1",
        schema_name_adjustment_mode="avro",
        column_propagate_source_type=".*",
    )
    place.create("items", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.create("others", "id int NOT NULL PRIMARY KEY, name varchar(9) COLLATE Cyrillic_General_CI_AS NULL")
    place.settle()
    with followed(place, control=True) as found:
        found.wait_for(lambda one: any(event["event"] == "streaming" for event in one.events))
        place.sql("BEGIN TRAN; INSERT INTO dbo.items VALUES (3, NULL); DELETE dbo.items WHERE id = 3; COMMIT")
        found.changes(2)
        found.command(command="signal", id="1", type="dance", data={})
        found.command(command="signal", id="2", type="log", data={"message": "hello at {}"})
        found.wait_for(lambda one: "signal-log" in codes(one))
        assert found.end() == 0
    assert codes(found) == {
        "property-notice": "WARN",
        "guardrail-exceeded": "WARN",
        "doubtful-column": "WARN",
        "reselect-row-missing": "WARN",
        "signal-ignored": "WARN",
        "signal-log": "INFO",
    }
    notices = [one["message"] for one in found.events if one.get("code") == "property-notice"]
    assert notices == ["tasks.max has no meaning here"], "records have schemas here, so the other two have an effect"
    said = {one["code"]: one["message"] for one in found.events if "code" in one}
    assert "2 tables configured for capture" in said["guardrail-exceeded"]
    assert "'dance' is not known" in said["signal-ignored"]
    assert "hello at {event_serial_no=" in said["signal-log"]


@pytest.mark.sandbox
@pytest.mark.feature("STR-14")
def test_an_agent_that_stops_is_an_error_of_the_log_told_once(place: Place):
    place.create("items", "id int NOT NULL PRIMARY KEY")
    place.settle()
    try:
        with followed(place) as found:
            found.wait_for(lambda one: any(event["event"] == "streaming" for event in one.events))
            place.sql("EXEC sandbox.agent_stop", "EXEC sandbox.advance_clock @seconds = 300")
            found.wait_for(lambda one: "agent-not-running" in codes(one))
            place.sql("EXEC sandbox.agent_start", "INSERT INTO dbo.items VALUES (1)")
            found.changes(1)
            assert found.end() == 0
    finally:
        place.sql("EXEC sandbox.agent_start")
    told = [one for one in found.events if one.get("code") == "agent-not-running"]
    assert [(one["level"], one["message"].split("; ")[-1]) for one in told] == [
        ("ERROR", "SQL Server Agent is not running: start it")
    ]
