"""Transactions: savepoints, locks, waits and who ends them, attention, sessions that leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from mssql_sandbox.engine.events import TmRequest
from tests.exec.conftest import Answer, Client


def test_savepoint_keeps_what_came_before(table: Client) -> None:
    table("BEGIN TRAN DELETE t WHERE id = 1 SAVE TRAN s DELETE t WHERE id = 2 ROLLBACK TRAN s COMMIT")
    assert table("SELECT id FROM t ORDER BY id").rows == [(2,), (3,)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SELECT 1", []),
        ("SELECT * FROM t WITH (TABLOCKX)", [1222]),
    ],
)
def test_rollback_to_a_savepoint_gives_back_the_locks_acquired_since(
    table: Client, connect: Callable[[], Client], before: str, after: list[int]
) -> None:
    """[doc] ROLLBACK TRANSACTION, locking behaviour; what was locked before the savepoint stays locked."""
    table(f"BEGIN TRAN {before} SAVE TRAN s SELECT * FROM t WITH (TABLOCKX) ROLLBACK TRAN s")
    assert connect()("SET LOCK_TIMEOUT 0 UPDATE t SET n = 1").errors == after


def test_implicit_transactions_open_with_data_not_with_constants(table: Client) -> None:
    table("SET IMPLICIT_TRANSACTIONS ON")
    assert table("SELECT 1").changes == []
    assert table("SELECT id FROM t").changes == ["begin"]
    assert table("IF @@TRANCOUNT > 0 COMMIT TRAN").changes == ["commit"]


def test_commit_request_may_begin_the_next_transaction(table: Client) -> None:
    async def run(request: TmRequest) -> Answer:
        return Answer([event async for event in table.session.transaction_request(request)])

    assert asyncio.run(run(TmRequest("begin"))).changes == ["begin"]
    first = table.session.transaction_descriptor
    assert asyncio.run(run(TmRequest("commit", begin_next=True))).changes == ["commit", "begin"]
    assert table.session.transaction_descriptor not in (0, first)


def test_reader_waits_for_the_writer_and_then_sees_the_new_row(table: Client, connect: Callable[[], Client]) -> None:
    other = connect()

    async def both() -> tuple[list[tuple], bool]:
        await table.batch("BEGIN TRAN UPDATE t SET n = 99 WHERE id = 1")
        reading = asyncio.create_task(other.batch("SELECT n FROM t WHERE id = 1"))
        for _ in range(20):
            await asyncio.sleep(0)
        waited = not reading.done()
        await table.batch("COMMIT")
        return (await reading).rows, waited

    assert asyncio.run(both()) == ([(99,)], True)


def test_lock_timeout_ends_the_wait(table: Client, connect: Callable[[], Client]) -> None:
    other = connect()

    async def both() -> list[int]:
        await table.batch("BEGIN TRAN UPDATE t SET n = 99 WHERE id = 1")
        answer = await other.batch("SET LOCK_TIMEOUT 0 UPDATE t SET n = 1 WHERE id = 1")
        await table.batch("ROLLBACK")
        return answer.errors

    assert asyncio.run(both()) == [1222]


def test_deadlock_costs_one_transaction(table: Client, connect: Callable[[], Client]) -> None:
    other = connect()

    async def both() -> list[int]:
        await table.batch("BEGIN TRAN UPDATE t SET n = 1 WHERE id = 1")
        await other.batch("BEGIN TRAN UPDATE t SET n = 2 WHERE id = 2")
        waiting = asyncio.create_task(table.batch("UPDATE t SET n = 1 WHERE id = 2"))
        await asyncio.sleep(0)
        second = await other.batch("UPDATE t SET n = 2 WHERE id = 1")
        first = await waiting
        return sorted(first.errors + second.errors)

    assert asyncio.run(both()) == [1205]


def test_attention_ends_a_wait_and_keeps_the_transaction(table: Client, connect: Callable[[], Client]) -> None:
    other = connect()

    async def both() -> tuple[list[tuple], list[int]]:
        await table.batch("BEGIN TRAN UPDATE t SET n = 99 WHERE id = 1")
        await other.batch("BEGIN TRAN INSERT t (id) VALUES (50)")
        waiting = asyncio.create_task(other.batch("UPDATE t SET n = 1 WHERE id = 1"))
        for _ in range(5):
            await asyncio.sleep(0)
        other.session.cancel()
        cancelled = await waiting
        await table.batch("ROLLBACK")
        return (await other.batch("SELECT @@TRANCOUNT")).rows, cancelled.errors

    assert asyncio.run(both()) == ([(1,)], [])


def test_client_that_leaves_while_it_waits_ends_with_its_task(table: Client, connect: Callable[[], Client]) -> None:
    other = connect()

    async def both() -> bool:
        await table.batch("BEGIN TRAN UPDATE t SET n = 99 WHERE id = 1")

        async def serve() -> None:
            while True:
                await other.batch("UPDATE t SET n = 1 WHERE id = 1")

        serving = asyncio.create_task(serve())
        for _ in range(5):
            await asyncio.sleep(0)
        other.session.cancel()
        serving.cancel()
        for _ in range(20):
            await asyncio.sleep(0)
        return serving.cancelled()

    assert asyncio.run(both())
