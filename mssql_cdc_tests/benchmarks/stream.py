"""Sustained rates, warm: changes of twenty tables, and snapshots, against the bare fetch and against Debezium.

Each round reads rows that came since the last one. The bare fetch reads the same rows with as many connections.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from arrow_odbc.read_arrow_batches_from_odbc import read_arrow_batches_from_odbc

from mssql_cdc.run.execute import refresh_current
from mssql_cdc_tests.benchmarks.debezium_rates import Debezium, debezium
from mssql_cdc_tests.benchmarks.measure import Figure, rate
from mssql_cdc_tests.benchmarks.opened import opened, until_idle, wait_for_capture
from mssql_cdc_tests.benchmarks.server import Server, change, create_database, fill_numbers
from mssql_cdc_tests.conformance.debezium import OracleUnavailableError, debezium_jars

TABLES = 20
SMALL_TABLES = 50
WARM_ROWS = 40_000


def changes(server: Server, folder: Path, *, rows: int, repeat: int = 3) -> Iterator[Figure]:
    """`rows` change rows of twenty tables into change logs and current tables; the median of `repeat` rounds."""
    create_database(server, "stream", {f"t{i}": 0 for i in range(TABLES)})
    each = rows // TABLES
    with server.connect("stream") as connection:
        fill_numbers(connection, WARM_ROWS // TABLES + each * repeat, above=10_000)
        connection.execute("CREATE TABLE dbo.ping (id int IDENTITY PRIMARY KEY, at datetime2 DEFAULT SYSDATETIME())")
        connection.execute("EXEC sys.sp_cdc_enable_table N'dbo', N'ping', @role_name = NULL")
    logs, currents, fetches, theirs = list[float](), list[float](), list[float](), list[float]()
    with ExitStack() as stack:
        connector = stack.enter_context(opened(server, "stream", folder))
        oracle = _debezium(stack, server, folder / "debezium")
        if oracle is not None:
            pinged = stack.enter_context(server.connect("stream"))
            oracle.begin("stream", partial(pinged.execute, "INSERT dbo.ping DEFAULT VALUES"))
        there = 0
        for number in range(1 + repeat):
            count = each if number else WARM_ROWS // TABLES
            with server.connect("stream") as connection:
                for table in range(TABLES):
                    change(connection, f"t{table}", first=1 + there, rows=count)
            below, there = there, there + count
            wait_for_capture(server, "stream", {f"t{table}": there for table in range(TABLES)})
            spent = [_seconds(partial(until_idle, connector.log))]
            spent.append(_seconds(partial(refresh_current, connector.database)))
            queries = [f"SELECT * FROM cdc.dbo_t{table}_CT WHERE id > {below}" for table in range(TABLES)]
            spent.append(_seconds(partial(_fetch, server, "stream", queries)))
            records = oracle.stream("stream", count * TABLES) if oracle is not None else 0.0
            if number:
                logs.append(spent[0])
                currents.append(spent[1])
                fetches.append(spent[2])
                theirs.append(records)
    log, current, fetch = (statistics.median(found) for found in (logs, currents, fetches))
    events, what = each * TABLES, f"{rows:,} changes in {TABLES} tables"
    yield rate(f"{what} into change logs", events, log)
    yield rate(f"{what} into change logs and current tables", events, log + current)
    yield rate(f"{what}: bare fetch", events, fetch)
    yield Figure(f"{what}: change logs against the bare fetch", fetch / log, "x", at_least=0.5)
    yield Figure(f"{what}: current tables' time on top of the change logs'", current / log, "x", at_most=0.4)
    if oracle is not None:
        debezium_rate = statistics.median(theirs)
        yield Figure(f"{what}: Debezium streaming into nothing", debezium_rate, "rows/s")
        yield Figure(f"{what}: change logs against Debezium", events / log / debezium_rate, "x", at_least=6)
        both = events / (log + current) / debezium_rate
        yield Figure(f"{what}: current tables too, against Debezium", both, "x", at_least=4)


def snapshots(server: Server, folder: Path, *, rows: int, repeat: int = 1) -> Iterator[Figure]:
    """A table of `rows` rows and fifty of a fiftieth each, into change logs and current tables."""
    small = rows // SMALL_TABLES
    tables = {"large": rows, **{f"s{number}": small for number in range(SMALL_TABLES)}}
    total, what = sum(tables.values()), f"snapshot of a table of {rows:,} rows and {SMALL_TABLES} of {small:,}"
    create_database(server, "snap", tables)
    create_database(server, "warm", {"t": 1_000})
    logs, currents, fetches = list[float](), list[float](), list[float]()
    for number in range(repeat):
        place = folder / f"snapshot{number}"
        place.mkdir()
        with opened(server, "warm", place):  # Starts Spark, which the next connector uses.
            log, current = _snapshot(server, place)
        logs.append(log)
        currents.append(current)
        queries = [f"SELECT * FROM dbo.{table}" for table in tables]
        fetches.append(_seconds(partial(_fetch, server, "snap", queries)))
    log, current, fetch = (statistics.median(found) for found in (logs, currents, fetches))
    yield rate(f"{what} into change logs", total, log)
    yield rate(f"{what} into change logs and current tables", total, log + current)
    yield rate(f"{what}: bare fetch", total, fetch)
    yield Figure(f"{what}: change logs against the bare fetch", fetch / log, "x", at_least=0.5)
    yield Figure(f"{what}: current tables too, against the change logs", log / (log + current), "x", at_least=0.5)
    with ExitStack() as stack:
        oracle = _debezium(stack, server, folder / "debezium-snapshot")
        if oracle is not None:
            oracle.snapshot("warm", 1_000, name="warm")
            theirs = oracle.snapshot("snap", total, name="snap")
            yield Figure(f"{what}: Debezium into nothing", theirs, "rows/s")
            yield Figure(f"{what}: change logs against Debezium", total / log / theirs, "x", at_least=10)


def _snapshot(server: Server, folder: Path) -> tuple[float, float]:
    from mssql_cdc.config import load_connector
    from mssql_cdc.run.databases import open_databases
    from mssql_cdc.run.follower import Follower
    from mssql_cdc.run.start import look, start
    from mssql_cdc_tests.benchmarks.server import connector_file

    connector = load_connector(connector_file(server, "snap", folder))
    with open_databases(connector, warehouse=str(folder / "snap"), quiet=True, lasting=True) as databases:
        start(databases)
        look(databases[0])
        log = _seconds(partial(until_idle, Follower(databases[0], merge=False, ready=True)))
        return log, _seconds(partial(refresh_current, databases[0]))


def _debezium(stack: ExitStack, server: Server, folder: Path) -> Debezium | None:
    try:
        debezium_jars()
    except OracleUnavailableError:
        return None
    return stack.enter_context(debezium(server, folder))


def _fetch(server: Server, database: str, queries: Sequence[str]) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(partial(_fetch_one, server, database), queries))


def _fetch_one(server: Server, database: str, query: str) -> None:
    reader = read_arrow_batches_from_odbc(
        query, connection_string=server.odbc(database), batch_size=65_535, max_text_size=200, max_binary_size=200
    )
    for _ in reader or ():
        pass


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
