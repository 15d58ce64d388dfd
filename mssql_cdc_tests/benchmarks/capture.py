"""Capture rates: a snapshot of one large table, changes in many tables, a warm tick over fifty tables.

References from the same server in the same run: a plain arrow-odbc fetch of the same rows, and the real Debezium
reading the same database and discarding the records.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from arrow_odbc.read_arrow_batches_from_odbc import read_arrow_batches_from_odbc

from mssql_cdc_tests.benchmarks import measure
from mssql_cdc_tests.benchmarks.measure import Figure, rate
from mssql_cdc_tests.benchmarks.server import Server, change, connector_file, create_database
from mssql_cdc_tests.conformance.debezium import DebeziumEngine, DebeziumMachine, OracleUnavailableError, debezium_jars

CHANGED_TABLES = 20
TICK_TABLES = 50
TICK_ROWS = 100


def snapshot_and_changes(server: Server, folder: Path, *, rows: int, changes: int) -> Iterator[Figure]:
    """Capture one table of `rows` rows, then `changes` inserts over twenty tables, with `run --until-caught-up`."""
    per_table = changes // CHANGED_TABLES
    tables = {"large": rows, **{f"t{i}": 0 for i in range(CHANGED_TABLES)}}
    create_database(server, "bench", tables)
    config = connector_file(server, "bench", folder)
    warehouse = folder / "warehouse"
    command = [sys.executable, "-m", "mssql_cdc.cli", "run", "--config", str(config), "--warehouse", str(warehouse)]
    command += ["--until-caught-up", "--timeout", "1800"]
    snapshot = measure.run(command, log=folder / "snapshot.log")
    logged = measure.commits(warehouse, since=snapshot.started)
    yield Figure(f"snapshot of {rows:,} rows into the change log", rate(rows, logged[-1] - snapshot.started))
    yield Figure("the same until current tables are there", rate(rows, snapshot.seconds))
    yield Figure("seconds from start to the first rows in a change log", f"{logged[0] - snapshot.started:.1f}")
    yield Figure(
        "peak memory of driver / JVM / workers",
        f"{snapshot.driver_mib:,.0f} / {snapshot.jvm_mib:,.0f} / {snapshot.workers_mib:,.0f} MiB",
    )
    yield Figure("the same rows through bare arrow-odbc", rate(rows, _bare_fetch(server, "SELECT * FROM dbo.large")))
    with server.connect("bench") as connection:
        for number in range(CHANGED_TABLES):
            change(connection, f"t{number}", first=1, rows=per_table)
    streamed = measure.run(command, log=folder / "stream.log")
    events = per_table * CHANGED_TABLES
    logged = measure.commits(warehouse, since=streamed.started)
    yield Figure(
        f"{events:,} changes in {CHANGED_TABLES} tables into change logs", rate(events, logged[-1] - streamed.started)
    )
    yield Figure("the same until current tables are there", rate(events, streamed.seconds))
    fetched = sum(_bare_fetch(server, f"SELECT * FROM cdc.dbo_t{number}_CT") for number in range(CHANGED_TABLES))
    yield Figure("the same change rows through bare arrow-odbc", rate(events, fetched))
    yield from _debezium(server, folder, rows=rows, events=events)


def warm_tick(server: Server, folder: Path) -> Iterator[Figure]:
    """Measure a tick over fifty changed tables on a warm session, split into its parts."""
    from mssql_cdc.config import load_connector
    from mssql_cdc.run.databases import open_databases
    from mssql_cdc.run.follower import Follower
    from mssql_cdc.run.loop import catch_up

    create_database(server, "ticks", {f"t{i}": 0 for i in range(TICK_TABLES)})
    with server.connect("ticks") as connection:
        connection.execute(f"DELETE FROM dbo.numbers WHERE i > {10 * TICK_ROWS}")
    connector = load_connector(connector_file(server, "ticks", folder))
    with open_databases(connector, warehouse=str(folder / "ticks"), quiet=True, lasting=True) as databases:
        catch_up(databases, timeout=600)
        follower = Follower(databases[0], merge=False)
        turns: list[tuple[float, dict[str, float]]] = []
        for turn in range(3):  # the first rounds warm up the JVM; only the last one counts
            with server.connect("ticks") as connection:
                for number in range(TICK_TABLES):
                    change(connection, f"t{number}", first=1 + turn * TICK_ROWS, rows=TICK_ROWS)
            time.sleep(1.5)
            with timed() as parts:
                started = time.perf_counter()
                follower.step()
                turns.append((time.perf_counter() - started, parts))
    whole, parts = turns[-1]
    shown = ", ".join(f"{name} {seconds:.2f}" for name, seconds in parts.items())
    yield Figure(f"warm tick over {TICK_TABLES} tables of {TICK_ROWS} changes", f"{whole:.2f} s: {shown}")


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Accumulates the seconds spent in the parts of a tick."""
    import mssql_cdc.capture.range as capture
    import mssql_cdc.run.follower as follower

    spent: dict[str, float] = defaultdict(float)
    watched = [
        (follower, "survey", "probe"),
        (capture, "run_tasks", "job"),
        (capture, "commit", "commits"),
        (capture, "append_offsets", "offsets"),
    ]
    with ExitStack() as stack:
        for module, name, part in watched:
            stack.enter_context(patch.object(module, name, _timed(getattr(module, name), spent, part)))
        yield spent


def _timed(function: Callable[..., Any], spent: dict[str, float], part: str) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent[part] += time.perf_counter() - started

    return wrapper


def _bare_fetch(server: Server, query: str) -> float:
    started = time.perf_counter()
    reader = read_arrow_batches_from_odbc(
        query, connection_string=server.odbc("bench"), batch_size=65_535, max_text_size=200, max_binary_size=200
    )
    assert reader is not None
    for _ in reader:
        pass
    return time.perf_counter() - started


def _debezium(server: Server, folder: Path, *, rows: int, events: int) -> Iterator[Figure]:
    """Measure the real Debezium on the same database: snapshot and streaming, records discarded."""
    try:
        debezium_jars()
    except OracleUnavailableError as error:
        yield Figure("the genuine Debezium", f"not run: {error}")
        return
    properties = {
        "name": "bench",
        "topic.prefix": "bench",
        "database.hostname": server.host,
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
        "database.names": "bench",
        "max.batch.size": "8192",
        "max.queue.size": "32768",
    }
    total = rows + events
    started = time.perf_counter()
    with engine(properties, folder / "debezium") as running:
        while running.count < total:
            running.wait_until(lambda _: running.count >= total, timeout=1800)
    yield Figure(
        "the genuine Debezium's snapshot of all of it into nothing", rate(total, time.perf_counter() - started)
    )
    with server.connect("bench") as connection:
        started_at = 10_000
        with engine(properties, folder / "debezium") as running:
            for number in range(CHANGED_TABLES):
                connection.execute(f"UPDATE dbo.t{number} SET quantity = quantity + 1 WHERE id <= {started_at}")
            started = time.perf_counter()
            running.wait_until(lambda _: running.count >= events, timeout=900)
            yield Figure("the genuine Debezium's streaming into nothing", rate(events, time.perf_counter() - started))


@contextmanager
def engine(properties: dict[str, str], folder: Path) -> Iterator[DebeziumEngine]:
    """The real Debezium in its own JVM; its records are only counted."""
    with (
        DebeziumMachine(folder) as machine,
        DebeziumEngine(machine, properties, folder, keep_records=False) as running,
    ):
        yield running
