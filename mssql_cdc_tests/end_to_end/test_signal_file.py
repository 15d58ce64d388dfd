"""Signals from a file: taken while the source is idle, lost and repeated by no crash."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_signals import own_rows
from mssql_cdc_tests.storm.lake import Killed, killed_at

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RECORDED = "SELECT id, channel, status, result FROM t ORDER BY _batch"


@pytest.fixture
def filed(place: Place) -> Place:
    """A place whose table of two orders is in the lake, and which reads signals from a file."""
    place.configure(
        signal_enabled_channels="file", signal_file=str(place.folder / "signals.txt"), signal_poll_interval_ms="50"
    )
    place.create_orders()
    return place


def write(place: Place, key: str, kind: str, **data: Any) -> None:
    with (place.folder / "signals.txt").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"id": key, "type": kind, "data": data}) + "\n")


def reads(place: Place) -> int:
    return place.query("SELECT COUNT(*) AS n FROM t WHERE op = 'r'", "orders", "changes")[0]["n"]


@pytest.mark.feature("SIG-01", "SIG-06")
def test_file_is_looked_at_while_the_source_is_idle(filed: Place):
    write(filed, "f1", "execute-snapshot", type="blocking", **{"data-collections": ["dbo.orders"]})
    write(filed, "f2", "log", message="hello")
    assert filed.command("run", "--seconds", "4") == 0
    assert filed.check() == 0
    assert reads(filed) == 4
    assert own_rows(filed, "signals", RECORDED) == [
        {
            "id": "f1",
            "channel": "file",
            "status": "requested",
            "result": f"a blocking snapshot of {filed.database}.dbo.orders",
        },
        {"id": "f2", "channel": "file", "status": "done", "result": "hello"},
    ]
    assert list(filed.folder.glob("signals.txt*")) == []


@pytest.mark.feature("SIG-06")
@pytest.mark.parametrize("after", [False, True])
def test_signal_in_a_file_survives_a_kill_and_is_done_once(filed: Place, after: bool):  # noqa: FBT001
    write(filed, "f1", "execute-snapshot", type="blocking", **{"data-collections": ["dbo.orders"]})
    with killed_at("mssql_cdc.run.follower.record_signals", 1, after=after), pytest.raises(Killed):
        filed.catch_up()
    for _ in range(2):
        assert filed.catch_up() == 0
    assert [row["id"] for row in own_rows(filed, "signals", RECORDED)] == ["f1"]
    assert reads(filed) == 4
    assert filed.check() == 0
