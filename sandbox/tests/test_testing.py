"""What the fixtures give to a test: a database, T-SQL without a driver, capture on demand, connection strings."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyodbc
import pytest
import sqlalchemy as sa

from mssql_sandbox.errors import SqlError, StartError
from mssql_sandbox.process import sandbox_process
from mssql_sandbox.server import SandboxServer, serve_in_thread
from mssql_sandbox.testing import CdcDatabase, cdc_database
from tests.tds.drivers import DRIVERS, driver


@pytest.fixture
def database(sandbox: SandboxServer) -> Iterator[CdcDatabase]:
    with cdc_database(sandbox) as made:
        yield made


def test_nothing_is_captured_before_the_test_asks(database: CdcDatabase) -> None:
    database.execute("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)")
    assert database.enable_capture("t") == "dbo_t"
    database.capture()
    database.execute("INSERT dbo.t VALUES (1), (2)")
    assert database.execute("SELECT id FROM cdc.dbo_t_CT") == []
    assert database.capture() == 1
    assert database.execute("SELECT id FROM cdc.dbo_t_CT") == [(1,), (2,)]


def test_tables_of_other_schemas_are_captured(database: CdcDatabase) -> None:
    database.execute("CREATE SCHEMA [it's]\nGO\nCREATE TABLE [it's].t (id int NOT NULL PRIMARY KEY)")
    assert database.enable_capture("t", schema="it's") == "it's_t"


def test_first_error_is_raised_after_the_batch_has_run(database: CdcDatabase) -> None:
    with pytest.raises(SqlError, match="Divide by zero") as raised:
        database.execute("CREATE TABLE dbo.t (id int)\nSELECT 1 / 0\nINSERT dbo.t VALUES (1)\nSELECT NULL % 0, 1 % 0")
    assert raised.value.number == 8134
    assert database.execute("SELECT id FROM dbo.t") == [(1,)]


def test_batches_after_a_failed_one_do_not_run(database: CdcDatabase) -> None:
    with pytest.raises(SqlError):
        database.execute("SELECT * FROM absent\nGO\nCREATE TABLE dbo.t (id int)")
    assert database.execute("SELECT OBJECT_ID(N'dbo.t')") == [(None,)]


def test_rows_are_those_of_the_last_result_set(database: CdcDatabase) -> None:
    assert database.execute("SELECT 1 SELECT 2, 3") == [(2, 3)]
    assert database.execute("SELECT 1\nGO\nDECLARE @i int") == []


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("CAST(1 AS bit)", True),
        ("CAST('1.50' AS money)", Decimal("1.5000")),
        ("CAST(CAST('2024-02-29' AS date) AS sql_variant)", dt.date(2024, 2, 29)),
        ("CAST('23:59:59.9999999' AS time)", dt.time(23, 59, 59, 999999)),
        ("CAST('2024-02-29 12:00:00.997' AS datetime)", dt.datetime(2024, 2, 29, 12, 0, 0, 997000)),  # noqa: DTZ001
        ("CAST('9999-12-31 23:59:59.1234567' AS datetime2)", dt.datetime(9999, 12, 31, 23, 59, 59, 123456)),  # noqa: DTZ001
        (
            "CAST('2024-02-29 12:00 -03:30' AS datetimeoffset)",
            dt.datetime(2024, 2, 29, 12, tzinfo=dt.timezone(-dt.timedelta(hours=3, minutes=30))),
        ),
        ("CAST(NULL AS date)", None),
    ],
)
def test_values_are_pythons(database: CdcDatabase, expression: str, value: object) -> None:
    ((found,),) = database.execute(f"SELECT {expression}")
    assert (found, type(found)) == (value, type(value))


def test_database_is_dropped_with_clients_connected_and_transactions_open(sandbox: SandboxServer) -> None:
    with cdc_database(sandbox) as made:
        client = pyodbc.connect(made.odbc())
        client.execute("CREATE TABLE dbo.t (id int)")
        made.execute("BEGIN TRANSACTION CREATE TABLE dbo.u (id int)")
    client.close()
    with cdc_database(sandbox) as other:
        assert other.execute(f"SELECT DB_ID(N'{made.name}')") == [(None,)]


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize("encrypt", ["off", "login", "on"])
def test_odbc_string_connects_whatever_the_password_and_encryption(name: str, encrypt: str) -> None:
    server = SandboxServer(password="p;{a}=ß 'x", encrypt=encrypt)  # type: ignore[arg-type]
    with serve_in_thread(server), cdc_database(server) as made:
        library = driver(name).library
        with pyodbc.connect(made.odbc(driver=library)) as connection:
            assert connection.execute("SELECT DB_NAME()").fetchval() == made.name


def test_sqlalchemy_url_connects(database: CdcDatabase) -> None:
    driver("FreeTDS")
    engine = sa.create_engine(database.sqlalchemy(), poolclass=sa.NullPool)
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT DB_NAME()")) == database.name


def test_process_that_does_not_start_tells_what_it_printed(tmp_path: Path) -> None:
    with (
        pytest.raises(StartError, match=r"absent\.sql: the script cannot be read"),
        sandbox_process(tmp_path, "--script", "absent.sql"),
    ):
        pass


def test_log_takes_what_the_process_prints(tmp_path: Path) -> None:
    with sandbox_process(tmp_path, log=tmp_path / "log.txt") as server:
        assert f"listening on 127.0.0.1:{server.port}" in (tmp_path / "log.txt").read_text(encoding="utf-8")
    with (
        pytest.raises(StartError, match="invalid choice"),
        sandbox_process(tmp_path, "--encrypt=x", log=tmp_path / "l"),
    ):
        pass
