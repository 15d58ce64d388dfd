"""Connections of a database are used by one session, and by one range, after another, as long as they work."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
import pytest

from mssql_cdc.errors import MssqlCdcError, SourceUnavailableError
from mssql_cdc.source.sqlserver import kept, kept_bulk
from mssql_cdc.source.sqlserver.bulk import Bulk
from mssql_cdc.source.sqlserver.changes import ChangeReader
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


# -- Of ranges with few rows ----------------------------------------------------------------------------------


@pytest.fixture
def reader(shop: Shop) -> ChangeReader:
    shop.create("t", "id int NOT NULL PRIMARY KEY")
    shop.run("INSERT dbo.t VALUES (1), (2)")
    return shop.changes("t")


def spid_of(bulk: Bulk) -> int:
    fields = [pa.field("n", pa.int32())]
    (batch,) = bulk.read("SELECT CAST(@@SPID AS int) AS [n]", fields, doing="asking for the session", rows=1)
    return batch.column("n")[0].as_py()


def read_over(source: SqlServerSource, reader: ChangeReader) -> Bulk:
    """Read all rows of a range, as a step does; returns the connection that they were read over."""
    with source.share([reader]) as shared:
        assert sum(batch.num_rows for batch in shared.read(reader)) == 2
        assert not shared.spoiled()
        return shared.bulk


def test_a_later_range_is_read_over_the_same_connection(shop: Shop, reader: ChangeReader) -> None:
    source = shop.source()
    first = read_over(source, reader)
    shop.run("DELETE dbo.t", "INSERT dbo.t VALUES (3), (4)")
    with source.share([shop.changes("t")]) as shared:  # It sees what came since then: nothing was left open.
        assert shared.bulk is first
        assert not shared.spoiled()


def test_ranges_that_are_read_at_the_same_time_have_connections_of_their_own(shop: Shop, reader: ChangeReader) -> None:
    source = shop.source()
    with source.share([reader]) as shared:
        assert shared.bulk is not read_over(source, reader)


def test_a_connection_of_a_range_that_the_server_has_closed_is_replaced(shop: Shop, reader: ChangeReader) -> None:
    source = shop.source()
    closed = read_over(source, reader)
    shop.run(f"KILL {spid_of(closed)}")
    assert read_over(source, reader) is not closed


def test_a_connection_is_not_kept_when_the_rows_of_a_range_were_not_read_to_the_end(
    shop: Shop, reader: ChangeReader
) -> None:
    source = shop.source()
    with source.share([reader]) as shared:
        rows = shared.read(reader)
        next(rows)
    assert read_over(source, reader) is not shared.bulk


def test_a_connection_of_a_range_is_not_kept_after_an_error(shop: Shop, reader: ChangeReader) -> None:
    source = shop.source()
    used: list[Bulk] = []

    def fail() -> None:
        with source.share([reader]) as shared:
            used.append(shared.bulk)
            shared.bulk.execute("RAISERROR('no', 16, 1)", doing="failing")

    with pytest.raises(MssqlCdcError):
        fail()
    assert read_over(source, reader) not in used


def test_a_connection_of_a_range_is_replaced_after_a_minute(shop: Shop, reader: ChangeReader) -> None:
    source = shop.source()
    first = read_over(source, reader)
    with (
        patch.object(kept_bulk.time, "monotonic", return_value=kept_bulk.time.monotonic() + 61),
        source.share([reader]) as shared,
    ):
        assert shared.bulk is not first
