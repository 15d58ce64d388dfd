"""Faults between server and client, and the log of statements."""

from collections.abc import Iterator

import pyodbc
import pytest

from mssql_sandbox.server import SandboxServer
from mssql_sandbox.tds.packets import PacketType
from tests.tds.drivers import DRIVERS, driver
from tests.tds.raw_client import RawClient, raw_client


@pytest.fixture(autouse=True)
def no_faults_are_left(sandbox: SandboxServer) -> Iterator[None]:
    yield
    admin = connect("FreeTDS", sandbox)
    admin.execute("EXEC sandbox.clear_faults")
    admin.execute("EXEC sandbox.statement_log @on = 0")
    admin.close()


@pytest.fixture(params=DRIVERS)
def client(request: pytest.FixtureRequest, sandbox: SandboxServer) -> Iterator[pyodbc.Connection]:
    """A connection through each driver, with an empty table dbo.w."""
    connection = connect(request.param, sandbox)
    connection.execute("DROP TABLE IF EXISTS dbo.w; CREATE TABLE dbo.w (a int)")
    yield connection
    connection.close()


def connect(name: str, sandbox: SandboxServer, *, more: str = "") -> pyodbc.Connection:
    text = driver(name).connection_string(sandbox.port, password=sandbox.password, more=more)
    return pyodbc.connect(text, autocommit=True, timeout=10)


@pytest.fixture
def raw(sandbox: SandboxServer) -> Iterator[RawClient]:
    with raw_client(sandbox.port) as made:
        made.log_in(sandbox.password)
        made.batch("DROP TABLE IF EXISTS dbo.w; CREATE TABLE dbo.w (a int)")
        made.receive()
        yield made


def ordered(raw: RawClient, text: str) -> None:
    """Order a fault."""
    raw.batch(text)
    assert b"\xaa" not in raw.receive()


def stored(sandbox: SandboxServer) -> list[int]:
    """Rows of dbo.w, seen by another connection."""
    other = connect("FreeTDS", sandbox)
    found = [row.a for row in other.execute("SELECT a FROM dbo.w")]
    other.close()
    return found


def test_slow_answer_runs_into_the_clients_timeout_once(client: pyodbc.Connection) -> None:
    client.execute("EXEC sandbox.slow_results @pattern = N'GENERATE_SERIES', @seconds = 30")
    client.timeout = 1
    with pytest.raises(pyodbc.Error) as failure:
        client.execute("SELECT value FROM GENERATE_SERIES(1, 10)").fetchall()
    assert failure.value.args[0] in ("HYT00", "HYT01", "08S01")


def test_slow_answer_is_complete(client: pyodbc.Connection) -> None:
    client.execute("EXEC sandbox.slow_results @pattern = N'GENERATE_SERIES', @seconds = 0.001")
    assert len(client.execute("SELECT value FROM GENERATE_SERIES(1, 3000)").fetchall()) == 3000


def test_corrupted_packet_differs_once(raw: RawClient) -> None:
    ordered(raw, "EXEC sandbox.corrupt_packet @pattern = N'AS marker', @packet = 1")
    answers = []
    for _ in range(2):
        raw.batch("SELECT 1 AS marker")
        answers.append(raw.receive())
    assert answers[0] != answers[1]
    assert len(answers[0]) == len(answers[1])
    assert b"\xd1\x04\x01\0\0\0" in answers[1]


def test_corrupted_packet_is_an_error_for_drivers(client: pyodbc.Connection) -> None:
    client.execute("EXEC sandbox.corrupt_packet @pattern = N'AS marker'")
    with pytest.raises(pyodbc.Error):
        client.execute("SELECT 1 AS marker").fetchall()


@pytest.mark.parametrize(("when", "kept"), [("before", []), ("unanswered", [1])])
def test_cut_before_or_after_the_request_has_run(
    sandbox: SandboxServer, raw: RawClient, when: str, kept: list[int]
) -> None:
    """The client cannot tell the two apart: it gets no answer either way."""
    ordered(raw, f"EXEC sandbox.cut_connection @pattern = N'INSERT dbo.w', @when = '{when}'")
    raw.batch("INSERT dbo.w VALUES (1)")
    assert raw.receive() == b""
    assert stored(sandbox) == kept


def test_cut_in_the_middle_leaves_half_a_packet(raw: RawClient) -> None:
    ordered(raw, "EXEC sandbox.cut_connection @pattern = N'GENERATE_SERIES', @packet = 3")
    raw.batch("SELECT value FROM GENERATE_SERIES(1, 100000)")
    received = bytearray()
    while data := raw.socket.recv(65536):
        received += data
    assert len(received) == 2 * 4096 + 2048
    assert received[0] == received[4096] == received[8192] == PacketType.RESPONSE


def test_cut_in_the_middle_rolls_back(sandbox: SandboxServer, raw: RawClient) -> None:
    ordered(raw, "EXEC sandbox.cut_connection @pattern = N'OUTPUT', @when = 'middle'")
    raw.batch("BEGIN TRANSACTION INSERT dbo.w OUTPUT inserted.a VALUES (1)")
    raw.receive()
    assert stored(sandbox) == []


def test_cut_after_the_answer(raw: RawClient) -> None:
    ordered(raw, "EXEC sandbox.cut_connection @pattern = N'SELECT 5', @when = 'after'")
    raw.batch("SELECT 5")
    assert b"\xd1\x04\x05\0\0\0" in raw.receive()
    assert raw.receive() == b""


def test_fault_strikes_the_nth_request_of_the_application_named(
    sandbox: SandboxServer, client: pyodbc.Connection
) -> None:
    client.execute(
        "EXEC sandbox.cut_connection @pattern = N'AS here', @when = 'before', @nth = 2, @application = 'victim'"
    )
    victim = connect("FreeTDS", sandbox, more="APP=victim;")
    assert client.execute("SELECT 1 AS here").fetchval() == 1
    assert victim.execute("SELECT 1 AS here").fetchval() == 1
    with pytest.raises(pyodbc.Error):
        victim.execute("SELECT 1 AS here")
    assert client.execute("SELECT 1 AS here").fetchval() == 1


def test_unknown_moment_is_refused(client: pyodbc.Connection) -> None:
    with pytest.raises(pyodbc.Error, match="expected before, unanswered, middle, after"):
        client.execute("EXEC sandbox.cut_connection @pattern = N'x', @when = 'never'")


def test_statement_log_tells_what_clients_sent(sandbox: SandboxServer, client: pyodbc.Connection) -> None:
    client.execute("EXEC sandbox.statement_log")
    speaker = connect("FreeTDS", sandbox, more="APP=speaker;")
    speaker.execute("INSERT dbo.w VALUES (?)", 41)
    speaker.execute("INSERT dbo.w VALUES (?)", 42)
    speaker.autocommit = False
    speaker.execute("SELECT N'\u4e2d'").fetchall()
    speaker.commit()
    speaker.close()
    sql = "SELECT kind, procedure_name, text, parameters FROM sandbox.statements WHERE program_name = 'speaker'"
    found = [tuple(row) for row in client.execute(f"{sql} ORDER BY number")]
    texts = [(kind, text) for kind, _, text, _ in found if text and "sp_datatype_info" not in text]
    assert [entry for entry in texts if "dbo.w" in entry[1]] == [("rpc", "INSERT dbo.w VALUES (@P1)")] * 2
    assert any("42" in (parameters or "") for _, _, _, parameters in found)
    assert ("batch", "SELECT N'\u4e2d'") in texts
    assert "transaction" in {kind for kind, *_ in found}


def test_statement_log_is_kept_when_off_and_begins_anew_when_on(client: pyodbc.Connection) -> None:
    count = "SELECT COUNT(*) FROM sandbox.statements WHERE text LIKE '%marked%' AND text NOT LIKE '%sandbox%'"
    client.execute("EXEC sandbox.statement_log @on = 1")
    client.execute("SELECT 1 AS marked").fetchall()
    client.execute("EXEC sandbox.statement_log @on = 0")
    client.execute("SELECT 2 AS marked").fetchall()
    assert client.execute(count).fetchval() == 1
    client.execute("EXEC sandbox.statement_log @on = 1")
    assert client.execute(count).fetchval() == 0
