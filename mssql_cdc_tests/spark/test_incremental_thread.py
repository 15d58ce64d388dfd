"""Groups of an incremental snapshot are read beside the stream, which none of them holds up (INC-10)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.incremental.chunks import Streaming
from mssql_cdc.capture.incremental.state import Group, Reading
from mssql_cdc.capture.incremental.store import load
from mssql_cdc.capture.requests import REQUESTED, SignalRow, ask_for_snapshot, note_signal
from mssql_cdc.errors import FencedError, SourceUnavailableError, StaleStructureError
from mssql_cdc.follow import incremental, incremental_step
from mssql_cdc.follow.incremental import IncrementalSnapshots
from mssql_cdc.follow.incremental_thread import GroupThread
from mssql_cdc.lsn import LsnRange
from mssql_cdc.plan.decisions import Range, Wait
from mssql_cdc.run.follower import Follower
from mssql_cdc.schema import TableId
from mssql_cdc.source.protocol import SourceSession
from mssql_cdc_tests.lake_kit import lsn
from mssql_cdc_tests.spark.model_lake import changes, same, settled, write_some
from mssql_cdc_tests.spark.model_source import ModelSource
from mssql_cdc_tests.spark.test_snapshot_thread import steps

pytestmark = pytest.mark.spark


@pytest.fixture
def held(source: ModelSource) -> Iterator[threading.Event]:
    """The reader of a group waits for this event."""
    gate = threading.Event()

    def wait() -> None:
        if threading.current_thread().name == "incremental-snapshot":
            assert gate.wait(60)

    source.before_read = wait
    yield gate
    gate.set()


@pytest.fixture
def follower(database: Database, source: ModelSource) -> Iterator[Follower]:
    write_some(source)
    settled(database, source)
    found = Follower(database, merge=False, chunks=IncrementalSnapshots(thread=GroupThread()))
    ask_for_snapshot(database, "again", ["shop.dbo.orders"], channel="test", kind="incremental")
    yield found
    found.close()


def reads(database: Database, table: str = "orders") -> int:
    return [op for op, _, _ in changes(database, table)].count("r")


def is_read(follower: Follower) -> bool:
    return isinstance(follower.decision, Wait) and not load(follower.database).is_due


@pytest.mark.feature("INC-10")
def test_tables_stream_while_a_group_is_read(
    follower: Follower, database: Database, source: ModelSource, held: threading.Event
):
    before = reads(database)
    steps(follower, lambda: follower.reads_chunks)
    source.put("people", 7, "seven")
    source.put("orders", 7, "seven")
    source.capture()
    steps(follower, lambda: ("c", 7, "seven") in changes(database, "people"))
    assert ("c", 7, "seven") in changes(database, "orders"), "its own table streams, too"
    assert reads(database) == before
    held.set()
    source.capture()
    steps(follower, lambda: is_read(follower))
    assert reads(database) == 2 * before
    settled(database, source)
    same(database, source)


def test_a_group_of_a_snapshot_that_was_stopped_meanwhile_is_dropped(
    follower: Follower, database: Database, source: ModelSource, held: threading.Event
):
    before = reads(database)
    steps(follower, lambda: follower.reads_chunks)
    note_signal(database, SignalRow("stop", "stop-snapshot", None), "test", REQUESTED, "")
    steps(follower, lambda: not load(database).state.is_running)
    ask_for_snapshot(database, "people", ["shop.dbo.people"], channel="test", kind="incremental")
    held.set()
    source.capture()
    steps(follower, lambda: is_read(follower))
    assert reads(database) == before
    assert [op for op, _, _ in changes(database, "people")].count("r") == 8
    settled(database, source)
    same(database, source)


def test_a_group_that_cannot_be_read_is_read_again(
    follower: Follower, database: Database, source: ModelSource, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(incremental, "REST_SECONDS", 0.0)
    read, failures = incremental_step.read_group, iter([SourceUnavailableError("the server is away")])

    def away(*args: object, **named: object) -> object:
        for error in failures:
            raise error
        return read(*args, **named)  # pyright: ignore[reportArgumentType, reportCallIssue]

    monkeypatch.setattr(incremental_step, "read_group", away)
    before = reads(database)

    def read_again() -> bool:
        source.capture()
        return is_read(follower)

    steps(follower, read_again)
    assert reads(database) == 2 * before
    assert next(failures, None) is None


def test_a_table_that_never_fits_its_stream_is_left_so_that_the_others_are_read(
    follower: Follower, database: Database, source: ModelSource, monkeypatch: pytest.MonkeyPatch
):
    """The step that only begins the next attempt counted as a success: the table was tried for ever."""
    monkeypatch.setattr(incremental, "REST_SECONDS", 0.0)
    read, orders = incremental_step.read_group, TableId("shop", "dbo", "orders")

    def altered(
        own: Database, session: SourceSession, table: Streaming, reading: Reading, *, most: int | None
    ) -> Group:
        if table.member.table == orders:
            raise StaleStructureError(f"{orders} has other columns")
        return read(own, session, table, reading, most=most)

    monkeypatch.setattr(incremental_step, "read_group", altered)
    ask_for_snapshot(database, "people", ["shop.dbo.people"], channel="test", kind="incremental")
    before, others = reads(database), reads(database, "people")

    def read_to_the_end() -> bool:
        source.capture()
        return is_read(follower)

    steps(follower, read_to_the_end)
    assert reads(database) == before
    assert reads(database, "people") == 2 * others > 0


def test_a_group_that_nothing_takes_does_not_keep_the_loop_from_pausing(
    follower: Follower, database: Database, source: ModelSource, held: threading.Event, monkeypatch: pytest.MonkeyPatch
):
    """A paused snapshot takes no step, so that the group that was read meanwhile stays."""
    steps(follower, lambda: follower.reads_chunks)
    note_signal(database, SignalRow("pause", "pause-snapshot", None), "test", REQUESTED, "")
    steps(follower, lambda: load(database).state.paused)
    held.set()
    while follower.reads_chunks:
        follower.pause(0.1)
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    follower.pause(7.0)
    assert slept == [7.0]


def test_ranges_that_are_fenced_again_and_again_wait_for_a_retry(follower: Follower):
    table = TableId("shop", "dbo", "orders")
    wanted = Range(LsnRange(lsn(1), lsn(2)), (), complete=False)
    told: list[bool] = []
    for error in (*[FencedError("another run was faster")] * 4, None, FencedError("once more")):
        follower._note_range(wanted, {} if error is None else {table: error})
        told.append(follower._runs.of(wanted.key).succeeded)
    assert told == [True, True, True, False, True, True]
