"""What sys.dm_exec_sessions and sys.dm_exec_connections say of a client."""

import os

import pyodbc
import pytest

from mssql_sandbox.server import SandboxServer
from tests.tds.drivers import driver


@pytest.mark.parametrize("encrypt", [False, True])
def test_connections_tell_whether_all_is_encrypted(sandbox: SandboxServer, encrypt: bool) -> None:  # noqa: FBT001
    """Microsoft's documentation: TRUE for a connection that is encrypted; a login alone does not make it so."""
    text = driver("msodbcsql").connection_string(sandbox.port, password=sandbox.password, encrypt=encrypt)
    connection = pyodbc.connect(text, autocommit=True)
    sql = "SELECT encrypt_option, net_transport, client_net_address, local_tcp_port FROM sys.dm_exec_connections"
    found = connection.execute(f"{sql} WHERE session_id = @@SPID").fetchall()[0]
    assert tuple(found) == ("TRUE" if encrypt else "FALSE", "TCP", "127.0.0.1", sandbox.port)
    connection.close()


def test_sessions_tell_program_process_and_settings(sandbox: SandboxServer) -> None:
    text = driver("FreeTDS").connection_string(sandbox.port, password=sandbox.password, more="APP=teller;")
    connection = pyodbc.connect(text, autocommit=True)
    connection.execute("SET LOCK_TIMEOUT 77 SET TRANSACTION ISOLATION LEVEL SERIALIZABLE SET CONTEXT_INFO 0x0102")
    sql = (
        "SELECT program_name, host_process_id, login_name, lock_timeout, transaction_isolation_level, status "
        "FROM sys.dm_exec_sessions WHERE session_id = @@SPID"
    )
    assert tuple(connection.execute(sql).fetchall()[0]) == ("teller", os.getpid(), "sa", 77, 4, "running")
    connection.close()
