"""The server as a whole through both ODBC drivers: statements, parameters, transactions, cancel, types."""
# ruff: noqa: DTZ001 - the server's dates and times carry no zone

import datetime as dt
import decimal
import threading
import time
import uuid
from collections.abc import Iterator

import pyodbc
import pytest

from mssql_sandbox.server import SandboxServer
from tests.tds.drivers import DRIVERS, driver

D = decimal.Decimal


@pytest.fixture(params=DRIVERS)
def connection(request: pytest.FixtureRequest, sandbox: SandboxServer) -> Iterator[pyodbc.Connection]:
    """An autocommit connection through each driver."""
    connection = connect(request.param, sandbox)
    yield connection
    connection.close()


def connect(name: str, sandbox: SandboxServer, *, autocommit: bool = True, more: str = "") -> pyodbc.Connection:
    text = driver(name).connection_string(sandbox.port, password=sandbox.password, more=more)
    return pyodbc.connect(text, autocommit=autocommit, timeout=10)


def rows(cursor: pyodbc.Cursor) -> list[tuple]:
    return [tuple(row) for row in cursor.fetchall()]


def test_select_one(connection: pyodbc.Connection) -> None:
    assert connection.execute("SELECT 1 AS x").fetchval() == 1


@pytest.mark.parametrize(
    "value",
    [
        1, 2**40, -1, 0.1, True, D("123.4500"), "text", "\u4e2d\U0001f40d", "x" * 9000, b"\0\1", bytes(9000), None,
        dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30, 15, 123000), uuid.UUID(int=5),
    ],
    ids=lambda v: f"{type(v).__name__} {str(v)[:8]}",
)  # fmt: skip
def test_parameter_comes_back(connection: pyodbc.Connection, value: object) -> None:
    got = connection.execute("SELECT ? AS x", value).fetchval()
    assert (uuid.UUID(got) if isinstance(value, uuid.UUID) else got) == value


def test_statement_is_prepared_once_and_executed_often(connection: pyodbc.Connection) -> None:
    connection.execute("CREATE TABLE #t (a int, b nvarchar(20))")
    cursor = connection.cursor()
    cursor.executemany("INSERT INTO #t VALUES (?, ?)", [(n, f"row {n}") for n in range(20)])
    found = [cursor.execute("SELECT b FROM #t WHERE a = ?", n).fetchval() for n in range(20)]
    assert found == [f"row {n}" for n in range(20)]


def test_rowcount_and_several_results(connection: pyodbc.Connection) -> None:
    connection.execute("CREATE TABLE #c (a int)")
    assert connection.execute("INSERT INTO #c VALUES (1), (2), (3)").rowcount == 3
    cursor = connection.execute("SELECT 1; SELECT a FROM #c WHERE a > 1 ORDER BY a; UPDATE #c SET a = a + 1")
    assert rows(cursor) == [(1,)]
    assert cursor.nextset()
    assert rows(cursor) == [(2,), (3,)]
    assert cursor.nextset()
    assert cursor.rowcount == 3


@pytest.mark.parametrize("name", DRIVERS)
def test_commit_and_rollback_are_seen_by_others(sandbox: SandboxServer, name: str) -> None:
    writer, reader = connect(name, sandbox, autocommit=False), connect(name, sandbox)
    reader.execute(f"CREATE TABLE dbo.tx_{name} (a int)")
    for value, end in [(1, writer.commit), (2, writer.rollback), (3, writer.commit)]:
        writer.execute(f"INSERT INTO dbo.tx_{name} VALUES (?)", value)
        assert writer.execute("SELECT @@TRANCOUNT").fetchval() == 1
        end()
    assert rows(reader.execute(f"SELECT a FROM dbo.tx_{name} ORDER BY a")) == [(1,), (3,)]
    writer.close()
    reader.close()


@pytest.mark.parametrize("name", DRIVERS)
def test_closing_without_commit_rolls_back(sandbox: SandboxServer, name: str) -> None:
    reader = connect(name, sandbox)
    reader.execute(f"CREATE TABLE dbo.gone_{name} (a int)")
    writer = connect(name, sandbox, autocommit=False)
    writer.execute(f"INSERT INTO dbo.gone_{name} VALUES (1)")
    writer.close()
    assert reader.execute(f"SELECT COUNT(*) FROM dbo.gone_{name}").fetchval() == 0
    reader.close()


def test_batch_transaction_tells_the_driver(connection: pyodbc.Connection) -> None:
    connection.execute("CREATE TABLE #b (a int)")
    connection.execute("BEGIN TRAN; INSERT INTO #b VALUES (1)")
    connection.execute("INSERT INTO #b VALUES (2)")
    connection.execute("ROLLBACK")
    assert rows(connection.execute("SELECT COUNT(*), @@TRANCOUNT FROM #b")) == [(0, 0)]


def test_query_timeout_ends_a_wait(connection: pyodbc.Connection) -> None:
    connection.timeout = 1
    with pytest.raises(pyodbc.Error, match=r"(?i)timeout"):
        connection.execute("WAITFOR DELAY '00:01:00'")
    connection.timeout = 0
    assert connection.execute("SELECT 1").fetchval() == 1


@pytest.mark.parametrize("name", DRIVERS)
def test_cancel_ends_a_wait_for_a_lock(sandbox: SandboxServer, name: str) -> None:
    owner, waiter = connect(name, sandbox, autocommit=False), connect(name, sandbox)
    waiter.execute(f"CREATE TABLE dbo.locked_{name} (a int PRIMARY KEY); INSERT INTO dbo.locked_{name} VALUES (1)")
    owner.execute(f"UPDATE dbo.locked_{name} SET a = 2")
    cursor = waiter.cursor()
    thread = threading.Thread(target=lambda: (time.sleep(0.5), cursor.cancel()))
    thread.start()
    with pytest.raises(pyodbc.Error):
        cursor.execute(f"UPDATE dbo.locked_{name} SET a = 3")
    thread.join()
    owner.rollback()
    assert waiter.execute(f"SELECT a FROM dbo.locked_{name}").fetchval() == 1
    owner.close()
    waiter.close()


TYPES: list[tuple[str, str, object]] = [
    ("bit", "1", True),
    ("tinyint", "255", 255),
    ("smallint", "-32768", -32768),
    ("int", "-2147483648", -(2**31)),
    ("bigint", "9223372036854775807", 2**63 - 1),
    ("real", "0.5", 0.5),
    ("float", "1E-1", 0.1),
    ("money", "-922337203685477.5808", D("-922337203685477.5808")),
    ("smallmoney", "214748.3647", D("214748.3647")),
    ("decimal(38,10)", "-1234567890123456789012345678.0123456789", D("-1234567890123456789012345678.0123456789")),
    ("numeric(5,2)", "0.01", D("0.01")),
    ("date", "'2024-02-29'", dt.date(2024, 2, 29)),
    ("time(3)", "'12:00:00.123'", dt.time(12, 0, 0, 123000)),
    ("datetime2(6)", "'2024-02-29 12:00:00.000001'", dt.datetime(2024, 2, 29, 12, 0, 0, 1)),
    ("datetime", "'1900-01-02 00:00:00.003'", dt.datetime(1900, 1, 2, 0, 0, 0, 3000)),
    ("smalldatetime", "'1900-01-02 01:01'", dt.datetime(1900, 1, 2, 1, 1)),
    ("uniqueidentifier", "'00000010-0000-0000-0000-000000000001'", "00000010-0000-0000-0000-000000000001"),
    ("char(4)", "'ab'", "ab  "),
    ("varchar(10)", "'abc'", "abc"),
    ("varchar(max)", "REPLICATE(CAST('x' AS varchar(max)), 100000)", "x" * 100_000),
    ("nchar(4)", "N'\u4e2d'", "\u4e2d   "),
    ("nvarchar(10)", "N'\U0001f40d'", "\U0001f40d"),
    ("nvarchar(max)", "REPLICATE(CAST(N'\u4e2d' AS nvarchar(max)), 50000)", "\u4e2d" * 50_000),
    ("binary(3)", "0x0102", b"\1\2\0"),
    ("varbinary(10)", "0x", b""),
    ("varbinary(max)", "0x0102", b"\1\2"),
    ("text", "'old'", "old"),
    ("ntext", "N'\u4e2d'", "\u4e2d"),
    ("image", "0x01", b"\1"),
    ("xml", "N'<a>\u4e2d</a>'", "<a>\u4e2d</a>"),
]


@pytest.mark.parametrize(("type_", "literal", "expected"), TYPES, ids=[entry[0] for entry in TYPES])
def test_every_type_is_stored_and_read(
    connection: pyodbc.Connection, type_: str, literal: str, expected: object
) -> None:
    connection.execute(f"CREATE TABLE #t (a int IDENTITY, v {type_} NULL)")
    connection.execute(f"INSERT INTO #t (v) VALUES ({literal}), (NULL)")
    assert rows(connection.execute("SELECT v FROM #t ORDER BY a")) == [(expected,), (None,)]


def test_large_table_streams_whole(connection: pyodbc.Connection) -> None:
    connection.execute("CREATE TABLE #n (a int)")
    connection.execute("INSERT INTO #n VALUES " + ", ".join(f"({n})" for n in range(1000)))
    total = connection.execute(
        "SELECT x.a * 1000 + y.a FROM #n x CROSS JOIN (SELECT a FROM #n WHERE a < 50) y"
    ).fetchall()
    assert len(total) == 50_000


@pytest.mark.parametrize(
    ("sql", "number", "kind"),
    [
        ("SELECT * FROM absent", 208, pyodbc.ProgrammingError),
        ("SELECT 1/0", 8134, pyodbc.DataError),
        ("SELECT (", 102, pyodbc.ProgrammingError),
        ("EXEC absent_procedure", 2812, pyodbc.ProgrammingError),
        ("RAISERROR('mine', 16, 1)", 50000, pyodbc.ProgrammingError),
    ],
)
def test_error_has_its_number_and_the_connection_lives(
    connection: pyodbc.Connection, sql: str, number: int, kind: type[Exception]
) -> None:
    with pytest.raises(pyodbc.Error, match=rf"\({number}\)"):
        connection.execute(sql)
    assert connection.execute("SELECT 1").fetchval() == 1


@pytest.mark.parametrize("name", DRIVERS)
def test_login_opens_the_database_asked_for_or_none(sandbox: SandboxServer, name: str) -> None:
    with connect(name, sandbox, more=";DATABASE=tempdb") as connection:
        assert connection.execute("SELECT DB_NAME()").fetchval() == "tempdb"
    connection.close()
    with pytest.raises(pyodbc.Error, match=r"Cannot open database|Login failed"):
        connect(name, sandbox, more=";DATABASE=absent")


@pytest.mark.parametrize("name", DRIVERS)
def test_wrong_password_and_unknown_login_are_18456(sandbox: SandboxServer, name: str) -> None:
    good = driver(name).connection_string(sandbox.port, password=sandbox.password)
    for text in (good.replace(sandbox.password, "wrong"), good.replace("UID=sa", "UID=nobody")):
        with pytest.raises(pyodbc.Error, match="Login failed for user"):
            pyodbc.connect(text, timeout=10)
