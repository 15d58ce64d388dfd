"""A connector in this process, with Spark warm, for benchmarks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mssql_cdc.capture.database import Database
from mssql_cdc.config import load_connector
from mssql_cdc.run.databases import open_databases
from mssql_cdc.run.follower import Follower
from mssql_cdc.run.loop import catch_up
from mssql_cdc_tests.benchmarks.server import Server, connector_file

_COUNT = "SELECT COUNT_BIG(*) FROM cdc.dbo_{}_CT"


@dataclass(frozen=True, slots=True)
class Opened:
    """A database that is followed; `log` only updates change logs, `whole` current tables too."""

    database: Database
    log: Follower
    whole: Follower


@contextmanager
def opened(server: Server, name: str, folder: Path, **settings: str) -> Iterator[Opened]:
    """Follow a database until its snapshot is done, and keep it open; current tables are always due.

    Args:
        server: The sandbox.
        name: The database.
        folder: Where connector and lake are written.
        settings: Further properties of the connector.
    """
    connector = load_connector(connector_file(server, name, folder, **{"delta.current.interval": "0"}, **settings))
    with open_databases(connector, warehouse=str(folder / name), quiet=True, lasting=True) as databases:
        catch_up(databases, timeout=3600)
        yield Opened(databases[0], Follower(databases[0], merge=False), Follower(databases[0]))


def captured_rows(server: Server, name: str, tables: Sequence[str]) -> dict[str, int]:
    """The rows of the change tables of these tables."""
    with server.connect(name) as connection:
        return {table: int(connection.execute(_COUNT.format(table)).fetchval()) for table in tables}


def wait_for_capture(server: Server, name: str, rows: dict[str, int], *, timeout: float = 1800) -> None:
    """Wait until the change tables of these tables have so many rows."""
    end = time.monotonic() + timeout
    with server.connect(name) as connection:
        for table, count in rows.items():
            while connection.execute(_COUNT.format(table)).fetchval() < count:
                if time.monotonic() > end:
                    raise TimeoutError(f"{table} was not captured")
                time.sleep(0.1)
    time.sleep(0.5)  # The commits' times are written behind the rows.


def until_idle(follower: Follower) -> None:
    """Take steps until there is nothing left to do."""
    while not follower.step().idle:
        pass
