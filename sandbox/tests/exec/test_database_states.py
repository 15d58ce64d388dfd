"""Rules of databases that go offline: who is thrown out, what is refused, what comes back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.exec.conftest import Client

OFFLINE = "ALTER DATABASE other SET OFFLINE WITH ROLLBACK IMMEDIATE"
QUERY = "SELECT id FROM other.dbo.t"


@pytest.fixture
def pair(sql: Client, connect: Callable[[], Client]) -> tuple[Client, Client]:
    sql("CREATE DATABASE other")
    sql("CREATE TABLE other.dbo.t (id int) INSERT other.dbo.t VALUES (1)")
    return sql, connect()


def test_offline_database_is_refused_also_to_statements_that_ran_before(pair: tuple[Client, Client]) -> None:
    """[doc] 942; going offline clears the cached plans."""
    owner, reader = pair
    assert reader(QUERY).rows == [(1,)]
    assert owner(OFFLINE).errors == []
    assert (reader(QUERY).errors, reader("USE other").errors) == ([942], [942])
    assert owner("ALTER DATABASE other SET ONLINE").errors == []
    assert reader(QUERY).rows == [(1,)]


@pytest.mark.parametrize("use", ["USE other", "BEGIN TRAN INSERT other.dbo.t VALUES (2)",
                                 "BEGIN TRAN SELECT id FROM other.dbo.t WITH (TABLOCKX)"])  # fmt: skip
def test_rollback_immediate_ends_the_sessions_that_use_the_database(pair: tuple[Client, Client], use: str) -> None:
    """[doc] sessions in it and sessions with an open transaction in it."""
    owner, user = pair
    user(use)
    owner(OFFLINE)
    assert user.session.killed


def test_rollback_immediate_leaves_those_who_only_read_before(pair: tuple[Client, Client]) -> None:
    owner, reader = pair
    reader(QUERY)
    owner(OFFLINE)
    assert not reader.session.killed
