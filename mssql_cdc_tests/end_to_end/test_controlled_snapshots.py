"""Blocking and initial snapshots that the command line pauses, resumes and stops, against the server."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from deltalake import DeltaTable

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.snapshot import take
from mssql_cdc.config import load_connector
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.run.databases import open_databases
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.loop import run_for
from mssql_cdc.serve.events import Events
from mssql_cdc.serve.sent import Sent
from mssql_cdc.serve.watch import Watch
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_status import look

pytestmark = [pytest.mark.spark, pytest.mark.slow]
AfterGroups = Callable[[int, Callable[[], object]], None]


@pytest.fixture
def chunked(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A table of five rows in groups of one chunk of two rows."""
    monkeypatch.setattr(take, "CHUNK_ROWS", 2)
    monkeypatch.setattr(take, "GROUP_CHUNKS", 1)
    place.configure()
    place.create("items", "id int NOT NULL PRIMARY KEY, name nvarchar(20)")
    place.sql("INSERT INTO dbo.items SELECT value, N'first' FROM (VALUES (1), (2), (3), (4), (5)) AS t(value)")
    place.settle()
    return place


def reads(place: Place) -> list[int]:
    rows = place.query("SELECT after.id AS id FROM t WHERE op = 'r' ORDER BY _batch, _pos", "items", "changes")
    return [row["id"] for row in rows]


def test_the_command_line_pauses_and_resumes_an_initial_snapshot(
    chunked: Place, after_groups: AfterGroups, capsys: pytest.CaptureFixture[str]
):
    after_groups(1, lambda: chunked.command("snapshot", "--pause"))
    assert chunked.catch_up() == 0
    one = look(chunked, capsys)[1]["items"]
    assert (one["status"], one["detail"], one["snapshot_paused"]) == ("snapshot", "chunks so far: 1 (paused)", True)
    assert chunked.command("snapshot", "--stop", "--table", "dbo.items") == ConfigurationError.exit_code
    assert "cannot be stopped: the initial snapshot is not finished" in capsys.readouterr().err
    chunked.sql("DELETE dbo.items WHERE id = 1", "UPDATE dbo.items SET name = N'second' WHERE id = 5")
    assert chunked.command("snapshot", "--resume") == 0
    assert chunked.catch_up() == 0
    assert chunked.check() == 0
    assert reads(chunked) == [1, 2, 3, 4, 5]
    assert look(chunked, capsys)[1]["items"]["snapshot_paused"] is False


def test_the_command_line_stops_a_blocking_snapshot_and_the_lake_equals_the_source(
    chunked: Place, after_groups: AfterGroups, capsys: pytest.CaptureFixture[str]
):
    assert chunked.catch_up() == 0
    chunked.sql("UPDATE dbo.items SET name = N'unread' WHERE id = 2")
    assert chunked.command("snapshot", "--table", "dbo.items") == 0

    def stop() -> None:
        chunked.sql("DELETE dbo.items WHERE id IN (1, 4)", "INSERT INTO dbo.items VALUES (9, N'new')")
        assert chunked.command("snapshot", "--stop", "--table", "dbo.items") == 0

    after_groups(1, stop)
    assert chunked.catch_up() == 0
    assert chunked.check() == 0
    assert reads(chunked) == [1, 2, 3, 4, 5, 1, 2]
    one = look(chunked, capsys)[1]["items"]
    assert (one["status"], one["open_signals"]) == ("streaming", [])
    output = chunked.folder / "records.jsonl"
    assert chunked.command("records", "--output", str(output)) == 0
    values = [json.loads(line)["value"] or {} for line in output.read_text().splitlines()]
    operations = [value.get("payload", value).get("op") for value in values]
    assert operations.count("r") == 7, "records have the rows that were read"


def test_events_tell_of_a_paused_and_of_a_stopped_snapshot(chunked: Place, after_groups: AfterGroups):
    written = io.StringIO()
    after_groups(1, lambda: chunked.command("snapshot", "--pause"))
    with open_databases(load_connector(chunked.config), warehouse=str(chunked.warehouse)) as (database,):
        watch = Watch(Events(written), database.connector, lambda _: Sent())
        follower = Follower(database, merge=False, progress=watch.snapshot)
        watch(follower, follower.attempt())
        assert told(written)[-2:] == ["paused", {"SnapshotPaused": True, "SnapshotCompleted": False}]
        assert chunked.command("snapshot", "--resume") == 0
        watch(follower, follower.attempt())
        assert told(written)[-2:] == ["completed", {"SnapshotPaused": False, "SnapshotCompleted": True}]
        assert told(written).count("started") == 2
        assert chunked.command("snapshot", "--table", "dbo.items") == 0
        after_groups(1, lambda: chunked.command("snapshot", "--stop"))
        watch(follower, follower.attempt())
        assert [one for one in told(written) if isinstance(one, str)][-2:] == ["started", "aborted"]


def told(written: io.StringIO) -> list[object]:
    """The states of snapshots, and what the metrics behind them say of pause and end."""
    found: list[object] = []
    for one in map(json.loads, written.getvalue().splitlines()):
        if one["event"] == "snapshot" and one["state"] != "progress":
            found.append(one["state"])
        elif one["event"] == "metrics" and one["context"] == "snapshot":
            found.append({name: one["values"][name] for name in ("SnapshotPaused", "SnapshotCompleted")})
    return found


def recorded(place: Place) -> list[tuple[str, str, int]]:
    """The table, the operation and the key of each record of a row that one more look adds to an output."""
    output = place.folder / "records.jsonl"
    before = len(output.read_text().splitlines()) if output.exists() else 0
    assert place.command("records", "--output", str(output)) == 0
    added = [json.loads(line) for line in output.read_text().splitlines()[before:]]
    return [
        (one["topic"].rsplit(".", 1)[1], one["value"]["op"], one["key"]["id"]) for one in added if "op" in one["value"]
    ]


@pytest.mark.feature("SNP-28", "FLT-04")
@pytest.mark.parametrize(
    "how",
    [pytest.param("excluded", marks=pytest.mark.long), "dropped", pytest.param("disabled", marks=pytest.mark.long)],
)
def test_a_table_that_leaves_during_its_first_snapshot_holds_back_no_records(
    chunked: Place, after_groups: AfterGroups, how: str
):
    """Its snapshot stayed open for ever, and no record of any table came any more."""
    chunked.create("others", "id int NOT NULL PRIMARY KEY")
    chunked.sql("INSERT INTO dbo.others VALUES (7)")
    chunked.settle()
    after_groups(2, lambda: chunked.command("snapshot", "--pause"))
    assert chunked.catch_up() == 0
    chunked.sql("INSERT INTO dbo.others VALUES (8)")
    assert chunked.catch_up() == 0
    assert recorded(chunked) == []
    if how == "excluded":
        chunked.configure(table_exclude_list="dbo.items")
    else:
        chunked.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'items', N'all'")
        if how == "dropped":
            chunked.sql("DROP TABLE dbo.items")
        assert chunked.catch_up() == 4
        assert recorded(chunked) == []
        assert chunked.command("acknowledge", "--table", "dbo.items") == 0, "there is no gap, but a table to give up"
        assert chunked.command("acknowledge", "--table", "dbo.items") == 2
    chunked.sql("INSERT INTO dbo.others VALUES (9)")
    assert chunked.catch_up() == 0
    assert recorded(chunked) == [("others", "r", 7), ("others", "c", 8), ("others", "c", 9)]
    assert chunked.command("snapshot", "--resume") == 0
    if how == "excluded":
        chunked.configure()
    elif how == "disabled":
        chunked.enable("items")
    else:
        chunked.create("items", "id int NOT NULL PRIMARY KEY, name nvarchar(20)")
        chunked.sql("INSERT INTO dbo.items VALUES (1, N'new'), (5, N'new')")
    chunked.settle()
    assert chunked.catch_up() == 0
    assert chunked.check() == 0
    again = [1, 5] if how == "dropped" else [1, 2, 3, 4, 5]
    assert recorded(chunked) == [("items", "r", key) for key in again]


@pytest.mark.feature("SIG-04")
def test_a_row_of_the_signal_table_stops_a_blocking_snapshot_that_reads(
    chunked: Place, after_groups: AfterGroups, capsys: pytest.CaptureFixture[str]
):
    """What streams beside the snapshot reads the table; the snapshot waits here until it has."""
    chunked.create("signals", "id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048)")
    chunked.configure(signal_data_collection=f"{chunked.database}.dbo.signals")
    chunked.settle()
    assert chunked.catch_up() == 0
    name = f"{chunked.database}.dbo.items"

    def stop() -> None:
        data = json.dumps({"type": "blocking", "data-collections": [name]})
        chunked.sql(f"INSERT INTO dbo.signals VALUES ('stop', 'stop-snapshot', '{data}')")
        waited_for(lambda: any(row["id"] == "stop" for row in signals(chunked)))

    after_groups(1, stop)
    chunked.signal("begin", type="blocking", **{"data-collections": [name]})
    with open_databases(load_connector(chunked.config), warehouse=str(chunked.warehouse)) as (database,):
        run_for([database], seconds=120, beside=True, watch=lambda *_: len(reads(chunked)) > 5 and streams(database))
    assert reads(chunked) == [1, 2, 3, 4, 5, 1, 2]
    assert chunked.catch_up() == 0
    assert chunked.check() == 0
    one = look(chunked, capsys)[1]["items"]
    assert (one["status"], one["open_signals"]) == ("streaming", [])


def signals(place: Place) -> list[dict[str, Any]]:
    uri = f"{place.warehouse}/shop/{place.database}/_signals"
    return DeltaTable(uri).to_pyarrow_table().to_pylist()


def streams(database: Database) -> bool:
    return not load_offsets(database.layout, database.storage).begun_snapshots


def waited_for(seen: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not seen():
        assert time.monotonic() < end, "it was not seen"
        time.sleep(0.1)
