"""The server as a whole through mssql-jdbc: TLS, timeouts, errors, implicit transactions."""

import pytest

from mssql_sandbox.server import SandboxServer
from tests.tds.jdbc import probe

pytestmark = pytest.mark.timeout(400)


def test_jdbc_queries_over_tls(sandbox: SandboxServer) -> None:
    sql = "SELECT 1 AS x, CAST(N'\u4e2d' AS nvarchar(10)) AS y"
    assert probe("query", sandbox.port, sandbox.password, sql, encrypt="true") == ["int=1", "nvarchar=\u4e2d"]


def test_jdbc_timeout_ends_waitfor(sandbox: SandboxServer) -> None:
    assert probe("timeout", sandbox.port, sandbox.password) == ["HY008", "int=1"]


def test_jdbc_error_keeps_number_and_state(sandbox: SandboxServer) -> None:
    assert probe("error", sandbox.port, sandbox.password, "SELECT * FROM absent") == ["208 S0002", "int=1"]


def test_jdbc_commit_keeps_and_rollback_undoes(sandbox: SandboxServer) -> None:
    steps = "CREATE TABLE dbo.j (a int)|commit|INSERT dbo.j VALUES (1)|rollback"
    steps += "|INSERT dbo.j VALUES (2)|commit|SELECT a FROM dbo.j"
    assert probe("transaction", sandbox.port, sandbox.password, steps) == ["count 0", "count 1", "count 1", "value 2"]


def test_jdbc_prepared_statement_runs_five_times(sandbox: SandboxServer) -> None:
    lines = probe("echo", sandbox.port, sandbox.password, "SELECT ?, ?, ?, ?, ?, ?, ?")
    assert lines == [f"{n}|text \u4e2d {n}|12.50|0001{n:02x}|2024-02-29 12:30:15.1234567|5000|null" for n in range(5)]
