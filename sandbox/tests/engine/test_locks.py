"""Locks: queues, conversions, timeouts, deadlocks, and what each isolation level holds."""

import asyncio

import pytest

from mssql_sandbox.engine.lock_modes import LockMode, combined
from mssql_sandbox.engine.lock_requests import MustWait, Resource
from mssql_sandbox.engine.locks import LockManager
from mssql_sandbox.engine.storage.views import open_view
from mssql_sandbox.engine.transaction_scopes import Isolation
from mssql_sandbox.errors import SqlError
from tests.engine.conftest import committed, rows_of

TABLE = Resource("OBJECT", 5, 1)
OTHER = Resource("OBJECT", 5, 2)


class Owner:
    def __init__(self, spid: int, *, priority: int = 0, cost: int = 0) -> None:
        self.spid, self.deadlock_priority, self.cost = spid, priority, cost
        self.locks: dict = {}

    def rollback_cost(self) -> int:
        return self.cost


def waits(manager: LockManager, owner: Owner, mode: LockMode, resource: Resource = TABLE):
    with pytest.raises(MustWait) as raised:
        manager.acquire(owner, resource, mode)
    return raised.value.request


def test_requests_are_granted_in_order_of_arrival() -> None:
    manager, holder, writer, reader = LockManager(), Owner(1), Owner(2), Owner(3)
    manager.acquire(holder, TABLE, LockMode.S)
    exclusive = waits(manager, writer, LockMode.X)
    shared = waits(manager, reader, LockMode.S)
    manager.release_all(holder)
    assert (exclusive.settled, shared.settled) == (True, False)
    manager.release_all(writer)
    assert shared.settled
    assert [(row.spid, row.mode, row.status) for row in manager.rows()] == [(3, LockMode.S, "GRANT")]


def test_a_dirty_read_waits_for_schema_changes_only() -> None:
    manager, holder, writer, reader, changer, late = LockManager(), *(Owner(spid) for spid in range(1, 6))
    manager.acquire(holder, TABLE, LockMode.S)
    waits(manager, writer, LockMode.IX)
    manager.acquire(reader, TABLE, LockMode.SCH_S)
    waits(manager, changer, LockMode.SCH_M)
    waits(manager, late, LockMode.SCH_S)


def test_a_request_passes_those_that_it_agrees_with() -> None:
    """A newcomer waits only for modes, granted or pending, that it conflicts with: relaxed FIFO since SQL Server 2005.

    Evidence: S. Voutilainen in "SQL Server 2005 Practical Troubleshooting", quoted by Microsoft's support blog; and
    Debezium's SqlServerChunkedSnapshotIT, whose readers pass an INSERT that waits for their transaction's own lock.
    """
    manager, snapshot, writer, chunk, table_reader = LockManager(), *(Owner(spid) for spid in range(1, 5))
    manager.acquire(snapshot, TABLE, LockMode.S)
    insert = waits(manager, writer, LockMode.IX)
    manager.acquire(chunk, TABLE, LockMode.IS)
    whole = waits(manager, table_reader, LockMode.S)
    manager.release_all(snapshot)
    assert (insert.settled, whole.settled) == (True, False)


def test_a_release_grants_all_that_agree_with_those_who_still_wait() -> None:
    manager, holder, first, second, third = LockManager(), *(Owner(spid) for spid in range(1, 5))
    manager.acquire(holder, TABLE, LockMode.X)
    requests = [
        waits(manager, first, LockMode.S),
        waits(manager, second, LockMode.IX),
        waits(manager, third, LockMode.IS),
    ]
    manager.release_all(holder)
    assert [request.settled for request in requests] == [True, False, True]


def test_a_conversion_goes_before_new_requests() -> None:
    manager, one, two, three = LockManager(), Owner(1), Owner(2), Owner(3)
    manager.acquire(one, TABLE, LockMode.S)
    manager.acquire(two, TABLE, LockMode.S)
    newcomer = waits(manager, three, LockMode.X)
    upgrade = waits(manager, one, LockMode.X)
    manager.release_all(two)
    assert upgrade.settled
    assert not newcomer.settled
    assert one.locks[TABLE].mode is LockMode.X


@pytest.mark.parametrize(
    ("held", "wanted", "result"),
    [("S", "IX", "SIX"), ("IS", "S", "S"), ("X", "S", "X"), ("U", "IX", "SIX"), ("IX", "Sch-M", "Sch-M")],
)
def test_combined_modes_cover_both(held, wanted, result) -> None:
    assert combined(LockMode(held), LockMode(wanted)) is LockMode(result)


def test_a_cycle_of_waits_has_a_victim_by_priority_and_cost() -> None:
    manager, cheap, dear = LockManager(), Owner(51, cost=1), Owner(52, cost=9)
    manager.acquire(cheap, TABLE, LockMode.X)
    manager.acquire(dear, OTHER, LockMode.X)
    victim = waits(manager, cheap, LockMode.X, OTHER)
    survivor = waits(manager, dear, LockMode.X, TABLE)
    assert victim.settled
    assert victim.failure is not None
    assert victim.failure.number == 1205
    assert "(Process ID 51) was deadlocked on lock resources" in victim.failure.message
    manager.release_all(cheap)
    assert survivor.settled
    assert survivor.failure is None


def test_the_requester_itself_may_be_the_victim() -> None:
    manager, first, second = LockManager(), Owner(51, priority=5), Owner(52, priority=-5)
    manager.acquire(first, TABLE, LockMode.X)
    manager.acquire(second, OTHER, LockMode.X)
    waits(manager, first, LockMode.S, OTHER)
    with pytest.raises(SqlError) as raised:
        manager.acquire(second, TABLE, LockMode.S)
    assert raised.value.number == 1205


def test_waiting_ends_with_the_grant_or_with_error_1222() -> None:
    async def play() -> None:
        manager, holder, waiter = LockManager(), Owner(1), Owner(2)
        manager.acquire(holder, TABLE, LockMode.X)
        for timeout in (0, 0.01):
            with pytest.raises(SqlError, match="Lock request time out period exceeded"):
                await waits(manager, waiter, LockMode.S).wait(timeout)
        request = waits(manager, waiter, LockMode.S)
        asyncio.get_running_loop().call_soon(manager.release_all, holder)
        await request.wait(10)
        assert waiter.locks[TABLE].mode is LockMode.S
        manager.release_all(waiter)
        assert list(manager.rows()) == []

    asyncio.run(play())


def test_a_cancelled_wait_leaves_the_queue() -> None:
    async def play() -> None:
        manager, holder, waiter = LockManager(), Owner(1), Owner(2)
        manager.acquire(holder, TABLE, LockMode.X)
        task = asyncio.ensure_future(waits(manager, waiter, LockMode.S).wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [row.status for row in manager.rows()] == ["GRANT"]

    asyncio.run(play())


def test_tablock_with_holdlock_keeps_writers_out_until_the_end(database, table) -> None:
    keeper, writer = database.server.transactions.begin(), database.server.transactions.begin()
    assert rows_of(table, keeper, frozenset({"tablock", "holdlock"})) == []
    writer.begin_statement()
    with pytest.raises(MustWait) as raised:
        table.insert(writer, (1, "a", None))
    keeper.rollback()
    assert raised.value.request.settled
    table.insert(writer, (1, "a", None))
    writer.commit()


def test_repeatable_read_keeps_its_rows_and_read_committed_does_not(database, table) -> None:
    committed(database, lambda t: table.insert(t, (1, "a", None)))
    for isolation, blocked in ((Isolation.REPEATABLE_READ, True), (Isolation.READ_COMMITTED, False)):
        reader, writer = database.server.transactions.begin(isolation=isolation), database.server.transactions.begin()
        rows_of(table, reader)
        writer.begin_statement()
        if blocked:
            with pytest.raises(MustWait):
                table.update(writer, [(0, (1, "a", "b"))])
        else:
            assert table.update(writer, [(0, (1, "a", "b"))])
        writer.rollback()
        reader.rollback()


def test_serializable_lets_no_phantoms_in(database, table) -> None:
    reader = database.server.transactions.begin(isolation=Isolation.SERIALIZABLE)
    rows_of(table, reader)
    writer = database.server.transactions.begin()
    with pytest.raises(MustWait):
        table.insert(writer, (1, "a", None))
    writer.rollback()
    reader.rollback()


def test_a_serializable_point_read_of_an_existing_key_locks_only_its_row(database, table) -> None:
    committed(database, lambda t: table.insert(t, (1, "a", None)))
    reader = database.server.transactions.begin(isolation=Isolation.SERIALIZABLE)
    reader.begin_statement()
    assert table.primary_key is not None
    assert table.seek(open_view(reader, database), table.primary_key, (1,)) == [(0, (1, "a", None))]
    committed(database, lambda t: table.insert(t, (2, "b", None)))
    writer = database.server.transactions.begin()
    with pytest.raises(MustWait):
        table.delete(writer, [0])
    writer.rollback()
    reader.rollback()


def test_two_inserts_of_one_key_wait_for_each_other(database, table) -> None:
    first, second = database.server.transactions.begin(), database.server.transactions.begin()
    table.insert(first, (1, "a", None))
    with pytest.raises(MustWait):
        table.insert(second, (1, "b", None))
    first.rollback()
    table.insert(second, (1, "b", None))
    second.commit()
