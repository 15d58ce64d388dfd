"""Rendering rates: records from the lake into a file, beside the real Debezium streaming the same changes.

References from the same run: reading the change logs' files without rendering, and Debezium, which discards its
records.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq

from mssql_cdc_tests.benchmarks import measure
from mssql_cdc_tests.benchmarks.capture import CHANGED_TABLES, engine
from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.server import Server, connector_file, create_database
from mssql_cdc_tests.conformance.debezium import OracleUnavailableError, debezium_jars

ROUNDS = 3


def rendering(server: Server, folder: Path, *, changes: int) -> Iterator[Figure]:
    """Update `changes` rows of twenty tables; render their records, and let Debezium stream them."""
    from mssql_cdc.config import load_connector

    rows = changes // CHANGED_TABLES
    create_database(server, "rendered", {f"t{number}": rows for number in range(CHANGED_TABLES)})
    config = connector_file(server, "rendered", folder)
    warehouse = folder / "rendered-lake"
    command = [sys.executable, "-m", "mssql_cdc.cli", "run", "--config", str(config), "--warehouse", str(warehouse)]
    command += ["--until-caught-up", "--timeout", "1800"]
    measure.run(command, log=folder / "rendered.log")
    streamed = _debezium(server, folder, rows=rows)
    measure.run(command, log=folder / "rendered.log")
    connector = load_connector(config)
    first = folder / "rendered.jsonl"

    def render() -> int:
        from mssql_cdc.records import open_output, write_records

        first.unlink(missing_ok=True)
        first.with_name(f"{first.name}.progress").unlink(missing_ok=True)
        with open_output(str(first), connector) as output:
            return write_records(connector, output=output, warehouse=str(warehouse))

    records, seconds, cpu = _median(render)
    with first.open(encoding="utf-8") as file:
        assert json.loads(next(file))["topic"]
    rate = records / seconds
    yield Figure(f"{records:,} records of {CHANGED_TABLES} tables into a file", measure.rate(records, seconds))
    yield Figure("the same per second of CPU", f"{records / cpu:,.0f}")
    read, reading, _ = _median(lambda: _read(warehouse))
    yield Figure("reading the same change logs only", measure.rate(read, reading))
    if isinstance(streamed, str):
        yield Figure("the genuine Debezium's streaming of the updates", f"not run: {streamed}")
        return
    yield Figure("the genuine Debezium's streaming of the updates", measure.rate(changes, streamed))
    yield Figure("rendering against Debezium's streaming (at least 8)", f"{rate / (changes / streamed):.1f}")


def _median(work: Callable[[], int]) -> tuple[int, float, float]:
    """Return the result of some work, and the medians of its seconds and of its seconds of CPU."""
    seconds, cpu = list[float](), list[float]()
    count = 0
    for _ in range(ROUNDS):
        started, used = time.perf_counter(), time.process_time()
        count = work()
        seconds.append(time.perf_counter() - started)
        cpu.append(time.process_time() - used)
    return count, statistics.median(seconds), statistics.median(cpu)


def _read(warehouse: Path) -> int:
    return sum(pq.read_table(file).num_rows for file in warehouse.rglob("changes/*.parquet"))


def _debezium(server: Server, folder: Path, *, rows: int) -> float | str:
    """Seconds in which a warm Debezium streams an update of every row; why not, if it cannot run."""
    updates = rows * CHANGED_TABLES
    try:
        debezium_jars()
    except OracleUnavailableError as error:
        _update(server, rows)
        return str(error)
    properties = {
        "name": "rendered",
        "topic.prefix": "rendered",
        "database.hostname": server.host,
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
        "database.names": "rendered",
        "include.schema.changes": "false",
        "poll.interval.ms": "10",
        "max.batch.size": "8192",
        "max.queue.size": "32768",
    }
    with engine(properties, folder / "debezium-rendered") as running:
        running.wait_until(lambda _: running.count >= updates, timeout=1800)  # The snapshot, which warms the JVM up.
        started = time.perf_counter()
        _update(server, rows)
        running.wait_until(lambda _: running.count >= 2 * updates, timeout=1800)
        return time.perf_counter() - started


def _update(server: Server, rows: int) -> None:
    with server.connect("rendered") as connection:
        for number in range(CHANGED_TABLES):
            connection.execute(f"UPDATE dbo.t{number} SET quantity = quantity + 1 WHERE id <= {rows}")
