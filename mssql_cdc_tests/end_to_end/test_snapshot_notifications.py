"""The notifications of initial and blocking snapshots: what is told, when, and once each."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from mssql_cdc.capture.snapshot import begin, chunk_groups, take
from mssql_cdc.config import load_connector
from mssql_cdc.errors import SchemaError, SourceUnavailableError
from mssql_cdc.run.databases import open_databases
from mssql_cdc.run.follower import Follower
from mssql_cdc.serve.events import Events
from mssql_cdc.serve.sent import Sent
from mssql_cdc.serve.watch import Watch
from mssql_cdc.source.sqlserver import positions
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_signals import own_rows
from mssql_cdc_tests.storm.lake import Killed, killed_at

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def chunked(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Two tables of five rows and one, read in groups of one chunk of two rows."""
    monkeypatch.setattr(take, "CHUNK_ROWS", 2)
    monkeypatch.setattr(take, "GROUP_CHUNKS", 1)
    place.configure()
    place.create("items", "id int NOT NULL PRIMARY KEY")
    place.create("others", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.items VALUES (1), (2), (3), (4), (5)", "INSERT INTO dbo.others VALUES (1)")
    place.settle()
    return place


def told(place: Place, *, of: str = "Initial Snapshot") -> list[tuple[str, str | None]]:
    """The types of the notifications and the tables that they are about."""
    return [(row["type"], _table(dict(row["additional_data"]))) for row in notifications(place, of=of)]


def notifications(place: Place, *, of: str = "Initial Snapshot") -> list[dict[str, Any]]:
    query = f"SELECT * FROM t WHERE aggregate_type = '{of}' ORDER BY _batch, timestamp_ms"
    return own_rows(place, "notifications", query)


def _table(data: dict[str, str]) -> str | None:
    name = data.get("current_collection_in_progress") or data.get("scanned_collection")
    return name.rpartition(".")[2] if name else None


@pytest.mark.feature("NOT-03")
def test_a_table_is_told_to_be_in_progress_once_before_it_is_read(chunked: Place):
    assert chunked.catch_up() == 0
    assert told(chunked) == [
        ("STARTED", None),
        ("IN_PROGRESS", "others"),
        ("TABLE_SCAN_COMPLETED", "others"),
        ("IN_PROGRESS", "items"),
        ("TABLE_SCAN_COMPLETED", "items"),
        ("COMPLETED", None),
    ]


@pytest.mark.feature("NOT-03", "SNP-35")
@pytest.mark.parametrize(
    ("step", "call", "after"),
    [
        pytest.param("begin._write_status", 1, False, marks=pytest.mark.long),
        ("begin._write_status", 1, True),
        ("chunk_groups.commit", 3, False),
        pytest.param("chunk_groups.commit", 3, True, marks=pytest.mark.long),
        ("finish._write_end", 1, True),
        pytest.param("finish._write_end", 2, False, marks=pytest.mark.long),
        ("finish._write_end", 2, True),
    ],
)
def test_a_killed_snapshot_is_told_once_and_whole(chunked: Place, step: str, call: int, after: bool):  # noqa: FBT001
    with killed_at(f"mssql_cdc.capture.snapshot.{step}", call, after=after), pytest.raises(Killed):
        chunked.catch_up()
    assert chunked.catch_up() == 0
    assert sorted(told(chunked), key=str) == sorted(
        [
            ("STARTED", None),
            *[(kind, name) for name in ("items", "others") for kind in ("IN_PROGRESS", "TABLE_SCAN_COMPLETED")],
            ("COMPLETED", None),
        ],
        key=str,
    )
    rows = notifications(chunked)
    assert (rows[0]["type"], rows[-1]["type"]) == ("STARTED", "COMPLETED")
    assert len({row["id"] for row in rows}) == 1
    data = [dict(row["additional_data"]) for row in rows]
    both = ",".join(f"{chunked.database}.dbo.{name}" for name in ("items", "others"))
    assert {one["data_collections"] for one in data if "data_collections" in one} == {both}
    scanned = {one["scanned_collection"]: one for one in data if "scanned_collection" in one}
    assert {name.rpartition(".")[2]: one["total_rows_scanned"] for name, one in scanned.items()} == {
        "items": "5",
        "others": "1",
    }


@pytest.mark.feature("NOT-03", "BLK-06")
def test_a_requested_snapshot_that_is_given_up_is_aborted(place: Place):
    place.configure(signal_data_collection=f"{place.database}.dbo.signals", snapshot_mode="no_data")
    place.create("signals", "id varchar(42) NOT NULL PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048) NULL")
    for table in ("items", "others"):
        place.create(table, "id int NOT NULL PRIMARY KEY")
        place.sql(f"INSERT INTO dbo.{table} VALUES (1)")
    place.settle()
    assert place.catch_up() == 0
    both = [f"{place.database}.dbo.{table}" for table in ("items", "others")]
    filters = [{"data-collection": both[0], "filter": "SELECT * FROM dbo.items WHERE missing = 1"}]
    place.signal("s1", type="blocking", **{"data-collections": both, "additional-conditions": filters})
    place.catch_up()
    own = [row for row in notifications(place) if row["id"] == "s1"]
    found = {(row["type"], _table(dict(row["additional_data"])), _status(row)) for row in own}
    assert found == {
        ("STARTED", None, None),
        ("IN_PROGRESS", "items", None),
        ("IN_PROGRESS", "others", None),
        ("TABLE_SCAN_COMPLETED", "items", "SQL_EXCEPTION"),
        ("TABLE_SCAN_COMPLETED", "others", "SUCCEEDED"),
        ("ABORTED", None, None),
    }
    assert (own[0]["type"], own[-1]["type"]) == ("STARTED", "ABORTED")
    assert dict(own[-1]["additional_data"]) == {"connector_name": "shop"}


@pytest.mark.feature("NOT-03", "SNP-35")
def test_a_snapshot_that_is_tried_again_is_aborted_and_starts_again(chunked: Place, monkeypatch: pytest.MonkeyPatch):
    real, calls = chunk_groups.run_here, count(1)

    def failing(*arguments: Any, **more: Any) -> Any:
        if next(calls) == 3:
            raise SourceUnavailableError("the connection is gone")
        return real(*arguments, **more)

    monkeypatch.setattr(chunk_groups, "run_here", failing)
    assert chunked.catch_up() == 0
    assert [kind for kind, _ in told(chunked)] == [
        "STARTED",
        *["IN_PROGRESS", "TABLE_SCAN_COMPLETED"],
        *["IN_PROGRESS", "ABORTED"],
        *["STARTED", "IN_PROGRESS", "TABLE_SCAN_COMPLETED", "COMPLETED"],
    ]


@pytest.mark.feature("NOT-03")
def test_a_snapshot_with_a_table_that_cannot_be_planned_is_aborted(place: Place, monkeypatch: pytest.MonkeyPatch):
    place.configure()
    place.create("items", "id int NOT NULL PRIMARY KEY")
    place.settle()

    def failing(*_: Any, **__: Any) -> Any:
        raise SchemaError("no chunk can be bounded")

    monkeypatch.setattr(begin, "_table_plan", failing)
    place.catch_up()
    assert told(place) == [("STARTED", None), ("TABLE_SCAN_COMPLETED", "items"), ("ABORTED", None)]
    assert [_status(row) for row in notifications(place)] == [None, "SQL_EXCEPTION", None]


@pytest.mark.feature("SNP-32")
def test_rows_have_the_time_at_which_the_scan_of_their_table_began(chunked: Place, monkeypatch: pytest.MonkeyPatch):
    clock = count(1)

    def later(_: object) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=next(clock))

    monkeypatch.setattr(positions, "server_time", later)
    with killed_at("mssql_cdc.capture.snapshot.chunk_groups.commit", 2, after=True), pytest.raises(Killed):
        chunked.catch_up()
    assert chunked.catch_up() == 0
    times = {
        name: [row["at"] for row in chunked.query("SELECT DISTINCT _commit_ts AS at FROM t", name, "changes")]
        for name in ("others", "items")
    }
    assert [len(found) for found in times.values()] == [1, 1], "also behind a kill"
    assert times["others"] < times["items"]


@pytest.mark.feature("SNP-33")
def test_events_tell_of_a_snapshot_before_its_first_read_and_of_a_table_when_it_ends(
    chunked: Place, monkeypatch: pytest.MonkeyPatch
):
    written, seen = io.StringIO(), list[list[dict[str, Any]]]()
    real = chunk_groups.run_here

    def reading(*arguments: Any, **more: Any) -> Any:
        seen.append([json.loads(line) for line in written.getvalue().splitlines()])
        return real(*arguments, **more)

    monkeypatch.setattr(chunk_groups, "run_here", reading)
    chunked.sql("CREATE TABLE dbo.heap (id int NOT NULL)", "INSERT INTO dbo.heap VALUES (1), (2)")
    chunked.enable("heap")
    chunked.settle()
    with open_databases(load_connector(chunked.config), warehouse=str(chunked.warehouse)) as (database,):
        watch = Watch(Events(written), database.connector, lambda _: Sent())
        follower = Follower(database, merge=False, progress=watch.snapshot)
        watch(follower, follower.attempt())
    seen.append([json.loads(line) for line in written.getvalue().splitlines()])
    assert len(seen) == 6  # a table without a key, a table of one chunk, one of three; the end
    shown = [[(one["state"], _name(one)) for one in each if one["event"] == "snapshot"] for each in seen]
    assert shown[0] == [("started", None)]
    running = [one["values"] for one in seen[0] if one["event"] == "metrics"][-1]
    assert (running["SnapshotRunning"], running["RemainingTableCount"], running["TotalTableCount"]) == (True, 3, 3)
    tables = [[name for state, name in each if state == "table"] for each in shown]
    assert tables == [[], ["heap"], ["heap", "others"], *[["heap", "others"]] * 2, ["heap", "others", "items"]]
    rows = {_name(one): one["rows"] for one in seen[-1] if one.get("state") == "table"}
    assert rows == {"heap": 2, "others": 1, "items": 5}
    assert shown[-1][-1] == ("completed", None)


def _name(event: dict[str, Any]) -> str | None:
    return event["table"].rpartition(".")[2] if "table" in event else None


def _status(row: dict[str, Any]) -> str | None:
    return dict(row["additional_data"]).get("status")


@pytest.mark.feature("NOT-03")
def test_what_happens_is_told_when_it_happens(chunked: Place, monkeypatch: pytest.MonkeyPatch):
    seen: list[list[tuple[str, str | None]]] = []
    real = chunk_groups.run_here

    def reading(*arguments: Any, **more: Any) -> Any:
        seen.append(told(chunked))
        return real(*arguments, **more)

    monkeypatch.setattr(chunk_groups, "run_here", reading)
    assert chunked.catch_up() == 0
    assert seen[0] == [("STARTED", None), ("IN_PROGRESS", "others")]
    assert seen[1] == [*seen[0], ("TABLE_SCAN_COMPLETED", "others"), ("IN_PROGRESS", "items")]
