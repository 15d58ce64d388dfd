"""Rendering rates: records into a file and into nothing, beside the real Debezium streaming the same changes.

The changes are a mix (`mix.py`); neither side has records of rows that were there before, or tombstones.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from mssql_cdc.cli.records import keep_freed_memory
from mssql_cdc.config import Connector
from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.measure import Figure, Spent, rate, spending
from mssql_cdc_tests.benchmarks.mix import filled, mixed_tables, numbers_needed
from mssql_cdc_tests.benchmarks.opened import opened, until_idle, wait_for_capture
from mssql_cdc_tests.benchmarks.rates import compilers, oracle
from mssql_cdc_tests.benchmarks.server import PING, create_database, create_ping
from mssql_cdc_tests.benchmarks.sizes import TABLES

NAMES = tuple(f"t{number}" for number in range(TABLES))
SETTINGS = {"snapshot.mode": "no_data", "tombstones.on.delete": "false"}


def rendering(bench: Bench) -> Iterator[Figure]:
    """Render the changes of twenty tables; medians, also of Debezium's rounds behind a warm-up."""
    sizes, folder = bench.sizes, bench.folder
    rounds = (sizes.warm, *[sizes.records] * sizes.repeat)
    theirs = list[float]()
    with ExitStack() as stack:
        server = stack.enter_context(bench.sandbox())
        events = sum(rounds) // TABLES
        create_database(server, "rendered", filled(NAMES, sizes), numbers=numbers_needed(sizes, events))
        with server.connect("rendered") as connection:
            create_ping(connection)
        connector = stack.enter_context(opened(server, "rendered", folder, **SETTINGS))
        with ExitStack() as inner:
            debezium = oracle(inner, server, folder / "debezium-rendered")
            if debezium is not None:
                pinged = inner.enter_context(server.connect("rendered"))
                debezium.begin("rendered", partial(pinged.execute, PING))
            tables, rows, warm = mixed_tables(NAMES, sizes), dict.fromkeys(NAMES, 0), 0.0
            for count in rounds:
                with server.connect("rendered", autocommit=False) as connection:
                    for table in tables:
                        rows[table.name] += table.change(connection, count // TABLES)
                wait_for_capture(server, "rendered", rows)
                if debezium is not None:
                    theirs.append(debezium.stream("rendered", count // TABLES * TABLES))
                    warm = warm or debezium.compiled
            if debezium is not None:
                yield from compilers("records", warm, debezium)
        until_idle(connector.log)
        properties = connector.database.connector
        output, warehouse = folder / "rendered.jsonl", folder / "rendered"
        keep_freed_memory()  # As the command does.
        records, spent = _median(partial(_render, properties, warehouse, output), sizes.repeat)
        _, discarded = _median(partial(_discard, properties, warehouse), sizes.repeat)
        read, reading = _median(partial(_read, warehouse), sizes.repeat)
    what = f"records of {sizes.records:,} change events"
    yield rate(f"{what} into a file", records, spent.seconds)
    yield rate(f"{what} into nothing", records, discarded.seconds)
    yield Figure(f"{what} into nothing: per second of CPU", records / max(discarded.cpu, 0.01), "rows/s")
    yield rate(f"{what}: their change logs, only read", read, reading.seconds)
    if theirs:
        median = statistics.median(theirs[1:])
        yield Figure(f"{what}: Debezium streaming into nothing", median, "rows/s")
        yield bench.goal("records/debezium", records / discarded.seconds / median)
        yield Figure(f"{what} into a file: against Debezium", records / spent.seconds / median, "x")


def _render(connector: Connector, warehouse: Path, output: Path) -> int:
    from mssql_cdc.records import open_output, write_records

    output.unlink(missing_ok=True)
    output.with_name(f"{output.name}.progress").unlink(missing_ok=True)
    with open_output(str(output), connector) as opened_output:
        return write_records(connector, output=opened_output, warehouse=str(warehouse))


def _discard(connector: Connector, warehouse: Path) -> int:
    """Render as Debezium streams here: nobody keeps the records."""
    from mssql_cdc.records import write_records
    from mssql_cdc.records.outputs import JsonLinesStream

    with Path(os.devnull).open("wb") as nothing:
        return write_records(connector, output=JsonLinesStream(nothing), warehouse=str(warehouse))


def _read(warehouse: Path) -> int:
    return sum(pq.read_table(file).num_rows for file in warehouse.rglob("changes/*.parquet"))


def _median(work: Callable[[], int], repeat: int) -> tuple[int, Spent]:
    """Return the result of some work, and the median of what it takes."""
    rounds: list[Spent] = []
    count = 0
    for _ in range(repeat):
        rounds.append(Spent())
        with spending(rounds[-1]):
            count = work()
    seconds, cpu = ([getattr(one, name) for one in rounds] for name in ("seconds", "cpu"))
    return count, Spent(statistics.median(seconds), statistics.median(cpu))
