"""The sandbox as a process of its own, filled for a benchmark; so that server and client never share a GIL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyodbc

from mssql_sandbox.address import Address
from mssql_sandbox.process import SandboxProcess, sandbox_process
from tests.tds.drivers import microsoft_library

NUMBERS = 10_000
"""Rows that `dbo.numbers` has at least."""
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


@contextmanager
def sandbox(folder: Path, *, capture_interval: float = 0.2) -> Iterator[SandboxProcess]:
    """A sandbox in a process of its own."""
    options = ("--capture-interval", str(capture_interval))
    with sandbox_process(folder, *options, log=folder / "sandbox.log") as server:
        yield server


def connect(server: Address, database: str = "master", *, autocommit: bool = True) -> pyodbc.Connection:
    """A connection through FreeTDS."""
    return pyodbc.connect(server.odbc(database), autocommit=autocommit)


def connect_microsoft(server: Address, database: str) -> pyodbc.Connection | None:
    """A connection through Microsoft's driver, which prepares once and calls often; None where it is not installed."""
    library = microsoft_library()
    return pyodbc.connect(server.odbc(database, driver=library), autocommit=True) if library else None


def create_database(server: Address, name: str, tables: dict[str, int]) -> None:
    """A database with CDC whose tables hold so many rows of twelve columns each; the rows come before the capture."""
    with connect(server) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with connect(server, name) as connection:
        connection.execute("EXEC sys.sp_cdc_enable_db")
        most = max(tables.values(), default=0)
        fill_numbers(connection, most)
        for table, rows in tables.items():
            connection.execute(f"CREATE TABLE dbo.{table} ({COLUMNS})")
            if rows:
                connection.execute(f"INSERT INTO dbo.{table} SELECT {VALUES} FROM dbo.numbers n WHERE n.i <= {rows}")
        for table in tables:
            connection.execute(
                f"EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'{table}', @role_name = NULL"
            )


def fill_numbers(connection: pyodbc.Connection, most: int, *, above: int = 0) -> None:
    """`dbo.numbers`: from `above` (0: a new table) to `most`, at least 10,000, rounded up to full blocks."""
    if not above:
        connection.execute("CREATE TABLE dbo.numbers (i int NOT NULL PRIMARY KEY)")
    block = "a.v + 10 * b.v + 100 * c.v + 1000 * d.v + 1"
    source = f"FROM {DIGITS} a(v) CROSS JOIN {DIGITS} b(v) CROSS JOIN {DIGITS} c(v) CROSS JOIN {DIGITS} d(v)"
    for start in range(above, max(most, NUMBERS), NUMBERS):
        connection.execute(f"INSERT INTO dbo.numbers SELECT {block} + {start} {source}")


def change(connection: pyodbc.Connection, table: str, *, first: int, rows: int) -> None:
    """So many inserts into the table, in transactions of 500 rows."""
    for start in range(first, first + rows, 500):
        last = min(start + 499, first + rows - 1)
        connection.execute(
            f"INSERT INTO dbo.{table} SELECT {VALUES} FROM dbo.numbers n WHERE n.i BETWEEN {start} AND {last}"
        )
