"""One connection of a database is used by one session after another, as long as it works."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from mssql_cdc.errors import MssqlCdcError, SourceUnavailableError
from mssql_cdc.source.sqlserver import kept
from mssql_cdc.source.sqlserver.source import SqlServerSource
from mssql_cdc_tests.sandbox_source.kit import Shop


def spid(source: SqlServerSource, shop: Shop) -> int:
    with source.session(shop.catalog) as session:
        return session.control.value("SELECT @@SPID", doing="asking for the session")


def test_a_later_session_uses_the_same_connection(shop: Shop) -> None:
    source = shop.source()
    assert spid(source, shop) == spid(source, shop)


def test_sessions_at_the_same_time_have_connections_of_their_own(shop: Shop) -> None:
    source = shop.source()
    with source.session(shop.catalog) as first:
        assert first.control.value("SELECT @@SPID", doing="asking for the session") != spid(source, shop)


def test_a_connection_that_the_server_has_closed_is_replaced(shop: Shop) -> None:
    source = shop.source()
    closed = spid(source, shop)
    shop.run(f"KILL {closed}")
    with source.session(shop.catalog) as session:
        assert session.control.value("SELECT 1", doing="using the new connection") == 1


def test_a_connection_is_not_used_again_after_an_error(shop: Shop) -> None:
    source = shop.source()
    used: list[kept.Control] = []

    def fail() -> None:
        with source.session(shop.catalog) as session:
            used.append(session.control)
            session.control.value("SELECT 1 / 0", doing="failing")

    with pytest.raises(MssqlCdcError):
        fail()
    with source.session(shop.catalog) as session:
        assert session.control not in used


def test_a_connection_that_a_user_s_statement_may_have_altered_is_not_used_again(shop: Shop) -> None:
    source = shop.source()
    with source.session(shop.catalog) as session:
        session.run_statement("SET DATEFIRST 3", doing="running a statement")
    with source.session(shop.catalog) as session:
        assert session.control.value("SELECT @@DATEFIRST", doing="asking for a setting") == 7


def test_a_connection_is_replaced_after_a_minute(shop: Shop) -> None:
    source = shop.source()
    with source.session(shop.catalog) as session:
        first = session.control
    with (
        patch.object(kept.time, "monotonic", return_value=kept.time.monotonic() + 61),
        source.session(shop.catalog) as session,
    ):
        assert session.control is not first


def test_a_server_that_is_gone_is_unavailable(shop: Shop) -> None:
    source = shop.source()
    with source.session(shop.catalog):
        pass
    gone = SourceUnavailableError("no answer")
    with (
        patch.object(kept.Control, "value", side_effect=gone),
        patch.object(kept, "open_control", side_effect=gone),
        pytest.raises(SourceUnavailableError),
        source.session(shop.catalog),
    ):
        raise AssertionError("the session opened")
