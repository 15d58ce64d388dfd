"""`records --follow`: records as they are captured, behind offsets, with events and commands."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mssql_cdc_tests.end_to_end.followed import Line, data_of, followed, keys_of, offsets_file
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = pytest.mark.slow


@pytest.fixture
def items(place: Place) -> Place:
    """A place whose table of two items is captured, and not in a lake."""
    place.create("items", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.sql("INSERT INTO dbo.items VALUES (1, N'one'), (2, N'two')")
    place.settle()
    return place


def test_follow_writes_the_snapshot_and_then_changes_as_they_come(items: Place):
    with followed(items) as found:
        assert keys_of(found.changes(2)) == [("r", 1), ("r", 2)]
        items.sql("INSERT INTO dbo.items VALUES (3, N'three')", "DELETE dbo.items WHERE id = 1")
        assert keys_of(found.changes(4))[2:] == [("c", 3), ("d", 1)]
        one = found.records[-3]
        assert set(one) == {
            "topic", "partition", "key", "value", "headers", "sourcePartition", "sourceOffset",
        }  # fmt: skip
        assert one["key"]["schema"]["type"] == one["value"]["schema"]["type"] == "struct"
        assert one["headers"]["__debezium.context.taskId"] == {
            "schema": {"type": "string", "optional": False}, "payload": "0",
        }  # fmt: skip
        found.wait_for(lambda it: it.records[-1]["value"] is None)  # the tombstone
        assert found.end() == 0
    names = [(one["event"], one.get("state")) for one in found.events if one["event"] not in {"log", "metrics"}]
    assert names[0] == ("started", None)
    assert names.index(("snapshot", "started")) < names.index(("snapshot", "completed"))
    assert names.index(("snapshot", "completed")) < names.index(("streaming", "started"))
    assert names[-1] == ("streaming", "stopped")
    metrics = [one["values"] for one in found.events if one["event"] == "metrics" and one["context"] == "streaming"]
    assert metrics[-1]["TotalNumberOfCreateEventsSeen"] + metrics[-1]["TotalNumberOfDeleteEventsSeen"] == 2


@pytest.mark.feature("EVT-24")
def test_headers_name_the_task(items: Place):
    with followed(items, "--task-id", "7") as found:
        (header,) = {one["headers"]["__debezium.context.taskId"]["payload"] for one in found.changes(2)}
        assert header == "7"
        assert found.end() == 0


@pytest.mark.long
def test_follow_continues_after_the_offset_of_any_record(items: Place, tmp_path: Path):
    items.sql(
        "BEGIN TRAN; INSERT INTO dbo.items VALUES (3, N'c'), (4, N'd'); UPDATE dbo.items SET name = N'x'; COMMIT",
    )
    with followed(items) as found:
        found.changes(2)
        items.sql(
            "BEGIN TRAN; INSERT INTO dbo.items VALUES (5, N'e'), (6, N'f'); DELETE dbo.items WHERE id < 3; COMMIT"
        )
        found.wait_for(lambda one: keys_of(one.records)[-1:] == [("d", 2)] and one.records[-1]["value"] is None)
        assert found.end() == 0
    whole = found.records
    rows = data_of(whole)
    for record in [rows[0], next(one for one in rows if one["sourceOffset"].get("snapshot_completed")), *rows[-4:]]:
        behind = whole[whole.index(record) + 1 :]  # The tombstone of a deletion, too.
        if record["sourceOffset"].get("snapshot_completed") is False:
            behind = whole  # A snapshot that was not finished begins anew.
        with followed(items, "--offsets", str(offsets_file(tmp_path, record))) as again:
            again.wait_for(lambda one: any(event["event"] == "streaming" for event in one.events))
            count = len(behind)
            again.wait_for(lambda one: len(one.records) >= count)  # noqa: B023 (called before the next turn)
            assert again.end() == 0
        assert [_of(one) for one in again.records] == [_of(one) for one in behind], record["sourceOffset"]


def test_committed_offsets_are_where_the_next_start_goes_on(items: Place):
    with followed(items, control=True) as found:
        found.changes(2)
        items.sql("INSERT INTO dbo.items VALUES (3, N'three')")
        record = found.changes(3)[-1]
        found.command(command="commit", offsets=[_entry(record)])
        found.wait_for(lambda _: (items.folder / "state" / "committed-offsets.json").exists())
        assert found.end(signal.SIGKILL) == -signal.SIGKILL
    items.sql("INSERT INTO dbo.items VALUES (4, N'four')")
    with followed(items) as again:
        assert keys_of(again.changes(1)) == [("c", 4)]
        assert again.end() == 0
    assert keys_of(again.records) == [("c", 4)]
    assert not [one for one in again.events if "starting Spark" in one.get("message", "")], "a warm start needs none"


def test_a_commit_is_kept_though_the_end_follows_at_once(items: Place):
    with followed(items, control=True) as found:
        first, second = found.changes(2)
        found.wait_for(lambda one: any(event["event"] == "streaming" for event in one.events))
        found.command(command="commit", offsets=[_entry(first)])
        found.command(command="commit", offsets=[_entry(second)])
        assert found.end() == 0
    assert _committed(items) == second["sourceOffset"]


def reads_rows(items: Place) -> bool:
    """Whether the server has got a statement that reads rows of the table since the log of statements began."""
    sql = "SELECT COUNT(*) FROM sandbox.statements WHERE CHARINDEX(N'items' + N'] AS t', text) > 0"
    return items.control.value(sql, doing="reading the log") > 0


@pytest.mark.sandbox
def test_a_commit_is_kept_while_the_loop_waits(items: Place):
    """As during a long snapshot or range: nothing of the loop has to come to an end first."""
    with followed(items, control=True) as found:
        record = found.changes(2)[-1]
        found.wait_for(lambda one: any(event["event"] == "streaming" for event in one.events))
        items.sql(
            r"EXEC sandbox.delay_statement @pattern = N'items\] AS t', @seconds = 300, @times = 1",
            "EXEC sandbox.statement_log",
        )
        data = {"type": "blocking", "data-collections": [f"{items.database}.dbo.items"]}
        found.command(command="signal", id="long", type="execute-snapshot", data=data)
        found.wait_for(lambda _: reads_rows(items))
        found.command(command="commit", offsets=[_entry(record)])
        found.wait_for(lambda _: (items.folder / "state" / "committed-offsets.json").exists())
        assert not [one for one in found.events if (one.get("kind"), one.get("state")) == ("blocking", "completed")]
        assert found.end() == 0
    assert _committed(items) == record["sourceOffset"]


def _committed(place: Place) -> object:
    (entry,) = json.loads((place.folder / "state" / "committed-offsets.json").read_text(encoding="utf-8"))["offsets"]
    return entry["offset"]


def test_given_offsets_win_over_committed_ones(items: Place, tmp_path: Path):
    with followed(items, control=True) as found:
        found.changes(2)
        items.sql("INSERT INTO dbo.items VALUES (3, N'three')", "INSERT INTO dbo.items VALUES (4, N'four')")
        third, fourth = found.changes(4)[2:]
        found.command(command="commit", offsets=[_entry(fourth)])
        found.wait_for(lambda _: (items.folder / "state" / "committed-offsets.json").exists())
        assert found.end() == 0
    with followed(items, "--offsets", str(offsets_file(tmp_path, third))) as again:
        assert keys_of(again.changes(1)) == [("c", 4)]
        assert again.end() == 0
    assert keys_of(again.records) == [("c", 4)]


def test_a_commit_that_cannot_be_kept_is_refused(items: Place):
    with followed(items, control=True, state=False) as found:
        record = found.changes(2)[-1]
        found.command(command="commit", offsets=[_entry(record)])
        found.wait_for(lambda one: any(event.get("code") == "command-refused" for event in one.events))
        assert found.end() == 0
    (refused,) = [one for one in found.events if one.get("code") == "command-refused"]
    assert refused["level"] == "WARN"
    assert "--state-dir" in refused["message"]


def _entry(record: Line) -> dict[str, object]:
    return {"partition": record["sourcePartition"], "offset": record["sourceOffset"]}


def test_a_signal_from_standard_input_takes_a_blocking_snapshot(items: Place):
    with followed(items, control=True) as found:
        found.changes(2)
        data = {"type": "blocking", "data-collections": [f"{items.database}.dbo.items"]}
        found.command(command="signal", id="again", type="execute-snapshot", data=data)
        rows = found.changes(4)
        assert keys_of(rows) == [("r", 1), ("r", 2), ("r", 1), ("r", 2)]
        assert found.end() == 0
    completed = [one["kind"] for one in found.events if one.get("state") == "completed"]
    assert completed == ["initial", "blocking"]


def test_a_signal_from_standard_input_takes_an_incremental_snapshot(items: Place):
    with followed(items, control=True) as found:
        found.changes(2)
        data = {"type": "incremental", "data-collections": [f"{items.database}.dbo.items"]}
        found.command(command="signal", id="beside", type="execute-snapshot", data=data)
        rows = found.changes(4)[2:]
        assert keys_of(rows) == [("r", 1), ("r", 2)]
        assert {one["value"]["payload"]["source"]["snapshot"] for one in rows} == {"incremental"}
        assert found.end() == 0


def test_a_command_that_is_none_is_refused_and_nothing_ends(items: Place):
    with followed(items, control=True) as found:
        found.changes(2)
        found.command(command="dance")
        found.wait_for(lambda one: any("'dance'" in event.get("message", "") for event in one.events))
        assert found.end() == 0


def test_initial_only_ends_by_itself_after_its_snapshot(items: Place):
    items.configure(snapshot_mode="initial_only")
    with followed(items) as found:
        assert found.ended() == 0
    assert keys_of(found.records) == [("r", 1), ("r", 2)]
    (said,) = [one for one in found.events if one.get("code") == "streaming-disabled"]
    assert said["message"] == "Streaming is disabled for snapshot mode initial_only"


def test_a_server_that_does_not_answer_is_worth_another_try(items: Place):
    items.configure(database_port="1")
    with followed(items) as found:
        assert found.ended() == 75
    error = next(one for one in found.events if one["event"] == "error")
    assert error["retriable"] is True
    assert not found.records


def test_offsets_without_a_lake_are_a_lost_schema_history(items: Place, tmp_path: Path):
    offset = {"commit_lsn": "00000027:00000ac0:0002", "change_lsn": "00000027:00000ac0:0001", "event_serial_no": 1}
    record = {"sourcePartition": {"server": "shop", "database": items.database}, "sourceOffset": offset}
    with followed(items, "--offsets", str(offsets_file(tmp_path, record))) as found:
        assert found.ended() == 2
    error = next(one for one in found.events if one["event"] == "error")
    assert "db history topic is missing. You may attempt to recover" in error["message"]
    assert error["retriable"] is False


def test_recovery_goes_on_at_offsets_without_a_lake(items: Place, tmp_path: Path):
    with followed(items) as found:
        found.changes(2)
        items.sql("BEGIN TRAN; INSERT INTO dbo.items VALUES (3, N'c'), (4, N'd'); COMMIT")
        record = found.changes(4)[2]
        assert found.end() == 0
    whole = found.records
    items.sql("INSERT INTO dbo.items VALUES (5, N'e')")
    items.configure(snapshot_mode="recovery")
    fresh = str(tmp_path / "fresh")
    with followed(items, "--offsets", str(offsets_file(tmp_path, record)), "--state-dir", fresh) as again:
        assert keys_of(again.changes(2)) == [("c", 4), ("c", 5)]
        assert again.end() == 0
    assert _of(data_of(again.records)[0]) == _of(data_of(whole)[-1])
    assert [one["topic"] for one in again.records if one["topic"] == "shop"] == []


def test_ctrl_c_ends_with_130_and_every_line_is_an_event(items: Place):
    with followed(items) as found:
        found.changes(2)
        assert found.end(signal.SIGINT) == 130


def test_a_reader_that_goes_away_ends_the_connector(items: Place):
    events = items.folder / "events"
    command = [sys.executable, "-m", "mssql_cdc.cli", "records", "--config", str(items.config), "--follow"]
    reads_three = f'"$@" 2> "{events}" | head -n 3 > /dev/null; exit ${{PIPESTATUS[0]}}'
    arguments = ["bash", "-c", reads_three, "-", *command, "--state-dir", str(items.folder / "state")]
    with subprocess.Popen(arguments) as process:
        end = time.monotonic() + 120
        while process.poll() is None:  # It notices with the first record that it cannot write.
            assert time.monotonic() < end
            items.sql("UPDATE dbo.items SET name = IIF(name = N'a', N'b', N'a') WHERE id = 1")
            time.sleep(0.2)
        assert process.returncode == 0
    assert "The reader of the records has gone" in events.read_text()


def _of(record: dict[str, object]) -> str:
    """A record without the times at which it was made."""
    value = record["value"]
    if isinstance(value, dict) and isinstance(value["payload"], dict):
        payload = {name: one for name, one in value["payload"].items() if name not in {"ts_ms", "ts_us", "ts_ns"}}
        value = {**value, "payload": payload}
    return json.dumps({**record, "value": value}, sort_keys=True)
