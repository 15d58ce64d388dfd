"""What the asset `signals` says became of a signal: notifications of an incremental snapshot have the last one's id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mssql_cdc.defs.signal_list import outcome

AT = datetime(2026, 1, 1, tzinfo=UTC)


def signal(id_: str, kind: str = "execute-snapshot", *, minute: int, data: str | None = None) -> dict[str, Any]:
    data = '{"data-collections": [".*"]}' if data is None else data
    return {"id": id_, "type": kind, "data": data, "status": "requested", "at": AT + timedelta(minutes=minute)}


def notes(*found: tuple[int, str, str]) -> list[dict[str, Any]]:
    return [
        {
            "id": id_,
            "type": kind,
            "aggregate_type": "Incremental Snapshot",
            "timestamp_ms": int((AT + timedelta(minutes=minute)).timestamp() * 1000),
        }
        for minute, kind, id_ in found
    ]


@pytest.mark.feature("INC-12", "INC-14")
def test_an_incremental_request_has_the_outcome_of_the_snapshot_that_it_is_part_of() -> None:
    told = notes(
        (2, "STARTED", "i1"),
        (4, "IN_PROGRESS", "i2"),
        (6, "PAUSED", "i2"),
        (8, "RESUMED", "i2"),
        (9, "COMPLETED", "i2"),
        (12, "STARTED", "i3"),
        (13, "ABORTED", "i3"),
    )
    first, second, third = (signal(f"i{number}", minute=minute) for number, minute in ((1, 1), (2, 3), (3, 10)))
    assert [outcome(one, told) for one in (first, second, third)] == ["completed", "completed", "aborted"]
    assert outcome(first, told[:2]) == "in progress"
    assert outcome(third, told[:5]) == "requested"
    assert outcome(signal("p", "pause-snapshot", minute=5, data=""), told) == "paused"
    assert outcome(signal("r", "resume-snapshot", minute=7, data=""), told) == "resumed"
    assert outcome(signal("s", "stop-snapshot", minute=11, data=""), told) == "aborted"


@pytest.mark.parametrize("aggregate", ["Incremental Snapshot", "Initial Snapshot"])
def test_the_tables_that_a_snapshot_did_not_read_stand_in_its_outcome(aggregate: str) -> None:
    """A snapshot is completed when nothing of it is left, also if a table was left unread."""
    ended = [("shop.dbo.a", "SUCCEEDED"), ("shop.dbo.b", "SQL_EXCEPTION"), ("shop.dbo.c", "EMPTY")]
    told = [
        {**note, "aggregate_type": aggregate, "additional_data": [("scanned_collection", table), ("status", status)]}
        for note, (table, status) in zip(notes(*[(2, "TABLE_SCAN_COMPLETED", "i1")] * 3), ended, strict=True)
    ]
    data = None if aggregate.startswith("Incremental") else '{"type": "blocking", "data-collections": [".*"]}'
    asked = signal("i1", minute=1, data=data)
    assert outcome(asked, told) == "table scan completed; shop.dbo.b: SQL_EXCEPTION"
    end = {**notes((3, "COMPLETED", "i1"))[0], "aggregate_type": aggregate}
    assert outcome(asked, [*told, end]) == "completed; shop.dbo.b: SQL_EXCEPTION"
    again = {**told[1], "additional_data": [("scanned_collection", "shop.dbo.b"), ("status", "SUCCEEDED")]}
    assert outcome(asked, [*told, again, end]) == "completed"


def test_a_request_that_arrives_before_the_end_of_another_snapshot_is_told_is_not_complete() -> None:
    told = notes((1, "STARTED", "i1"), (3, "COMPLETED", "i1"), (4, "STARTED", "i2"))
    assert outcome(signal("i2", minute=2), told) == "started"
