"""What a connection says when it is opened decides what it reaches: the login's user, the intent, the version told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pyodbc
import pytest

from mssql_sandbox.process import SandboxProcess
from mssql_sandbox.server import SandboxServer, serve_in_thread
from tests.cdc.remote import VARIABLE
from tests.tds.drivers import DRIVERS, driver

DBMS_VERSION = 18
"""SQL_DBMS_VER of SQLGetInfo."""


def connect(
    server: SandboxServer, name: str = "FreeTDS", *, database: str = "master", login: str = "sa", more: str = ""
) -> pyodbc.Connection:
    text = driver(name).connection_string(server.port, password=server.password, more=f"DATABASE={database};{more}")
    return pyodbc.connect(text.replace("UID=sa", f"UID={login}"), autocommit=True, timeout=10)


@pytest.fixture
def shop(sandbox: SandboxServer) -> Iterator[pyodbc.Connection]:
    """A connection to a database with one table."""
    owner = connect(sandbox)
    owner.execute("CREATE DATABASE shop")
    owner.execute("USE shop; CREATE TABLE dbo.t (id int PRIMARY KEY); INSERT dbo.t VALUES (1)")
    yield owner
    owner.execute("EXEC sandbox.replica_drop")
    owner.execute("USE master; ALTER DATABASE shop SET SINGLE_USER WITH ROLLBACK IMMEDIATE; DROP DATABASE shop")
    owner.close()


@pytest.mark.parametrize("name", DRIVERS)
def test_read_only_intent_reaches_the_secondary(sandbox: SandboxServer, shop: pyodbc.Connection, name: str) -> None:
    """[doc] with a secondary, `ApplicationIntent=ReadOnly` is routed to it."""
    shop.execute("EXEC sandbox.replica_freeze")
    shop.execute("INSERT dbo.t VALUES (2)")
    for more, expected, updates in (("ApplicationIntent=ReadOnly;", 1, "READ_ONLY"), ("", 2, "READ_WRITE")):
        connection = connect(sandbox, name, database="shop", more=more)
        assert connection.execute("SELECT COUNT(*) FROM dbo.t").fetchval() == expected
        shown = "SELECT CAST(DATABASEPROPERTYEX('shop', 'Updateability') AS nvarchar(20))"
        assert connection.execute(shown).fetchval() == updates
        connection.close()


def test_a_login_without_a_user_cannot_open_the_database(sandbox: SandboxServer, shop: pyodbc.Connection) -> None:
    """[doc] 4060, then 18456."""
    shop.execute(f"CREATE LOGIN stranger WITH PASSWORD = '{sandbox.password}'")
    with pytest.raises(pyodbc.Error, match=r"4060|18456"):
        connect(sandbox, database="shop", login="stranger")
    shop.execute("CREATE USER stranger FOR LOGIN stranger")
    connect(sandbox, database="shop", login="stranger").close()


@pytest.mark.parametrize(
    ("version", "shown"), [("2019", "15.00.4385"), ("2025", "17.00.1000"), ("azure", "12.00.2000")]
)
def test_drivers_are_told_the_version(version: str, shown: str) -> None:
    """[tds] PRELOGIN and LOGINACK carry the numbers of the version that was asked for."""
    with serve_in_thread(SandboxServer(version=version)) as server:
        connection = connect(server)
        assert connection.getinfo(DBMS_VERSION).startswith(shown)
        assert connection.execute("SELECT @@VERSION").fetchval().startswith("Microsoft SQL")
        connection.close()


def test_rules_run_against_the_server_that_the_environment_names(separate_sandbox: SandboxProcess) -> None:
    """`MSSQL_TEST_URL`: the same rules, through ODBC, on a server that the tests know nothing else about."""
    address = (
        f"DRIVER={driver('FreeTDS').library};SERVER={separate_sandbox.host};PORT={separate_sandbox.port};"
        f"UID={separate_sandbox.user};PWD={{{separate_sandbox.password}}};TDS_Version=7.4;ClientCharset=UTF-8"
    )
    rules = "sandbox/tests/cdc"
    wanted = [f"{rules}/test_capture.py", f"{rules}/test_faults.py", "-k", "key_update or capture_run"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", *wanted],
        env={**os.environ, VARIABLE: address},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "2 passed, 1 skipped" in run.stdout
    assert f"needs the sandbox's own clock and procedures, but {VARIABLE} names another server" in run.stdout
