"""MARS inside the session: one transaction, one environment, several requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine

import pytest

from mssql_sandbox.engine.events import Event, Message, Rows, TmRequest
from mssql_sandbox.exec.lanes import Lane, Lanes
from tests.exec.conftest import Answer, Client

TWO = "SELECT i, s FROM t ORDER BY i"


@pytest.fixture
def lanes(connect: Callable[[], Client]) -> Callable[[], Lane]:
    client = connect()
    client("CREATE TABLE t (i int PRIMARY KEY, s char(100) NOT NULL); "
           "INSERT t SELECT value, 'x' FROM GENERATE_SERIES(1, 5000)")  # fmt: skip
    return Lanes(client.session).open


async def all_of(events: AsyncGenerator[Event, None]) -> Answer:
    return Answer([event async for event in events])


async def rest_of(events: AsyncGenerator[Event, None]) -> list[int]:
    return (await all_of(events)).errors


async def first_rows(lane: Lane, sql: str = TWO) -> AsyncGenerator[Event, None]:
    """A request that has given rows and has more."""
    events = lane.batch(sql)
    async for event in events:
        if isinstance(event, Rows):
            return events
    raise AssertionError("no rows came")


async def begin(lane: Lane) -> int:
    await all_of(lane.transaction_request(TmRequest("begin")))
    assert lane.transaction_descriptor
    return lane.transaction_descriptor


def run(work: Coroutine[None, None, None]) -> None:
    asyncio.run(work)


def test_a_change_runs_between_the_rows_of_a_query(lanes: Callable[[], Lane]) -> None:
    async def work() -> None:
        reading = await first_rows(lanes())
        writer = lanes()
        assert (await all_of(writer.batch("UPDATE t SET s = 'y' WHERE i = 1"))).counts == [1]
        assert not await rest_of(reading)

    run(work())


def test_a_cancelled_query_leaves_what_others_changed_in_the_transaction(lanes: Callable[[], Lane]) -> None:
    async def work() -> None:
        reader, writer = lanes(), lanes()
        descriptor = await begin(reader)
        for lane in (reader, writer):
            lane.enlist(descriptor)
        reading = await first_rows(reader)
        await all_of(writer.batch("UPDATE t SET s = 'y' WHERE i = 1"))
        reader.cancel()
        await rest_of(reading)
        assert (await all_of(writer.batch("SELECT s FROM t WHERE i = 1"))).rows[0][0].strip() == "y"

    run(work())


def test_commit_waits_for_nobody_3981(lanes: Callable[[], Lane]) -> None:
    async def work() -> None:
        reader, other = lanes(), lanes()
        descriptor = await begin(reader)
        reader.enlist(descriptor)
        other.enlist(descriptor)
        reading = await first_rows(reader)
        assert (await all_of(other.transaction_request(TmRequest("commit")))).errors == [3981]
        assert not await rest_of(reading)
        assert not (await all_of(other.transaction_request(TmRequest("commit")))).errors

    run(work())


def test_rollback_ends_the_other_requests_3980(lanes: Callable[[], Lane]) -> None:
    async def work() -> None:
        reader, other = lanes(), lanes()
        descriptor = await begin(reader)
        reader.enlist(descriptor)
        other.enlist(descriptor)
        reading = await first_rows(reader)
        assert not (await all_of(other.transaction_request(TmRequest("rollback")))).errors
        assert await rest_of(reading) == [3980]
        assert not reader.transaction_descriptor

    run(work())


def test_no_transaction_begins_beside_a_running_request_3988(lanes: Callable[[], Lane]) -> None:
    async def work() -> None:
        reading = await first_rows(lanes())
        assert (await all_of(lanes().transaction_request(TmRequest("begin")))).errors == [3988]
        await reading.aclose()

    run(work())


@pytest.mark.parametrize(("wrong", "number"), [(0, 3989), (12345, 3971)])
def test_a_request_names_the_transaction_that_is_open(lanes: Callable[[], Lane], wrong: int, number: int) -> None:
    async def work() -> None:
        lane = lanes()
        await begin(lane)
        lane.enlist(wrong)
        assert (await all_of(lane.batch("SELECT 1"))).errors == [number]

    run(work())


def test_a_transaction_of_a_batch_ends_with_the_batch_3997(lanes: Callable[[], Lane]) -> None:
    """Documentation of BEGIN TRANSACTION: batch-scoped transactions, applicable only to MARS."""

    async def work() -> None:
        lane = lanes()
        answer = await all_of(lane.batch("BEGIN TRAN; UPDATE t SET s = 'z' WHERE i = 1"))
        assert [event.number for event in answer.events if isinstance(event, Message)] == [3997]
        assert (await all_of(lane.batch("SELECT RTRIM(s), @@TRANCOUNT FROM t WHERE i = 1"))).rows == [("x", 0)]
        assert not (await all_of(lane.batch("BEGIN TRAN; UPDATE t SET s = 'z' WHERE i = 1; COMMIT"))).errors
        assert (await all_of(lane.batch("SELECT RTRIM(s) FROM t WHERE i = 1"))).rows == [("z",)]

    run(work())


def test_a_request_starts_with_the_settings_that_the_last_one_left(lanes: Callable[[], Lane]) -> None:
    async def work() -> None:
        one, two = lanes(), lanes()
        reading = await first_rows(one, f"SET LOCK_TIMEOUT 7; {TWO}")
        assert (await all_of(two.batch("SELECT @@LOCK_TIMEOUT"))).rows == [(-1,)]
        await rest_of(reading)
        await all_of(one.batch("CREATE TABLE #shared (i int)"))
        assert (await all_of(two.batch("SELECT @@LOCK_TIMEOUT; SELECT i FROM #shared"))).sets == [[(7,)], []]

    run(work())


def test_a_temporary_table_that_one_request_makes_anew_is_new_to_all(lanes: Callable[[], Lane]) -> None:
    async def work() -> None:
        one, two = lanes(), lanes()
        query = "SELECT * FROM #again"
        await all_of(one.batch("CREATE TABLE #again (i int); INSERT #again VALUES (1)"))
        assert (await all_of(two.batch(query))).rows == [(1,)]
        await all_of(one.batch("DROP TABLE #again; CREATE TABLE #again (s varchar(5)); INSERT #again VALUES ('a')"))
        assert (await all_of(two.batch(query))).rows == [("a",)]

    run(work())
