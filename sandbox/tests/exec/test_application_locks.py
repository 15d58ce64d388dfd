"""Rules of application locks. Evidence: Microsoft's documentation of `sp_getapplock` and the functions about them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.exec.conftest import Client

_TAKE = "DECLARE @r int EXEC @r = sp_getapplock 'job', '{mode}', '{owner}', 0 SELECT @r"
_MODE = "SELECT APPLOCK_MODE('public', 'job', '{owner}')"


def take(client: Client, *, mode: str = "Exclusive", owner: str = "Session") -> int:
    return client(_TAKE.format(mode=mode, owner=owner)).rows[0][0]


def test_a_session_keeps_its_lock_between_transactions(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    assert take(one) == 0
    one("BEGIN TRAN COMMIT")
    assert one(_MODE.format(owner="Session")).rows == [("Exclusive",)]
    assert take(other) == -1
    assert one("EXEC sp_releaseapplock 'job', 'Session'").errors == []
    assert take(other) == 0


def test_the_end_of_a_session_gives_its_locks_back(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    take(one)
    one.session.close()
    assert take(other) == 0


def test_a_transaction_gives_its_lock_back_at_its_end(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one("BEGIN TRAN")
    assert take(one, owner="Transaction") == 0
    assert one(_MODE.format(owner="Transaction")).rows == [("Exclusive",)]
    assert take(other) == -1
    one("COMMIT")
    assert take(other) == 0


@pytest.mark.parametrize(("held", "wanted", "free"), [("Shared", "Shared", 1), ("Shared", "Exclusive", 0)])
def test_whether_a_lock_could_be_had(connect: Callable[[], Client], held: str, wanted: str, free: int) -> None:
    one, other = connect(), connect()
    take(one, mode=held)
    assert other(f"SELECT APPLOCK_TEST('public', 'job', '{wanted}', 'Session')").rows == [(free,)]
    assert other(_MODE.format(owner="Session")).rows == [("NoLock",)]


@pytest.mark.parametrize("call", ["sp_releaseapplock 'job', 'Session'", "sp_getapplock 'job', 'Shared', 'Transaction'"])
def test_what_is_not_held_or_has_no_owner(sql: Client, call: str) -> None:
    assert sql(f"EXEC {call}").errors == [1223]
