"""Rendering rates: records into a file and into nothing, beside the real Debezium streaming the same changes."""

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
from mssql_cdc_tests.benchmarks.opened import opened, until_idle, wait_for_capture
from mssql_cdc_tests.benchmarks.rates import oracle
from mssql_cdc_tests.benchmarks.server import Server, change, create_database, fill_numbers
from mssql_cdc_tests.benchmarks.sizes import TABLES


def rendering(bench: Bench) -> Iterator[Figure]:
    """Render the changes of twenty tables; medians, also of Debezium's rounds behind a warm-up."""
    sizes, folder = bench.sizes, bench.folder
    rounds = (sizes.warm, *[sizes.records] * sizes.repeat)
    theirs = list[float]()
    with ExitStack() as stack:
        server = stack.enter_context(bench.sandbox())
        _create(server, sum(rounds) // TABLES)
        connector = stack.enter_context(opened(server, "rendered", folder))
        with ExitStack() as inner:
            debezium = oracle(inner, server, folder / "debezium-rendered")
            if debezium is not None:
                pinged = inner.enter_context(server.connect("rendered"))
                debezium.begin("rendered", partial(pinged.execute, "INSERT dbo.ping DEFAULT VALUES"))
            there = 0
            for count in rounds:
                each = count // TABLES
                with server.connect("rendered") as connection:
                    for number in range(TABLES):
                        change(connection, f"t{number}", first=1 + there, rows=each)
                there += each
                wait_for_capture(server, "rendered", {f"t{number}": there for number in range(TABLES)})
                theirs += [debezium.stream("rendered", each * TABLES)] if debezium is not None else []
        until_idle(connector.log)
        properties = connector.database.connector
        output, warehouse = folder / "rendered.jsonl", folder / "rendered"
        keep_freed_memory()  # As the command does.
        records, spent = _median(partial(_render, properties, warehouse, output), sizes.repeat)
        _, discarded = _median(partial(_discard, properties, warehouse), sizes.repeat)
        read, reading = _median(partial(_read, warehouse), sizes.repeat)
    what = f"records of {sizes.records:,} changes"
    yield rate(f"{what} into a file", records, spent.seconds)
    yield rate(f"{what} into nothing", records, discarded.seconds)
    yield Figure(f"{what} into nothing: per second of CPU", records / max(discarded.cpu, 0.01), "rows/s")
    yield rate(f"{what}: their change logs, only read", read, reading.seconds)
    if theirs:
        median = statistics.median(theirs[1:])
        yield Figure(f"{what}: Debezium streaming into nothing", median, "rows/s")
        yield bench.goal("records/debezium", records / discarded.seconds / median)
        yield Figure(f"{what} into a file: against Debezium", records / spent.seconds / median, "x")


def _create(server: Server, rows: int) -> None:
    create_database(server, "rendered", {f"t{number}": 0 for number in range(TABLES)})
    with server.connect("rendered") as connection:
        fill_numbers(connection, rows, above=10_000)
        connection.execute("CREATE TABLE dbo.ping (id int IDENTITY PRIMARY KEY, at datetime2 DEFAULT SYSDATETIME())")
        connection.execute("EXEC sys.sp_cdc_enable_table N'dbo', N'ping', @role_name = NULL")


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
