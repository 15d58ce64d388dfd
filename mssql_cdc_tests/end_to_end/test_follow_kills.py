"""`records --follow` is killed at random moments under load: cut at the last committed offset, its output has no fault.

Four kills; `make kills` for a hundred, `SEED=2` for other moments.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from typing import Any

import pytest

from mssql_cdc_tests.end_to_end.followed import Followed, Line, data_of, followed
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.load import change_of, changes_of, create, load

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("MSSQL_CDC_KILLS", "4"))
SEED = int(os.environ.get("MSSQL_CDC_SEED", "1"))


@pytest.mark.timeout(1800)
@pytest.mark.feature("STR-04", "STR-22", "ERR-06")
def test_output_that_is_cut_at_the_last_committed_offset_is_complete_and_ordered(place: Place):
    place.configure(provide_transaction_metadata="true")
    create(place)
    with followed(place) as found:
        found.wait_for(lambda one: any(event["event"] == "streaming" for event in one.events))
        assert found.end() == 0
    chance = random.Random(SEED)
    kept: list[Line] = []
    with load(place):
        for _ in range(KILLS):
            with followed(place, control=True) as found:
                way = chance.random()  # A third is killed before the first record, or before the start.
                if way < 0.8:
                    found.wait_for(lambda one: any(event["event"] == "started" for event in one.events))
                if way < 0.65:
                    found.wait_for(lambda one: one.records)
                _commit_for(found, chance.uniform(0, 2), chance)
                found.end(signal.SIGKILL)
            kept += _up_to(found.records, _committed(place))
    place.settle()
    expected = changes_of(place)
    with followed(place) as found:
        found.wait_for(lambda one: len(data_of(kept)) + len(data_of(one.records)) >= len(expected))
        assert found.end() == 0
    assert KILLS < 4 or kept, "offsets were committed"
    records = [one for one in data_of([*kept, *found.records]) if one["value"]["payload"]["op"] != "r"]
    assert [change_of(one["value"]["payload"]) for one in records] == expected, f"seed {SEED}"
    places = [one["value"]["payload"]["source"] for one in records]
    order = [(at["commit_lsn"], at["change_lsn"], at["event_serial_no"]) for at in places]
    assert order == sorted(order)
    assert len(set(order)) == len(order)
    assert _transactions([*kept, *found.records]) == []


def _commit_for(found: Followed, seconds: float, chance: random.Random) -> None:
    """Commit the offset of the newest record again and again, as a consumer does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found.records:
            newest = found.records[-1]
            found.command(
                command="commit",
                offsets=[{"partition": newest["sourcePartition"], "offset": newest["sourceOffset"]}],
            )
        time.sleep(chance.uniform(0.01, 0.2))


def _committed(place: Place) -> Any:
    """The offset behind which the next start begins; None: at the beginning."""
    path = place.folder / "state" / "committed-offsets.json"
    if not path.exists():
        return None
    (entry,) = json.loads(path.read_text(encoding="utf-8"))["offsets"]
    return entry["offset"]


def _up_to(records: list[Line], offset: Any) -> list[Line]:
    """The records up to the last one with a committed offset; all others come again."""
    last = max((place for place, one in enumerate(records) if one["sourceOffset"] == offset), default=-1)
    return records[: last + 1]


def _transactions(records: list[Line]) -> list[str]:
    """What is wrong with the boundaries: each transaction has one BEGIN, and an END with the number of its events."""
    wrong: list[str] = []
    begun: dict[str, int] = {}
    for one in records:
        payload = (one["value"] or {}).get("payload") or {}
        if one["topic"].endswith(".transaction"):
            if payload["status"] == "BEGIN" and payload["id"] in begun:
                wrong.append(f"second BEGIN of {payload['id']}")
            if payload["status"] == "END" and begun.get(payload["id"]) != payload["event_count"]:
                wrong.append(f"END of {payload['id']}: {payload['event_count']}, seen {begun.get(payload['id'])}")
            begun.setdefault(payload["id"], 0)
        elif payload.get("transaction"):
            begun[payload["transaction"]["id"]] = begun.get(payload["transaction"]["id"], 0) + 1
    return wrong
