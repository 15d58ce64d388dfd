"""Notifications as records: where they stand, and that each is written once (NOT-01, NOT-02)."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.lake import small_tables
from mssql_cdc.lake.known_states import KnownTables
from mssql_cdc.lake.small_tables import small_table
from mssql_cdc.lake.steps import SnapshotBegun, SnapshotEnded
from mssql_cdc.lsn import cut_text
from mssql_cdc.records import JsonLinesStream, database_records, write_records
from mssql_cdc.records.notifications import notices
from mssql_cdc.records.state import StreamState
from mssql_cdc.records.write import Resumed, records_behind
from mssql_cdc.source.values import LogMark
from mssql_cdc_tests.lake_kit import AT, Change, lsn
from mssql_cdc_tests.unit.config.samples import MINIMAL, problems_of
from mssql_cdc_tests.unit.records.kit import DATABASE, Lake, Looked, table
from mssql_cdc_tests.unit.records.test_resume import behind

SINK = {"notification.enabled.channels": "sink", "notification.sink.topic.name": "told"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(tmp_path, SINK)
    found.add(table("a"))
    return found


def tell(lake: Lake, kind: str, *, minutes: float, aggregate: str = "Initial Snapshot") -> None:
    """Write a notification so many minutes after the usual time of a cut."""
    target = small_table(lake.layout, "notifications")
    at = int((AT + timedelta(minutes=minutes)).timestamp() * 1000)
    row = {
        "id": "n", "aggregate_type": aggregate, "type": kind, "additional_data": [("connector_name", "server1")],
        "timestamp_ms": at,
    }  # fmt: skip
    target.append(target.state(), [row], {"kind": "notifications"})


def shown(records: list[dict[str, Any]]) -> list[Any]:
    """The types of notifications among the keys of rows."""
    kept = [one for one in records if one["topic"] != "server1"]
    return [one["value"]["type"] if one["topic"] == "told" else one["key"]["id"] for one in kept]


def play(lake: Lake) -> None:
    """A snapshot's notifications around a row, and others behind the second cut."""
    tell(lake, "STARTED", minutes=-2)
    tell(lake, "IN_PROGRESS", minutes=-1)
    lake.append(table("a"), Change(5, "c", after={"id": 1}))
    tell(lake, "TABLE_SCAN_COMPLETED", minutes=-0.5)
    lake.cut(5)
    tell(lake, "COMPLETED", minutes=1)
    lake.append(table("a"), Change(6, "c", after={"id": 2}))
    lake.cut(6, minutes=2)
    tell(lake, "PAUSED", minutes=3, aggregate="Incremental Snapshot")


def test_what_debezium_does_not_tell_is_no_record(lake: Lake) -> None:
    tell(lake, "STARTED", minutes=-2)
    tell(lake, "CONTINUED", minutes=-1, aggregate="Delta Column")
    lake.append(table("a"), Change(5, "c", after={"id": 1}))
    lake.cut(5)
    assert shown(lake.records()) == ["STARTED", 1]


@pytest.mark.feature("NOT-02")
def test_notification_comes_after_what_was_captured_before_it(lake: Lake) -> None:
    play(lake)
    records = lake.records()
    assert shown(records) == ["STARTED", "IN_PROGRESS", 1, "TABLE_SCAN_COMPLETED", 2, "COMPLETED", "PAUSED"]
    first, last = records[0], records[-1]
    assert (first["key"], first["partition"], first["headers"], first["sourceOffset"]) == ({"id": "n"}, None, {}, {})
    assert first["value"] == {
        "id": "n", "type": "STARTED", "aggregate_type": "Initial Snapshot",
        "additional_data": {"connector_name": "server1"},
        "timestamp": int((AT - timedelta(minutes=2)).timestamp() * 1000),
    }  # fmt: skip
    assert last["sourceOffset"] == next(one for one in records if one["key"] == {"id": 2})["sourceOffset"]


@pytest.mark.feature("NOT-01")
def test_without_the_channel_there_are_no_records_of_notifications(lake: Lake) -> None:
    play(lake)
    lake.properties = {}
    assert shown(lake.records()) == [1, 2]


@pytest.mark.feature("NOT-02")
def test_stream_that_goes_on_writes_each_notification_once(lake: Lake) -> None:
    play(lake)
    whole = list(database_records(lake.connector, DATABASE))
    topics = [topic for one in whole for topic in one.records.column("topic").to_pylist()]
    assert topics.count("told") == 5
    state = whole[-1].state
    assert not [one for one in database_records(lake.connector, DATABASE, state=state) if one.records.num_rows]
    tell(lake, "RESUMED", minutes=4, aggregate="Incremental Snapshot")
    (more,) = [one for one in database_records(lake.connector, DATABASE, state=state) if one.records.num_rows]
    assert [json.loads(text)["type"] for text in more.records.column("value").to_pylist()] == ["RESUMED"]


@pytest.mark.feature("NOT-01")
def test_channel_that_is_enabled_later_does_not_write_what_was_before(lake: Lake) -> None:
    play(lake)
    lake.properties = {}
    state = list(database_records(lake.connector, DATABASE))[-1].state
    lake.properties = SINK
    tell(lake, "RESUMED", minutes=4, aggregate="Incremental Snapshot")
    lake.append(table("a"), Change(7, "c", after={"id": 3}))
    lake.cut(7, minutes=5)
    found = [one for one in database_records(lake.connector, DATABASE, state=state) if one.records.num_rows]
    assert [text for one in found for text in one.records.column("topic").to_pylist()] == ["server1.testDB1.dbo.a"]
    tell(lake, "STARTED", minutes=6)
    more = list(database_records(lake.connector, DATABASE, state=found[-1].state))
    assert [text for one in more for text in one.records.column("topic").to_pylist()] == ["told"]


@pytest.mark.feature("NOT-02")
def test_first_notification_of_an_idle_database_is_written(lake: Lake) -> None:
    lake.append(table("a"), Change(5, "c", after={"id": 1}))
    lake.cut(5)
    state = list(database_records(lake.connector, DATABASE))[-1].state
    tell(lake, "STARTED", minutes=1)
    found = list(database_records(lake.connector, DATABASE, state=state))
    assert [text for one in found for text in one.records.column("topic").to_pylist()] == ["told"]


@pytest.mark.feature("NOT-02", "STR-04")
def test_consumer_gets_no_notification_again_whatever_debezium_does_not_tell(lake: Lake) -> None:
    lake.properties = {**SINK, "include.schema.changes": False}
    tell(lake, "CONTINUED", minutes=-2, aggregate="Delta Column")
    lake.append(table("a"), Change(5, "c", after={"id": 1}))
    lake.cut(5)
    tell(lake, "STARTED", minutes=1)
    lake.append(table("a"), Change(6, "c", after={"id": 2}))
    lake.cut(6, minutes=2)
    lake.append(table("a"), Change(7, "c", after={"id": 3}))
    lake.cut(7, minutes=3)
    records = lake.records()
    assert shown(records) == [1, "STARTED", 2, 3]
    for place, record in enumerate(records):
        if record["topic"] != "told":
            assert behind(lake, record["sourceOffset"]) == records[place + 1 :], place


@pytest.mark.feature("NOT-01")
def test_sink_without_a_topic_is_refused_and_with_one_renders(lake: Lake) -> None:
    found = problems_of(MINIMAL | {"notification.enabled.channels": "sink"})
    assert "notification.sink.topic.name: is required with the notification channel sink" in found
    lake.cut(1)
    assert lake.connector.unrendered == lake.connector.notices == ()
    assert write_records(lake.connector, output=JsonLinesStream(io.BytesIO())) >= 0


@pytest.mark.feature("NOT-02")
def test_looking_for_notifications_costs_what_is_new(tmp_path: Path) -> None:
    """Each of all notifications went through all cuts that were ever made, at every look of `records --follow`."""
    cuts, at = Looked(1_000_000), int(AT.timestamp() * 1000)
    rows = [
        {"id": "n", "aggregate_type": "Incremental Snapshot", "type": kind, "additional_data": [], "timestamp_ms": told}
        for told in range(at + 500, at + 500_000, 1_000)
        for kind in ("IN_PROGRESS", "TABLE_SCAN_COMPLETED")
    ]
    whole = notices(rows, cuts)
    assert [one.position for one in whole[:4]] == [cut_text(0, lsn(n)) for n in (1, 2, 2, 3)]
    assert cuts.looks < len(rows) * 50
    cuts.looks = 0
    (last,) = notices(rows[-1:], cuts, number=len(rows))
    assert last == whole[-1]
    assert cuts.looks < 50


@pytest.mark.feature("NOT-02", "BLK-05")
def test_the_end_of_a_blocking_snapshot_comes_after_its_rows_whenever_records_are_rendered(lake: Lake) -> None:
    """`records --follow` renders at each notification: the end was a record before the rows."""
    lake.properties = {**SINK, "include.schema.changes": False}
    a = table("a")
    lake.append(a, Change(5, "c", after={"id": 1}))
    lake.cut(5)

    def render(state: StreamState | None) -> tuple[list[Any], StreamState]:
        found = list(database_records(lake.connector, DATABASE, state=state))
        rows = [row for one in found for row in one.records.select(["topic", "key", "value"]).to_pylist()]
        told = [json.loads(row["value"])["type"] if row["topic"] == "told" else json.loads(row["key"]) for row in rows]
        return told, found[-1].state

    first, state = render(None)
    begun = SnapshotBegun(snapshot="again", number=2, signal="s1@4:0001")
    lake.cut(5, complete=False, kind="snapshot", partition="again", facts=begun, status="snapshot", minutes=1)
    lake.append(a, Change(6, "r", after={"id": 1}, snapshot=2), snapshot="2")
    tell(lake, "STARTED", minutes=1)
    tell(lake, "TABLE_SCAN_COMPLETED", minutes=2)
    tell(lake, "COMPLETED", minutes=2)
    during, state = render(state)
    ended = SnapshotEnded(
        table=a.table_id.text, snapshot="again", number=2, signal="s1@4:0001", mark=LogMark(lsn(6)), low=lsn(5).text
    )
    lake.cut(5, complete=False, kind="snapshot", partition="again", facts=ended, minutes=2)
    between, state = render(state)
    lake.cut(6, minutes=3)
    behind_it, state = render(state)
    assert (first, during, between) == ([{"id": 1}], ["STARTED"], [])
    assert behind_it == [{"id": 1}, "TABLE_SCAN_COMPLETED", "COMPLETED"]
    tell(lake, "COMPLETED", minutes=4, aggregate="Incremental Snapshot")
    assert render(state)[0] == ["COMPLETED"], "an idle database has no further cut"


def test_notifications_that_are_known_are_not_read_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.append(table("a"), Change(5, "c", after={"id": 1}))
    lake.cut(5)
    known, read = KnownTables(), list[int]()
    ordered = small_tables.ordered
    for number in range(1, 5):
        tell(lake, f"KIND {number}", minutes=number)

    def noted(uri: str, **more: Any) -> Any:
        if uri.endswith("_notifications"):
            read.append(more["batches"].after)
        return ordered(uri, **more)

    monkeypatch.setattr(small_tables, "ordered", noted)

    def kinds(state: StreamState | None) -> tuple[list[str], StreamState]:
        found = list(records_behind(lake.connector, DATABASE, Resumed(state), known=known))
        rows = [row for one in found for row in one.records.select(["topic", "value"]).to_pylist()]
        return [json.loads(one["value"])["type"] for one in rows if one["topic"] == "told"], found[-1].state

    told, state = kinds(None)
    assert told == [f"KIND {number}" for number in range(1, 5)]
    read.clear()
    assert (kinds(state)[0], read) == ([], [])
    tell(lake, "KIND 5", minutes=5)
    assert kinds(state)[0] == ["KIND 5"]
    assert len(read) == 1
    assert 0 not in read
