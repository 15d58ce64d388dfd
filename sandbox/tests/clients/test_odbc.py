"""What ODBC programs ask for beside statements: intent, table-valued parameters, array binding."""

from collections.abc import Iterator

import pyodbc
import pytest

from mssql_sandbox.process import SandboxProcess
from tests.tds.drivers import DRIVERS, driver

pytestmark = pytest.mark.timeout(120)


def connect(name: str, server: SandboxProcess, *, more: str = "") -> pyodbc.Connection:
    text = driver(name).connection_string(server.port, password=server.password, more=more)
    return pyodbc.connect(text, autocommit=True, timeout=10)


@pytest.fixture
def microsoft(separate_sandbox: SandboxProcess) -> Iterator[pyodbc.Connection]:
    """The server is a process of its own: pyodbc keeps Python waiting while it asks for the types of parameters."""
    connection = connect("msodbcsql", separate_sandbox)
    yield connection
    connection.close()


@pytest.mark.parametrize("name", DRIVERS)
def test_read_only_intent_is_accepted(separate_sandbox: SandboxProcess, name: str) -> None:
    connection = connect(name, separate_sandbox, more="ApplicationIntent=ReadOnly;")
    assert connection.execute("SELECT 1").fetchval() == 1
    connection.close()


def test_table_valued_parameter(microsoft: pyodbc.Connection) -> None:
    microsoft.execute("DROP PROCEDURE IF EXISTS dbo.odbc_take; DROP TYPE IF EXISTS dbo.odbc_pairs")
    microsoft.execute(
        "CREATE TYPE dbo.odbc_pairs AS TABLE (id int NOT NULL, name nvarchar(20) NULL, price decimal(9, 2))"
    )
    microsoft.execute(
        "CREATE PROCEDURE dbo.odbc_take @rows dbo.odbc_pairs READONLY AS SELECT id, name FROM @rows ORDER BY id"
    )
    rows = [(2, "two", 1), (1, None, 2), (3, "\u4e2d", 3)]
    found = microsoft.execute("EXEC dbo.odbc_take ?", [rows]).fetchall()
    assert [tuple(row) for row in found] == [(1, None), (2, "two"), (3, "\u4e2d")]


def test_array_binding_asks_for_types_once_and_stores_all(microsoft: pyodbc.Connection) -> None:
    """fast_executemany: sp_describe_undeclared_parameters, sp_prepare, many sp_execute in one message."""
    microsoft.execute(
        "DROP TABLE IF EXISTS dbo.odbc_many; CREATE TABLE dbo.odbc_many (a int, b nvarchar(30), c varbinary(max))"
    )
    cursor = microsoft.cursor()
    cursor.fast_executemany = True
    cursor.executemany(
        "INSERT dbo.odbc_many VALUES (?, ?, ?)", [(n, f"\u4e2d{n}", bytes([n % 256]) * n) for n in range(500)]
    )
    assert tuple(microsoft.execute("SELECT COUNT(*), MAX(LEN(c)), MIN(b) FROM dbo.odbc_many").fetchall()[0]) == (
        500,
        499,
        "\u4e2d0",
    )
