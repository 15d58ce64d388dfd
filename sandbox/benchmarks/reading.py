"""How fast the sandbox serves rows of change tables and tables, each beside a prepared stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import arrow_odbc

from benchmarks.measure import Figure, best, compared
from benchmarks.prepared import prepared_stream
from benchmarks.server import NUMBERS, change, connect, create_database, fill_numbers
from benchmarks.writing import captured_rows
from mssql_sandbox.process import SandboxProcess

_BATCH = 32_768


@dataclass(frozen=True, slots=True)
class Read:
    """A statement and what it reads."""

    what: str
    statement: str


def reading(server: SandboxProcess, folder: Path, *, rows: int) -> Iterator[Figure]:
    """`rows` change rows of twelve columns, and as many rows of their table."""
    create_database(server, "reads", {"large": 0})
    with connect(server, "reads") as connection:
        fill_numbers(connection, rows, above=NUMBERS)
        change(connection, "large", first=1, rows=rows)
        captured_rows(connection, "large", rows)
    with prepared_stream(server, "reads", folder) as stream:
        for driver, fetch in _DRIVERS.items():
            for read in _READS:
                spent = [best(partial(fetch, one, read), server=one.process.pid) for one in (server, stream)]
                yield Figure(f"{read.what}, {driver}", compared(rows, *spent))


_READS = (
    Read("change rows", "SELECT * FROM cdc.dbo_large_CT"),
    Read("table rows", "SELECT * FROM dbo.large"),
)


def _through_arrow(server: SandboxProcess, read: Read) -> None:
    reader = arrow_odbc.read_arrow_batches_from_odbc(
        read.statement,
        connection_string=server.odbc("reads"),
        batch_size=_BATCH,
        max_text_size=200,
        max_binary_size=200,
    )
    assert reader is not None
    for _ in reader:
        pass


def _through_pyodbc(server: SandboxProcess, read: Read) -> None:
    with connect(server, "reads") as connection:
        cursor = connection.execute(read.statement)
        while cursor.fetchmany(10_000):
            pass


_DRIVERS = {"arrow-odbc": _through_arrow, "pyodbc": _through_pyodbc}
