"""A merge that only Spark can do runs beside the ranges: they go on, and its result comes later."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mssql_cdc.errors import SourceUnavailableError
from mssql_cdc.follow.slow_merges import SlowMerges
from mssql_cdc.lake import current as lake_current
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import Follower
from mssql_cdc_tests.spark.model_lake import changes, current, same, settled, write_some

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Gate:
    """Holds the real merge until a test opens it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.opened = threading.Event(), threading.Event()
        self.calls = 0
        self.error: Exception | None = None
        real = lake_current.merge

        def held(*arguments: Any, **more: Any) -> Any:
            self.calls += 1
            self.begun.set()
            assert self.opened.wait(120)
            if self.error is not None:
                error, self.error = self.error, None
                raise error
            return real(*arguments, **more)

        monkeypatch.setattr(lake_current, "merge", held)


@pytest.fixture
def gate(database, source, spark, monkeypatch) -> Iterator[Gate]:
    """Two tables in the lake, of which `orders` has a change data feed, so that only Spark may write to it."""
    write_some(source)
    settled(database, source)
    uri = database.layout.root + "/dbo/orders/current"
    spark.sql(f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    made = Gate(monkeypatch)
    yield made
    made.opened.set()


def steps(follower: Follower, number: int) -> list[Done]:
    found = [follower.attempt() for _ in range(number)]
    return [done for done in found if done is not None]


def until_merged(follower: Follower, name: str) -> Done:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for done in steps(follower, 1):
            if name in {table.name for table in [*done.merged.tables, *done.merged.errors]}:
                return done
        time.sleep(0.1)
    raise AssertionError(f"{name} was not merged")


def test_ranges_and_other_tables_go_on_while_spark_merges_one(database, source, gate):
    follower = Follower(database, slow=SlowMerges())
    for _ in range(3):
        write_some(source)
        source.capture()
        steps(follower, 2)
    assert gate.begun.is_set()
    assert not gate.opened.is_set()
    assert len(changes(database, "orders")) == len(changes(database, "people"))
    assert current(database, "people") == source.tables["people"].rows
    assert current(database, "orders") != source.tables["orders"].rows
    assert gate.calls == 1, "the table was merged twice at a time"
    gate.opened.set()
    until_merged(follower, "orders")
    while current(database, "orders") != source.tables["orders"].rows:
        until_merged(follower, "orders")
    follower.close()
    same(database, source)


def test_a_merge_that_fails_is_reported_and_tried_again(database, source, gate):
    follower = Follower(database, slow=SlowMerges())
    gate.error = SourceUnavailableError("the store does not answer")
    gate.opened.set()
    write_some(source)
    source.capture()
    (error,) = until_merged(follower, "orders").merged.errors.values()
    assert "does not answer" in str(error)
    assert not until_merged(follower, "orders").merged.errors
    follower.close()
    same(database, source)


def test_the_end_of_a_run_does_not_wait_for_a_merge(database, source, gate, spark):
    follower = Follower(database, slow=SlowMerges())
    write_some(source)
    source.capture()
    steps(follower, 1)
    assert gate.begun.wait(60)
    ended = threading.Thread(target=follower.close, kwargs={"patience": 0})
    ended.start()
    gate.opened.set()
    ended.join(120)
    assert not ended.is_alive()
    settled(database, source)
    same(database, source)
