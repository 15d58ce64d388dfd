"""The events of snapshots: every state that a user can bring about with signals to `records --follow`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mssql_cdc_tests.end_to_end.followed import Followed, followed, keys_of
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = pytest.mark.slow
ROWS = 300
"""So many chunks of one row take longer than a signal."""


@pytest.fixture
def items(place: Place) -> Place:
    """A table with rows, read in chunks of one row, and another table."""
    place.configure(incremental_snapshot_chunk_size="1")
    place.create("items", "id int NOT NULL PRIMARY KEY")
    place.create("others", "id int NOT NULL PRIMARY KEY")
    place.sql(f"INSERT INTO dbo.items SELECT TOP ({ROWS}) ROW_NUMBER() OVER (ORDER BY a.id) FROM {_numbers()}")
    place.sql("INSERT INTO dbo.others VALUES (1)")
    place.settle()
    return place


def _numbers() -> str:
    digits = "(VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9))"
    return f"{digits} a(id), {digits} b(id), {digits} c(id)"


def states(found: Followed, **members: Any) -> list[str]:
    """The states of snapshots, in order, without repetitions."""
    told = [one["state"] for one in found.events if one["event"] == "snapshot" and members.items() <= one.items()]
    return list(dict.fromkeys(told))


def has(state: str, **members: Any) -> Callable[[Followed], bool]:
    return lambda found: state in states(found, **members)


def signal(found: Followed, id_: str, type_: str, **data: Any) -> None:
    found.command(command="signal", id=id_, type=type_, data=data)


def snapshot_metrics(found: Followed) -> list[dict[str, Any]]:
    return [one["values"] for one in found.events if one["event"] == "metrics" and one["context"] == "snapshot"]


@pytest.mark.feature("INC-13", "INC-14", "NOT-04")
def test_an_incremental_snapshot_is_paused_resumed_and_aborted(items: Place):
    both = [f"{items.database}.dbo.items", f"{items.database}.dbo.others"]
    with followed(items, control=True) as found:
        found.wait_for(has("completed", kind="initial"))
        signal(found, "i1", "execute-snapshot", **{"data-collections": both})
        signal(found, "p1", "pause-snapshot")
        found.wait_for(has("paused", kind="incremental"))
        found.wait_for(lambda one: snapshot_metrics(one)[-1]["SnapshotPaused"])
        signal(found, "i2", "execute-snapshot", **{"data-collections": both[1:]})
        found.wait_for(has("rejected", id="i2"))
        signal(found, "r1", "resume-snapshot")
        found.wait_for(has("resumed", kind="incremental"))
        found.wait_for(has("progress", kind="incremental"))
        signal(found, "s1", "stop-snapshot", type="incremental")
        found.wait_for(has("aborted", kind="incremental"))
        assert found.end() == 0
    assert states(found, kind="incremental") == ["started", "paused", "rejected", "resumed", "progress", "aborted"]
    (rejected,) = [one for one in found.events if one.get("state") == "rejected"]
    assert (rejected["signal"], rejected["message"]) == (
        "execute-snapshot", "the same incremental snapshot waits already",
    )  # fmt: skip
    chunks = [one for one in snapshot_metrics(found) if one["ChunkId"]]
    assert chunks[-1]["TableTo"] == str(ROWS)
    assert chunks[-1]["ChunkTo"] is not None
    last = snapshot_metrics(found)[-1]
    assert (last["SnapshotAborted"], last["SnapshotRunning"], last["SnapshotPaused"]) == (True, False, False)
    assert last["ChunkId"] is None


@pytest.mark.feature("SIG-09", "BLK-06", "INC-03")
def test_a_signal_that_cannot_be_followed_is_rejected_with_its_reason(items: Place):
    table = f"{items.database}.dbo.items"
    with followed(items, control=True) as found:
        found.wait_for(has("completed", kind="initial"))
        signal(found, "unknown", "execute-snapshot", **{"data-collections": [f"{items.database}.dbo.nothing"]})
        signal(found, "empty", "execute-snapshot", type="blocking", **{"data-collections": []})
        signal(found, "idle", "stop-snapshot", type="incremental")
        found.wait_for(has("rejected", id="idle"))
        signal(found, "fails", "execute-snapshot", **_filtered(table, "SELECT * FROM dbo.items WHERE missing = 1"))
        found.wait_for(has("aborted", id="fails", kind="blocking"))
        signal(found, "part", "execute-snapshot", **_filtered(table, "SELECT * FROM dbo.items WHERE id = 7"))
        found.wait_for(has("completed", id="part", kind="blocking"))
        found.changes(ROWS + 2)
        assert found.end() == 0
    told = {one["id"]: one for one in found.events if one.get("state") == "rejected"}
    assert {id_: one["kind"] for id_, one in told.items()} == {
        "unknown": "incremental", "empty": "blocking", "idle": "incremental",
    }  # fmt: skip
    assert states(found, id="unknown") == ["rejected"], "Debezium notifies of a beginning and an end all the same"
    assert "dbo.nothing" in told["unknown"]["message"]
    assert "data-collections is missing or empty" in told["empty"]["message"]
    assert "no snapshot is concerned" in told["idle"]["message"]
    codes = [one["code"] for one in found.events if one["event"] == "log" and one["level"] != "INFO"]
    assert codes.count("signal-ignored") == len(told)
    assert "snapshot-given-up" in codes
    assert keys_of(found.records)[-1] == ("r", 7)
    last = snapshot_metrics(found)[-1]
    assert (last["SnapshotCompleted"], last["RowsScanned"]) == (True, {table: 1})


@pytest.mark.feature("BLK-04", "BLK-06")
def test_a_filter_may_order_and_one_that_fails_costs_its_own_table_only(items: Place):
    """The filters of Debezium's `aFailedBlockingSnapshotShouldNotCauseInitialSnapshotOnRestart`."""
    table, other = f"{items.database}.dbo.items", f"{items.database}.dbo.others"
    filters = {table: f"SELECT * FROM {table} ORDER BY id ASC", other: "SELECT failing query"}
    conditions = [{"data-collection": name, "filter": text} for name, text in filters.items()]
    with followed(items, control=True) as found:
        found.wait_for(has("completed", kind="initial"))
        data = {"data-collections": [table, other], "additional-conditions": conditions}
        signal(found, "b1", "execute-snapshot", type="blocking", **data)
        found.wait_for(has("aborted", id="b1", kind="blocking"))
        items.sql("INSERT INTO dbo.others VALUES (2)")
        found.wait_for(lambda one: ("c", 2) in keys_of(one.records))
        assert found.end() == 0
    (aborted,) = [one for one in found.events if one.get("state") == "aborted"]
    assert (aborted["table"], "does not begin with SELECT * FROM" in aborted["message"]) == (other, True)
    assert keys_of(found.records)[ROWS + 1 :] == [*(("r", number) for number in range(1, ROWS + 1)), ("c", 2)]


@pytest.mark.feature("SNP-05", "NOT-03")
def test_a_snapshot_without_rows_completes_and_a_start_without_a_snapshot_skips_it(items: Place):
    items.configure(snapshot_mode="no_data")
    with followed(items) as found:
        found.wait_for(lambda one: any(event["event"] == "streaming" for event in one.events))
        assert found.end() == 0
    assert states(found) == ["started", "completed"]
    last = snapshot_metrics(found)[-1]
    assert (last["SnapshotCompleted"], last["SnapshotSkipped"]) == (True, False)
    assert notified(found) == ["STARTED", "COMPLETED"]
    with followed(items) as again:
        again.wait_for(lambda one: any(event["event"] == "streaming" for event in one.events))
        assert again.end() == 0
    assert states(again) == ["skipped"]
    assert snapshot_metrics(again)[-1]["SnapshotSkipped"] is True
    assert notified(again) == ["SKIPPED"]


def notified(found: Followed) -> list[str]:
    """The types of the notifications about an initial snapshot, in order."""
    told = [one for one in found.events if one["event"] == "notification"]
    return [one["type"] for one in told if one["aggregate_type"] == "Initial Snapshot"]


def _filtered(table: str, statement: str) -> dict[str, Any]:
    conditions = [{"data-collection": table, "filter": statement}]
    return {"type": "blocking", "data-collections": [table], "additional-conditions": conditions}
