"""The notifications of initial and blocking snapshots: what is told, when, and once each."""

from __future__ import annotations

from typing import Any

import pytest

from mssql_cdc.capture.snapshot import take
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_signals import own_rows

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
