"""Signals from Kafka: taken while the source is idle, lost and repeated by no crash."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress

import pytest

from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.test_signals import own_rows
from mssql_cdc_tests.kafka_kit import Broker, open_broker
from mssql_cdc_tests.storm.lake import Killed, killed_at

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RECORDED = "SELECT id, channel, position, status, result FROM t ORDER BY _batch, position"


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker with a message for another connector."""
    with open_broker() as found:
        found.send("shop-signal", "another", {"id": "k0", "type": "log", "data": {"message": "not for us"}})
        yield found


@pytest.mark.feature("SIG-05")
@pytest.mark.parametrize(
    "killed", [pytest.param(None, marks=pytest.mark.long), pytest.param(False, marks=pytest.mark.long), True]
)
def test_signals_in_a_topic_are_done_once_also_after_a_kill(place: Place, broker: Broker, killed: bool | None):  # noqa: FBT001
    place.configure(
        signal_enabled_channels="kafka",
        signal_kafka_bootstrap_servers=broker.servers,
        signal_poll_interval_ms="50",
    )
    place.create_orders()
    wanted = {"type": "incremental", "data-collections": [f"{place.database}.dbo.orders"]}
    broker.send("shop-signal", "shop", {"id": "k1", "type": "execute-snapshot", "data": wanted})
    broker.send("shop-signal", "shop", {"id": "k2", "type": "log", "data": {"message": "hello"}})
    kill = nullcontext() if killed is None else killed_at("mssql_cdc.run.follower.record_signals", 1, after=killed)
    with kill, suppress(Killed):
        place.catch_up()
    for _ in range(2):
        assert place.catch_up() == 0
    assert own_rows(place, "signals", RECORDED) == [
        {
            "id": "k1",
            "channel": "kafka",
            "position": "shop-signal:1",
            "status": "requested",
            "result": f"an incremental snapshot of {place.database}.dbo.orders",
        },
        {"id": "k2", "channel": "kafka", "position": "shop-signal:2", "status": "done", "result": "hello"},
    ]
    reads = place.query("SELECT COUNT(*) AS n FROM t WHERE _snapshot LIKE 'incremental:%'", "orders", "changes")
    assert reads == [{"n": 2}]
    assert place.check() == 0
