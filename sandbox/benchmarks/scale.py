"""What size costs the sandbox: memory of millions of rows, and a small query among many tables and connections."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.measure import Figure, resident_mib
from benchmarks.server import COLUMNS, VALUES, connect, create_database, sandbox
from mssql_sandbox.process import SandboxProcess

TABLES, CONNECTIONS = 300, 100
_QUERIES = {
    "a row by its key": "SELECT name, quantity FROM dbo.t0 WHERE id = 7",
    "the last commit": "SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping",
    "a column's type": "SELECT system_type_id FROM sys.columns WHERE object_id = OBJECT_ID(N'dbo.t0') AND name = N'id'",
}
_TIMES = 400
_STEP = 100_000


def crowded(folder: Path) -> Iterator[Figure]:
    """Median seconds of small queries in a sandbox with many captured tables and connections, against one of each.

    Both run at the same time and are asked in turn, so that what else the machine does meets both.
    """
    with ExitStack() as stack:
        folders = [folder / name for name in ("alone", "crowd")]
        for one in folders:
            one.mkdir()
        small, large = [stack.enter_context(sandbox(one)) for one in folders]
        create_database(small, "shop", {"t0": 100})
        create_database(large, "shop", {f"t{number}": 100 if number == 0 else 0 for number in range(TABLES)})
        for _ in range(CONNECTIONS - 1):
            stack.enter_context(connect(large, "shop")).execute("SELECT 1").fetchall()
        for what, query in _QUERIES.items():
            alone, crowd = _medians([small, large], query)
            yield Figure(
                f"{what}: {TABLES} captured tables and {CONNECTIONS} connections against 1 and 1",
                f"{crowd * 1e6:,.0f} µs against {alone * 1e6:,.0f} µs; ratio {crowd / alone:.2f}",
            )


def memory(folder: Path, *, rows: int) -> Iterator[Figure]:
    """Resident memory of a sandbox of its own with so many rows of twelve columns, without capture."""
    with sandbox(folder) as server:
        with connect(server) as connection:
            connection.execute("CREATE DATABASE big")
        empty = resident_mib(server.process.pid)
        with connect(server, "big") as connection:
            connection.execute("CREATE TABLE dbo.numbers (i int NOT NULL PRIMARY KEY)")
            digits = "(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))"
            sources = ", ".join(f"{digits} d{place}(v)" for place in range(5))
            number = " + ".join(f"{10**place} * d{place}.v" for place in range(5))
            connection.execute(f"INSERT INTO dbo.numbers SELECT {number} FROM {sources}")
            connection.execute(f"CREATE TABLE dbo.large ({COLUMNS})")
            for start in range(0, rows, _STEP):
                values = VALUES.replace("n.i", f"(n.i + {start})")
                connection.execute(f"INSERT INTO dbo.large SELECT {values} FROM dbo.numbers n")
        full = resident_mib(server.process.pid)
    yield Figure(
        f"memory with {rows:,} rows", f"{full:,.0f} MiB; {(full - empty) * 1024 * 1024 / rows:,.0f} bytes a row"
    )


def _medians(servers: Sequence[SandboxProcess], query: str) -> list[float]:
    seconds: list[list[float]] = [[] for _ in servers]
    with ExitStack() as stack:
        cursors = [stack.enter_context(connect(server, "shop")).cursor() for server in servers]
        for _ in range(_TIMES):
            for cursor, spent in zip(cursors, seconds, strict=True):
                started = time.perf_counter()
                cursor.execute(query).fetchall()
                spent.append(time.perf_counter() - started)
    return [statistics.median(spent) for spent in seconds]
