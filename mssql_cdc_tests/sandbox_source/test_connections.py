"""Both kinds of connection work, and their errors say what the caller can do."""

from __future__ import annotations

import socket
from dataclasses import replace

import pyarrow as pa
import pytest

from mssql_cdc.config import Connection, Secret
from mssql_cdc.config.driver import OdbcSetting
from mssql_cdc.errors import ConfigurationError, SourceError, SourceUnavailableError, StaleReaderError
from mssql_cdc.source.sqlserver.bulk import open_bulk
from mssql_cdc.source.sqlserver.chunk_planning import next_bound
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc.source.sqlserver.positions import captured
from mssql_cdc.source.values import Chunk
from mssql_cdc_tests.sandbox_source.kit import Shop, rows, without_login

FIELDS = [pa.field("n", pa.int32())]


@pytest.mark.parametrize("by_rows", [False, True])
def test_a_bulk_connection_reads_in_one_transaction(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    with open_bulk(shop.connection, shop.catalog, by_rows=by_rows) as bulk:
        bulk.execute("SELECT TOP (0) * FROM dbo.first_table", doing="testing")
        (batch,) = bulk.read("SELECT @@TRANCOUNT AS n", FIELDS, doing="testing")

    assert batch.to_pylist() == [{"n": 1}]


@pytest.mark.parametrize("by_rows", [False, True])
def test_parameters_reach_a_bulk_statement(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    with open_bulk(shop.connection, shop.catalog, by_rows=by_rows) as bulk:
        (batch,) = bulk.read("SELECT CAST(? AS int) + 1 AS n", FIELDS, ["41"], doing="testing")

    assert batch.to_pylist() == [{"n": 42}]


NAMES = ["a😀b", "zażółć", "what?", "it's", 'quo"te', "a]b", "-- no comment", "/*"]


@pytest.mark.parametrize("driver", [None, "FreeTDS"])
@pytest.mark.parametrize("more", ["", ", body nvarchar(max)"])
def test_column_names_of_any_character_reach_the_server(shop: Shop, driver: str | None, more: str) -> None:
    """Review, bug 23: a name with an emoji arrived garbled, and the error spoke of columns that had changed."""
    columns = ", ".join(f"[{name.replace(']', ']]')}] int" for name in NAMES)
    shop.run(f"CREATE TABLE dbo.[t😀] (id int NOT NULL PRIMARY KEY, {columns}{more})")
    shop.enable("t😀")
    shop.run(f"INSERT dbo.[t😀] VALUES (1, {', '.join(map(str, range(len(NAMES))))}{', NULL' if more else ''})")
    shop.scan()
    own = replace(shop, connection=replace(shop.connection, odbc_driver=driver))
    expected = {"id": 1, **{name: number for number, name in enumerate(NAMES)}, **({"body": None} if more else {})}

    assert [row["after"] for row in rows(own.changes("t😀"))] == [expected]
    assert [row["after"] for row in rows(own.chunk("t😀", Chunk(0, ("0",), ("5",))))] == [expected]


@pytest.mark.parametrize("table", ["tt", "t€"])
@pytest.mark.parametrize("more", ["", ", body nvarchar(max)"])
def test_a_bound_of_more_than_4000_digits_reaches_the_server_whole(shop: Shop, table: str, more: str) -> None:
    """Review of the readers, 5: where a name is not ASCII, it was cut, and the rows behind the cut were not read."""
    shop.run(f"CREATE TABLE dbo.[{table}] (id varchar(1700) NOT NULL PRIMARY KEY{more})")
    shop.enable(table)
    shop.run(*(f"INSERT dbo.[{table}] (id) VALUES (REPLICATE('a', 1200) + '{last}')" for last in "bc"))
    shop.scan()
    keys = ["a" * 1200 + last for last in "bc"]
    lower, upper = ((key.encode("utf-16-le").hex().upper(),) for key in keys)
    assert len(upper[0]) == 4804

    assert [row["after"]["id"] for row in rows(shop.chunk(table, Chunk(0, None, upper)))] == keys
    assert [row["after"]["id"] for row in rows(shop.chunk(table, Chunk(0, lower, None)))] == keys[1:]
    assert [row["after"]["id"] for row in rows(shop.chunk(table, Chunk(0, keys=(lower,))))] == keys[:1]
    assert next_bound(shop.control, shop.instance(table).schema, 1, lower) == upper


@pytest.mark.parametrize("by_rows", [False, True])
def test_a_server_error_names_the_failed_operation(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    with (
        open_bulk(shop.connection, shop.catalog, by_rows=by_rows) as bulk,
        pytest.raises(SourceError, match=r"no_such_table.*208.*while testing"),
    ):
        list(bulk.read("SELECT 1 AS n FROM dbo.no_such_table", FIELDS, doing="testing"))


@pytest.mark.parametrize("by_rows", [False, True])
def test_a_wrong_password_is_a_configuration_error(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    with (
        pytest.raises(ConfigurationError, match=r"database\.password"),
        open_bulk(without_login(shop.connection), shop.catalog, by_rows=by_rows),
    ):
        pass


def initially(shop: Shop, statements: str) -> Connection:
    return replace(shop.connection, initial_statements=Secret(statements))


@pytest.mark.parametrize("by_rows", [False, True])
def test_initial_statements_run_on_every_connection(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    own = initially(shop, " EXEC sp_set_session_context N'n', N'4;;2' ; ;EXEC sp_set_session_context N'm', 1")
    wanted = "SELECT CAST(REPLACE(CAST(SESSION_CONTEXT(N'n') AS nvarchar(9)), N';', N'') AS int) AS n"
    with control(own, shop.catalog) as opened:
        assert opened.value(wanted, doing="testing") == 42
    with open_bulk(own, shop.catalog, by_rows=by_rows) as bulk:
        (batch,) = bulk.read(wanted, FIELDS, doing="testing")
    assert batch.to_pylist() == [{"n": 42}]


@pytest.mark.parametrize("by_rows", [False, True])
def test_initial_statements_cannot_cut_rows_or_values(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    own = initially(shop, "SET ROWCOUNT 1; SET TEXTSIZE 2")
    shop.run("CREATE TABLE dbo.long (n int NOT NULL PRIMARY KEY, v nvarchar(max))")
    shop.run("INSERT dbo.long VALUES (1, N'abcdef'), (2, N'abcdef')")
    with open_bulk(own, shop.catalog, by_rows=by_rows) as bulk:
        wanted = "SELECT CAST(LEN(v) AS int) AS n FROM dbo.long ORDER BY n"
        found = [row for batch in bulk.read(wanted, FIELDS, doing="testing") for row in batch.to_pylist()]
    assert found == [{"n": 6}, {"n": 6}]
    with control(own, shop.catalog) as opened:
        assert opened.value("SELECT v FROM dbo.long", doing="testing") == "abcdef"


@pytest.mark.parametrize("by_rows", [False, True])
def test_initial_statements_cannot_show_changes_that_are_not_committed(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    """Rule A2: a commit that capture has begun to write may lack rows, or never come."""
    own = replace(shop, connection=initially(shop, "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"))
    shop.run(f"ALTER DATABASE {shop.catalog} SET READ_COMMITTED_SNAPSHOT ON")  # Else a reader waits for the writer.
    shop.create("t", f"id int NOT NULL PRIMARY KEY, body {'nvarchar(max)' if by_rows else 'int'} NULL")
    shop.run("INSERT dbo.t VALUES (1, NULL)")
    at = shop.scan()
    later = at.increment()
    with control(shop.connection, shop.catalog, autocommit=False) as capture:
        capture.execute(
            f"INSERT cdc.lsn_time_mapping SELECT 0x{later.raw.hex()}, tran_begin_time, tran_end_time, tran_id, "
            f"tran_begin_lsn FROM cdc.lsn_time_mapping WHERE start_lsn = 0x{at.raw.hex()}",
            doing="capturing",
        )
        with control(own.connection, shop.catalog) as opened:
            assert captured(opened) == at
        with pytest.raises(StaleReaderError):
            rows(own.changes("t", to=later))


def test_initial_statements_hold_no_locks_in_a_reading_transaction(shop: Shop) -> None:
    shop.run("CREATE TABLE dbo.audit (n int)")
    with open_bulk(initially(shop, "INSERT dbo.audit VALUES (1)"), shop.catalog, by_rows=False) as bulk:
        bulk.execute("SELECT TOP (0) * FROM dbo.first_table", doing="testing")
        with control(shop.connection, shop.catalog) as other:
            assert other.value("SELECT COUNT(*) FROM dbo.audit", doing="testing") == 1


@pytest.mark.parametrize("by_rows", [False, True])
def test_a_failed_initial_statement_names_its_property_and_hides_its_literals(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    own = initially(shop, "SELECT 1; SELECT * FROM dbo.[hunter2] WHERE CAST('hunter2' AS int) = 1")
    with (
        pytest.raises(SourceError, match=r"statement 2 of 2 of database\.initial\.statements") as caught,
        open_bulk(own, shop.catalog, by_rows=by_rows),
    ):
        pass
    assert "hunter2" not in str(caught.value)


def test_an_initial_statement_cannot_change_the_database(shop: Shop) -> None:
    with (
        pytest.raises(ConfigurationError, match=r"USE .*database\.initial\.statements"),
        control(initially(shop, "use master"), shop.catalog),
    ):
        pass


@pytest.mark.feature("ERR-04")
@pytest.mark.parametrize("by_rows", [False, True])
def test_a_statement_that_takes_too_long_is_ended_and_retried(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    hurried = replace(shop.connection, query_timeout_ms=1000)
    with (
        open_bulk(hurried, shop.catalog, by_rows=by_rows) as bulk,
        pytest.raises(SourceUnavailableError, match="while testing"),
    ):
        bulk.execute("WAITFOR DELAY '00:05'", doing="testing")


def test_a_missing_database_is_a_configuration_error(shop: Shop) -> None:
    with pytest.raises(ConfigurationError, match=r"database\.names"), control(shop.connection, "no_such_db"):
        pass


@pytest.mark.feature("ERR-02")
@pytest.mark.parametrize("by_rows", [False, True])
def test_connecting_to_a_server_that_does_not_answer_is_retried(shop: Shop, by_rows: bool) -> None:  # noqa: FBT001
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = replace(shop.connection, port=free.getsockname()[1], login_timeout_s=1)
    with pytest.raises(SourceUnavailableError), open_bulk(nobody, shop.catalog, by_rows=by_rows):
        pass


@pytest.mark.parametrize(
    ("fault", "reading", "column"),
    [
        ("cut_connection @when = N'middle',", "changes", "nvarchar(100)"),
        ("cut_connection @when = N'middle',", "chunk", "nvarchar(100)"),
        ("cut_connection @when = N'middle',", "chunk", "nvarchar(max)"),
        ("corrupt_packet", "changes", "nvarchar(max)"),  # Garbage that is no row: the driver gives up.
    ],
)
def test_a_connection_that_breaks_is_told_by_the_read_and_not_by_the_clean_up(
    shop: Shop, fault: str, reading: str, column: str
) -> None:
    """Review, bug 26: the error that was shown came from the rollback behind the one that ended the read."""
    shop.create("t", f"id int NOT NULL PRIMARY KEY, name {column}")
    values = ", ".join(f"({number}, REPLICATE(N'x', 100))" for number in range(500))
    shop.run(f"INSERT dbo.t VALUES {values}")
    shop.scan()
    pattern = "dbo_t_CT.*WHERE" if reading == "changes" else "FROM .dbo...t"
    shop.run(f"EXEC sandbox.{fault} @pattern = N'{pattern}', @packet = 3")
    reader = shop.changes("t", page_rows=400) if reading == "changes" else shop.chunk("t")

    with pytest.raises((SourceError, SourceUnavailableError), match=r"while reading (changes|chunk)"):
        rows(reader)


@pytest.mark.parametrize("driver", ["FreeTDS", None], ids=["FreeTDS", "best"])
def test_a_server_of_odbc_takes_the_place_of_the_host(shop: Shop, driver: str | None) -> None:
    """Both were in the connection string, where the first one wins: the setting was accepted and did nothing."""
    known = shop.connection
    place = OdbcSetting("Server", f"{known.hostname},{known.port}")
    login = replace(known, hostname="no-such-host.invalid", port=1, odbc_extra=(place,), odbc_driver=driver)
    with control(login, shop.catalog) as opened:
        assert opened.value("SELECT DB_NAME()", doing="testing") == shop.catalog
