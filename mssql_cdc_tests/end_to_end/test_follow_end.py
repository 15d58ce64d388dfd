"""`records --follow` ends when it is told to, whatever it waits for, and goes on after errors that pass."""

from __future__ import annotations

import re
import time

import pytest

from mssql_cdc.config import load_connector
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc_tests.end_to_end.followed import Followed, data_of, follow, followed
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = pytest.mark.slow
LONG = 30
"""Seconds that the end may take here; what holds it up takes far longer."""


@pytest.fixture
def items(place: Place) -> Place:
    """A place with a captured table."""
    place.configure(retriable_restart_connector_wait_ms="200")
    place.create("items", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.items VALUES (-1)")
    place.settle()
    return place


def streams(found: Followed) -> bool:
    return any(one["event"] == "streaming" for one in found.events)


def ends(found: Followed) -> list[str]:
    """How the process says that it ended."""
    codes = [one.get("code") for one in found.events]
    return [one for one in codes if one in {"ended", "ended-by-force"}]


def said(found: Followed, piece: str) -> bool:
    return any(piece in one["message"] for one in found.events if one["event"] == "log")


@pytest.mark.sandbox
def test_sigterm_ends_a_process_that_waits_for_the_server(items: Place):
    """The signal ends the driver's call with an error, which is nothing to try again after."""
    with followed(items) as found:
        found.wait_for(streams)
        items.sql("EXEC sandbox.delay_statement @pattern = N'lsn_time_mapping', @seconds = 300, @times = 1")
        time.sleep(3)  # Nothing tells from outside that a statement waits.
        found.process.terminate()
        assert found.ended(timeout=LONG) == 0
    assert not [one for one in found.events if one["event"] in {"retry", "error"}]
    assert len(ends(found)) == 1, "by itself, or by force when the time was over"


def test_sigterm_ends_a_process_whose_streams_are_closed(items: Place):
    """Java's Process.destroy closes them behind the signal; the process ended with SIGSEGV then."""
    process = follow(items, control=True)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    for line in process.stderr:
        if '"event": "streaming"' in line:
            break
    process.terminate()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()
    assert process.wait(LONG) == 0


@pytest.mark.sandbox
def test_sigterm_ends_a_process_whose_spark_starts(items: Place):
    with followed(items) as found:
        found.wait_for(streams)
        items.sql("EXEC sandbox.huge_transaction @table = N'dbo.items', @rows = 100001, @first = 1")
        found.wait_for(lambda one: said(one, "starting Spark"))
        found.process.terminate()
        assert found.ended(timeout=LONG) == 0
    assert len(ends(found)) == 1


def test_a_process_that_waits_for_nothing_says_how_long_its_end_took(items: Place):
    with followed(items) as found:
        found.wait_for(streams)
        assert found.end() == 0
    assert ends(found) == ["ended"]
    assert re.fullmatch(r"The process ends \d+\.\d s after SIGTERM", found.events[-1]["message"])


@pytest.mark.sandbox
@pytest.mark.feature("ERR-02")
def test_an_error_that_passes_is_a_retry(items: Place):
    with followed(items) as found:
        found.wait_for(streams)
        items.sql("EXEC sandbox.cut_connection @pattern = N'lsn_time_mapping', @when = N'unanswered', @times = 3")
        found.wait_for(lambda one: any(event["event"] == "retry" for event in one.events))
        items.sql("INSERT INTO dbo.items VALUES (1)")
        found.changes(2)
        found.wait_for(lambda one: connected(one)[-1])
        assert found.end() == 0
    retry = next(one for one in found.events if one["event"] == "retry")
    assert (retry["database"], retry["code"]) == (items.database, "SourceUnavailableError")
    assert retry["message"]
    assert False in connected(found)
    assert not [one for one in found.events if one["event"] == "error"]


@pytest.mark.sandbox
@pytest.mark.feature("ERR-02")
def test_an_error_that_nobody_foresaw_is_a_retry_once_the_source_was_surveyed(items: Place):
    """As with Debezium, which retries every SQLException; `classify` does not know all that passes."""
    with followed(items) as found:
        found.wait_for(streams)
        items.sql("EXEC sandbox.fail_statement @pattern = N'lsn_time_mapping', @number = 8134, @times = 2")
        found.wait_for(lambda one: any(event["event"] == "retry" for event in one.events))
        items.sql("INSERT INTO dbo.items VALUES (1)")
        found.changes(2)
        assert found.end() == 0
    assert {one["code"] for one in found.events if one["event"] == "retry"} == {"SourceError"}
    assert not [one for one in found.events if one["event"] == "error"]


def connected(found: Followed) -> list[bool]:
    metrics = [one for one in found.events if one["event"] == "metrics" and one["context"] == "streaming"]
    return [one["values"]["Connected"] for one in metrics]


@pytest.mark.long
@pytest.mark.feature("ERR-03")
def test_an_attempt_that_succeeds_begins_the_count_of_retries_anew(items: Place):
    items.configure(errors_max_retries="1")
    with followed(items) as found:
        found.wait_for(streams)
        for number in (1, 2):
            items.sql("EXEC sandbox.cut_connection @pattern = N'lsn_time_mapping', @when = N'unanswered', @times = 1")
            found.wait_for(lambda one, wanted=number: retries_of(one) == wanted)
            items.sql(f"INSERT INTO dbo.items VALUES ({number})")
            found.wait_for(lambda one, wanted=number + 1: len(data_of(one.records)) == wanted)
        assert found.end() == 0


def retries_of(found: Followed) -> int:
    return sum(event["event"] == "retry" for event in found.events)


def test_one_of_several_databases_that_breaks_is_retried_and_the_other_goes_on(items: Place):
    other = items.second_database()
    with control(load_connector(items.config).connection, other) as opened:
        items.configure(database_names=f"{other},{items.database}")
        with followed(items, control=True) as found:
            found.wait_for(lambda one: sum(event["event"] == "streaming" for event in one.events) == 2)
            data = {"data-collections": [f"{items.database}.dbo.items"]}
            found.command(command="signal", id="one", type="execute-snapshot", data=data)
            found.wait_for(lambda one: any(event.get("id") == "one" and event.get("state") == "completed"
                                           for event in one.events))  # fmt: skip
            opened.execute("EXEC sys.sp_cdc_disable_db", doing="preparing a test")
            items.sql("INSERT INTO dbo.items VALUES (1)")
            found.wait_for(lambda one: any(event.get("code") == "database-left-out" for event in one.events))
            found.wait_for(lambda one: len(data_of(one.records)) == 3)
            assert found.end() == 0
    assert {one["database"] for one in found.events if one.get("id") == "one"} == {items.database}
    retries = [one for one in found.events if one["event"] == "retry"]
    assert {retry["database"] for retry in retries} == {other}
    assert "CDC " in retries[-1]["message"]
