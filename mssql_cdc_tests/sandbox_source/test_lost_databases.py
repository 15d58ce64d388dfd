"""A database that could be opened before recovers or fails over; one that never could is a mistake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyodbc
import pytest

from mssql_cdc.errors import ConfigurationError, LoginRefusedError, SourceUnavailableError
from mssql_cdc.source.sqlserver import connect
from mssql_cdc.source.sqlserver.bulk import open_bulk
from mssql_cdc.source.sqlserver.snapshot_reader import locked
from mssql_cdc.source.sqlserver.source import SqlServerSource
from mssql_cdc_tests.sandbox_source.kit import Shop


@pytest.fixture
def reader(shop: Shop) -> Shop:
    return shop.seen_by("reader", "SELECT")


def use(source: SqlServerSource, shop: Shop) -> None:
    """Open a session whose connection is not kept."""
    with source.session(shop.catalog) as session:
        session.control.altered = True


def source_of(shop: Shop) -> SqlServerSource:
    return SqlServerSource(replace(shop.connector, connection=shop.connection))


def close(shop: Shop) -> None:
    """As while a database recovers: error 4060."""
    shop.run(f"DROP USER [{shop.catalog}_reader]")


def test_a_database_that_was_open_before_is_unavailable_until_it_opens_again(shop: Shop, reader: Shop) -> None:
    source = source_of(reader)
    use(source, reader)
    close(shop)
    with pytest.raises(SourceUnavailableError, match=r"could before \(error 4060\)"):
        use(source, reader)
    with pytest.raises(ConfigurationError, match=r"database\.names"):
        use(source_of(reader), reader)
    shop.run(f"CREATE USER [{shop.catalog}_reader] FOR LOGIN [{shop.catalog}_reader]")
    use(source, reader)


@pytest.mark.parametrize("by_rows", [False, True])
def test_readers_know_that_the_database_was_open_when_they_were_planned(
    shop: Shop, reader: Shop, *, by_rows: bool
) -> None:
    close(shop)
    with (
        pytest.raises(SourceUnavailableError, match="could before"),
        open_bulk(reader.connection, reader.catalog, by_rows=by_rows),
    ):
        pass


def test_locks_are_taken_of_a_database_that_was_open(shop: Shop, reader: Shop) -> None:
    close(shop)
    with pytest.raises(SourceUnavailableError, match="could before"), locked(reader.connection, reader.catalog, [], 1):
        pass


def refusing(numbers: dict[str, int]) -> Callable[..., pyodbc.Connection]:
    """What connects to no database: the number of the error, by the database's name."""

    def refuse(_: object, catalog: str, **__: object) -> pyodbc.Connection:
        number = numbers[catalog]
        raise pyodbc.Error("28000", f"[28000] [Driver]Refused. ({number}) (SQLDriverConnect)")

    return refuse


@pytest.mark.parametrize(
    ("of_master", "expected"),
    [(18456, LoginRefusedError), (18401, SourceUnavailableError), (18470, LoginRefusedError)],
)
def test_a_login_is_refused_only_if_the_server_says_so_of_master(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, of_master: int, expected: type[Exception]
) -> None:
    """The server may go down between the two questions."""
    monkeypatch.setattr(connect, "_connect", refusing({shop.catalog: 18456, "master": of_master}))
    with pytest.raises(expected), connect.control(shop.connection, shop.catalog):
        pass


@pytest.mark.parametrize(
    ("opened_before", "of_master", "expected", "says"),
    [
        (True, 18456, SourceUnavailableError, "could before"),
        (False, 18456, ConfigurationError, r"database\.names"),
        (False, 18401, SourceUnavailableError, "master"),
    ],
)
def test_a_database_that_cannot_be_opened_is_no_refused_login_though_the_login_may_not_open_master(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, *, opened_before: bool, of_master: int, expected: type[Exception],
    says: str,
) -> None:  # fmt: skip
    """As on Azure SQL Database, for a user of one database: a failover ended the run as a wrong login."""
    monkeypatch.setattr(connect, "_connect", refusing({shop.catalog: 4060, "master": of_master}))
    with (
        pytest.raises(expected, match=says) as caught,
        connect.control(shop.connection, shop.catalog, opened_before=opened_before),
    ):
        pass
    assert type(caught.value) is expected


def test_a_password_that_changed_is_a_refused_login(shop: Shop, reader: Shop) -> None:
    source = source_of(reader)
    use(source, reader)
    shop.run(f"ALTER LOGIN [{shop.catalog}_reader] WITH PASSWORD = 'Another-of-the-test-1'")
    with pytest.raises(LoginRefusedError):
        use(source, reader)
