"""MARS over real ODBC drivers: several result sets under way on one connection."""

from collections.abc import Iterator

import pyodbc
import pytest

from mssql_sandbox.process import SandboxProcess
from tests.tds.drivers import DRIVERS, driver

pytestmark = pytest.mark.timeout(120)
ROWS = 5000


def connect(name: str, server: SandboxProcess, *, autocommit: bool = True, encrypt: bool = False) -> pyodbc.Connection:
    text = driver(name).connection_string(
        server.port, password=server.password, encrypt=encrypt, more="MARS_Connection=yes;"
    )
    return pyodbc.connect(text, autocommit=autocommit, timeout=10)


@pytest.fixture
def numbers(separate_sandbox: SandboxProcess) -> Iterator[pyodbc.Connection]:
    """A connection with a table of numbers of its own."""
    connection = connect("msodbcsql", separate_sandbox)
    fill(connection)
    yield connection
    connection.close()


def fill(connection: pyodbc.Connection) -> None:
    connection.execute(
        "CREATE TABLE #numbers (i int PRIMARY KEY, s char(200) NOT NULL, seen int NOT NULL DEFAULT 0);"
        f"INSERT #numbers (i, s) SELECT value, 'x' FROM GENERATE_SERIES(1, {ROWS})"
    )


@pytest.mark.parametrize("encrypt", [False, True])
@pytest.mark.parametrize("name", DRIVERS)
def test_two_result_sets_are_read_in_turns(separate_sandbox: SandboxProcess, name: str, *, encrypt: bool) -> None:
    connection = connect(name, separate_sandbox, encrypt=encrypt)
    fill(connection)
    up = connection.execute("SELECT i, s FROM #numbers ORDER BY i")
    down = connection.execute("SELECT i, s FROM #numbers ORDER BY i DESC")
    assert all(left[0] + right[0] == ROWS + 1 for left, right in zip(up, down, strict=True))
    connection.close()


def test_rows_are_changed_while_they_are_read(numbers: pyodbc.Connection) -> None:
    writer = numbers.cursor()
    changed = 0
    for i, _ in numbers.execute("SELECT i, s FROM #numbers ORDER BY i"):
        if i % 500 == 0:
            changed += writer.execute("UPDATE #numbers SET seen = seen + ? WHERE i = ?", 1, i).rowcount
    assert changed == ROWS // 500
    assert numbers.execute("SELECT SUM(seen) FROM #numbers").fetchval() == changed


def test_requests_are_of_one_session(numbers: pyodbc.Connection) -> None:
    reading = numbers.execute("SELECT i, s FROM #numbers")
    first = numbers.execute("SELECT @@SPID").fetchval()
    assert numbers.execute("SELECT @@SPID").fetchval() == first
    assert len(reading.fetchall()) == ROWS


def test_a_transaction_holds_all_requests(separate_sandbox: SandboxProcess) -> None:
    connection = connect("msodbcsql", separate_sandbox, autocommit=False)
    fill(connection)
    connection.commit()
    reading = connection.execute("SELECT i, s FROM #numbers")
    connection.execute("UPDATE #numbers SET seen = 7 WHERE i = 1")
    assert [tuple(row) for row in connection.execute("SELECT seen, @@TRANCOUNT FROM #numbers WHERE i = 1")] == [(7, 1)]
    assert len(reading.fetchall()) == ROWS
    connection.rollback()
    assert connection.execute("SELECT seen FROM #numbers WHERE i = 1").fetchval() == 0
    connection.close()


def test_one_request_is_cancelled_and_the_other_goes_on(numbers: pyodbc.Connection) -> None:
    reading = numbers.execute("SELECT i, s FROM #numbers ORDER BY i")
    other = numbers.execute("SELECT i, s FROM #numbers ORDER BY i DESC")
    assert other.fetchval() == ROWS
    other.cancel()
    other.close()
    assert len(reading.fetchall()) == ROWS
    assert numbers.execute("SELECT 1").fetchval() == 1
