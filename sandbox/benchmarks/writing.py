"""How fast the sandbox takes changes: single statements, many rows at a time, and how fast they are captured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyodbc

from benchmarks.measure import Figure, best, compared, rate
from benchmarks.prepared import prepared_stream
from benchmarks.server import VALUES, connect, connect_microsoft, create_database
from mssql_sandbox.process import SandboxProcess

_COLUMNS = "id, customer_id, status, quantity, price, weight, name, city, note, created, active, code"
_PARAMETERS = f"({', '.join('?' * 12)})"
_BATCH = 1000


def writing(server: SandboxProcess, folder: Path, *, statements: int, rows: int) -> Iterator[Figure]:
    """Statements a second from one client, beside round trips that do nothing; then rows a second, and capture."""
    create_database(server, "writes", {"single": 0, "many": 0, "selected": 0, "computed": 0})
    with connect(server, "writes") as connection, prepared_stream(server, "writes", folder) as stream:
        with connect(stream, "writes") as idle:
            nothing = best(
                _each(statements, lambda n: idle.execute(f"UPDATE dbo.t SET a = {n}")), server=stream.process.pid
            )
        yield Figure("round trips that do nothing", rate(statements, nothing.seconds))
        microsoft = connect_microsoft(server, "writes")
        for first, driver, client in ((0, "FreeTDS", connection), (10_000_000, "msodbcsql", microsoft)):
            for what, action in ({} if client is None else _single(client, first)).items():
                spent = best(_each(statements, action), server=server.process.pid, times=1)
                yield Figure(f"{what}, committed, {driver}", compared(statements, spent, nothing, pace=sum))
        yield from _many(connection, rows)
        yield from _capturing(connection, rows)


def _single(connection: pyodbc.Connection, first: int) -> dict[str, Callable[[int], object]]:
    """Changes of one row, of keys from `first` on; texts differ, as applications without parameters send them."""
    insert = f"INSERT INTO dbo.single ({_COLUMNS}) VALUES {_PARAMETERS}"
    prepared, text = connection.cursor(), connection.cursor()
    return {
        "INSERT of a row with parameters": lambda n: prepared.execute(insert, *_row(first + n)),
        "UPDATE of a row with parameters": lambda n: prepared.execute(
            "UPDATE dbo.single SET quantity = ?, name = ? WHERE id = ?", n + 1, f"Name {n}", first + n
        ),
        "INSERT of a row as text": lambda n: text.execute(
            f"INSERT INTO dbo.single ({_COLUMNS}) VALUES {_literal(first + 1_000_000 + n)}"
        ),
        "UPDATE of a row as text": lambda n: text.execute(
            f"UPDATE dbo.single SET quantity = {n + 2} WHERE id = {first + n}"
        ),
    }


def _many(connection: pyodbc.Connection, rows: int) -> Iterator[Figure]:
    lists = [", ".join(_literal(n) for n in range(start, start + _BATCH)) for start in range(0, rows, _BATCH)]
    started = time.perf_counter()
    for values in lists:
        connection.execute(f"INSERT INTO dbo.many ({_COLUMNS}) VALUES {values}")
    yield Figure(f"INSERT of {_BATCH:,} rows of twelve literals", rate(rows, time.perf_counter() - started))
    connection.execute("CREATE TABLE dbo.pairs (i int NOT NULL PRIMARY KEY, t nvarchar(20) NOT NULL)")
    pairs = [", ".join(f"({n}, N'row {n}')" for n in range(start, start + _BATCH)) for start in range(0, rows, _BATCH)]
    started = time.perf_counter()
    for values in pairs:
        connection.execute(f"INSERT INTO dbo.pairs (i, t) VALUES {values}")
    yield Figure(f"INSERT of {_BATCH:,} rows of two literals", rate(rows, time.perf_counter() - started))
    started = time.perf_counter()
    connection.execute(
        f"INSERT INTO dbo.selected ({_COLUMNS}) SELECT {_COLUMNS.replace('id,', 'id + 0,', 1)} FROM dbo.many"
    )
    yield Figure("INSERT … SELECT of a table's rows of twelve columns", rate(rows, time.perf_counter() - started))
    connection.execute("TRUNCATE TABLE dbo.pairs")
    expressions = VALUES.replace("n.i", "n.id")
    started = time.perf_counter()
    connection.execute(f"INSERT INTO dbo.computed SELECT {expressions} FROM dbo.many n")
    yield Figure("INSERT … SELECT of twelve expressions", rate(rows, time.perf_counter() - started))


def _capturing(connection: pyodbc.Connection, rows: int) -> Iterator[Figure]:
    for table in ("single", "many", "selected", "computed"):
        captured_rows(connection, table, 0)
    connection.execute("EXEC sys.sp_cdc_stop_job @job_type = N'capture'")
    connection.execute("DELETE FROM dbo.computed")
    before = _captured(connection, "computed")
    started = time.perf_counter()
    connection.execute("EXEC sys.sp_cdc_start_job @job_type = N'capture'")
    captured_rows(connection, "computed", before + rows)
    yield Figure("events that the capture job takes from the log", rate(rows, time.perf_counter() - started))


def captured_rows(connection: pyodbc.Connection, table: str, rows: int) -> None:
    """Waits until the change table has at least so many rows."""
    deadline = time.monotonic() + 600
    while _captured(connection, table) < rows:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{_captured(connection, table)} of {rows} changes of {table} were captured in time")
        time.sleep(0.02)


def _captured(connection: pyodbc.Connection, table: str) -> int:
    found = connection.execute(
        f"SELECT SUM(rows) FROM sys.partitions WHERE object_id = OBJECT_ID(N'cdc.dbo_{table}_CT')"
    )
    return int(found.fetchval() or 0)


def _each(count: int, action: Callable[[int], object]) -> Callable[[], None]:
    def repeated() -> None:
        for number in range(count):
            action(number)

    return repeated


def _row(n: int) -> tuple:
    return (
        n, n % 5000, n % 7, n * 1000, n * 0.25, n / 3, f"Name of row {n}", None if n % 9 == 0 else "Saint-Pétersbourg",
        "a note of some forty characters or so, ok", "2026-01-01T00:00:00.123", n % 2, "C0000001",
    )  # fmt: skip


def _literal(n: int) -> str:
    cells = [
        f"N'{cell}'" if isinstance(cell, str) else "NULL" if cell is None else str(round(cell, 4)) for cell in _row(n)
    ]
    return f"({', '.join(cells)})"
