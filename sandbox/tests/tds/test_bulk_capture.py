"""Bulk loads into tables that change data capture reads: every row is captured as an insert."""

import struct

import pyodbc

from mssql_sandbox.server import SandboxServer
from mssql_sandbox.tds.packets import PacketType
from tests.tds.drivers import driver
from tests.tds.raw_client import raw_client
from tests.tds.test_hostile_clients import BULK


def test_bulk_load_is_captured_row_by_row(sandbox: SandboxServer) -> None:
    """Microsoft's documentation: bulk imports into a tracked table are fully logged."""
    with raw_client(sandbox.port) as client:
        client.log_in(sandbox.password)
        for text in (
            "CREATE DATABASE bulky",
            "USE bulky EXEC sys.sp_cdc_enable_db CREATE TABLE dbo.b (a int, b nvarchar(8))",
            "EXEC sys.sp_cdc_enable_table N'dbo', N'b', @role_name = NULL",
            "INSERT BULK dbo.b (a int, b nvarchar(8)) WITH (TABLOCK)",
        ):
            client.batch(text)
            assert b"\xaa" not in client.receive()
        client.send(PacketType.BULK_LOAD, BULK)
        assert struct.pack("<Q", 2) in client.receive()
    text = driver("FreeTDS").connection_string(sandbox.port, password=sandbox.password, more="DATABASE=bulky;")
    reader = pyodbc.connect(text, autocommit=True)
    reader.execute("EXEC sandbox.capture_run")
    found = reader.execute("SELECT [__$operation], a, b FROM cdc.dbo_b_CT ORDER BY a").fetchall()
    reader.close()
    assert [tuple(row) for row in found] == [(2, 1, "x"), (2, 2, None)]
