"""Real drivers against scripted sessions: every type both ways, encryption, cancel, large results."""
# ruff: noqa: DTZ001 - the server's dates and times carry no zone

import datetime as dt
import decimal
import threading
import time
import uuid
from collections.abc import AsyncIterator

import pyodbc
import pytest
from arrow_odbc.read_arrow_batches_from_odbc import read_arrow_batches_from_odbc

from mssql_sandbox.engine import types
from mssql_sandbox.engine.events import Columns, Done, Event, Message, Rows
from mssql_sandbox.engine.types import MAX, ResultColumn, SqlType
from mssql_sandbox.tds.decoders import TICKS_PER_DAY
from tests.tds.drivers import DRIVERS, driver
from tests.tds.scripted import serving

DAY = (dt.date(2024, 2, 29) - dt.date(1, 1, 1)).days
NOON = TICKS_PER_DAY // 2
D = decimal.Decimal
LONG = "ä\U0001f40d" * 40_000

# type, value in storage form, what pyodbc shows
SHOWN: list[tuple[SqlType, object, object]] = [
    (types.BIT, 1, True),
    (types.TINYINT, 255, 255),
    (types.SMALLINT, -32768, -32768),
    (types.INT, -(2**31), -(2**31)),
    (types.BIGINT, 2**63 - 1, 2**63 - 1),
    (types.REAL, 0.5, 0.5),
    (types.FLOAT, 0.1, 0.1),
    (types.MONEY_TYPE, D("-922337203685477.5808"), D("-922337203685477.5808")),
    (types.SMALLMONEY, D("214748.3647"), D("214748.3647")),
    (
        types.decimal(38, 10),
        D("-1234567890123456789012345678.0123456789"),
        D("-1234567890123456789012345678.0123456789"),
    ),
    (types.numeric(5, 2), D("0.01"), D("0.01")),
    (types.DATE, DAY, dt.date(2024, 2, 29)),
    (types.time(3), NOON + 1_230_000, dt.time(12, 0, 0, 123000)),
    (types.datetime2(6), DAY * TICKS_PER_DAY + NOON + 10, dt.datetime(2024, 2, 29, 12, 0, 0, 1)),
    (types.DATETIME, 25_920_000 + 1, dt.datetime(1900, 1, 2, 0, 0, 0, 3000)),
    (types.SMALLDATETIME, 1440 + 61, dt.datetime(1900, 1, 2, 1, 1)),
    (types.UNIQUEIDENTIFIER, uuid.UUID(int=1 << 100), str(uuid.UUID(int=1 << 100)).upper()),
    (SqlType("char", 4), "ab  ", "ab  "),
    (types.varchar(10), "\u20ac uro", "\u20ac uro"),
    (types.varchar(MAX), "x" * 100_000, "x" * 100_000),
    (SqlType("nchar", 4), "\u4e2d   ", "\u4e2d   "),
    (types.nvarchar(10), "\U0001f40d", "\U0001f40d"),
    (types.nvarchar(MAX), LONG, LONG),
    (types.binary(3), b"\0\1\2", b"\0\1\2"),
    (types.varbinary(10), b"", b""),
    (types.varbinary(MAX), bytes(70_000), bytes(70_000)),
    (types.ROWVERSION, b"\0\0\0\0\0\0\7\xd1", b"\0\0\0\0\0\0\7\xd1"),
    (SqlType("text", MAX), "old \u20ac", "old \u20ac"),
    (SqlType("ntext", MAX), "old \u4e2d", "old \u4e2d"),
    (SqlType("image", MAX), b"\0\1", b"\0\1"),
    (types.XML, "<a>\u4e2d</a>", "<a>\u4e2d</a>"),
]
BIG = 150_000


async def script(sql: str) -> AsyncIterator[Event]:
    if sql == "types":
        yield Columns(tuple(ResultColumn(f"c{n}", type_) for n, (type_, _, _) in enumerate(SHOWN)))
        yield Rows([tuple(value for _, value, _ in SHOWN), tuple(None for _ in SHOWN)])
        yield Done(2)
    elif sql == "big":
        yield Columns((ResultColumn("n", types.INT), ResultColumn("s", types.nvarchar(50))))
        for start in range(0, BIG, 1000):
            yield Rows([(n, f"row {n}") for n in range(start, start + 1000)])
        yield Done(BIG)
    elif sql.startswith("error "):
        yield Message(int(sql.split()[1]), 1, 16, "it failed", line=3)
        yield Done(error=True)
    elif sql == "two results":
        for value in (1, 2):
            yield Columns((ResultColumn("x", types.INT),))
            yield Rows([(value,)])
            yield Done(1)
    elif sql == "update":
        yield Done(42, "update")
    else:
        yield Columns((ResultColumn("x", types.INT),))
        yield Rows([(1,)])
        yield Done(1)


@pytest.fixture(scope="module")
def port():
    with serving(script) as (port, _):
        yield port


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize("mode", ["off", "login", "on"])
def test_driver_logs_in_under_every_encryption_mode(name: str, mode: str) -> None:
    with serving(script, encrypt=mode) as (port, log):  # type: ignore[arg-type]
        for encrypt in {"off": (False,), "login": (False, True), "on": (True, False)}[mode]:
            with driver(name).connect(port, encrypt=encrypt) as connection:
                assert connection.execute("select 1").fetchval() == 1
                assert connection.getinfo(pyodbc.SQL_DBMS_VER) == "16.00.4149"
            connection.close()
        assert {login.user for login in log.logins} == {"sa"}


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize("position", range(len(SHOWN)), ids=lambda n: str(SHOWN[n][0]))
def test_every_type_is_shown_as_its_value(port: int, name: str, position: int) -> None:
    connection = driver(name).connect(port)
    row, nulls = connection.execute("types").fetchall()
    connection.close()
    assert row[position] == SHOWN[position][2]
    assert nulls[position] is None


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize(
    "value",
    [
        None, 1, 2**40, -1,
        0.1, True, D("123.4500"), D("-0.001"), "text", "\U0001f40d", "x" * 3999, "ä" * 9000, b"\0\1",
        bytes(9000),        dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30, 15, 123000), uuid.UUID(int=5),
    ],
    ids=lambda v: f"{type(v).__name__} {str(v)[:8]}",
)  # fmt: skip
def test_parameter_comes_back_as_it_was_sent(port: int, name: str, value: object) -> None:
    connection = driver(name).connect(port)
    (row,) = connection.execute("select ?", value).fetchall()
    connection.close()
    got = row[0]
    assert (uuid.UUID(got) if isinstance(value, uuid.UUID) else got) == value


@pytest.mark.parametrize("name", DRIVERS)
def test_large_result_arrives_whole(port: int, name: str) -> None:
    connection = driver(name).connect(port)
    rows = connection.execute("big").fetchall()
    connection.close()
    assert [row.n for row in rows] == list(range(BIG))
    assert rows[-1].s == f"row {BIG - 1}"


@pytest.mark.parametrize("name", DRIVERS)
def test_arrow_reads_a_large_result(port: int, name: str) -> None:
    reader = read_arrow_batches_from_odbc(
        query="big", connection_string=driver(name).connection_string(port), batch_size=20_000
    )
    numbers = [n for batch in reader for n in batch.column("n").to_pylist()]
    assert numbers == list(range(BIG))


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize(
    ("number", "kind"),
    [(208, pyodbc.ProgrammingError), (2627, pyodbc.IntegrityError), (1222, pyodbc.Error), (50000, pyodbc.Error)],
)
def test_error_keeps_its_number_and_the_connection_lives(port: int, name: str, number: int, kind: type) -> None:
    connection = driver(name).connect(port)
    with pytest.raises(kind, match=f"it failed.*{number}"):
        connection.execute(f"error {number}")
    assert connection.execute("select 1").fetchval() == 1
    connection.close()


@pytest.mark.parametrize("name", DRIVERS)
def test_several_results_and_update_counts(port: int, name: str) -> None:
    connection = driver(name).connect(port)
    cursor = connection.execute("two results")
    assert [tuple(row) for row in cursor.fetchall()] == [(1,)]
    assert cursor.nextset()
    assert [tuple(row) for row in cursor.fetchall()] == [(2,)]
    assert not cursor.nextset()
    assert connection.execute("update").rowcount == 42
    connection.close()


@pytest.mark.parametrize("name", DRIVERS)
def test_query_timeout_ends_a_wait_and_the_connection_lives(port: int, name: str) -> None:
    connection = driver(name).connect(port)
    connection.timeout = 1
    with pytest.raises(pyodbc.Error, match=r"(?i)timeout"):
        connection.execute("wait")
    connection.timeout = 0
    assert connection.execute("select 1").fetchval() == 1
    connection.close()


@pytest.mark.parametrize("name", DRIVERS)
def test_cancel_from_another_thread_ends_a_wait(port: int, name: str) -> None:
    connection = driver(name).connect(port)
    cursor = connection.cursor()

    def cancel() -> None:
        time.sleep(0.5)
        cursor.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(pyodbc.Error):
        cursor.execute("wait")
    thread.join()
    assert connection.execute("select 1").fetchval() == 1
    connection.close()


@pytest.mark.parametrize("name", DRIVERS)
def test_abandoned_large_result_leaves_the_connection_usable(port: int, name: str) -> None:
    connection = driver(name).connect(port)
    cursor = connection.execute("big")
    assert cursor.fetchval() == 0
    cursor.close()
    assert connection.execute("select 1").fetchval() == 1
    connection.close()


@pytest.mark.parametrize("name", DRIVERS)
def test_manual_commit_goes_on_with_the_descriptor_that_the_server_gave(name: str) -> None:
    with serving(script) as (port, log):
        connection = driver(name).connect(port, autocommit=False)
        connection.execute("select 1").fetchall()
        connection.commit()
        connection.execute("select 1").fetchall()
        connection.rollback()
        connection.close()
        kinds = [(request.kind, request.begin_next) for request in log.transactions]
    assert kinds[:3] == [("begin", False), ("commit", True), ("rollback", True)]


@pytest.mark.parametrize("name", DRIVERS)
def test_wrong_password_is_a_login_error(port: int, name: str) -> None:
    with pytest.raises(pyodbc.Error, match="Login failed for user 'sa'"):
        pyodbc.connect(driver(name).connection_string(port, password="wrong"), timeout=10)


def test_read_only_intent_and_application_reach_the_session() -> None:
    with serving(script) as (port, log):
        driver("msodbcsql").connect(port, more="ApplicationIntent=ReadOnly;APP=reader").close()
        (login,) = log.logins
    assert login.read_only_intent
    assert login.application == "reader"
