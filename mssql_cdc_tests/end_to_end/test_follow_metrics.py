"""The metrics of `records --follow`: every attribute of Debezium's beans that docs/records.md lists, with its value."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc_tests.end_to_end.followed import Followed, data_of, followed
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = pytest.mark.slow
DOCUMENT = Path(__file__).parents[2] / "docs" / "records.md"


def metrics(found: Followed, context: str) -> list[dict[str, Any]]:
    return [one["values"] for one in found.events if one["event"] == "metrics" and one["context"] == context]


def newest(found: Followed, name: str) -> Any:
    """The newest value of an attribute while streaming; None: there is none yet."""
    return next((one[name] for one in reversed(metrics(found, "streaming"))), None)


def documented(context: str) -> set[str]:
    """The attributes of a row of the table of metrics."""
    rows = [line.split("|") for line in DOCUMENT.read_text(encoding="utf-8").splitlines()]
    row = next(one for one in rows if one[1:2] == [f" metrics, `{context}` "])
    return set(re.findall(r"`(\w+)`", row[2]))


@pytest.mark.feature("SNP-33")
def test_metrics_have_debeziums_names_and_the_values_of_the_workload(place: Place):
    place.configure(max_queue_size="500", max_batch_size="100", skip_messages_without_change="false")
    place.create("items", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    place.create("others", "id int NOT NULL PRIMARY KEY")
    place.sql("INSERT INTO dbo.items VALUES (1, N'one'), (2, N'two'), (3, N'three')")
    place.settle()
    items, others = (f"{place.database}.dbo.{name}" for name in ("items", "others"))
    with followed(place) as found:
        found.changes(3)
        place.sql(
            "INSERT INTO dbo.items VALUES (4, N'four'), (5, N'five')",
            "BEGIN TRAN; UPDATE dbo.items SET name = N'x' WHERE id = 1; INSERT INTO dbo.others VALUES (1); COMMIT",
            "UPDATE dbo.items SET id = 20 WHERE id = 2",
            "DELETE dbo.items WHERE id = 3",
        )
        rows = found.changes(3 + 7)
        found.wait_for(lambda one: newest(one, "NumberOfCommittedTransactions") == 4)
        assert found.end() == 0
    streaming, snapshot = metrics(found, "streaming")[-1], metrics(found, "snapshot")[-1]
    source = data_of(rows)[-1]["sourceOffset"]
    position = {name: source[name] for name in ("commit_lsn", "change_lsn")}
    shared = {
        "CapturedTables": [items, others],
        "LastEvent": f"shop.{items} {_text(found.records[-1]['sourceOffset'])}",
        "NumberOfErroneousEvents": 0,
        "QueueTotalCapacity": 500,
        "QueueRemainingCapacity": 500,
        "MaxQueueSizeInBytes": 0,
        "CurrentQueueSizeInBytes": 0,
    }
    assert shared.items() <= streaming.items()
    assert shared.items() <= snapshot.items()
    assert {
        "TotalNumberOfEventsSeen": 7,  # The changed key is a delete and a create.
        "TotalNumberOfCreateEventsSeen": 4,
        "TotalNumberOfUpdateEventsSeen": 1,
        "TotalNumberOfDeleteEventsSeen": 2,
        "NumberOfEventsFiltered": 0,
        "Connected": True,
        "NumberOfCommittedTransactions": 4,
        "SourceEventPosition": position,
        "LastTransactionId": position["commit_lsn"],
    }.items() <= streaming.items()
    assert {
        "TotalNumberOfEventsSeen": 3,
        "TotalTableCount": 2,
        "RemainingTableCount": 0,
        "RowsScanned": {items: 3, others: 0},
        "SnapshotRunning": False,
        "SnapshotPaused": False,
        "SnapshotAborted": False,
        "SnapshotCompleted": True,
        "SnapshotSkipped": False,
        "SnapshotPausedDurationInSeconds": 0,
        **dict.fromkeys(("ChunkId", "ChunkFrom", "ChunkTo", "TableFrom", "TableTo")),
    }.items() <= snapshot.items()
    for name in ("MilliSecondsBehindSource", "MilliSecondsSinceLastEvent"):
        assert streaming[name] >= 0
    assert snapshot["SnapshotDurationInSeconds"] >= 0
    assert set(streaming) == documented("streaming")
    assert set(snapshot) == documented("snapshot")


def test_operations_that_records_do_not_have_are_filtered_events(place: Place):
    place.configure(skipped_operations="d")
    place.create("items", "id int NOT NULL PRIMARY KEY")
    place.settle()
    with followed(place) as found:
        found.wait_for(lambda one: any(event["event"] == "streaming" for event in one.events))
        place.sql("INSERT INTO dbo.items VALUES (1), (2)", "DELETE dbo.items WHERE id = 1")
        found.wait_for(lambda one: newest(one, "NumberOfEventsFiltered") == 1)
        assert found.end() == 0
    last = metrics(found, "streaming")[-1]
    assert (last["TotalNumberOfEventsSeen"], last["TotalNumberOfDeleteEventsSeen"]) == (2, 0)


def _text(offset: dict[str, Any]) -> str:
    """An offset as JSON in the order in which records have it."""
    return json.dumps(offset, separators=(",", ":"))
