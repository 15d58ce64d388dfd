"""`records --follow` into outputs that remember how far they reach: a kill or an end loses and doubles nothing."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from mssql_cdc.lake.read import read_table
from mssql_cdc_tests.end_to_end.followed import followed
from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = pytest.mark.slow
ROWS = 20
"""Several times as many as `max.queue.size` allows to wait."""
KINDS = ["file", "delta"]


@pytest.fixture
def items(place: Place) -> Place:
    """A place whose snapshot and whose every transaction have more records than the queue holds."""
    place.configure(max_queue_size="5", max_batch_size="2")
    place.create("items", "id int NOT NULL PRIMARY KEY")
    insert(place, 0)
    place.settle()
    return place


def insert(place: Place, first: int) -> None:
    place.sql(f"INSERT INTO dbo.items VALUES {', '.join(f'({first + number})' for number in range(ROWS))}")


def target(kind: str, folder: Path) -> str:
    return f"delta:{folder / 'records'}" if kind == "delta" else str(folder / "records.jsonl")


def written(kind: str, folder: Path) -> list[int]:
    """The ids of the rows, in the order of their records."""
    values: list[Any]
    if kind == "delta":
        rows = sorted(read_table(str(folder / "records")).to_pylist(), key=lambda row: row["number"])
        values = [json.loads(row["value"]) for row in rows]
    else:
        lines = (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()
        values = [json.loads(line)["value"] for line in lines]
    return [one["payload"]["after"]["id"] for one in values if "op" in one["payload"]]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["end", "kill"])
def test_batches_of_more_records_than_the_queue_holds_are_kept_once(items: Place, kind: str, number: signal.Signals):
    for turn in range(3):
        with followed(items, "--output", target(kind, items.folder)) as found:
            found.wait_for(lambda one: any(event["event"] == "streaming" for event in one.events))
            insert(items, ROWS * (turn + 1))
            found.wait_for(lambda one: any(event["event"] == "metrics" for event in one.events))
            found.end(number)
        assert not [one for one in found.events if one["event"] == "error"]
    with followed(items, "--output", target(kind, items.folder)) as found:
        items.settle()
        found.wait_for(lambda _: _exists(kind, items) and len(written(kind, items.folder)) >= 4 * ROWS)
        assert found.end() == 0
    assert written(kind, items.folder) == list(range(4 * ROWS))


def _exists(kind: str, place: Place) -> bool:
    return (place.folder / ("records/_delta_log" if kind == "delta" else "records.jsonl")).exists()
