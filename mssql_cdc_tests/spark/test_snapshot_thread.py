"""A snapshot in a thread: only its own tables wait (C22)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.range import capture_range
from mssql_cdc.capture.requests import ask_for_snapshot
from mssql_cdc.capture.survey import survey
from mssql_cdc.errors import FencedError, SourceError
from mssql_cdc.follow.slow_work import SlowWork
from mssql_cdc.lake.offset_commits import load_offsets
from mssql_cdc.plan.decisions import Decision, Range, Snapshot, Wait
from mssql_cdc.plan.planner import plan
from mssql_cdc.run.execute import Done
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.snapshots import SnapshotThread, take_snapshot
from mssql_cdc.schema import TableId
from mssql_cdc_tests.spark.model_lake import changes, current, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource

pytestmark = pytest.mark.spark


@contextmanager
def following(database: Database) -> Iterator[Follower]:
    follower = Follower(database, slow=SlowWork(), beside=SnapshotThread(database))
    try:
        yield follower
    finally:
        follower.close()


def steps(follower: Follower, until: Callable[[], bool]) -> None:
    for _ in range(500):
        follower.attempt()
        if until():
            return
        threading.Event().wait(0.02)
    raise AssertionError(f"still {follower.decision}, {follower.errors}")


def takes_snapshot(follower: Follower) -> bool:
    assert follower.beside is not None
    return bool(follower.beside.active)


def has_begun(database: Database, name: str) -> bool:
    return f"shop.dbo.{name}" in load_offsets(database.layout, database.storage).begun_snapshots


@pytest.fixture
def held(source: ModelSource) -> Iterator[threading.Event]:
    """The reader of the snapshot's first chunk waits for this event."""
    gate, streams = threading.Event(), threading.current_thread()

    def wait() -> None:
        if threading.current_thread() is not streams and threading.current_thread().name == "snapshot":
            assert gate.wait(60)

    source.before_read = wait
    yield gate
    gate.set()


@pytest.mark.feature("BLK-01")
def test_other_tables_stream_while_a_snapshot_reads(database: Database, source: ModelSource, held: threading.Event):
    write_some(source)
    held.set()
    settled(database, source)
    held.clear()
    ask_for_snapshot(database, "again", ["shop.dbo.orders"], channel="test")
    with following(database) as follower:
        steps(follower, lambda: has_begun(database, "orders"))
        source.put("people", 7, "seven")
        source.put("orders", 7, "seven")
        source.capture()
        steps(follower, lambda: ("c", 7, "seven") in changes(database, "people"))
        steps(follower, lambda: current(database, "people").get(7) == "seven")
        assert ("c", 7, "seven") not in changes(database, "orders"), "its own table waits"
        held.set()
        steps(follower, lambda: not takes_snapshot(follower) and isinstance(follower.decision, Wait))
    settled(database, source)
    same(database, source)
    assert [op for op, _, _ in changes(database, "orders")].count("r") in {8, 9}, "the chunk may hold key 7"
    assert [op for op, _, _ in changes(database, "people")].count("r") == 4


def test_a_table_continues_after_its_snapshot_without_the_wait_of_a_retry(
    database: Database, source: ModelSource, held: threading.Event
):
    """Until it did, no cut was complete, and every current table stood still for ten seconds (make demo)."""
    write_some(source)
    held.set()
    settled(database, source)
    held.clear()
    ask_for_snapshot(database, "again", ["shop.dbo.orders"], channel="test")
    met: list[Decision | None] = []

    def streams() -> bool:
        met.append(follower.decision)
        return ("c", 9, "nine") in changes(database, "orders") and current(database, "people").get(8) == "eight"

    with following(database) as follower:
        steps(follower, lambda: has_begun(database, "orders"))
        source.put("people", 7, "seven")
        source.capture()
        steps(follower, lambda: ("c", 7, "seven") in changes(database, "people"))
        held.set()
        steps(follower, lambda: not has_begun(database, "orders"))
        source.put("orders", 9, "nine")
        source.put("people", 8, "eight")
        source.capture()
        steps(follower, streams)
    assert [one for one in met if isinstance(one, Wait) and one.until is not None] == []
    same(database, source)


def test_a_new_table_does_not_hold_up_the_others(database: Database, source: ModelSource, held: threading.Event):
    held.set()
    write_some(source)
    settled(database, source)
    held.clear()
    source.enable("later")
    source.put("later", 1, "one")
    source.capture()
    with following(database) as follower:
        steps(follower, lambda: takes_snapshot(follower))
        source.put("people", 8, "eight")
        source.capture()
        steps(follower, lambda: ("c", 8, "eight") in changes(database, "people"))
        assert changes(database, "later") == []
        held.set()
        steps(follower, lambda: not takes_snapshot(follower) and isinstance(follower.decision, Wait))
    same(database, source)


def test_a_snapshot_that_fails_is_the_trouble_of_its_tables(database: Database, source: ModelSource):
    write_some(source)
    settled(database, source)
    source.faults["orders"] = "its pages are damaged"
    ask_for_snapshot(database, "again", ["shop.dbo.orders"], channel="test")
    with following(database) as follower:
        steps(follower, lambda: bool(follower.errors))
        assert {table.name: type(error) for table, error in follower.errors.items()} == {"orders": SourceError}
        source.put("people", 7, "seven")
        source.capture()
        steps(follower, lambda: ("c", 7, "seven") in changes(database, "people"))


def test_a_snapshot_ends_after_its_group_when_the_loop_ends_and_is_resumed(
    database: Database, source: ModelSource, spark: SparkSession, held: threading.Event
):
    write_some(source)
    source.capture()
    follower = Follower(database, slow=SlowWork(), beside=SnapshotThread(database))
    steps(follower, lambda: takes_snapshot(follower))
    threading.Timer(0.5, held.set).start()
    follower.close()
    assert follower.beside is not None
    assert follower.beside.ended
    settled(database.apart(), source)
    same(database, source)
    for name in ("orders", "people"):
        assert [op for op, _, _ in changes(database, name)].count("r") == 4


def test_a_range_that_was_being_read_when_the_snapshot_began_does_not_fail_it(database: Database, source: ModelSource):
    """It commits its rows, and only then meets that its table is in a snapshot: the snapshot goes on behind them."""
    write_some(source)
    settled(database, source)
    source.put("orders", 7, "seven")
    source.capture()
    other = database.apart()
    before = survey(other)
    late = plan(before.facts)
    assert isinstance(late, Range)
    reads: list[int] = []

    def read_late() -> None:
        reads.append(1)
        if len(reads) == 1:
            with pytest.raises(FencedError):
                capture_range(other, before, late)

    source.before_read = read_late
    wanted = Snapshot("snapshot-20260101T000000", (TableId("shop", "dbo", "orders"),), by_hand=True)
    done = take_snapshot(database.apart(), wanted)
    assert done.snapshot is not None
    assert done.snapshot.failed == {}
    settled(database.apart(), source)
    same(database, source)
    assert changes(database, "orders").count(("c", 7, "seven")) == 1


def test_a_range_that_a_snapshot_overtakes_is_planned_anew_without_the_wait_of_a_retry(
    database: Database, source: ModelSource
):
    """Its rows are committed, its row of `_offsets` is not: all tables stood still for ten seconds (make demo)."""
    write_some(source)
    settled(database, source)
    orders, taken, met = TableId("shop", "dbo", "orders"), list[Done](), list[Decision | None]()

    def take() -> None:
        source.before_read = lambda: None
        taken.append(take_snapshot(database.apart(), Snapshot("snapshot-20260101T000000", (orders,), by_hand=True)))

    def streams() -> bool:
        met.append(follower.decision)
        source.put("people", 8, f"eight {len(met)}")
        source.capture()
        known = changes(database, "orders")
        return ("c", 7, "seven") in known and len([one for one in changes(database, "people") if one[1] == 8]) > 1

    with following(database) as follower:
        steps(follower, lambda: isinstance(follower.decision, Wait))
        source.put("orders", 7, "seven")
        source.put("people", 7, "seven")
        source.capture()
        source.before_read = take
        steps(follower, streams)
    assert len(taken) == 1
    assert [one for one in met if isinstance(one, Range) and one.beside] == [], "a range beside a retry"
    assert [one for one in met if isinstance(one, Wait) and one.until is not None] == []
    settled(database.apart(), source)
    same(database, source)
