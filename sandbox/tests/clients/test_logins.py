"""Ways to log in, over real drivers: TLS first, passwords that have to change, disabled logins, old protocols."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pyodbc
import pytest

from mssql_sandbox.server import SandboxServer, serve_in_thread
from tests.tds.drivers import DRIVERS, driver

OLD_PASSWORD = 1226
"""SQL_COPT_SS_OLDPWD of Microsoft's driver."""


def connect(
    server: SandboxServer, name: str, *, user: str = "sa", password: str = "", more: str = ""
) -> pyodbc.Connection:
    text = driver(name).connection_string(server.port, password=password or server.password, more=more)
    return pyodbc.connect(text.replace("UID=sa", f"UID={user}"), autocommit=True, timeout=10)


@pytest.fixture
def admin(sandbox: SandboxServer) -> Iterator[pyodbc.Connection]:
    connection = connect(sandbox, "FreeTDS")
    yield connection
    connection.execute("IF SUSER_ID('guest1') IS NOT NULL DROP LOGIN guest1")
    connection.close()


@pytest.mark.parametrize("mars", ["no", "yes"])
def test_strict_encryption_begins_with_tls(sandbox: SandboxServer, tmp_path: Path, mars: str) -> None:
    """TDS 8.0: TLS before anything else; the driver trusts the server's own certificate only when it is shown it."""
    certificate = tmp_path / "server.pem"
    certificate.write_text(ssl.get_server_certificate(("127.0.0.1", sandbox.port)))
    library = driver("msodbcsql").library
    text = f"DRIVER={library};SERVER=127.0.0.1,{sandbox.port};UID=sa;PWD={{{sandbox.password}}};MARS_Connection={mars};"
    connection = pyodbc.connect(f"{text}Encrypt=strict;ServerCertificate={certificate}", autocommit=True, timeout=10)
    encrypted = connection.execute("SELECT encrypt_option FROM sys.dm_exec_connections WHERE session_id = @@SPID")
    assert encrypted.fetchval() == "TRUE"
    connection.close()


def test_strict_encryption_is_refused_without_a_certificate() -> None:
    text = f"DRIVER={driver('msodbcsql').library};UID=sa;PWD=x;Encrypt=strict;ConnectRetryCount=0;"
    with serve_in_thread(SandboxServer(encrypt="off")) as server, pytest.raises(pyodbc.OperationalError):
        pyodbc.connect(f"{text}SERVER=127.0.0.1,{server.port}", timeout=10)


@pytest.mark.parametrize("name", DRIVERS)
def test_a_disabled_login_is_told_so_18470(sandbox: SandboxServer, admin: pyodbc.Connection, name: str) -> None:
    admin.execute("CREATE LOGIN guest1 WITH PASSWORD = 'first'; ALTER LOGIN guest1 DISABLE")
    with pytest.raises(pyodbc.Error, match=r"account is disabled.*18470"):
        connect(sandbox, name, user="guest1", password="first")
    with pytest.raises(pyodbc.Error, match="18456"):
        connect(sandbox, name, user="guest1", password="wrong")


def test_a_password_that_must_change_is_changed_while_logging_in_18488(
    sandbox: SandboxServer, admin: pyodbc.Connection
) -> None:
    admin.execute("CREATE LOGIN guest1 WITH PASSWORD = 'first' MUST_CHANGE, CHECK_EXPIRATION = ON")
    with pytest.raises(pyodbc.Error, match="18488"):
        connect(sandbox, "FreeTDS", user="guest1", password="first")
    text = driver("msodbcsql").connection_string(sandbox.port, password="second").replace("UID=sa", "UID=guest1")
    pyodbc.connect(text, timeout=10, attrs_before={OLD_PASSWORD: "first"}).close()
    assert connect(sandbox, "FreeTDS", user="guest1", password="second").execute("SELECT 1").fetchval() == 1


def test_who_changes_a_password_by_the_old_one_must_know_it(sandbox: SandboxServer, admin: pyodbc.Connection) -> None:
    admin.execute("CREATE LOGIN guest1 WITH PASSWORD = 'first'")
    with pytest.raises(pyodbc.Error, match="15151"):
        admin.execute("ALTER LOGIN guest1 WITH PASSWORD = 'second' OLD_PASSWORD = 'wrong'")
    admin.execute("ALTER LOGIN guest1 WITH PASSWORD = 'second' OLD_PASSWORD = 'first'")
    assert connect(sandbox, "FreeTDS", user="guest1", password="second").execute("SELECT 1").fetchval() == 1


@pytest.mark.parametrize("version", ["7.1", "7.2"])
def test_an_old_protocol_is_refused_with_words(sandbox: SandboxServer, version: str) -> None:
    text = driver("FreeTDS").connection_string(sandbox.port, password=sandbox.password)
    with pytest.raises(pyodbc.Error, match=r"this server 7\.3, 7\.4 and 8\.0"):
        pyodbc.connect(text.replace("TDS_Version=7.4", f"TDS_Version={version}"), timeout=10)
