"""The sandbox in a separate process, filled for a benchmark, so that server and connector never share a GIL."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyodbc

NUMBERS = 10_000
"""The minimum number of rows in `dbo.numbers`."""
BLOCK = 500_000
"""Rows of a table are inserted in blocks, so that `dbo.numbers`, which needs memory as well, has no more."""
DIGITS = "(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))"
COLUMNS = """
    id int NOT NULL PRIMARY KEY, customer_id int NOT NULL, status tinyint NOT NULL, quantity bigint NOT NULL,
    price decimal(18, 4) NOT NULL, weight float NULL, name nvarchar(50) NOT NULL, city varchar(30) NULL,
    note nvarchar(100) NULL, created datetime2(3) NOT NULL, active bit NOT NULL, code char(8) NOT NULL
"""
VALUES = """
    n.i, n.i % 5000, n.i % 7, CAST(n.i AS bigint) * 1000, n.i * 0.25, n.i / 3.0, CONCAT(N'Name of row ', n.i),
    CASE WHEN n.i % 9 = 0 THEN NULL ELSE 'Saint-Pétersbourg' END, N'a note of some forty characters or so, ok',
    DATEADD(second, n.i, CAST('2026-01-01' AS datetime2(3))), n.i % 2, 'C0000001'
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A running sandbox."""

    host: str
    port: int
    user: str
    password: str
    pid: int
    ready_file: Path

    def connect(self, database: str = "master", *, autocommit: bool = True) -> pyodbc.Connection:
        """A connection through FreeTDS."""
        return pyodbc.connect(self.odbc(database), autocommit=autocommit)

    def odbc(self, database: str) -> str:
        """The connection string for FreeTDS."""
        return (
            f"DRIVER=FreeTDS;SERVER={self.host};PORT={self.port};DATABASE={database};UID={self.user};"
            f"PWD={self.password};TDS_Version=7.4;ClientCharset=UTF-8"
        )


@contextmanager
def sandbox(folder: Path, *, capture_interval: float = 0.2) -> Iterator[Server]:
    """Start a sandbox and stop it at the end."""
    command = ["mssql_sandbox", "--port", "0", "--capture-interval", str(capture_interval)]
    with started(command, folder, "sandbox") as server:
        yield server


@contextmanager
def started(command: Sequence[str], folder: Path, name: str) -> Iterator[Server]:
    """Start `python -m command --ready-file …`, wait until it accepts clients, and stop it at the end."""
    ready, log_file = folder / f"{name}.json", folder / f"{name}.log"
    ready.unlink(missing_ok=True)
    with log_file.open("w") as log:
        whole = [sys.executable, "-m", *command, "--ready-file", str(ready)]
        process = subprocess.Popen(whole, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 60
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(log_file.read_text())
            time.sleep(0.05)
        found = json.loads(ready.read_text())
        yield Server(found["host"], found["port"], found["user"], found["password"], process.pid, ready)
    finally:
        process.terminate()
        process.wait(30)


def create_database(server: Server, name: str, tables: dict[str, int], *, numbers: int = 0) -> None:
    """A CDC-enabled database whose tables hold this many rows of twelve columns, inserted before CDC was enabled.

    Args:
        server: The sandbox.
        name: The database.
        tables: The rows of each table.
        numbers: The largest key of later rows, which `dbo.numbers` must have.
    """
    with server.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with server.connect(name) as connection:
        connection.execute("EXEC sys.sp_cdc_enable_db")
        fill_numbers(connection, max(min(max(tables.values(), default=0), BLOCK), numbers))
        for table, rows in tables.items():
            connection.execute(f"CREATE TABLE dbo.{table} ({COLUMNS})")
            for start in range(0, rows, BLOCK):
                block = f"SELECT i + {start} AS i FROM dbo.numbers WHERE i <= {min(rows - start, BLOCK)}"
                connection.execute(f"INSERT INTO dbo.{table} SELECT {VALUES} FROM ({block}) AS n")
        for table in tables:
            connection.execute(
                f"EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'{table}', @role_name = NULL"
            )


def fill_numbers(connection: pyodbc.Connection, most: int) -> None:
    """Create `dbo.numbers` with the numbers to `most`, at least 10,000, rounded up to full blocks."""
    connection.execute("CREATE TABLE dbo.numbers (i int NOT NULL PRIMARY KEY)")
    block = "a.v + 10 * b.v + 100 * c.v + 1000 * d.v + 1"
    source = f"FROM {DIGITS} a(v) CROSS JOIN {DIGITS} b(v) CROSS JOIN {DIGITS} c(v) CROSS JOIN {DIGITS} d(v)"
    for start in range(0, max(most, NUMBERS), NUMBERS):
        connection.execute(f"INSERT INTO dbo.numbers SELECT {block} + {start} {source}")


PING = "INSERT dbo.ping DEFAULT VALUES"
"""A change of the table that `create_ping` makes."""


def create_ping(connection: pyodbc.Connection) -> None:
    """Create a captured table whose only use is a change at any time."""
    connection.execute("CREATE TABLE dbo.ping (id int IDENTITY PRIMARY KEY, at datetime2 DEFAULT SYSDATETIME())")
    connection.execute("EXEC sys.sp_cdc_enable_table N'dbo', N'ping', @role_name = NULL")


def change(connection: pyodbc.Connection, table: str, *, first: int, rows: int) -> None:
    """Insert this many rows into the table, in transactions of 500 rows."""
    for start in range(first, first + rows, 500):
        last = min(start + 499, first + rows - 1)
        connection.execute(
            f"INSERT INTO dbo.{table} SELECT {VALUES} FROM dbo.numbers n WHERE n.i BETWEEN {start} AND {last}"
        )


def connector_file(server: Server, database: str, folder: Path, **settings: str) -> Path:
    """Write a connector for the database, with further properties, and return its file."""
    path = folder / f"{database}.json"
    config = {
        "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
        "database.hostname": server.host,
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
        "database.names": database,
        "topic.prefix": database,
        "driver.encrypt": "false",
        **settings,
    }
    path.write_text(json.dumps({"name": database, "config": config}))
    return path


def clean_up(server: Server, database: str, tables: Sequence[str], *, keep: int = 100) -> None:
    """Remove change rows that every reader has read, but for the newest transactions: readers keep their positions.

    Args:
        server: The sandbox.
        database: The database.
        tables: Its captured tables.
        keep: How many transactions are kept.
    """
    with server.connect(database) as connection:
        newest = f"SELECT TOP {keep} start_lsn FROM cdc.lsn_time_mapping ORDER BY start_lsn DESC"
        mark = connection.execute(f"SELECT MIN(start_lsn) FROM ({newest}) AS newest").fetchval()
        for table in tables:
            connection.execute(
                f"EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'dbo_{table}', "
                f"@low_water_mark = 0x{bytes(mark).hex()}"
            )
